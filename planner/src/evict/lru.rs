use super::{Evictor, Order};

/// Least recently used.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    capacity: usize,
    pages: Order,
}

impl Lru {
    /// A memory of so many pages, of those numbered below `footprint`.
    pub(super) fn new(capacity: usize, footprint: usize) -> Self {
        Lru {
            capacity,
            pages: Order::new(footprint),
        }
    }
}

impl Evictor for Lru {
    fn touch(&mut self, page: u32) -> bool {
        let is_hit = self.pages.holds(page);
        if is_hit {
            self.pages.renew(page);
        }
        is_hit
    }

    fn admit(&mut self, page: u32) -> Option<u32> {
        let is_full = self.pages.len() >= self.capacity;
        let gone = if is_full { self.evict() } else { None };
        self.pages.push(page);
        gone
    }

    fn evict(&mut self) -> Option<u32> {
        self.pages.pop_oldest()
    }

    fn remove(&mut self, page: u32) -> bool {
        self.pages.remove(page)
    }

    fn holds(&self, page: u32) -> bool {
        self.pages.holds(page)
    }

    fn len(&self) -> usize {
        self.pages.len()
    }
}
