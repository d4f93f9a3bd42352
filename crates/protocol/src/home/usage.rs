//! What each name has used of a home's segments, of their page numbers, and of the store (rule R7).

use crate::edge::shares::Shares;
use crate::home::Outbox;
use crate::home::name_limits::NameLimits;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::{
    PAGE_BYTES, SEGMENT_IDS_MAX, SEGMENTS_MAX, USAGE_NAMES_MAX, USAGE_NUMBERS_UNSAVED_MAX,
    USAGE_PAGES_UNSAVED_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::records::{MadeRecord, UsageRecord, Used};
use thorp_model::{CallError, NameId, Note, Op, PageNo, SegmentId, Share, Table, planted, records};

/// What each name has used.
///
/// A name is charged a page, whatever is in it, when its commit is the first that writes there. It is also charged each
/// overflow page to which a value of its commit goes. Who ends a page is given back one of its own, else one that somebody
/// else has.
///
/// Invariant: `segments` counts each segment for its maker, and `pages` is the sum of what each name has in all segments.
#[derive(Debug)]
pub(super) struct Usage {
    limits: NameLimits,
    of_segment: BTreeMap<SegmentId, OfSegment>,
    made: BTreeMap<NameId, MadeRecord>,
    segments: Shares<NameId>,
    pages: Shares<NameId>,
}

/// What was used of one segment, and how much of that is not stored yet.
#[derive(Debug, Default)]
struct OfSegment {
    maker: Option<NameId>,
    names: BTreeMap<NameId, Used>,
    others: Used,
    pages_unsaved: u32,
    numbers_unsaved: u32,
}

/// Pages that a commit brings and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PageCount {
    /// Pages that are there because of it.
    pub(super) begun: u32,
    /// Of these, those that were staged.
    pub(super) staged: u32,
    /// Pages that are gone because of it.
    pub(super) ended: u32,
}

/// Which numbers of a segment's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Numbers {
    /// Those of pages for objects.
    Granted,
    /// Those of overflow pages.
    Overflow,
}

impl Usage {
    pub(super) fn new(limits: NameLimits) -> Self {
        Usage {
            limits,
            of_segment: BTreeMap::new(),
            made: BTreeMap::new(),
            segments: Shares::default(),
            pages: Shares::default(),
        }
    }

    // --- From the store ---

    /// Takes what is stored of a segment.
    pub(super) fn recover(&mut self, segment: SegmentId, record: UsageRecord) {
        for (name, used) in &record.names {
            self.pages.take(Some(*name), u64::from(used.pages));
        }
        self.pages.take(None, u64::from(record.others.pages));
        self.segments.take(record.maker, 1);
        let names = record.names.into_iter().collect();
        let of_segment = OfSegment {
            maker: record.maker,
            names,
            others: record.others,
            ..OfSegment::default()
        };
        self.of_segment.insert(segment, of_segment);
    }

    /// Takes how many segments a name has made.
    pub(super) fn recover_made(&mut self, name: NameId, record: MadeRecord) {
        self.made.insert(name, record);
    }

    // --- Segments ---

    /// Judges whether a name may make one more segment; so many are there, and this is the last id that was given.
    pub(super) fn check_segment(
        &self,
        name: NameId,
        segments: usize,
        last: SegmentId,
    ) -> Result<(), Share> {
        if planted::is(Bug::SegmentsNotShared) {
            return Ok(());
        }
        let own = self.segments.of(name);
        let free = SEGMENTS_MAX.saturating_sub(segments + 1) as u64;
        if own + 1 > free.min(self.limits.segments_max as u64) {
            return Err(Share::Segments);
        }
        match self.made_by(name, last) < ids_left(last) {
            true => Ok(()),
            false => Err(Share::SegmentIds),
        }
    }

    /// How many segments a name has made since the home's numbers began anew (rule R9).
    fn made_by(&self, name: NameId, last: SegmentId) -> u32 {
        let made = self.made.get(&name);
        let made = made.filter(|made| incarnation_of(made.last) == incarnation_of(last));
        made.map_or(0, |made| made.count)
    }

