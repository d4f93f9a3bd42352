//! From a commit request to its log record (rule 6): the pipeline, validation,
//! and what the commit does to pages.

pub(in crate::home) mod changes;
pub(in crate::home) mod effects;
pub(in crate::home) mod parking;
pub(in crate::home) mod pipeline;
pub(in crate::home) mod validate;
