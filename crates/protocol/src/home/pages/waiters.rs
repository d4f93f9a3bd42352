//! Children that wait for pages from disk.

use crate::edge::shares::Shares;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{FETCHES_PER_CHILD_MAX, FETCHES_UNDER_WAY_MAX};
use thorp_model::planted::Bug;
use thorp_model::{Attempt, EdgeId, Epoch, NameId, PageId, message, planted};

/// A child that waits for a page from disk.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Waiter {
    /// The edge to the child.
    pub(in crate::home) edge: EdgeId,
    /// The name of the child that waits. A site asks for all below it.
    name: NameId,
    /// The stream that the request belongs to.
    pub(in crate::home) epoch: Epoch,
    /// Names the request in its response.
    pub(in crate::home) attempt: Attempt,
    /// Whether the image may travel beside the stream (rule 9).
    pub(in crate::home) beside: bool,
    /// Whether the child prefetches: no program waits for the page yet.
    ahead: bool,
    /// The child subscribes to the values of so many changes (rule 8).
    pub(in crate::home) updates: u8,
}

impl Waiter {
    /// The child on this edge, which has sent this request.
    pub(in crate::home) fn of((edge, name): (EdgeId, NameId), fetch: &message::Fetch) -> Self {
        Waiter {
            edge,
            name,
            epoch: fetch.epoch,
            attempt: fetch.attempt,
            beside: fetch.peers,
            ahead: fetch.ahead,
            updates: fetch.updates,
        }
    }

    /// How many pages the child may wait for when it adds this one: a prefetch leaves half of the
    /// space to requests that a program waits for.
    fn most(&self) -> usize {
        if self.ahead {
            FETCHES_PER_CHILD_MAX / 2
        } else {
            FETCHES_PER_CHILD_MAX
        }
    }
}

/// All children that wait for pages, in the order in which they began to wait for each page.
///
/// No child waits for more than [`FETCHES_PER_CHILD_MAX`] pages, and no page is listed for which
/// no child waits.
#[derive(Debug)]
pub(in crate::home) struct Waiters {
    by_page: BTreeMap<PageId, Vec<Waiter>>,
    /// What the children of each name wait for (rule R7).
    shares: Shares<NameId>,
    per_name_max: usize,
}

impl Waiters {
    /// Nobody waits. The children of one name together wait for so many pages.
    pub(in crate::home) fn new(per_name_max: usize) -> Self {
        Waiters {
            by_page: BTreeMap::new(),
            shares: Shares::default(),
            per_name_max,
        }
    }

    /// The most pages that the children of one name wait for.
    pub(in crate::home) fn most_of_a_name(&self) -> usize {
        self.shares.most() as usize
    }

    /// How many requests wait.
    pub(in crate::home) fn len(&self) -> usize {
        self.by_page.values().map(Vec::len).sum()
    }

    /// Adds a child to those that wait for a page. False at its limit: then it does not wait.
    pub(in crate::home) fn add(&mut self, page: PageId, waiter: Waiter) -> bool {
        let has_space = self.of(waiter.edge) < waiter.most();
        let limits = (FETCHES_UNDER_WAY_MAX as u64, self.per_name_max as u64);
        let is_shared =
            self.shares.allows(waiter.name, 1, limits) || planted::is(Bug::ProcessesNotCounted);
        let is_added = (has_space && is_shared) || planted::is(Bug::ChildNotLimited);
        if is_added {
            self.shares.take(Some(waiter.name), 1);
            self.by_page.entry(page).or_default().push(waiter);
        }
        is_added
    }

    /// The page has come, or is known to be damaged: its waiters wait no longer.
    pub(in crate::home) fn take(&mut self, page: PageId) -> Vec<Waiter> {
        let waiters = self.by_page.remove(&page).unwrap_or_default();
        for waiter in &waiters {
            self.shares.give_back(Some(waiter.name), 1);
        }
        waiters
    }

    /// Drops the requests of an edge that is gone.
    pub(in crate::home) fn forget(&mut self, edge: EdgeId) {
        self.by_page.retain(|_, waiters| {
            for waiter in waiters.extract_if(.., |waiter| waiter.edge == edge) {
                self.shares.give_back(Some(waiter.name), 1);
            }
            !waiters.is_empty()
        });
    }

    fn of(&self, edge: EdgeId) -> usize {
        let waiters = self.by_page.values().flatten();
        waiters.filter(|waiter| waiter.edge == edge).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(edge: u64, ahead: bool) -> Waiter {
        Waiter {
            edge: EdgeId(edge),
            name: NameId(7),
            epoch: Epoch(1),
            attempt: Attempt(1),
            beside: false,
            ahead,
            updates: 0,
        }
    }

    #[test]
    fn a_prefetch_leaves_half_of_the_space() {
        let mut waiters = Waiters::new(usize::MAX);
        let page = |number: usize| PageId::new(1, number as u32);
        for number in 0..FETCHES_PER_CHILD_MAX / 2 {
            assert!(waiters.add(page(number), waiter(1, true)));
        }
        assert!(!waiters.add(page(0), waiter(1, true)));
        for number in 0..FETCHES_PER_CHILD_MAX / 2 {
            assert!(waiters.add(page(number), waiter(1, false)));
        }
        assert!(!waiters.add(page(0), waiter(1, false)));
        assert!(waiters.add(page(0), waiter(2, true)), "another child");
        waiters.forget(EdgeId(1));
        assert_eq!(waiters.len(), 1);
        assert_eq!(waiters.take(page(0)).len(), 1);
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn all_members_of_a_name_have_one_share() {
        let mut waiters = Waiters::new(3);
        let page = PageId::new(1, 1);
        let added = [1, 2, 3, 4].map(|edge| waiters.add(page, waiter(edge, false)));
        assert_eq!(added, [true, true, true, false]);
        let name = NameId(8);
        let other = Waiter {
            name,
            ..waiter(5, false)
        };
        assert!(waiters.add(page, other), "another name");
        waiters.forget(EdgeId(1));
        assert!(waiters.add(page, waiter(1, false)));
        assert_eq!(waiters.most_of_a_name(), 3);
        waiters.take(page);
        assert_eq!(waiters.most_of_a_name(), 0);
    }
}