    /// A segment was made.
    pub(super) fn made(&mut self, segment: SegmentId, maker: Option<NameId>) -> Vec<Op> {
        let of_segment = OfSegment {
            maker,
            ..OfSegment::default()
        };
        self.of_segment.insert(segment, of_segment);
        self.segments.take(maker, 1);
        let mut ops = Vec::new();
        if let Some(maker) = maker {
            let made = MadeRecord {
                last: segment,
                count: self.made_by(maker, segment) + 1,
            };
            self.made.insert(maker, made);
            ops.push(records::put(Table::Meta, records::made_key(maker), &made));
            ops.extend(self.put(segment));
        }
        ops
    }

    /// The last page of a removed segment is gone.
    pub(super) fn forget(&mut self, segment: SegmentId) {
        let Some(of_segment) = self.of_segment.remove(&segment) else {
            return;
        };
        self.segments.give_back(of_segment.maker, 1);
        for (name, used) in of_segment.names {
            self.pages.give_back(Some(name), u64::from(used.pages));
        }
        self.pages
            .give_back(None, u64::from(of_segment.others.pages));
    }

    /// The most segments that one name has made.
    pub(super) fn most_segments(&self) -> usize {
        self.segments.most() as usize
    }

    /// The most pages that are there because of one name.
    pub(super) fn most_pages(&self) -> usize {
        self.pages.most() as usize
    }

    // --- Page numbers ---

    /// Judges whether a name may have so many more of a segment's numbers, of which so many are left.
    pub(super) fn check_numbers(
        &self,
        (name, segment): (NameId, SegmentId),
        numbers: Numbers,
        (count, left): (u32, u32),
    ) -> Result<(), Share> {
        let of_segment = self.of_segment.get(&segment);
        let used = of_segment.map(|of| of.names.get(&name).copied().unwrap_or_default());
        let own = numbers.of(used.unwrap_or_default());
        let most = self.limits.page_numbers_max;
        let free = left.checked_sub(count).map(|free| free.min(most));
        let is_allowed = free.is_some_and(|free| own.saturating_add(count) <= free);
        match is_allowed || planted::is(Bug::NumbersNotShared) {
            true => Ok(()),
            false => Err(Share::PageNumbers),
        }
    }

    /// Numbers were given to a name.
    pub(super) fn give_numbers(
        &mut self,
        (name, segment): (NameId, SegmentId),
        numbers: Numbers,
        count: u32,
    ) -> Option<Op> {
        let used = self.used(segment, name);
        match numbers {
            Numbers::Granted => used.granted = used.granted.saturating_add(count),
            Numbers::Overflow => used.overflow = used.overflow.saturating_add(count),
        }
        let of_segment = self.of_segment.get_mut(&segment)?;
        of_segment.numbers_unsaved = of_segment.numbers_unsaved.saturating_add(count);
        self.put_if_due(segment)
    }

    // --- Space ---

    /// Judges whether a name, which has so many pages staged, may have so many more pages. `free` is what the store has left
    /// for all, in bytes; none: nobody knows.
    pub(super) fn check_space(
        &self,
        name: NameId,
        (staged, more): (u64, u64),
        free: Option<u64>,
    ) -> Result<(), Share> {
        let page = PAGE_BYTES as u64;
        let more = more.saturating_mul(page);
        let own = self.pages.of(name).saturating_add(staged);
        let own = own.saturating_mul(page).saturating_add(more);
        let has_part = free.is_some_and(|free| {
            let free = u128::from(free.saturating_sub(more));
            let own = u128::from(own);
            own * 100 > (own + free) * u128::from(self.limits.store_percent_max)
        });
        let is_full = has_part || own > self.limits.store_bytes_max;
        match is_full && more > 0 && !planted::is(Bug::SpaceNotShared) {
            true => Err(Share::Space),
            false => Ok(()),
        }
    }

    /// A commit of a name, or the home's own work, brought pages and ended pages.
    pub(super) fn change_pages(
        &mut self,
        name: Option<NameId>,
        segment: SegmentId,
        count: PageCount,
    ) -> Option<Op> {
        if count == PageCount::default() {
            return None;
        }
        match name {
            Some(name) => self.used(segment, name).pages += count.begun,
            None => self.of_segment.entry(segment).or_default().others.pages += count.begun,
        }
        self.pages.take(name, u64::from(count.begun));
        self.end_pages(name, segment, count.ended);
        let of_segment = self.of_segment.get_mut(&segment)?;
        let changed = count.begun.abs_diff(count.ended);
        of_segment.pages_unsaved = of_segment.pages_unsaved.saturating_add(changed);
        self.put_if_due(segment)
    }

