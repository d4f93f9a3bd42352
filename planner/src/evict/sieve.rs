use super::{Evictor, Order};

/// SIEVE: one queue, in which a hand goes from the oldest to the newest and takes the first page that was not used since it
/// last came by. Pages stay where they are; new ones come in at the front. Where the hand stands, pages older than it have
/// been looked at in this round (Zhang and others, NSDI 2024).
#[derive(Clone, Debug)]
pub(super) struct Sieve {
    capacity: usize,
    pages: Order,
    is_used: Vec<bool>,
    /// `None` before it starts from the oldest.
    hand: Option<u32>,
}

impl Sieve {
    /// What is noted of each page, beside the rows.
    pub(super) const PAGE_BYTES: usize = size_of::<bool>();

    /// A memory of so many pages, of those numbered below `footprint`.
    pub(super) fn new(capacity: usize, footprint: usize) -> Self {
        Sieve {
            capacity,
            pages: Order::new(footprint),
            is_used: vec![false; footprint],
            hand: None,
        }
    }

    fn remove_at(&mut self, page: u32) {
        self.hand = self.pages.newer(page);
        self.pages.remove(page);
    }
}

impl Evictor for Sieve {
    fn touch(&mut self, page: u32) -> bool {
        let is_hit = self.pages.holds(page);
        self.is_used[page as usize] = is_hit;
        is_hit
    }

    fn admit(&mut self, page: u32) -> Option<u32> {
        let is_full = self.pages.len() >= self.capacity;
        let gone = if is_full { self.evict() } else { None };
        self.is_used[page as usize] = false;
        self.pages.push(page);
        gone
    }

    fn evict(&mut self) -> Option<u32> {
        let mut page = self.hand.or(self.pages.oldest())?;
        while std::mem::take(&mut self.is_used[page as usize]) {
            page = self.pages.newer(page).or(self.pages.oldest())?;
        }
        self.remove_at(page);
        Some(page)
    }

    fn remove(&mut self, page: u32) -> bool {
        let is_here = self.pages.holds(page);
        match is_here && self.hand == Some(page) {
            true => self.remove_at(page),
            false => _ = self.pages.remove(page),
        }
        is_here
    }

    fn holds(&self, page: u32) -> bool {
        self.pages.holds(page)
    }

    fn len(&self) -> usize {
        self.pages.len()
    }
}
