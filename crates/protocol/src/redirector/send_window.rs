//! What a redirector has passed up and no answer has come for, in bytes: or its
//! own send queue would end the edge to its parent, and with it every stream of
//! the site (rule 15). A child that goes takes nothing out of that queue.

use crate::redirector::Redirector;
use alloc::collections::BTreeMap;
use thorp_model::planted::Bug;
use thorp_model::{CallId, CommitId, HomeId, planted};

/// What is on its way to the homes.
#[derive(Debug, Default)]
pub(super) struct Passing {
    commits: Bytes<(HomeId, CommitId)>,
    stagings: Bytes<CallId>,
}

/// What is on its way, and how much of it to each home.
#[derive(Debug)]
struct Bytes<K> {
    passed: BTreeMap<K, (HomeId, usize)>,
    to_home: BTreeMap<HomeId, usize>,
}

impl Passing {
    pub(super) fn commit(&mut self, home: HomeId, id: CommitId, bytes: usize) {
        self.commits.pass((home, id), home, bytes);
    }

    pub(super) fn commit_ended(&mut self, home: HomeId, id: CommitId) {
        self.commits.end((home, id));
    }

    pub(super) fn staging(&mut self, call: CallId, home: HomeId, bytes: usize) {
        self.stagings.pass(call, home, bytes);
    }

    pub(super) fn call_answered(&mut self, call: CallId) {
        self.stagings.end(call);
    }

    pub(super) fn bytes(&self) -> usize {
        let commits = self.commits.to_home.values();
        commits.chain(self.stagings.to_home.values()).sum()
    }

    /// The stream of a home has ended: no answer will come.
    pub(super) fn forget(&mut self, home: HomeId) {
        self.commits.forget(home);
        self.stagings.forget(home);
    }
}

impl Redirector {
    /// Whether a commit may be passed up to its home.
    pub(super) fn has_space_for_commit(&self, home: HomeId, bytes: usize) -> bool {
        self.has_space(home, bytes, &self.passing.commits.to_home)
    }

    /// Whether a value's pages may be passed up to its home.
    pub(super) fn has_space_for_staging(&self, home: HomeId, bytes: usize) -> bool {
        self.has_space(home, bytes, &self.passing.stagings.to_home)
    }

    /// Several homes may be behind one edge. One passes alone, however large it is.
    fn has_space(&self, home: HomeId, bytes: usize, to_home: &BTreeMap<HomeId, usize>) -> bool {
        let up = |home: &HomeId| self.homes.get(home).and_then(|proxy| proxy.up.edge);
        let edge = up(&home);
        let here = to_home.iter().filter(|(home, _)| up(home) == edge);
        let under_way: usize = here.map(|(_, bytes)| bytes).sum();
        under_way == 0
            || under_way + bytes <= self.config.upward_bytes_max
            || planted::is(Bug::ChildNotLimited)
    }
}

impl<K: Ord> Bytes<K> {
    fn pass(&mut self, key: K, home: HomeId, bytes: usize) {
        // The same call may come up two edges: both copies are on their way.
        self.passed.entry(key).or_insert((home, 0)).1 += bytes;
        *self.to_home.entry(home).or_default() += bytes;
    }

    fn end(&mut self, key: K) {
        if let Some((home, bytes)) = self.passed.remove(&key)
            && let Some(under_way) = self.to_home.get_mut(&home)
        {
            *under_way -= bytes;
        }
    }

    fn forget(&mut self, home: HomeId) {
        self.passed.retain(|_, (to, _)| *to != home);
        self.to_home.remove(&home);
    }
}

impl<K> Default for Bytes<K> {
    fn default() -> Self {
        Bytes {
            passed: BTreeMap::new(),
            to_home: BTreeMap::new(),
        }
    }
}
