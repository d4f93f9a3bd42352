//! Who may do what in the segments of a home (rules R3 and R4).

use crate::home::commit::refusal::NotNow;
use crate::home::segments::Segments;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use thorp_model::limits::READERS_BYTES_MAX;
use thorp_model::planted::Bug;
use thorp_model::records::RightsRecord;
use thorp_model::{
    Access, Blob, CallError, InvalidCommit, NewValue, ObjectId, Op, PageChange, PageId, PageSlots,
    Part, Principal, RIGHTS_SLOT, Readers, Refusal, Right, RightsList, SegmentId, SlotChange,
    SlotSet, Subject, Table, WriteOp, planted, records, rights_page,
};

/// The rights list of each segment, at the accepted tip of the log.
///
/// Requests are judged by it. What goes down a stream is judged by what the children of the home
/// were told, at the durable end: a grant that a crash can undo opens nothing yet.
///
/// A group is a segment: who has a right in its list by name is in the group. So a change of a group is a commit like
/// any other, has a position, and is durable, told and audited as a change of a list (record 0020).
///
/// Invariant: sites are told no more than [`READERS_BYTES_MAX`] about all segments.
#[derive(Debug, Default)]
pub(super) struct Rights {
    lists: BTreeMap<SegmentId, Access>,
}

/// A segment without a list is from before there were rights.
static WITHOUT_LIST: Access = Access::without_list();

/// What a segment is charged of [`READERS_BYTES_MAX`] beside its names.
const READERS_ENTRY_BYTES: usize = 16;

/// Where the segment of a group is. Who has a right in its list by name is in the group.
const GROUP_PREFIX: &str = ".group/";

/// The segment whose list a new segment begins with.
pub(super) const TEMPLATE_PATH: &str = ".new";

/// The segment in which one has to have *write* in order to make segments.
pub(super) const CREATORS_PATH: &str = ".create";

/// Whether a path is one that only an operator may make a segment at.
pub(super) fn is_operators_path(path: &str) -> bool {
    let group = path.strip_prefix(GROUP_PREFIX);
    let is_group = |group: &str| matches!(format!("@{group}").parse(), Ok(Subject::Group(_)));
    group.is_some_and(is_group) || [TEMPLATE_PATH, CREATORS_PATH].contains(&path)
}

impl Rights {
    /// Takes a list from the store.
    pub(super) fn recover(&mut self, segment: SegmentId, record: &RightsRecord) {
        self.lists.insert(segment, Access::of(record.list.bytes()));
    }

    /// An object was changed by an accepted commit. Returns the operation that stores its list, if
    /// it is one.
    pub(super) fn follow(&mut self, object: ObjectId, change: &SlotChange) -> Option<Op> {
        let list = list_in(object, change)?;
        let segment = object.page.segment;
        self.lists.insert(segment, Access::of(list.bytes()));
        let record = RightsRecord { list: list.clone() };
        let key = records::rights_key(segment);
        Some(records::put(Table::Meta, key, &record))
    }

    /// A segment is gone, and its number is never given again.
    pub(super) fn forget(&mut self, segment: SegmentId) {
        self.lists.remove(&segment);
    }

    /// Who may read each segment.
    pub(super) fn readers(&self, segments: &Segments) -> Vec<(SegmentId, Readers)> {
        let lists = self.lists.iter();
        lists
            .map(|(segment, access)| (*segment, self.resolved(segments, access)))
            .collect()
    }

    /// Who may read the segments whose lists have changed, and those that name a group whose list has, or which is gone
    /// (rule R4).
    pub(super) fn readers_after(
        &self,
        segments: &Segments,
        changed: &BTreeSet<SegmentId>,
    ) -> Vec<(SegmentId, Readers)> {
        let groups = changed.iter().filter_map(|segment| segments.path(*segment));
        let groups = groups.filter_map(|path| path.strip_prefix(GROUP_PREFIX));
        let groups: BTreeSet<&str> = groups.collect();
        let names = |access: &Access| access.groups().any(|(group, _)| groups.contains(group));
        let lists = self.lists.iter();
        let told = lists.filter(|(segment, access)| changed.contains(*segment) || names(access));
        told.map(|(segment, access)| (*segment, self.resolved(segments, access)))
            .collect()
    }

