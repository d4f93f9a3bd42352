//! A member has a bounded number of bytes on its way up (rule 15). Without the bound its own send queue would end the
//! edge to its parent. What does not fit waits, in order, for the answers to what was sent.

use crate::edge::send_window::SendWindow;
use thorp_model::{CallId, CommitId, HomeId};

/// The member's send window.
///
/// Invariant: when space comes free that something may wait for, `has_freed` is set until [`Uplink::take_freed`].
#[derive(Debug)]
pub(super) struct Uplink {
    window: SendWindow,
    has_freed: bool,
}

impl Uplink {
    /// Nothing is on its way; an edge may carry so many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Uplink {
            window: SendWindow::new(bytes_max),
            has_freed: false,
        }
    }

    /// Bytes on their way.
    pub(super) fn bytes(&self) -> usize {
        self.window.bytes()
    }

    /// Whether a commit may go up now, beside what goes to the homes that are on its edge.
    pub(super) fn has_space_for_commit(
        &self,
        bytes: usize,
        is_on: impl Fn(HomeId) -> bool,
    ) -> bool {
        self.window.has_space_for_commit(bytes, is_on)
    }

    /// The same of a piece of a value that is being staged.
    pub(super) fn has_space_for_staging(
        &self,
        bytes: usize,
        is_on: impl Fn(HomeId) -> bool,
    ) -> bool {
        self.window.has_space_for_staging(bytes, is_on)
    }

    /// A part of a commit goes up.
    pub(super) fn commit_sent(&mut self, home: HomeId, id: CommitId, bytes: usize) {
        self.window.commit_sent(home, id, bytes);
    }

    /// A home has answered for a part. Space comes free only if that was its first answer.
    pub(super) fn commit_answered(&mut self, home: HomeId, id: CommitId, was_unanswered: bool) {
        self.window.commit_answered(home, id);
        self.has_freed |= was_unanswered;
    }

    /// A call goes up.
    pub(super) fn call_sent(&mut self, call: CallId, home: HomeId, bytes: usize) {
        self.window.call_sent(call, home, bytes);
    }

    /// A home has answered a call that had so many bytes of a value.
    pub(super) fn call_answered(&mut self, call: CallId, bytes: usize) {
        self.window.call_answered(call);
        self.has_freed |= bytes > 0;
    }

    /// The answer to a call does not come, and the call is not made again.
    pub(super) fn call_given_up(&mut self, call: CallId) {
        self.window.call_answered(call);
    }

    /// A stream has ended: what was on its edge weighs on no other.
    pub(super) fn stream_ended(&mut self) {
        self.has_freed = true;
    }

    /// A home's stream begins anew: the calls to it are lost, and are made again.
    pub(super) fn forget_calls(&mut self, home: HomeId) {
        self.window.forget_calls(home);
    }

    /// Whether what waits may go, since this was asked last.
    pub(super) fn take_freed(&mut self) -> bool {
        core::mem::take(&mut self.has_freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::MemberId;

    const HOME: HomeId = HomeId(1);
    const COMMIT: CommitId = CommitId {
        member: MemberId(1),
        sequence: 1,
    };
    const CALL: CallId = CallId {
        member: MemberId(1),
        number: 1,
    };

    #[test]
    fn what_waits_is_looked_at_once_for_each_time_that_space_came_free() {
        let mut uplink = Uplink::new(10);
        uplink.commit_sent(HOME, COMMIT, 10);
        assert!(!uplink.take_freed());
        uplink.commit_answered(HOME, COMMIT, true);
        assert!(uplink.take_freed() && !uplink.take_freed());
        // Its vote came before: the outcome frees nothing.
        uplink.commit_answered(HOME, COMMIT, false);
        assert!(!uplink.take_freed());
    }

    #[test]
    fn an_answer_to_a_call_without_a_value_frees_nothing() {
        let mut uplink = Uplink::new(10);
        uplink.call_sent(CALL, HOME, 0);
        uplink.call_answered(CALL, 0);
        assert!(!uplink.take_freed());
        uplink.call_sent(CALL, HOME, 7);
        uplink.call_answered(CALL, 7);
        assert!(uplink.take_freed());
        assert_eq!(uplink.bytes(), 0);
    }
}
