//! What a web answer rests on at a home, in words: the home and its readers hash the same text (rule W4).

use crate::limits::READ_KEYS_MAX;
use crate::{ObjectId, PageId, SegmentId};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

/// A dependency of an answer: an object, or all of a page or a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ReadKey {
    /// An object, or its absence: `SEGMENT/PAGE.SLOT`.
    Object(ObjectId),
    /// Whatever is in a page: `SEGMENT/PAGE`.
    Page(PageId),
    /// Whatever is in a segment: `SEGMENT`.
    Segment(SegmentId),
}

impl ReadKey {
    /// The keys of what was read at one home, ascending: the objects. If they are more than [`READ_KEYS_MAX`], their pages; if those are
    /// more, their segments. None: there are more of those, too, and the answer rests on all of the home.
    pub fn fold(objects: impl IntoIterator<Item = ObjectId>) -> Option<Vec<ReadKey>> {
        let objects: BTreeSet<ObjectId> = objects.into_iter().collect();
        let few = |keys: BTreeSet<ReadKey>| {
            let is_few = keys.len() <= READ_KEYS_MAX;
            is_few.then(|| keys.into_iter().collect())
        };
        if objects.len() <= READ_KEYS_MAX {
            return Some(objects.into_iter().map(ReadKey::Object).collect());
        }
        let pages = objects.iter().map(|object| ReadKey::Page(object.page));
        let segments = objects.iter();
        let segments = segments.map(|object| ReadKey::Segment(object.page.segment));
        few(pages.collect()).or_else(|| few(segments.collect()))
    }
}

impl fmt::Display for ReadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadKey::Object(object) => write!(f, "{object}"),
            ReadKey::Page(page) => write!(f, "{page}"),
            ReadKey::Segment(segment) => write!(f, "{segment}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;
    use alloc::string::ToString;

    fn object(segment: u32, page: u32, slot: u16) -> ObjectId {
        ObjectId {
            page: PageId::new(segment, page),
            slot: Slot(slot),
        }
    }

    #[test]
    fn a_long_list_becomes_pages_then_segments_then_all() {
        let most = READ_KEYS_MAX as u32;
        let in_a_page =
            |count: u32| ReadKey::fold((0..count).map(|slot| object(1, 1, slot as u16)));
        let keys = in_a_page(most).expect("few");
        assert_eq!(keys.len(), READ_KEYS_MAX);
        assert_eq!(keys[0], ReadKey::Object(object(1, 1, 0)));
        assert_eq!(
            in_a_page(most + 1),
            Some(Vec::from([ReadKey::Page(PageId::new(1, 1))]))
        );
        let pages = (0..=most).map(|page| object(1, page, 0));
        let segment = object(1, 0, 0).page.segment;
        assert_eq!(
            ReadKey::fold(pages),
            Some(Vec::from([ReadKey::Segment(segment)]))
        );
        assert_eq!(
            ReadKey::fold((0..=most).map(|number| object(number, 0, 0))),
            None
        );
        // Read twice is read once.
        let twice = [object(1, 1, 1), object(1, 1, 1)];
        assert_eq!(ReadKey::fold(twice).map(|keys| keys.len()), Some(1));
    }

    #[test]
    fn each_key_has_a_text_of_its_own() {
        let page = PageId::new(7, 3);
        let slot = Slot(2);
        let keys = [
            ReadKey::Object(ObjectId { page, slot }),
            ReadKey::Page(page),
            ReadKey::Segment(page.segment),
        ];
        assert_eq!(keys.map(|key| key.to_string()), ["7/3.2", "7/3", "7"]);
    }
}
