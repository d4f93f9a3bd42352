//! A home's segments.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::limits::SEGMENT_PATH_BYTES_MAX;
use thorp_model::planted::Bug;
use thorp_model::records::{SegmentRecord, SystemRecord};
use thorp_model::{
    Op, Overflow, PageId, PageNo, Part, SegmentId, SegmentInfo, Table, planted, records,
};

/// All segments of a home, also those that are being removed.
#[derive(Debug, Default)]
pub(super) struct Segments {
    by_id: BTreeMap<SegmentId, SegmentRecord>,
    by_path: BTreeMap<String, SegmentId>,
    /// System pages below this may hold something. A segment without any is not here.
    system: BTreeMap<SegmentId, PageNo>,
    /// The path of every segment that ever was.
    #[cfg(feature = "planted-bugs")]
    paths: BTreeMap<SegmentId, String>,
}

/// Whether a new segment may have this path. Of `a//b` and `a/` people think that they are `a/b` and `a`.
pub(super) fn is_path_of_new(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty())
}

/// Whether a path may name a segment.
pub(super) fn is_path(path: &str) -> bool {
    (1..=SEGMENT_PATH_BYTES_MAX).contains(&path.len())
        && !path.chars().any(|c| c.is_control() || c == '#')
}

impl Segments {
    /// Takes a segment in: a new one, or one from the store.
    pub(super) fn insert(&mut self, id: SegmentId, record: SegmentRecord) {
        if !record.removing {
            self.by_path.insert(record.path.clone(), id);
        }
        #[cfg(feature = "planted-bugs")]
        self.paths.insert(id, record.path.clone());
        self.by_id.insert(id, record);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// All that are not being removed.
    pub(super) fn all(&self) -> impl Iterator<Item = SegmentId> + '_ {
        let there = self.by_id.iter().filter(|(_, record)| !record.removing);
        there.map(|(id, _)| *id)
    }

    /// A segment that is not being removed.
    pub(super) fn get(&self, id: SegmentId) -> Option<&SegmentRecord> {
        self.by_id.get(&id).filter(|record| !record.removing)
    }

    /// Whether a segment's removal was accepted.
    pub(super) fn is_removing(&self, id: SegmentId) -> bool {
        self.by_id.get(&id).is_some_and(|record| record.removing)
    }

    /// Whether a page was ever given: granted to a creator, or given for overflow.
    pub(super) fn has_given(&self, page: PageId) -> bool {
        let record = self.get(page.segment);
        record.is_some_and(|record| match page.page.is_overflow() {
            true => page.page < record.overflow,
            false => page.page.is_granted(record.granted),
        })
    }

    /// Whether commits may write in a page: the home writes overflow pages itself.
    pub(super) fn may_be_written(&self, page: PageId) -> bool {
        let record = self.get(page.segment);
        record.is_some_and(|record| page.page.is_granted(record.granted))
    }

    /// Whether no accepted commit has written in this page, which may be granted.
    pub(super) fn is_unwritten(&self, page: PageId) -> bool {
        let Some(record) = self.get(page.segment) else {
            return false;
        };
        match page.page {
            number if number.is_overflow() => false,
            number if number.is_system() => number >= self.system_end(page.segment),
            number => number >= record.extent,
        }
    }

    fn system_end(&self, id: SegmentId) -> PageNo {
        self.system
            .get(&id)
            .copied()
            .unwrap_or(PageNo::SYSTEM_FIRST)
    }

    /// A segment by its path.
    pub(super) fn find(&self, path: &str) -> Option<SegmentId> {
        self.by_path.get(path).copied()
    }

    /// What is told of a segment.
    pub(super) fn info(&self, id: SegmentId) -> Option<SegmentInfo> {
        let record = self.get(id)?;
        Some(SegmentInfo {
            id,
            path: record.path.clone(),
            extent: record.extent,
        })
    }

    /// Up to `count` of the segments that are `shown`, whose paths begin with a prefix and come
    /// after another path.
    pub(super) fn list(
        &self,
        (prefix, after): (&str, &str),
        count: usize,
        shown: impl Fn(SegmentId) -> bool,
    ) -> (Vec<SegmentInfo>, bool) {
        let from = if after >= prefix { after } else { prefix };
        let mut found = self
            .by_path
            .range::<str, _>((Bound::Included(from), Bound::Unbounded))
            .filter(|(path, _)| path.as_str() != after)
            .take_while(|(path, _)| path.starts_with(prefix))
            .filter(|(_, id)| shown(**id))
            .filter_map(|(_, id)| self.info(*id));
        let segments: Vec<SegmentInfo> = found.by_ref().take(count).collect();
        let more = found.next().is_some();
        (segments, more)
    }

