//! The home's pages: images in memory and the modified-object buffer above
//! them, background installation and removal, and pages whose image is damaged.

pub(in crate::home) mod install;
pub(in crate::home) mod quarantine;
pub(in crate::home) mod remove;
pub(in crate::home) mod store;
pub(in crate::home) mod waiters;
