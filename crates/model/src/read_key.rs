//! What a web answer rests on at a home, in words: the home and its readers hash the same text (rule W4).

use crate::{ObjectId, PageId, SegmentId};
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
