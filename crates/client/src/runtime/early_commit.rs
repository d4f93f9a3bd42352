//! What is kept of a commit whose program goes on before the response (rule 14).

use thorp_model::CommitId;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// One early commit. It holds its place among those of its home until it is dropped, and wakes its program at most
/// once.
pub(crate) struct EarlyCommit {
    _place: OwnedSemaphorePermit,
    /// None: its program goes on.
    shown: Option<oneshot::Sender<CommitId>>,
}

impl EarlyCommit {
    /// The commit, and a receiver of its id as soon as the page cache shows it.
    pub(crate) fn new(place: OwnedSemaphorePermit) -> (Self, oneshot::Receiver<CommitId>) {
        let (sender, receiver) = oneshot::channel();
        let early = EarlyCommit {
            _place: place,
            shown: Some(sender),
        };
        (early, receiver)
    }

    /// The page cache shows it: its program goes on.
    pub(super) fn show(&mut self, id: CommitId) {
        if let Some(shown) = self.shown.take() {
            // A program that dropped its future does not wait.
            let _ = shown.send(id);
        }
    }
}
