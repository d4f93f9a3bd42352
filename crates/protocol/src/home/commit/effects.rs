//! What an accepted commit does, and how much of it may be.

use crate::home::commit::refusal::NotNow;
use crate::home::log::room::Bill;
use crate::home::usage::PageCount;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{COMMIT_EFFECT_BYTES_MAX, COMMIT_PAGES_MAX};
use thorp_model::{
    InvalidCommit, ObjectId, Op, PageChange, PageId, PageSlots, SegmentId, Slot, SlotChange,
    SlotSet,
};

/// What an accepted commit does, page by page.
#[derive(Debug, Default)]
pub(in crate::home) struct Effects {
    pub(in crate::home) changes: BTreeMap<PageId, PageChange>,
    /// Objects that it moves to pages of their own to make space, and does not change.
    pub(in crate::home) moved: BTreeSet<ObjectId>,
    pub(in crate::home) ops: Vec<Op>,
    /// Staged values that it names: no longer staged once it is accepted.
    pub(in crate::home) staged: Vec<u64>,
    /// What it takes of the room that a full store keeps back (rule R7).
    pub(in crate::home) bill: Bill,
    /// Bytes of the values that it replaces or removes; those of a rights list twice, as the home has a copy of it.
    pub(in crate::home) freed: u64,
    /// Bytes that it adds to the log, about.
    bytes: usize,
    /// Pages of which it changes objects.
    pages: usize,
    /// What was voted for is carried out whatever it has grown to meanwhile (rule 10).
    unbounded: bool,
    /// Segments whose overflow pages were given.
    pub(in crate::home) spilled: BTreeSet<SegmentId>,
    /// Slots in which a procedure ran: nobody below knows their values (rule C8).
    pub(in crate::home) run: BTreeMap<PageId, SlotSet>,
    /// Pages that it brings and ends, in each segment (rule R7).
    pub(in crate::home) pages_of: BTreeMap<SegmentId, PageCount>,
}

/// What an entry of the log record is charged beside its value, in bytes.
const EFFECT_ENTRY_BYTES: usize = 16;

impl Effects {
    /// Effects of any size.
    pub(in crate::home) fn unbounded() -> Self {
        Effects {
            unbounded: true,
            ..Effects::default()
        }
    }

    /// Effects that take so much of the kept room.
    pub(in crate::home) fn paid(bill: Bill) -> Self {
        Effects {
            bill,
            ..Effects::default()
        }
    }

    /// Whether they have to be, as they were voted for.
    pub(in crate::home) fn is_unbounded(&self) -> bool {
        self.unbounded
    }

    pub(in crate::home) fn set(&mut self, page: PageId, slot: Slot, change: SlotChange) {
        let entry = self.changes.entry(page).or_insert_with(|| {
            self.bytes += EFFECT_ENTRY_BYTES;
            self.pages += 1;
            let slots = PageSlots::Some(Vec::new());
            PageChange { page, slots }
        });
        if let PageSlots::Some(slots) = &mut entry.slots {
            self.bytes += EFFECT_ENTRY_BYTES + change.bytes();
            match slots.binary_search_by_key(&slot, |(s, _)| *s) {
                Ok(index) => {
                    self.bytes -= EFFECT_ENTRY_BYTES + slots[index].1.bytes();
                    slots[index].1 = change;
                }
                Err(index) => slots.insert(index, (slot, change)),
            }
        }
    }

    pub(in crate::home) fn end_page(&mut self, page: PageId) {
        let slots = PageSlots::Whole;
        self.bytes += EFFECT_ENTRY_BYTES;
        self.changes.insert(page, PageChange { page, slots });
        self.pages_of.entry(page.segment).or_default().ended += 1;
    }

    /// Pages of a segment are there because of it. Of these, so many were staged.
    pub(in crate::home) fn begin_pages(&mut self, segment: SegmentId, begun: u32, staged: u32) {
        let count = self.pages_of.entry(segment).or_default();
        count.begun += begun;
        count.staged += staged;
    }

    /// A small request may have large effects.
    pub(in crate::home) fn check_size(&self) -> Result<(), NotNow> {
        if self.unbounded {
            return Ok(());
        }
        if self.bytes > COMMIT_EFFECT_BYTES_MAX || self.pages > COMMIT_PAGES_MAX {
            return Err(InvalidCommit::TooLarge.into());
        }
        Ok(())
    }
}