    /// Who may read by a list, with the nodes in its groups.
    fn resolved(&self, segments: &Segments, access: &Access) -> Readers {
        let Readers::Names(mut names) = access.readers() else {
            return Readers::Members;
        };
        for (group, _) in access.groups() {
            match self.group(segments, group).map(Access::readers) {
                Some(Readers::Members) => return Readers::Members,
                Some(Readers::Names(more)) => names.extend(more),
                None => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        Readers::Names(names)
    }

    /// The list that says who is in a group. Groups in it count for nothing.
    fn group(&self, segments: &Segments, group: &str) -> Option<&Access> {
        let segment = segments.find(&format!("{GROUP_PREFIX}{group}"))?;
        self.lists.get(&segment)
    }

    /// The list that the home's operators want new segments to begin with.
    pub(super) fn template(&self, segments: &Segments) -> Option<RightsList> {
        let segment = segments.find(TEMPLATE_PATH)?;
        self.lists.get(&segment).map(Access::to_list)
    }

    /// Whether a principal has a right in a segment, at the accepted tip.
    pub(super) fn may(
        &self,
        segments: &Segments,
        who: Principal,
        segment: SegmentId,
        right: Right,
    ) -> bool {
        let access = self.lists.get(&segment).unwrap_or(&WITHOUT_LIST);
        if planted::is(Bug::MembersIgnored) && !who.is_operator {
            return access.own(who.name) >= Some(right);
        }
        if planted::is(Bug::WriteWithoutRead) && right == Right::Read {
            return !access.allows(who, Right::Write) || access.allows(who, Right::Admin);
        }
        let is_in = |(group, held): (&str, Right)| {
            let members = self.group(segments, group);
            held >= right && members.is_some_and(|members| members.allows(who, Right::Read))
        };
        access.allows(who, right) || access.groups().any(is_in)
    }

    /// Bytes of what sites are told of all segments, at most, if one of them had another list.
    fn told_bytes_with(&self, segments: &Segments, segment: SegmentId, list: &Access) -> usize {
        let list_of = |of: SegmentId| match of == segment {
            true => Some(list),
            false => self.lists.get(&of),
        };
        let names_in = |group: &str| {
            let of = segments.find(&format!("{GROUP_PREFIX}{group}"));
            of.and_then(list_of).map_or(0, Access::named)
        };
        let told = |access: &Access| {
            let groups = access.groups().map(|(group, _)| names_in(group));
            READERS_ENTRY_BYTES + 8 * (access.named() + groups.sum::<usize>())
        };
        let others = self.lists.keys().filter(|of| **of != segment);
        let all = others.filter_map(|of| self.lists.get(of)).chain([list]);
        all.filter(|access| access.readers_are_named())
            .map(told)
            .sum()
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
        if !is_there || !self.may(segments, who, segment, Right::Read) {
            return Err(CallError::NoSuchSegment);
        }
        if !self.may(segments, who, segment, right) {
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
            let is_shown = self.may(segments, who, segment, Right::Read);
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
        if let Some(segment) =
            written.find(|segment| !self.may(segments, who, *segment, Right::Write))
        {
            return Err(Denied::want(segment, Right::Write));
        }
        self.check_lists(segments, who, part, of_several)
    }

    /// Judges what a part does to rights lists (rules R3 and R5).
    fn check_lists(
        &self,
        segments: &Segments,
        who: Principal,
        part: &Part,
        of_several: bool,
    ) -> Result<(), Denied> {
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
            let is_admin = self.may(segments, who, segment, Right::Admin);
            if !is_admin && !planted::is(Bug::ListForWriters) {
                return Err(Denied::want(segment, Right::Admin));
            }
            let list = list_of(op).ok_or(InvalidCommit::BadRights)?;
            let list = Access::of(list.bytes());
            if self.told_bytes_with(segments, segment, &list) > READERS_BYTES_MAX {
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

/// The segments whose lists are among these changes.
pub(super) fn lists_in(changes: &[PageChange]) -> BTreeSet<SegmentId> {
    let lists = changes.iter().filter(|change| is_list_page(change.page));
    let slots = lists.filter_map(|change| match &change.slots {
        PageSlots::Some(slots) => Some((change.page, slots)),
        PageSlots::Whole => None,
    });
    let all = slots.flat_map(|(page, slots)| slots.iter().map(move |of| (page, of)));
    let changed = all.filter_map(|(page, (slot, change))| {
        list_in(ObjectId { page, slot: *slot }, change).map(|_| page.segment)
    });
    changed.collect()
}
