//! Pages in a row, each found at once: what nearly all policies are made of.

/// Pages from the newest to the oldest: a doubly linked list in one vector, with the place of each page in another.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// For each page its slot, or 0.
    slots: Vec<u32>,
    /// Slot 0 is before the newest and behind the oldest.
    links: Vec<Link>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    page: u32,
    newer: u32,
    older: u32,
}

impl Order {
    /// What each page takes that there could be.
    pub(crate) const PAGE_BYTES: usize = size_of::<u32>();
    /// What each page takes that is there, at most: rows grow by doubling.
    pub(crate) const HELD_BYTES: usize = 2 * size_of::<Link>();

    /// An empty one for pages numbered below `footprint`.
    pub(crate) fn new(footprint: usize) -> Self {
        let end = Link {
            page: u32::MAX,
            newer: 0,
            older: 0,
        };
        Order {
            slots: vec![0; footprint],
            links: vec![end],
            free: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn holds(&self, page: u32) -> bool {
        self.slots[page as usize] != 0
    }

    /// Adds a page that is not there, as the newest.
    pub(crate) fn push(&mut self, page: u32) {
        debug_assert!(!self.holds(page), "page {page} is in the row already");
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.links.push(Link {
                    page,
                    newer: 0,
                    older: 0,
                });
                // Pages are u32, and there is a slot for each at most.
                (self.links.len() - 1) as u32
            }
        };
        self.slots[page as usize] = slot;
        self.link(slot, page);
        self.len += 1;
    }

    /// Makes a page that is there the newest.
    pub(crate) fn renew(&mut self, page: u32) {
        let slot = self.slots[page as usize];
        debug_assert!(slot != 0, "page {page} is not in the row");
        if self.links[0].older != slot {
            self.unlink(slot);
            self.link(slot, page);
        }
    }

    /// Takes a page away; false if it is not there.
    pub(crate) fn remove(&mut self, page: u32) -> bool {
        let slot = std::mem::take(&mut self.slots[page as usize]);
        if slot == 0 {
            return false;
        }
        self.unlink(slot);
        self.free.push(slot);
        self.len -= 1;
        true
    }

    pub(crate) fn oldest(&self) -> Option<u32> {
        self.page(self.links[0].newer)
    }

    pub(crate) fn pop_oldest(&mut self) -> Option<u32> {
        let page = self.oldest()?;
        self.remove(page);
        Some(page)
    }

    /// The next newer one of a page that is there.
    pub(crate) fn newer(&self, page: u32) -> Option<u32> {
        self.page(self.links[self.slots[page as usize] as usize].newer)
    }

    fn page(&self, slot: u32) -> Option<u32> {
        (slot != 0).then(|| self.links[slot as usize].page)
    }

    fn link(&mut self, slot: u32, page: u32) {
        let (newer, older) = (0, self.links[0].older);
        self.links[slot as usize] = Link { page, newer, older };
        self.links[newer as usize].older = slot;
        self.links[older as usize].newer = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Link { newer, older, .. } = self.links[slot as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
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
