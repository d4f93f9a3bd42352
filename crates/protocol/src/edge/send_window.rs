//! A node has a bounded number of bytes on its way up (rule 15). Without the bound its own send
//! queue would end the edge to its parent, and every stream on that edge.

use alloc::collections::BTreeMap;
use thorp_model::{CallId, CommitId, HomeId};

/// The bytes that a node has sent up and that no answer has come for: of commits, and of values
/// that it stages. Bytes are on their way from the message to its answer, or to the end of the
/// home's stream. An edge never carries more of either kind than the limit, unless one message
/// alone is larger.
#[derive(Debug)]
pub(crate) struct SendWindow {
    bytes_max: usize,
    commits: Sent<(HomeId, CommitId)>,
    stagings: Sent<CallId>,
}

impl SendWindow {
    /// Nothing is on its way; an edge may carry so many bytes of each kind.
    pub(crate) fn new(bytes_max: usize) -> Self {
        SendWindow {
            bytes_max,
            commits: Sent::default(),
            stagings: Sent::default(),
        }
    }

    /// Whether a commit may go up now. Several homes may be behind one edge: `is_on` names those
    /// behind the edge that the commit takes. One commit passes alone, however large it is.
    pub(crate) fn has_space_for_commit(
        &self,
        bytes: usize,
        is_on: impl Fn(HomeId) -> bool,
    ) -> bool {
        self.has_space(bytes, self.commits.bytes(is_on))
    }

    /// The same of the pages of a value that is being staged.
    pub(crate) fn has_space_for_staging(
        &self,
        bytes: usize,
        is_on: impl Fn(HomeId) -> bool,
    ) -> bool {
        self.has_space(bytes, self.stagings.bytes(is_on))
    }

    fn has_space(&self, bytes: usize, under_way: usize) -> bool {
        under_way == 0 || under_way + bytes <= self.bytes_max
    }

    /// A commit went up to one of its homes.
    pub(crate) fn commit_sent(&mut self, home: HomeId, id: CommitId, bytes: usize) {
        self.commits.sent((home, id), home, bytes);
    }

    /// The home has answered: with its vote, or with the outcome.
    pub(crate) fn commit_answered(&mut self, home: HomeId, id: CommitId) {
        self.commits.answered((home, id));
    }

    /// A call went up. Only one that stages a value takes space.
    pub(crate) fn call_sent(&mut self, call: CallId, home: HomeId, bytes: usize) {
        if bytes > 0 {
            self.stagings.sent(call, home, bytes);
        }
    }

    /// The home has answered a call, or no answer is to come.
    pub(crate) fn call_answered(&mut self, call: CallId) {
        self.stagings.answered(call);
    }

    /// Every call to a home is lost with its stream.
    pub(crate) fn forget_calls(&mut self, home: HomeId) {
        self.stagings.forget(home);
    }

    /// Everything sent to a home is lost with its stream.
    pub(crate) fn forget_home(&mut self, home: HomeId) {
        self.commits.forget(home);
        self.stagings.forget(home);
    }

    /// All bytes on their way.
    pub(crate) fn bytes(&self) -> usize {
        self.commits.bytes(|_| true) + self.stagings.bytes(|_| true)
    }
}

/// Messages of one kind on their way, and their bytes by home: the sums of both are equal.
#[derive(Debug)]
struct Sent<K> {
    messages: BTreeMap<K, (HomeId, usize)>,
    to_home: BTreeMap<HomeId, usize>,
}

impl<K: Ord> Sent<K> {
    fn sent(&mut self, key: K, home: HomeId, bytes: usize) {
        // The same call may come up two edges to a redirector: both copies are on their way.
        self.messages.entry(key).or_insert((home, 0)).1 += bytes;
        *self.to_home.entry(home).or_default() += bytes;
    }

    fn answered(&mut self, key: K) {
        if let Some((home, bytes)) = self.messages.remove(&key)
            && let Some(under_way) = self.to_home.get_mut(&home)
        {
            *under_way -= bytes;
        }
    }

    fn forget(&mut self, home: HomeId) {
        self.messages.retain(|_, (to, _)| *to != home);
        self.to_home.remove(&home);
    }

    fn bytes(&self, is_on: impl Fn(HomeId) -> bool) -> usize {
        let here = self.to_home.iter().filter(|(home, _)| is_on(**home));
        here.map(|(_, bytes)| bytes).sum()
    }
}

// Derived, it would ask the same of `K`.
impl<K> Default for Sent<K> {
    fn default() -> Self {
        Sent {
            messages: BTreeMap::new(),
            to_home: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::MemberId;

    const A: HomeId = HomeId(1);
    const B: HomeId = HomeId(2);

    fn commit(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    fn call(number: u64) -> CallId {
        CallId {
            member: MemberId(1),
            number,
        }
    }

    #[test]
    fn one_commit_passes_alone_however_large_it_is() {
        let mut window = SendWindow::new(10);
        assert!(window.has_space_for_commit(1_000, |_| true));
        window.commit_sent(A, commit(1), 1_000);
        assert!(!window.has_space_for_commit(1, |_| true));
        // Values that are staged have a window of their own.
        assert!(window.has_space_for_staging(1_000, |_| true));
    }

    #[test]
    fn homes_behind_one_edge_share_its_window() {
        let mut window = SendWindow::new(10);
        window.commit_sent(A, commit(1), 6);
        window.commit_sent(B, commit(1), 4);
        assert!(!window.has_space_for_commit(5, |home| home == A));
        assert!(window.has_space_for_commit(5, |home| home == B));
        assert!(!window.has_space_for_commit(1, |_| true));
        window.commit_answered(A, commit(1));
        assert!(window.has_space_for_commit(6, |_| true));
        assert_eq!(window.bytes(), 4);
    }

    #[test]
    fn an_answer_counts_once_and_what_takes_no_space_is_not_kept() {
        let mut window = SendWindow::new(10);
        window.call_sent(call(1), A, 3);
        window.call_sent(call(1), A, 3);
        window.call_sent(call(2), A, 0);
        assert_eq!(window.bytes(), 6);
        window.call_answered(call(1));
        window.call_answered(call(1));
        window.call_answered(call(2));
        assert_eq!(window.bytes(), 0);
    }

    #[test]
    fn what_is_lost_with_a_stream_takes_no_space() {
        let mut window = SendWindow::new(10);
        window.commit_sent(A, commit(1), 5);
        window.call_sent(call(1), A, 5);
        window.call_sent(call(2), B, 5);
        window.forget_calls(A);
        assert_eq!(window.bytes(), 10);
        window.forget_home(A);
        assert_eq!(window.bytes(), 5);
        // A late answer changes nothing.
        window.commit_answered(A, commit(1));
        window.call_answered(call(1));
        assert_eq!(window.bytes(), 5);
    }
}
