//! The values that samples are made of.

use thorp_model::*;

pub(crate) const HOME: HomeId = HomeId(3);
pub(crate) const EPOCH: Epoch = Epoch(1_000_001);
pub(crate) const ATTEMPT: Attempt = Attempt(200);
pub(crate) const ENTRY: EntryNo = EntryNo(70_000);
pub(crate) const POSITION: Position = Position(5_000_000_000);
pub(crate) const REGISTRATION: Registration = Registration(130);
pub(crate) const SEGMENT: SegmentId = SegmentId(17);

pub(crate) fn page() -> PageId {
    PageId::new(17, 300)
}

pub(crate) fn member() -> MemberId {
    MemberId(0x0123_4567_89ab_cdef_0011_2233_4455_6677)
}

pub(crate) fn stamp() -> Stamp {
    Stamp {
        clock: 1_700_000_000_000 << 16 | 5,
        home: HOME,
    }
}

pub(crate) fn commit_id() -> CommitId {
    CommitId {
        member: member(),
        sequence: 77,
    }
}

pub(crate) fn overflow() -> Overflow {
    Overflow {
        bytes: 20_000,
        first: PageNo(PageNo::OVERFLOW_FIRST.0 + 9),
        pages: 3,
    }
}

pub(crate) fn object() -> ObjectId {
    ObjectId {
        page: page(),
        slot: Slot(200),
    }
}

pub(crate) fn blob() -> Blob {
    Blob::from(&b"value"[..])
}

pub(crate) fn slots() -> SlotSet {
    [Slot(0), Slot(3), Slot(70), Slot(239)]
        .into_iter()
        .collect()
}

/// An image with each kind of content.
pub(crate) fn image() -> Image {
    let mut edit = ImageEdit::default();
    let drafts = [
        Draft::Value(b"hello".to_vec()),
        Draft::Overflow(overflow()),
        Draft::Hole,
        Draft::Free,
    ];
    for (slot, draft) in (1..).zip(drafts) {
        edit.set(Slot(slot), Generation(u32::from(slot) + 1), draft);
    }
    edit.finish(POSITION, stamp())
}
