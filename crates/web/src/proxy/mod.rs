//! The proxy: which requests the cache answers, and what it keeps.

mod answer;
mod entries;
mod flights;
mod host;
mod origin;
mod plain;
mod request;
mod serve;

pub use serve::{Proxy, ProxyError, serve};
