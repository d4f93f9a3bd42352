//! Commits whose outcome is not known yet.

use super::send::ended;
use crate::runtime::{MemberRuntime, RequestFuture, block_on};
use crate::{CommitId, Committed, Result};
use std::fmt;
use std::sync::Arc;

/// A commit whose program went on: see [`Transaction::commit_early`](crate::Transaction::commit_early). If it is
/// dropped, the commit goes on, and [`Member::outcome`](crate::Member::outcome) gives the outcome.
pub struct Pending(State);

enum State {
    Ended(Committed),
    Ahead {
        /// Keeps the member running: a commit without an outcome may not have been sent.
        runtime: Arc<MemberRuntime>,
        id: CommitId,
        wait: RequestFuture,
    },
}

impl Pending {
    pub(crate) fn ended(committed: Committed) -> Self {
        Pending(State::Ended(committed))
    }

    pub(crate) fn ahead(runtime: Arc<MemberRuntime>, id: CommitId, wait: RequestFuture) -> Self {
        Pending(State::Ahead { runtime, id, wait })
    }

    pub(crate) fn is_ahead(&self) -> bool {
        matches!(self.0, State::Ahead { .. })
    }

    /// The commit's id; none if it only read and no home had to judge it.
    pub fn id(&self) -> Option<CommitId> {
        match &self.0 {
            State::Ended(committed) => committed.id,
            State::Ahead { id, .. } => Some(*id),
        }
    }

    /// Waits for the outcome. After a [`Conflict`](crate::ErrorKind::Conflict) the program runs the transaction again,
    /// with all that built on it. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) means that the home did not
    /// answer within the session's [`commit_timeout`](crate::Session::commit_timeout).
    /// [`Member::outcome`](crate::Member::outcome) gives the outcome later.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`](crate::Transaction::commit).
    pub fn wait(self) -> Result<Committed> {
        block_on(self.wait_async())
    }

    /// As [`Pending::wait`].
    ///
    /// # Errors
    ///
    /// As [`Pending::wait`].
    pub async fn wait_async(self) -> Result<Committed> {
        match self.0 {
            State::Ended(committed) => Ok(committed),
            State::Ahead { runtime, wait, .. } => ended(&runtime.shared, wait.await),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.id()).finish()
    }
}
