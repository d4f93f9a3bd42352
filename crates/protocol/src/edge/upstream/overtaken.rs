//! Pages whose images the stream overtakes (rule 9).

use alloc::collections::BTreeSet;
use thorp_model::PageId;
use thorp_model::limits::OVERTAKEN_MAX;

/// Pages whose image, which came beside the stream, the stream has overtaken. Where a page changes faster than images
/// come over a wide area, the next one would be overtaken, too: this node asks for it in the stream next.
///
/// Invariant: at most [`OVERTAKEN_MAX`] pages.
#[derive(Debug, Default)]
pub(super) struct Overtaken(BTreeSet<PageId>);

impl Overtaken {
    /// How many pages are asked for in the stream, next time.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The stream has overtaken an image.
    pub(super) fn note(&mut self, page: PageId) {
        if self.0.len() >= OVERTAKEN_MAX {
            self.0.pop_first();
        }
        self.0.insert(page);
    }

    /// Whether a page is to be asked for in the stream this time.
    pub(super) fn take(&mut self, page: PageId) -> bool {
        self.0.remove(&page)
    }

    /// A stream begins.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_those_that_were_overtaken_are_remembered() {
        let mut overtaken = Overtaken::default();
        for number in 0..3 * OVERTAKEN_MAX as u32 {
            overtaken.note(PageId::new(2, number));
        }
        assert_eq!(overtaken.len(), OVERTAKEN_MAX);
        assert!(!overtaken.take(PageId::new(2, 0)));
    }

    #[test]
    fn a_page_is_asked_for_in_the_stream_once() {
        let (mut overtaken, page) = (Overtaken::default(), PageId::new(1, 1));
        overtaken.note(page);
        assert!(overtaken.take(page) && !overtaken.take(page));
    }
}
