//! The pages of one process in one memory, by who can be spared.

use super::hints::NEVER;
use std::collections::BTreeSet;

/// Pages in a memory: those whose next reference is told by that, the others by their last use.
#[derive(Clone, Debug, Default)]
pub(super) struct Residents {
    told: BTreeSet<u32>,
    untold: BTreeSet<(u64, u32)>,
}

impl Residents {
    /// A page with its next reference ([`NEVER`] if none is told) and its last use, microseconds.
    pub(super) fn insert(&mut self, page: u32, next: u32, used_us: u64) {
        let is_new = match next {
            NEVER => self.untold.insert((used_us, page)),
            next => self.told.insert(next),
        };
        debug_assert!(is_new, "page {page} is there already");
    }

    /// Takes a page out that was put in with the same.
    pub(super) fn remove(&mut self, page: u32, next: u32, used_us: u64) {
        let was_there = match next {
            NEVER => self.untold.remove(&(used_us, page)),
            next => self.told.remove(&next),
        };
        debug_assert!(was_there, "page {page} is not there");
    }

    /// The next reference that is told.
    pub(super) fn first(&self) -> Option<u32> {
        self.told.first().copied()
    }

    /// The last of the next references that are told.
    pub(super) fn last(&self) -> Option<u32> {
        self.told.last().copied()
    }

    /// The page used longest ago of those of which nothing is told.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.untold.first().map(|&(_, page)| page)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.told.len() + self.untold.len()
    }
}