    /// The operation that stores a segment's record.
    pub(super) fn put(&self, id: SegmentId) -> Option<Op> {
        let record = self.by_id.get(&id)?;
        Some(records::put(Table::Meta, records::segment_key(id), record))
    }

    /// Grants fresh pages (foundation 2).
    pub(super) fn grant(&mut self, id: SegmentId, pages: u32) -> Option<(PageNo, u32)> {
        let record = self.by_id.get_mut(&id).filter(|record| !record.removing)?;
        let first = record.granted;
        if first.0.saturating_add(pages) >= PageNo::SYSTEM_FIRST.0 {
            return None;
        }
        record.granted = PageNo(first.0 + pages);
        Some((first, pages))
    }

    /// Gives overflow pages, never given before: 2^31 of them in the life of a segment.
    pub(super) fn give_overflow(
        &mut self,
        id: SegmentId,
        bytes: u64,
        pages: u32,
    ) -> Option<Overflow> {
        let record = self.by_id.get_mut(&id).filter(|record| !record.removing)?;
        let first = record.overflow;
        record.overflow = PageNo(first.0.checked_add(pages)?);
        Some(Overflow {
            bytes,
            first,
            pages,
        })
    }

    /// Raises the extent.
    pub(super) fn raise_extent(&mut self, id: SegmentId, extent: PageNo) {
        if let Some(record) = self.by_id.get_mut(&id) {
            record.extent = record.extent.max(extent);
        }
    }

    /// The segments whose extents a part raises. System pages raise none.
    pub(super) fn raised_by(&self, part: &Part) -> BTreeSet<SegmentId> {
        let raises = |page: &PageId| page.page.is_of_objects() && self.is_unwritten(*page);
        let pages = part.writes.iter().map(|writes| writes.page);
        pages.filter(raises).map(|page| page.segment).collect()
    }

    /// A commit has written in a page. If it is a system page beyond those known, the record that keeps it.
    pub(super) fn wrote(&mut self, page: PageId) -> Option<Op> {
        if !page.page.is_system() || page.page < self.system_end(page.segment) {
            return None;
        }
        let end = page.page.next();
        self.system.insert(page.segment, end);
        let key = records::system_key(page.segment);
        Some(records::put(Table::Meta, key, &SystemRecord { end }))
    }

    /// Takes in how far the system pages of a segment go, from the store.
    pub(super) fn recover_system(&mut self, id: SegmentId, record: &SystemRecord) {
        self.system.insert(id, record.end);
    }

    /// Ends the record of a segment's system pages, if it has one.
    pub(super) fn no_more_system(&self, id: SegmentId) -> Option<Op> {
        let key = records::system_key(id);
        let has = self.system.contains_key(&id);
        has.then(|| records::delete(Table::Meta, key))
    }

    /// Begins a removal: from now on nobody finds the segment.
    pub(super) fn begin_removal(&mut self, id: SegmentId) {
        if let Some(record) = self.by_id.get_mut(&id) {
            record.removing = true;
            self.by_path.remove(&record.path);
        }
    }

    /// A planted bug: the segment that now has the path that a segment had.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn named_as_before(&self, id: SegmentId) -> SegmentId {
        use thorp_model::planted::{Bug, is};
        let path = self.paths.get(&id).filter(|_| is(Bug::RemovalByPath));
        path.and_then(|path| self.find(path)).unwrap_or(id)
    }

    /// Segments whose pages have to go.
    pub(super) fn removing(&self) -> impl Iterator<Item = SegmentId> + '_ {
        let removing = self.by_id.iter().filter(|(_, record)| record.removing);
        removing.map(|(id, _)| *id)
    }

    /// The next pages of a removed segment, from `from`.
    pub(super) fn pages_to_remove(&self, id: SegmentId, from: PageNo, count: u32) -> Vec<PageNo> {
        let Some(record) = self.by_id.get(&id) else {
            return Vec::new();
        };
        let objects = from.0.min(record.granted.0)..record.granted.0;
        let system_end = match planted::is(Bug::SystemPagesLeft) {
            true => PageNo::SYSTEM_FIRST,
            false => self.system_end(id),
        };
        let system = from.0.max(PageNo::SYSTEM_FIRST.0)..system_end.0;
        let overflow = from.0.max(PageNo::OVERFLOW_FIRST.0)..record.overflow.0;
        let pages = objects.chain(system).chain(overflow).take(count as usize);
        pages.map(PageNo).collect()
    }

    /// The last page of a removed segment is gone.
    pub(super) fn end_removal(&mut self, id: SegmentId) {
        self.by_id.remove(&id);
        self.system.remove(&id);
    }
}
