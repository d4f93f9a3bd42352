//! What a program knows of its own commits.

use thorp_model::{CommitId, Stamp};

/// This program's commits that were shown to its transactions before they were
/// answered (rule 14).
pub trait OwnCommits {
    /// Whether a commit is shown and not answered yet.
    fn is_open(&self, id: CommitId) -> bool;

    /// A stamp that is not below that of a commit, if it is committed.
    fn stamp(&self, id: CommitId) -> Stamp;
}
