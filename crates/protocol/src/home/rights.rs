//! Who may do what in the segments of a home (rules R3 and R4).

use crate::home::commit::refusal::NotNow;
use crate::home::segments::Segments;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::READERS_BYTES_MAX;
use thorp_model::planted::Bug;
use thorp_model::records::RightsRecord;
use thorp_model::{
    Access, Blob, CallError, InvalidCommit, NewValue, ObjectId, Op, PageChange, PageId, PageSlots,
    Part, Principal, RIGHTS_SLOT, Readers, Refusal, Right, RightsList, SegmentId, SlotChange,
    SlotSet, Table, WriteOp, planted, records, rights_page,
};

/// The rights list of each segment, at the accepted tip of the log.
///
/// Requests are judged by it. What goes down a stream is judged by what the children of the home
/// were told, at the durable end: a grant that a crash can undo opens nothing yet.
///
/// Invariant: `told_bytes` is the sum of what a site is told about each segment.
#[derive(Debug, Default)]
pub(super) struct Rights {
    lists: BTreeMap<SegmentId, Access>,
    told_bytes: usize,
}

/// A segment without a list is from before there were rights.
static WITHOUT_LIST: Access = Access::without_list();

/// What a segment is charged of [`READERS_BYTES_MAX`] beside its names.
const READERS_ENTRY_BYTES: usize = 16;

impl Rights {
    /// Takes a list from the store.
    pub(super) fn recover(&mut self, segment: SegmentId, record: &RightsRecord) {
        self.set(segment, Access::of(record.list.bytes()));
    }

    /// An object was changed by an accepted commit. Returns the operation that stores its list, if
    /// it is one.
    pub(super) fn follow(&mut self, object: ObjectId, change: &SlotChange) -> Option<Op> {
        let list = list_in(object, change)?;
        let segment = object.page.segment;
        self.set(segment, Access::of(list.bytes()));
        let record = RightsRecord { list: list.clone() };
        let key = records::rights_key(segment);
        Some(records::put(Table::Meta, key, &record))
    }

    fn set(&mut self, segment: SegmentId, access: Access) {
        self.told_bytes += told_bytes(&access);
        if let Some(old) = self.lists.insert(segment, access) {
            self.told_bytes -= told_bytes(&old);
        }
    }

    /// A segment is gone, and its number is never given again.
    pub(super) fn forget(&mut self, segment: SegmentId) {
        if let Some(old) = self.lists.remove(&segment) {
            self.told_bytes -= told_bytes(&old);
        }
    }

