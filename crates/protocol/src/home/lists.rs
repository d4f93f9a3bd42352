//! Where rights lists are among what commits change (rule R3).

use alloc::collections::BTreeSet;
use thorp_model::{
    Blob, NewValue, ObjectId, PageChange, PageId, PageSlots, RIGHTS_SLOT, RightsList, SegmentId,
    SlotChange, WriteOp, rights_page,
};

/// Whether a page holds the list of its segment.
pub(super) fn is_list_page(page: PageId) -> bool {
    page == rights_page(page.segment)
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
