//! Where rights lists are among what commits change (rule R3).

use alloc::collections::BTreeSet;
use thorp_model::planted::Bug;
use thorp_model::{
    Blob, CommitRequest, NewValue, ObjectId, PageChange, PageId, PageSlots, RIGHTS_SLOT,
    RightsList, SegmentId, SlotChange, WriteOp, planted, rights_page,
};

/// Whether a page holds the list of its segment.
pub(super) fn is_list_page(page: PageId) -> bool {
    page == rights_page(page.segment)
}

/// Whether an object is a rights list.
pub(super) fn is_list(object: ObjectId) -> bool {
    object.slot == RIGHTS_SLOT && is_list_page(object.page)
}

/// Bytes of the rights lists in a request.
pub(super) fn list_bytes(request: &CommitRequest) -> usize {
    let writes = request.part.writes.iter();
    let lists = writes.filter(|w| is_list_page(w.page));
    let lists = lists.flat_map(|w| w.slots.iter().filter(|(slot, _)| *slot == RIGHTS_SLOT));
    let lists = lists.filter_map(|(_, op)| list_of(op));
    lists.map(|list| list.bytes().len()).sum()
}

/// Whether a request may take from the room that a full store keeps back (rule R7): it changes rights lists and deletes
/// objects, and does nothing else.
pub(super) fn may_take_room(request: &CommitRequest) -> bool {
    let takes_away =
        |object: ObjectId, op: &WriteOp| is_list(object) || matches!(op, WriteOp::Delete { .. });
    let writes = &request.part.writes;
    let mut all = writes
        .iter()
        .flat_map(|w| w.slots.iter().map(|(slot, op)| (w.page, *slot, op)));
    let is_single = request.with.is_empty() && !writes.is_empty();
    is_single
        && all.all(|(page, slot, op)| takes_away(ObjectId { page, slot }, op))
        && !planted::is(Bug::FullStoreKeepsRights)
}

/// The list that an operation leaves: whole, and right.
pub(super) fn list_of(op: &WriteOp) -> Option<&Blob> {
    let (WriteOp::Create { value, .. } | WriteOp::Write { value, .. }) = op else {
        return None;
    };
    match value {
        NewValue::Inline(bytes) => RightsList::parse(bytes.bytes()).ok().map(|_| bytes),
        NewValue::Staged(_) => None,
    }
}

/// The list that an object is, if it is one.
pub(super) fn list_in(object: ObjectId, change: &SlotChange) -> Option<&Blob> {
    match change {
        SlotChange::Value { bytes, .. } if is_list(object) => Some(bytes),
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
