//! Numbered pages in a row, each found at once: what nearly all policies are made of.

use thorp_policy::{Handle, RecencyList};

/// Pages from the newest to the oldest: the list that a redirector's memory has, too, and beside it the handle of each
/// page.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// For each page its handle, if it is in the row.
    handles: Vec<Option<Handle>>,
    list: RecencyList<u32>,
}

impl Order {
    /// What each page takes that there could be.
    pub(crate) const PAGE_BYTES: usize = size_of::<Option<Handle>>();
    /// What each page takes that is there, at most: rows grow by doubling.
    pub(crate) const HELD_BYTES: usize = 2 * RecencyList::<u32>::NODE_BYTES;

    /// An empty one for pages numbered below `footprint`.
    pub(crate) fn new(footprint: usize) -> Self {
        Order {
            handles: vec![None; footprint],
            list: RecencyList::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn holds(&self, page: u32) -> bool {
        self.handles[page as usize].is_some()
    }

    /// Adds a page that is not there, as the newest.
    pub(crate) fn push(&mut self, page: u32) {
        debug_assert!(!self.holds(page), "page {page} is in the row already");
        self.handles[page as usize] = Some(self.list.push(page));
    }

    /// Makes a page that is there the newest.
    pub(crate) fn renew(&mut self, page: u32) {
        let handle = self.handles[page as usize];
        debug_assert!(handle.is_some(), "page {page} is not in the row");
        if let Some(handle) = handle {
            self.list.renew(handle);
        }
    }

    /// Takes a page away; false if it is not there.
    pub(crate) fn remove(&mut self, page: u32) -> bool {
        let handle = self.handles[page as usize].take();
        if let Some(handle) = handle {
            self.list.remove(handle);
        }
        handle.is_some()
    }

    pub(crate) fn oldest(&self) -> Option<u32> {
        self.list.oldest()
    }

    pub(crate) fn pop_oldest(&mut self) -> Option<u32> {
        let page = self.oldest()?;
        self.remove(page);
        Some(page)
    }

    /// The next newer one of a page that is there.
    pub(crate) fn newer(&self, page: u32) -> Option<u32> {
        let handle = self.handles[page as usize]?;
        self.list.newer(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::collections::VecDeque;

    #[test]
    fn it_is_the_same_as_a_plain_row() {
        let mut random = Rng::with_seed(1);
        let (mut order, mut plain) = (Order::new(20), VecDeque::new());
        for _ in 0..20_000 {
            let page = random.u32(..20);
            let at = plain.iter().position(|&it| it == page);
            match (random.u8(..6), at) {
                (0, None) => (order.push(page), plain.push_front(page)).0,
                (2, Some(at)) => {
                    order.renew(page);
                    plain.remove(at);
                    plain.push_front(page);
                }
                (3, _) => assert_eq!(
                    order.remove(page),
                    at.and_then(|at| plain.remove(at)).is_some()
                ),
                (4, _) => assert_eq!(order.pop_oldest(), plain.pop_back()),
                (5, Some(at)) => {
                    assert_eq!(order.newer(page), at.checked_sub(1).map(|at| plain[at]))
                }
                _ => {}
            }
            assert_eq!(order.len(), plain.len());
            assert_eq!(
                (order.oldest(), order.holds(page)),
                (plain.back().copied(), plain.contains(&page))
            );
        }
    }
}
