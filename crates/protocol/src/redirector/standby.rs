//! The pages in a redirector's own memory: the standby cache, whose policy is LRU.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{PAGE_BYTES, SITE_PAGE_OVERHEAD_BYTES};
use thorp_model::{Image, PageId};
use thorp_policy::{Handle, RecencyList};

/// Page images up to a number of bytes.
///
/// Invariant: `by_use` has exactly the pages of `pages`, each under the handle beside its image. `bytes` is the sum of
/// their charges. `doubted` names only pages of `pages`.
#[derive(Debug)]
pub(super) struct Images {
    pages: BTreeMap<PageId, (Handle, Image)>,
    /// The page used last is the newest.
    by_use: RecencyList<PageId>,
    /// Those that are not resynchronised (rule 13): nobody is shown them.
    doubted: BTreeSet<PageId>,
    bytes: usize,
    bytes_max: usize,
}

impl Images {
    pub(super) fn new(bytes_max: usize) -> Self {
        Images {
            pages: BTreeMap::new(),
            by_use: RecencyList::new(),
            doubted: BTreeSet::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Sets how many bytes it may have; what is too much goes with the next [`Images::shrink`].
    pub(super) fn limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// An image that is kept, marked as used.
    pub(super) fn get(&mut self, page: PageId) -> Option<Image> {
        if self.is_doubted(page) {
            return None;
        }
        let (handle, image) = self.pages.get(&page)?;
        self.by_use.renew(*handle);
        Some(image.clone())
    }

    /// Nothing of it is known to be right (rule R9).
    pub(super) fn forget(&mut self) {
        *self = Images::new(self.bytes_max);
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
        self.bytes += charge(&image);
        let handle = self.by_use.push(page);
        self.pages.insert(page, (handle, image));
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
        if let Some((handle, image)) = self.pages.remove(&page) {
            self.doubted.remove(&page);
            self.by_use.remove(handle);
            self.bytes -= charge(&image);
        }
    }

    /// Gives up the pages that were not used for longest, until the rest fits. Returns these pages.
    pub(super) fn shrink(&mut self) -> Vec<PageId> {
        let mut gone = Vec::new();
        while self.bytes > self.bytes_max {
            let Some(page) = self.by_use.oldest() else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{ImageEdit, Position, Stamp};

    fn page(number: u32) -> PageId {
        PageId::new(1, number)
    }

    fn image() -> Image {
        ImageEdit::default().finish(Position(1), Stamp::default())
    }

    /// Memory that has space for as many pages as it has.
    fn with(pages: &[u32]) -> Images {
        let mut images = Images::new(pages.len() * charge(&image()));
        pages.iter().for_each(|n| images.put(page(*n), image()));
        images
    }

    fn gone(images: &mut Images) -> Vec<u32> {
        let gone = images.shrink();
        gone.iter().map(|page| page.page.0).collect()
    }

    #[test]
    fn the_page_not_used_for_longest_goes() {
        let mut images = with(&[1, 2, 3]);
        assert!(images.get(page(1)).is_some());
        assert!(images.peek(page(2)).is_some());
        images.replace(page(3), image());
        images.put(page(4), image());
        assert_eq!(gone(&mut images), [2], "a look is no use");
        images.put(page(5), image());
        assert_eq!(gone(&mut images), [3], "a change is no use");
        images.limit(charge(&image()));
        assert_eq!(gone(&mut images), [1, 4]);
        assert_eq!(images.bytes(), charge(&image()));
        images.limit(0);
        assert_eq!(gone(&mut images), [5]);
        assert_eq!(images.bytes(), 0);
    }

    #[test]
    fn a_doubted_page_is_not_shown_and_goes_as_any_other() {
        let mut images = with(&[1, 2, 3]);
        assert_eq!(images.doubt().len(), 3);
        assert!(images.get(page(1)).is_none() && images.peek(page(1)).is_none());
        images.trust(page(2));
        assert!(images.get(page(2)).is_some());
        images.drop_doubted(page(3));
        images.drop_doubted(page(2));
        images.limit(charge(&image()));
        assert_eq!(gone(&mut images), [1], "no use before its answer");
        assert!(images.has(page(2)) && !images.has(page(3)));
    }
}
