//! Removal: the pages of removed segments go, some at a time (foundation 6).

use crate::home::pages::store::Pages;
use crate::home::segments::Segments;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{Mark, Op, PageId, PageNo, SegmentId, Table, planted, records};

/// A removal that is on its way to the disk.
#[derive(Debug)]
struct Removing {
    mark: Mark,
    segment: SegmentId,
    /// The next page to remove; none if this was the last batch.
    next: Option<PageNo>,
}

/// Removes the pages of removed segments, one segment and one batch at a time.
///
/// A segment is listed only when its children know of its end: no page of it goes before. It is
/// forgotten when the batch with its last page is durable.
#[derive(Debug)]
pub(in crate::home) struct Remover {
    /// Removed segments whose end was sent: their pages may go.
    removable: BTreeSet<SegmentId>,
    removing: Option<Removing>,
    pages_max: u32,
}

impl Remover {
    /// These segments were removed in an earlier life; one batch removes so many pages.
    pub(in crate::home) fn new(
        removable: impl IntoIterator<Item = SegmentId>,
        pages_max: u32,
    ) -> Self {
        Remover {
            removable: removable.into_iter().collect(),
            removing: None,
            pages_max,
        }
    }

    /// The end of a segment was sent.
    pub(in crate::home) fn add(&mut self, segment: SegmentId) {
        self.removable.insert(segment);
    }

    /// Removes some more pages: what the batch with this mark does; none if no batch is wanted.
    pub(in crate::home) fn remove(
        &mut self,
        segments: &Segments,
        pages: &mut Pages,
        durable: Mark,
        mark: Mark,
    ) -> Option<Vec<Op>> {
        let (segment, from) = self.next(durable)?;
        let most = self.pages_max;
        let numbers = segments.pages_to_remove(segment, from, most);
        let mut ops = Vec::new();
        for page in numbers.iter().copied() {
            let page = PageId { segment, page };
            ops.push(records::delete(Table::Pages, records::page_key(page)));
            ops.extend(pages.no_more_aside(page));
            pages.quarantine.forget(page);
        }
        let last = numbers.len() < most as usize;
        if last {
            ops.push(records::delete(Table::Meta, records::segment_key(segment)));
            ops.push(records::delete(Table::Meta, records::rights_key(segment)));
            ops.push(records::delete(Table::Meta, records::usage_key(segment)));
            ops.extend(segments.no_more_system(segment));
        }
        self.removing = Some(Removing {
            mark,
            segment,
            next: (!last).then(|| numbers.last().map_or(PageNo(0), |page| page.next())),
        });
        Some(ops)
    }

    fn next(&self, durable: Mark) -> Option<(SegmentId, PageNo)> {
        let (segment, from) = match &self.removing {
            None => (*self.removable.first()?, PageNo(0)),
            Some(removing) if removing.mark <= durable => (removing.segment, removing.next?),
            Some(_) => return None,
        };
        let mixed = self
            .removable
            .first()
            .filter(|_| planted::is(Bug::RemovalsMixed));
        Some((mixed.copied().unwrap_or(segment), from))
    }

    /// Batches up to this one are durable. Returns a segment whose last page has gone: it is to be
    /// forgotten.
    pub(in crate::home) fn made_durable(&mut self, durable: Mark) -> Option<SegmentId> {
        let is_done = |r: &mut Removing| r.mark <= durable && r.next.is_none();
        let done = self.removing.take_if(is_done)?;
        self.removable.remove(&done.segment);
        Some(done.segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use thorp_model::records::SegmentRecord;

    #[test]
    fn a_segment_is_forgotten_when_its_last_page_has_gone() {
        let (mut segments, mut pages) = (Segments::default(), Pages::new(0, 0));
        let id = SegmentId(1);
        let record = SegmentRecord {
            path: String::from("s"),
            granted: PageNo(5),
            extent: PageNo(1),
            overflow: PageNo::OVERFLOW_FIRST,
            removing: true,
        };
        segments.insert(id, record);
        let mut remover = Remover::new([], 3);
        let nothing = remover.remove(&segments, &mut pages, Mark(0), Mark(1));
        assert!(nothing.is_none(), "its end was not sent");
        remover.add(id);
        let mut batch = |durable, mark| {
            let ops = remover.remove(&segments, &mut pages, Mark(durable), Mark(mark));
            ops.map(|ops| ops.len())
        };
        assert_eq!(batch(0, 1), Some(3));
        assert_eq!(batch(0, 2), None, "one batch at a time");
        assert_eq!(
            batch(1, 2),
            Some(5),
            "two pages, the segment's record, its rights and what was used of it"
        );
        assert_eq!(batch(2, 3), None);
        assert_eq!(remover.made_durable(Mark(2)), Some(id));
        assert_eq!(remover.made_durable(Mark(2)), None);
    }
}