    /// Gives pages back: to the name, else to those who are not known, else to those that have the most.
    fn end_pages(&mut self, name: Option<NameId>, segment: SegmentId, mut ended: u32) {
        let Some(of_segment) = self.of_segment.get_mut(&segment) else {
            return;
        };
        if let Some(name) = name
            && let Some(used) = of_segment.names.get_mut(&name)
        {
            let own = used.pages.min(ended);
            used.pages -= own;
            ended -= own;
            self.pages.give_back(Some(name), u64::from(own));
        }
        let others = of_segment.others.pages.min(ended);
        of_segment.others.pages -= others;
        ended -= others;
        self.pages.give_back(None, u64::from(others));
        while ended > 0 {
            let most = of_segment
                .names
                .iter_mut()
                .max_by_key(|(_, used)| used.pages);
            let Some((name, used)) = most.filter(|(_, used)| used.pages > 0) else {
                return;
            };
            let given = used.pages.min(ended);
            used.pages -= given;
            ended -= given;
            self.pages.give_back(Some(*name), u64::from(given));
        }
    }

    /// What a name has used of a segment. Where too many names are known, the one that has used the least is forgotten for
    /// it: what that has used counts for nobody.
    fn used(&mut self, segment: SegmentId, name: NameId) -> &mut Used {
        let of_segment = self.of_segment.entry(segment).or_default();
        if of_segment.names.len() >= USAGE_NAMES_MAX && !of_segment.names.contains_key(&name) {
            let least = of_segment.names.iter().min_by_key(|(_, used)| used.sum());
            if let Some(least) = least.map(|(least, _)| *least)
                && let Some(used) = of_segment.names.remove(&least)
            {
                of_segment.others.add(used);
                self.pages.give_back(Some(least), u64::from(used.pages));
                self.pages.take(None, u64::from(used.pages));
            }
        }
        of_segment.names.entry(name).or_default()
    }

    // --- To the store ---

    fn put_if_due(&mut self, segment: SegmentId) -> Option<Op> {
        let of_segment = self.of_segment.get(&segment)?;
        let is_due = of_segment.pages_unsaved >= USAGE_PAGES_UNSAVED_MAX
            || of_segment.numbers_unsaved >= USAGE_NUMBERS_UNSAVED_MAX;
        is_due.then(|| self.put(segment))?
    }

    fn put(&mut self, segment: SegmentId) -> Option<Op> {
        let of_segment = self.of_segment.get_mut(&segment)?;
        of_segment.pages_unsaved = 0;
        of_segment.numbers_unsaved = 0;
        let names = of_segment.names.iter();
        let record = UsageRecord {
            maker: of_segment.maker,
            names: names.map(|(name, used)| (*name, *used)).collect(),
            others: of_segment.others,
        };
        Some(records::put(
            Table::Meta,
            records::usage_key(segment),
            &record,
        ))
    }
}

impl Numbers {
    fn of(self, used: Used) -> u32 {
        match self {
            Numbers::Granted => used.granted,
            Numbers::Overflow => used.overflow,
        }
    }

    /// How many are left of a segment in which pages below these numbers were given.
    pub(super) fn left(self, granted: PageNo, overflow: PageNo) -> u32 {
        match self {
            Numbers::Granted => PageNo::SYSTEM_FIRST.0.saturating_sub(granted.0),
            Numbers::Overflow => u32::MAX - overflow.0,
        }
    }
}

/// What a call of a name that has its share is answered.
pub(super) fn limited(share: Share, outbox: &mut Outbox) -> CallError {
    outbox.note(Note::NameLimited);
    CallError::Share(share)
}

/// Ids that are left in the incarnation of a home that gave this one last.
fn ids_left(last: SegmentId) -> u32 {
    SEGMENT_IDS_MAX - 1 - last.0 % SEGMENT_IDS_MAX
}

/// Whether there are ids left.
pub(super) fn has_ids(last: SegmentId) -> bool {
    ids_left(last) > 0
}