    /// Who may read each segment.
    pub(super) fn readers(&self) -> impl Iterator<Item = (SegmentId, Readers)> + '_ {
        let lists = self.lists.iter();
        lists.map(|(segment, access)| (*segment, access.readers()))
    }

    /// Whether a principal has a right in a segment, at the accepted tip.
    pub(super) fn may(&self, who: Principal, segment: SegmentId, right: Right) -> bool {
        let access = self.lists.get(&segment).unwrap_or(&WITHOUT_LIST);
        access.allows(who, right)
    }

    /// Judges a call about a segment. A segment that the caller may not read is as one that is not
    /// there (rule R5).
    pub(super) fn check_call(
        &self,
        segments: &Segments,
        who: Principal,
        segment: SegmentId,
        right: Right,
    ) -> Result<(), CallError> {
        let is_there = segments.get(segment).is_some();
        if !is_there || !self.may(who, segment, Right::Read) {
            return Err(CallError::NoSuchSegment);
        }
        if !self.may(who, segment, right) {
            return Err(CallError::NoRight { right });
        }
        Ok(())
    }

    /// Judges a commit's part (rule R4): it reads what it may read, and writes what it may write. A
    /// segment that is not there and one that is hidden are answered here, and alike (rule R5).
    pub(super) fn check_part(
        &self,
        segments: &Segments,
        who: Principal,
        part: &Part,
        of_several: bool,
    ) -> Result<(), Denied> {
        let read = part.reads.iter().map(|(page, _)| page.segment);
        let written = part.writes.iter().map(|writes| writes.page.segment);
        for segment in read.chain(written) {
            let is_there = segments.get(segment).is_some();
            let is_shown = self.may(who, segment, Right::Read);
            if !is_there || !(is_shown || planted::is(Bug::RightsNotChecked)) {
                return Err(Denied {
                    why: InvalidCommit::NoSuchSegment.into(),
                    wanted: is_there.then_some((segment, Right::Read)),
                });
            }
        }
        if planted::is(Bug::RightsNotChecked) {
            return Ok(());
        }
        let mut written = part.writes.iter().map(|writes| writes.page.segment);
        if let Some(segment) = written.find(|segment| !self.may(who, *segment, Right::Write)) {
            return Err(Denied::want(segment, Right::Write));
        }
        self.check_lists(who, part, of_several)
    }

    /// Judges what a part does to rights lists (rules R3 and R5).
    fn check_lists(&self, who: Principal, part: &Part, of_several: bool) -> Result<(), Denied> {
        let reads_list =
            |(page, slots): &(PageId, SlotSet)| is_list_page(*page) && slots.contains(RIGHTS_SLOT);
        let writes = part.writes.iter().filter(|w| is_list_page(w.page));
        let lists: Vec<(SegmentId, &WriteOp)> = writes
            .flat_map(|w| w.slots.iter().map(|(slot, op)| (w.page.segment, slot, op)))
            .filter(|(_, slot, _)| **slot == RIGHTS_SLOT)
            .map(|(segment, _, op)| (segment, op))
            .collect();
        let touches = !lists.is_empty() || part.reads.iter().any(reads_list);
        if of_several && touches && !planted::is(Bug::RightsInVote) {
            return Err(InvalidCommit::RightsOfSeveral.into());
        }
        for (segment, op) in lists {
            if !self.may(who, segment, Right::Admin) {
                return Err(Denied::want(segment, Right::Admin));
            }
            let list = list_of(op).ok_or(InvalidCommit::BadRights)?;
            let told = told_bytes(&Access::of(list.bytes()));
            if self.told_bytes + told > READERS_BYTES_MAX {
                return Err(InvalidCommit::TooLarge.into());
            }
        }
        Ok(())
    }
}

/// A part that rights forbid.
#[derive(Debug)]
pub(super) struct Denied {
    /// What its sender is answered.
    pub(super) why: NotNow,
    /// The right that it lacks.
    pub(super) wanted: Option<(SegmentId, Right)>,
}

impl Denied {
    fn want(segment: SegmentId, right: Right) -> Self {
        Denied {
            why: NotNow::Refused(Refusal::NoRight { right }),
            wanted: Some((segment, right)),
        }
    }
}

impl From<InvalidCommit> for Denied {
    fn from(reason: InvalidCommit) -> Self {
        Denied {
            why: reason.into(),
            wanted: None,
        }
    }
}

fn is_list_page(page: PageId) -> bool {
    page == rights_page(page.segment)
}

/// The list that an operation leaves: whole, and right.
fn list_of(op: &WriteOp) -> Option<&Blob> {
    let (WriteOp::Create { value, .. } | WriteOp::Write { value, .. }) = op else {
        return None;
    };
    match value {
        NewValue::Inline(bytes) => RightsList::parse(bytes.bytes()).ok().map(|_| bytes),
        NewValue::Staged(_) => None,
    }
}

fn list_in(object: ObjectId, change: &SlotChange) -> Option<&Blob> {
    match change {
        SlotChange::Value { bytes, .. }
            if object.slot == RIGHTS_SLOT && is_list_page(object.page) =>
        {
            Some(bytes)
        }
        _ => None,
    }
}

fn told_bytes(access: &Access) -> usize {
    match access.readers() {
        Readers::Members => 0,
        Readers::Names(names) => READERS_ENTRY_BYTES + 8 * names.len(),
    }
}

/// The readers of each segment whose list is among these changes.
pub(super) fn readers_in(changes: &[PageChange]) -> Vec<(SegmentId, Readers)> {
    let lists = changes.iter().filter(|change| is_list_page(change.page));
    let slots = lists.filter_map(|change| match &change.slots {
        PageSlots::Some(slots) => Some((change.page, slots)),
        PageSlots::Whole => None,
    });
    let all = slots.flat_map(|(page, slots)| slots.iter().map(move |of| (page, of)));
    all.filter_map(|(page, (slot, change))| {
        let list = list_in(ObjectId { page, slot: *slot }, change)?;
        Some((page.segment, Access::of(list.bytes()).readers()))
    })
    .collect()
}
