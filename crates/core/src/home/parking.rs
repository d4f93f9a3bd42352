//! Commits that wait for pages from disk, bounded by their number and by what
//! they keep in memory (rule 15).

use crate::ids::{EdgeId, PageId};
use crate::limits::PAGE_BYTES;
use crate::message::CommitRequest;
use crate::planted::{self, Bug};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

/// A commit that waits for pages from disk.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) edge: EdgeId,
    pub(super) request: CommitRequest,
    /// All pages that it was found to need: they stay in memory until it is judged.
    pub(super) needs: BTreeSet<PageId>,
}

impl Parked {
    /// What it keeps in memory: itself, and every page that may not go before it.
    fn bytes(&self) -> usize {
        PARKED_ENTRY_BYTES + self.request.bytes() + self.needs.len() * PAGE_BYTES
    }
}

/// All commits that wait, in the order in which they began to.
#[derive(Debug)]
pub(super) struct Parking {
    commits: VecDeque<Parked>,
    bytes: usize,
    commits_max: usize,
    bytes_max: usize,
}

impl Parking {
    /// Nothing waits. One commit alone may wait whatever its size.
    pub(super) fn new(commits_max: usize, bytes_max: usize) -> Self {
        Parking {
            commits: VecDeque::new(),
            bytes: 0,
            commits_max,
            bytes_max,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.commits.len()
    }

    /// How many of an edge wait.
    pub(super) fn of(&self, edge: EdgeId) -> usize {
        let commits = self.commits.iter();
        commits.filter(|parked| parked.edge == edge).count()
    }

    /// Bytes that they keep in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Parks a commit. False at a limit: then it is not parked.
    pub(super) fn park(&mut self, parked: Parked) -> bool {
        let bytes = self.bytes + parked.bytes();
        let fits = bytes <= self.bytes_max
            || self.commits.is_empty()
            || planted::is(Bug::ParkedBytesNotCounted);
        if !fits || self.commits.len() >= self.commits_max {
            return false;
        }
        self.bytes = bytes;
        self.commits.push_back(parked);
        true
    }

    /// Takes out those that wait for a page.
    pub(super) fn take_waiting(&mut self, page: PageId) -> Vec<Parked> {
        self.take(|parked| parked.needs.contains(&page))
    }

    /// Drops what came from an edge that is gone.
    pub(super) fn forget(&mut self, edge: EdgeId) {
        self.take(|parked| parked.edge == edge);
    }

    /// Whether any of them needs a page.
    pub(super) fn needs(&self, page: PageId) -> bool {
        self.commits
            .iter()
            .any(|parked| parked.needs.contains(&page))
    }

    fn take(&mut self, is_wanted: impl Fn(&Parked) -> bool) -> Vec<Parked> {
        let mut taken = Vec::new();
        for parked in core::mem::take(&mut self.commits) {
            if is_wanted(&parked) {
                self.bytes -= parked.bytes();
                taken.push(parked);
            } else {
                self.commits.push_back(parked);
            }
        }
        taken
    }
}

/// What a parked commit is charged beside its request and its pages, in bytes.
const PARKED_ENTRY_BYTES: usize = 256;
