use super::{Evictor, Order};

/// LRU that, rather than the oldest page, lets go of the one at a fixed place from the bottom of its stack: thesis, section
/// 3.4.3, *deviating from LRU*. Balancing the load of servers does that, since the oldest page of the server that was chosen
/// is not the oldest of all.
#[derive(Clone, Debug)]
pub(crate) struct LruAt {
    capacity: usize,
    /// How many older pages are spared.
    spared_most: usize,
    upper: Order,
    /// The bottom of the stack, as soon as there are more pages than that.
    spared: Order,
}

impl LruAt {
    /// A memory of so many pages, of those numbered below `footprint`, which spares the oldest ones. At least the page that
    /// came last can go, whatever is to be spared.
    pub(crate) fn new(capacity: usize, spared: usize, footprint: usize) -> Self {
        LruAt {
            capacity,
            spared_most: spared.min(capacity.saturating_sub(1)),
            upper: Order::new(footprint),
            spared: Order::new(footprint),
        }
    }

    /// The bottom is always as high as it may be.
    fn fill_spared(&mut self) {
        while self.spared.len() < self.spared_most {
            let Some(page) = self.upper.pop_oldest() else {
                return;
            };
            self.spared.push(page);
        }
    }
}

impl Evictor for LruAt {
    fn touch(&mut self, page: u32) -> bool {
        if self.upper.holds(page) {
            self.upper.renew(page);
            return true;
        }
        let is_hit = self.spared.remove(page);
        if is_hit {
            self.upper.push(page);
            self.fill_spared();
        }
        is_hit
    }

    fn admit(&mut self, page: u32) -> Option<u32> {
        let is_full = self.len() >= self.capacity;
        let gone = if is_full { self.evict() } else { None };
        self.upper.push(page);
        self.fill_spared();
        gone
    }

    fn evict(&mut self) -> Option<u32> {
        self.upper.pop_oldest().or_else(|| self.spared.pop_oldest())
    }

    fn remove(&mut self, page: u32) -> bool {
        let is_here = self.upper.remove(page) || self.spared.remove(page);
        self.fill_spared();
        is_here
    }

    fn holds(&self, page: u32) -> bool {
        self.upper.holds(page) || self.spared.holds(page)
    }

    fn len(&self) -> usize {
        self.upper.len() + self.spared.len()
    }
}
