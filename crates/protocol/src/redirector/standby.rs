//! The pages in a redirector's own memory: the standby cache, last used last to go.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{PAGE_BYTES, SITE_PAGE_OVERHEAD_BYTES};
use thorp_model::{Image, PageId};

/// Page images up to a number of bytes.
#[derive(Debug)]
pub(super) struct Images {
    pages: BTreeMap<PageId, (u64, Image)>,
    by_use: BTreeSet<(u64, PageId)>,
    /// Those that are not resynchronised (rule 13): nobody is shown them.
    doubted: BTreeSet<PageId>,
    uses: u64,
    bytes: usize,
    bytes_max: usize,
}

impl Images {
    pub(super) fn new(bytes_max: usize) -> Self {
        Images {
            pages: BTreeMap::new(),
            by_use: BTreeSet::new(),
            doubted: BTreeSet::new(),
            uses: 0,
            bytes: 0,
            bytes_max,
        }
    }

    /// Sets how many bytes it may have; what is too much goes with the next [`Images::shrink`].
    pub(super) fn limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    pub(super) fn get(&mut self, page: PageId) -> Option<Image> {
        let image = self.peek(page)?.clone();
        self.put(page, image.clone());
        Some(image)
    }

    pub(super) fn peek(&self, page: PageId) -> Option<&Image> {
        let found = self.pages.get(&page).filter(|_| !self.is_doubted(page));
        found.map(|(_, image)| image)
    }

    fn is_doubted(&self, page: PageId) -> bool {
        !self.doubted.is_empty() && self.doubted.contains(&page)
    }

    /// The stream is broken: all of them are doubted; whether each has no holes. Those that
    /// were doubted already go, because they are right nowhere any more.
    pub(super) fn doubt(&mut self) -> Vec<(PageId, bool)> {
        for page in core::mem::take(&mut self.doubted) {
            self.remove(page);
        }
        self.doubted.extend(self.pages.keys());
        let pages = self.pages.iter();
        pages
            .map(|(page, (_, image))| (*page, image.is_complete()))
            .collect()
    }

    /// A doubted page is as it was.
    pub(super) fn trust(&mut self, page: PageId) {
        self.doubted.remove(&page);
    }

    /// A doubted page has changed.
    pub(super) fn drop_doubted(&mut self, page: PageId) {
        if self.is_doubted(page) {
            self.remove(page);
        }
    }

    pub(super) fn has(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    /// Keeps an image, and marks it as used.
    pub(super) fn put(&mut self, page: PageId, image: Image) {
        self.remove(page);
        self.uses += 1;
        self.bytes += charge(&image);
        self.by_use.insert((self.uses, page));
        self.pages.insert(page, (self.uses, image));
    }

    /// Replaces an image that is kept.
    pub(super) fn replace(&mut self, page: PageId, image: Image) {
        if let Some((_, old)) = self.pages.get_mut(&page) {
            self.bytes -= charge(old);
            self.bytes += charge(&image);
            *old = image;
        }
    }

    pub(super) fn remove(&mut self, page: PageId) {
        if let Some((used, image)) = self.pages.remove(&page) {
            self.doubted.remove(&page);
            self.by_use.remove(&(used, page));
            self.bytes -= charge(&image);
        }
    }

    /// Gives up what was not used for long, and tells which pages.
    pub(super) fn shrink(&mut self) -> Vec<PageId> {
        let mut gone = Vec::new();
        while self.bytes > self.bytes_max {
            let Some((_, page)) = self.by_use.first().copied() else {
                break;
            };
            self.remove(page);
            gone.push(page);
        }
        gone
    }

    /// Whether it has room for any page, however full.
    pub(super) fn takes_pages(&self) -> bool {
        self.bytes_max >= PAGE_BYTES + SITE_PAGE_OVERHEAD_BYTES
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn all(&self) -> Vec<(PageId, Image)> {
        let pages = self.pages.iter();
        let pages = pages.filter(|(page, _)| !self.is_doubted(**page));
        pages
            .map(|(page, (_, image))| (*page, image.clone()))
            .collect()
    }
}

fn charge(image: &Image) -> usize {
    image.bytes().len() + SITE_PAGE_OVERHEAD_BYTES
}
