//! From a commit request to its log record (rule 6): the pipeline, validation,
//! and what the commit does to pages.

pub(in crate::home) mod apply;
pub(in crate::home) mod changes;
pub(in crate::home) mod dependencies;
pub(in crate::home) mod effects;
pub(in crate::home) mod parking;
pub(in crate::home) mod pipeline;
pub(in crate::home) mod refusal;
pub(in crate::home) mod validate;

use thorp_model::{CommitId, Registration};

/// One commit's identity on its way through a home.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Whose {
    pub(in crate::home) id: CommitId,
    pub(in crate::home) registration: Registration,
}
