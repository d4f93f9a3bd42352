//! Children that wait for pages from disk.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::FETCHES_PER_CHILD_MAX;
use thorp_model::planted::Bug;
use thorp_model::{Attempt, EdgeId, Epoch, PageId, message, planted};

/// A child that waits for a page from disk.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Waiter {
    /// The edge to the child.
    pub(in crate::home) edge: EdgeId,
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
    pub(in crate::home) fn of(edge: EdgeId, fetch: &message::Fetch) -> Self {
        Waiter {
            edge,
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
#[derive(Debug, Default)]
pub(in crate::home) struct Waiters {
    by_page: BTreeMap<PageId, Vec<Waiter>>,
}

impl Waiters {
    /// How many requests wait.
    pub(in crate::home) fn len(&self) -> usize {
        self.by_page.values().map(Vec::len).sum()
    }

    /// Adds a child to those that wait for a page. False at its limit: then it does not wait.
    pub(in crate::home) fn add(&mut self, page: PageId, waiter: Waiter) -> bool {
        let has_space = self.of(waiter.edge) < waiter.most();
        let is_added = has_space || planted::is(Bug::ChildNotLimited);
        if is_added {
            self.by_page.entry(page).or_default().push(waiter);
        }
        is_added
    }

    /// The page has come, or is known to be damaged: its waiters wait no longer.
    pub(in crate::home) fn take(&mut self, page: PageId) -> Vec<Waiter> {
        self.by_page.remove(&page).unwrap_or_default()
    }

    /// Drops the requests of an edge that is gone.
    pub(in crate::home) fn forget(&mut self, edge: EdgeId) {
        self.by_page.retain(|_, waiters| {
            waiters.retain(|waiter| waiter.edge != edge);
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
            epoch: Epoch(1),
            attempt: Attempt(1),
            beside: false,
            ahead,
            updates: 0,
        }
    }

    #[test]
    fn a_prefetch_leaves_half_of_the_space() {
        let mut waiters = Waiters::default();
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
}
