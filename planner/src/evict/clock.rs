use super::{Evictor, Order};

/// First in, first out, with a second chance for what was used in the meantime.
///
/// A member's page cache runs `thorp_policy::Clock`, a ring with a hand. While pages leave only because others come,
/// both take the same pages. The ring differs where a page was removed: the next page gets its seat, not the last one of
/// the row. The cache also counts a page as used when it comes.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    capacity: usize,
    pages: Order,
    is_used: Vec<bool>,
}

impl Clock {
    /// What is noted of each page, beside the rows.
    pub(super) const PAGE_BYTES: usize = size_of::<bool>();

    /// A memory of so many pages, of those numbered below `footprint`.
    pub(super) fn new(capacity: usize, footprint: usize) -> Self {
        Clock {
            capacity,
            pages: Order::new(footprint),
            is_used: vec![false; footprint],
        }
    }
}

impl Evictor for Clock {
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
        let mut page = self.pages.oldest()?;
        while std::mem::take(&mut self.is_used[page as usize]) {
            self.pages.renew(page);
            page = self.pages.oldest()?;
        }
        self.pages.remove(page);
        Some(page)
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
