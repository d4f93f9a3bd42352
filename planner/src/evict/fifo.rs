use super::{Evictor, Order};

/// First in, first out.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    capacity: usize,
    pages: Order,
}

impl Fifo {
    /// A memory of so many pages, of those numbered below `footprint`.
    pub(super) fn new(capacity: usize, footprint: usize) -> Self {
        Fifo {
            capacity,
            pages: Order::new(footprint),
        }
    }
}

impl Evictor for Fifo {
    fn touch(&mut self, page: u32) -> bool {
        self.pages.holds(page)
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
