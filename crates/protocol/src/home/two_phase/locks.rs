//! What a vote locks: exactly what its part reads and writes (rule 10).

use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::{PageId, PageNo, Part, SegmentId, Slot, SlotSet};

/// The objects of one part.
#[derive(Clone, Debug, Default)]
pub(in crate::home) struct Locks {
    pages: BTreeMap<PageId, Held>,
    /// Segments whose extents it raises: that is a write to who reads the extent,
    /// and none to who raises it too.
    raised: BTreeSet<SegmentId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    read: SlotSet,
    written: SlotSet,
}

impl Locks {
    /// The locks of a part that raises the extents of these segments.
    pub(in crate::home) fn of(part: &Part, raised: BTreeSet<SegmentId>) -> Self {
        let mut pages: BTreeMap<PageId, Held> = BTreeMap::new();
        for (page, slots) in &part.reads {
            pages.entry(*page).or_default().read.extend(*slots);
        }
        for writes in &part.writes {
            let slots = writes.slots.iter().map(|(slot, _)| *slot).collect();
            pages.entry(writes.page).or_default().written.extend(slots);
        }
        Locks { pages, raised }
    }

    /// The pages with objects that are locked.
    pub(in crate::home) fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let extents = self.raised.iter().map(|segment| first_of(*segment));
        self.pages.keys().copied().chain(extents)
    }

    /// The slots of a page that will be written.
    pub(in crate::home) fn written(&self, page: PageId) -> SlotSet {
        self.pages
            .get(&page)
            .map(|held| held.written)
            .unwrap_or_default()
    }

    /// Whether anything of a segment is locked.
    pub(in crate::home) fn concern(&self, segment: SegmentId) -> bool {
        self.pages().any(|page| page.segment == segment)
    }

    /// Whether one writes what the other reads or writes.
    pub(in crate::home) fn conflict(&self, other: &Locks) -> bool {
        let (few, many) = match self.pages.len() <= other.pages.len() {
            true => (self, other),
            false => (other, self),
        };
        let meets = |(page, held): (&PageId, &Held)| {
            many.pages.get(page).is_some_and(|with| held.conflict(with))
        };
        few.pages.iter().any(meets) || self.reads_raised(other) || other.reads_raised(self)
    }

    fn reads_raised(&self, other: &Locks) -> bool {
        other.raised.iter().any(|segment| {
            let first = self.pages.get(&first_of(*segment));
            first.is_some_and(|held| held.read.contains(Slot(0)))
        })
    }
}

impl Held {
    fn conflict(&self, other: &Held) -> bool {
        self.written.touches(&other.written)
            || self.written.touches(&other.read)
            || self.read.touches(&other.written)
    }
}

/// Where a segment's extent object is.
fn first_of(segment: SegmentId) -> PageId {
    PageId {
        segment,
        page: PageNo(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Blob, Generation, HomeId, NewValue, PageWrites, Position, WriteOp};

    fn part(reads: &[(u32, u16)], writes: &[(u32, u16)]) -> Part {
        let write = |slot| {
            let value = NewValue::Inline(Blob::from(&b"v"[..]));
            let generation = Generation(1);
            (Slot(slot), WriteOp::Write { generation, value })
        };
        Part {
            home: HomeId(1),
            evidence: Position(1),
            reads: reads
                .iter()
                .map(|(page, slot)| (PageId::new(1, *page), SlotSet::of(Slot(*slot))))
                .collect(),
            writes: writes
                .iter()
                .map(|(page, slot)| PageWrites {
                    page: PageId::new(1, *page),
                    slots: [write(*slot)].into(),
                })
                .collect(),
            under: None,
        }
    }

    fn locks(reads: &[(u32, u16)], writes: &[(u32, u16)], raised: &[u32]) -> Locks {
        let raised = raised.iter().map(|segment| SegmentId(*segment)).collect();
        Locks::of(&part(reads, writes), raised)
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let reader = locks(&[(1, 1), (2, 1)], &[], &[]);
        let writer = locks(&[], &[(1, 1)], &[]);
        let beside = locks(&[], &[(1, 2)], &[]);
        assert!(!reader.conflict(&reader));
        assert!(reader.conflict(&writer) && writer.conflict(&reader));
        assert!(writer.conflict(&writer));
        assert!(!beside.conflict(&writer), "pages are not locked");
    }

    #[test]
    fn an_extent_is_raised_by_many_and_read_by_none_of_them() {
        let raiser = locks(&[], &[(8, 1)], &[1]);
        let other = locks(&[], &[(9, 1)], &[1]);
        let scanner = locks(&[(0, 0)], &[], &[]);
        assert!(!raiser.conflict(&other));
        assert!(raiser.conflict(&scanner) && scanner.conflict(&raiser));
    }
}