fn incarnation_of(segment: SegmentId) -> u32 {
    segment.0 / SEGMENT_IDS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: NameId = NameId(1);
    const MALLORY: NameId = NameId(2);
    const S: SegmentId = SegmentId(7);
    const NONE: SegmentId = SegmentId(0);

    fn usage(segments_max: usize) -> Usage {
        Usage::new(NameLimits {
            segments_max,
            ..NameLimits::default()
        })
    }

    fn begun(begun: u32) -> PageCount {
        PageCount {
            begun,
            ..PageCount::default()
        }
    }

    fn ended(ended: u32) -> PageCount {
        PageCount {
            ended,
            ..PageCount::default()
        }
    }

    /// Makes segments as long as that is allowed. Tells how many there are.
    fn fill(usage: &mut Usage, name: NameId, mut there: usize) -> usize {
        while usage
            .check_segment(name, there, SegmentId(there as u32))
            .is_ok()
        {
            there += 1;
            usage.made(SegmentId(there as u32), Some(name));
        }
        there
    }

    #[test]
    fn a_name_has_no_more_segments_than_it_leaves_free() {
        let mut usage = usage(usize::MAX);
        assert_eq!(fill(&mut usage, MALLORY, 0), SEGMENTS_MAX / 2);
        let there = SEGMENTS_MAX / 2;
        assert_eq!(fill(&mut usage, ANNA, there), there + SEGMENTS_MAX / 4);
        (1..=2).for_each(|gone| usage.forget(SegmentId(gone)));
        let all = there + SEGMENTS_MAX / 4 - 2;
        assert_eq!(usage.check_segment(ANNA, all, S), Ok(()));
    }

    #[test]
    fn a_configured_number_is_the_most_that_a_name_makes() {
        let mut usage = usage(3);
        assert_eq!(fill(&mut usage, MALLORY, 0), 3);
        assert_eq!(usage.check_segment(MALLORY, 3, S), Err(Share::Segments));
        assert_eq!(usage.check_segment(ANNA, 3, S), Ok(()));
    }

    /// Removals give no id back.
    #[test]
    fn a_name_makes_no_more_segments_than_it_leaves_ids() {
        let mut usage = usage(usize::MAX);
        let mut last = NONE;
        while usage.check_segment(MALLORY, 0, last).is_ok() {
            last.0 += 1;
            usage.made(last, Some(MALLORY));
            usage.forget(last);
        }
        assert_eq!(last.0, SEGMENT_IDS_MAX / 2);
        let refused = usage.check_segment(MALLORY, 0, last);
        assert_eq!(refused, Err(Share::SegmentIds));
        assert_eq!(usage.check_segment(ANNA, 0, last), Ok(()));
        // The ids of the next incarnation are others.
        let next = SegmentId(SEGMENT_IDS_MAX);
        assert_eq!(usage.check_segment(MALLORY, 0, next), Ok(()));
        assert!(!has_ids(SegmentId(SEGMENT_IDS_MAX - 1)) && has_ids(next));
    }

    #[test]
    fn a_name_has_no_more_page_numbers_than_it_leaves() {
        let mut usage = usage(1);
        let count = 1 << 17;
        let mut overflow = PageNo::OVERFLOW_FIRST;
        let flood = |usage: &mut Usage, name, overflow: &mut PageNo| {
            let (numbers, before) = (Numbers::Overflow, overflow.0);
            loop {
                let left = numbers.left(PageNo(0), *overflow);
                if usage
                    .check_numbers((name, S), numbers, (count, left))
                    .is_err()
                {
                    return overflow.0 - before;
                }
                usage.give_numbers((name, S), numbers, count);
                overflow.0 += count;
            }
        };
        let half = flood(&mut usage, MALLORY, &mut overflow);
        assert!(half <= 1 << 30 && half + count >= 1 << 30, "{half}");
        let rest = flood(&mut usage, ANNA, &mut overflow);
        assert!(rest > 1 << 28, "{rest}");
        let other = (MALLORY, SegmentId(8));
        assert_eq!(
            usage.check_numbers(other, Numbers::Overflow, (count, u32::MAX)),
            Ok(())
        );
    }

    #[test]
    fn a_name_has_no_more_space_than_it_leaves_free() {
        let mut usage = usage(1);
        let mut free = 100 * PAGE_BYTES as u64;
        let mut taken = 0;
        while usage.check_space(MALLORY, (0, 1), Some(free)).is_ok() {
            usage.change_pages(Some(MALLORY), S, begun(1));
            free -= PAGE_BYTES as u64;
            taken += 1;
        }
        assert_eq!(taken, 50);
        assert_eq!(usage.check_space(ANNA, (0, 25), Some(free)), Ok(()));
        assert_eq!(
            usage.check_space(ANNA, (0, 26), Some(free)),
            Err(Share::Space)
        );
        assert_eq!(
            usage.check_space(ANNA, (20, 20), Some(free)),
            Err(Share::Space)
        );
        // What brings nothing is never refused, and what makes space gives it back.
        assert_eq!(usage.check_space(MALLORY, (0, 0), Some(0)), Ok(()));
        usage.change_pages(Some(MALLORY), S, ended(10));
        free += 10 * PAGE_BYTES as u64;
        assert_eq!(usage.check_space(MALLORY, (0, 10), Some(free)), Ok(()));
        assert_eq!(
            usage.check_space(MALLORY, (0, 1), None),
            Ok(()),
            "nobody knows"
        );
    }

    #[test]
    fn a_configured_part_and_a_configured_size_are_the_most_that_a_name_has() {
        let page = PAGE_BYTES as u64;
        let mut usage = Usage::new(NameLimits {
            store_percent_max: 100,
            store_bytes_max: 20 * page,
            ..NameLimits::default()
        });
        assert_eq!(usage.check_space(ANNA, (0, 20), Some(20 * page)), Ok(()));
        assert_eq!(
            usage.check_space(ANNA, (0, 21), Some(90 * page)),
            Err(Share::Space)
        );
        usage.limits.store_percent_max = 10;
        assert_eq!(usage.check_space(ANNA, (0, 9), Some(90 * page)), Ok(()));
        assert_eq!(
            usage.check_space(ANNA, (0, 10), Some(90 * page)),
            Err(Share::Space)
        );
    }

    #[test]
    fn who_ends_a_page_of_another_gives_back_its_own_first() {
        let mut usage = usage(1);
        usage.change_pages(Some(MALLORY), S, begun(5));
        usage.change_pages(Some(ANNA), S, begun(2));
        usage.change_pages(Some(ANNA), S, ended(3));
        assert_eq!((usage.pages.of(ANNA), usage.pages.of(MALLORY)), (0, 4));
        // Pages from before anybody counted are nobody's.
        usage.change_pages(Some(ANNA), S, ended(9));
        assert_eq!(usage.pages.taken(), 0);
    }

    #[test]
    fn names_beyond_the_limit_push_out_who_has_used_the_least() {
        let mut usage = usage(1);
        usage.change_pages(Some(MALLORY), S, begun(100));
        for name in 0..2 * USAGE_NAMES_MAX as u64 {
            usage.change_pages(Some(NameId(1_000 + name)), S, begun(1));
        }
        let of_segment = usage.of_segment.get(&S).expect("it is known");
        assert_eq!(of_segment.names.len(), USAGE_NAMES_MAX);
        assert_eq!(usage.pages.of(MALLORY), 100);
        assert_eq!(usage.pages.taken(), 100 + 2 * USAGE_NAMES_MAX as u64);
        usage.forget(S);
        assert_eq!(usage.pages.taken(), 0);
    }

    #[test]
    fn what_is_stored_is_what_comes_back() {
        let mut usage = usage(1);
        let ops = usage.made(S, Some(MALLORY));
        assert_eq!(ops.len(), 2);
        assert!(
            usage
                .change_pages(Some(ANNA), S, begun(USAGE_PAGES_UNSAVED_MAX - 1))
                .is_none()
        );
        let op = usage
            .change_pages(Some(ANNA), S, begun(1))
            .expect("it is due");
        let Op::Put { table, key, value } = op else {
            panic!("a record");
        };
        let record = records::decode(table, &key, &value).expect("a record");
        let mut again = super::Usage::new(NameLimits::default());
        again.recover(S, record);
        assert_eq!(again.pages.of(ANNA), u64::from(USAGE_PAGES_UNSAVED_MAX));
        assert_eq!(again.segments.of(MALLORY), 1);
    }
}
