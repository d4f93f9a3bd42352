//! Validation: whether the values that a transaction read are still the newest ones (rules 4 and 6).

use crate::home::Outbox;
use crate::home::commit::changes::{Changes, Verdict};
use crate::home::commit::refusal::{NotNow, conflict};
use crate::home::pages::store::Pages;
use crate::home::segments::Segments;
use crate::home::staging::{Staging, is_not_named_yet};
use thorp_model::limits::SLOTS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Generation, Image, InvalidCommit, Note, ObjectId, PageId, PageNo, PageWrites, Part, Position,
    Slot, SlotSet, WriteOp, planted,
};

/// Judges a part's reads. It changes no table; of the pages it only notes which are used.
#[derive(Debug)]
pub(in crate::home) struct Validator<'a> {
    pub(in crate::home) pages: &'a mut Pages,
    pub(in crate::home) changes: &'a Changes,
    pub(in crate::home) segments: &'a Segments,
    pub(in crate::home) staging: &'a Staging,
    /// The last accepted position.
    pub(in crate::home) tip: Position,
}

impl Validator<'_> {
    /// Judges a transaction's reads: its own, and those that its writes imply. It read an object
    /// that a commit in `named` changed last as that commit left it (rule 4). All that it read is current as of the evidence.
    pub(in crate::home) fn validate(
        &mut self,
        part: &Part,
        evidence: Position,
        named: &[Position],
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        self.check_shape(part)?;
        for (page, slots) in &part.reads {
            self.validate_page(*page, slots, (evidence, named), outbox)?;
        }
        for writes in &part.writes {
            let reads = |(_, op): &&(Slot, WriteOp)| op.reads() && !is_blind(op);
            let slots: SlotSet = writes.slots.iter().filter(reads).map(|(s, _)| *s).collect();
            self.validate_page(writes.page, &slots, (evidence, named), outbox)?;
        }
        Ok(())
    }

    fn check_shape(&self, part: &Part) -> Result<(), NotNow> {
        let ascending = part.writes.windows(2).all(|w| w[0].page < w[1].page);
        let slots_ascend = part
            .writes
            .iter()
            .all(|page| page.slots.windows(2).all(|w| w[0].0 < w[1].0) && !page.slots.is_empty());
        if !ascending || !slots_ascend || part.evidence > self.tip {
            return Err(InvalidCommit::Malformed.into());
        }
        // Nobody was ever sent an image of such a page. To look for it in the
        // store would keep its absence in memory, also when something is put there.
        if part
            .reads
            .iter()
            .any(|(page, _)| is_not_named_yet(self.segments, self.staging, *page))
        {
            return Err(InvalidCommit::Malformed.into());
        }
        part.writes.iter().try_for_each(|w| self.check_writes(w))
    }

    fn check_writes(&self, writes: &PageWrites) -> Result<(), NotNow> {
        let page = writes.page;
        if !self.segments.may_be_written(page) {
            return Err(InvalidCommit::ReservedPage.into());
        }
        for (slot, op) in &writes.slots {
            // The extent object is the home's own.
            if page.page == PageNo(0) && *slot == Slot(0) {
                return Err(InvalidCommit::ReservedPage.into());
            }
            if slot.0 >= SLOTS_MAX || op.generation() == Generation(0) {
                return Err(InvalidCommit::Malformed.into());
            }
            if !op.is_inline() {
                return Err(InvalidCommit::TooLarge.into());
            }
        }
        Ok(())
    }

    fn validate_page(
        &mut self,
        page: PageId,
        slots: &SlotSet,
        (evidence, named): (Position, &[Position]),
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        if slots.is_empty() {
            return Ok(());
        }
        match self.changes.judge(page, slots, evidence, named) {
            Verdict::Current => Ok(()),
            Verdict::Changed(object) => Err(conflict(object)),
            Verdict::AskPage if planted::is(Bug::FloorIgnored) => Ok(()),
            Verdict::AskPage => self.validate_by_version(page, slots, evidence, outbox),
        }
    }

    fn validate_by_version(
        &mut self,
        page: PageId,
        slots: &SlotSet,
        evidence: Position,
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        let image = newest_image(self.pages, self.segments, page)?;
        if image.version() <= evidence {
            outbox.note(Note::AcceptedOnPageGrounds);
            return Ok(());
        }
        outbox.note(Note::RefusedOnPageGrounds);
        let slot = slots.iter().next().unwrap_or_default();
        Err(conflict(ObjectId { page, slot }))
    }
}

/// A page's newest accepted image, or what it takes to have it.
pub(in crate::home) fn newest_image(
    pages: &mut Pages,
    segments: &Segments,
    page: PageId,
) -> Result<Image, NotNow> {
    if segments.is_unwritten(page) {
        pages.put_fresh(page);
    }
    if pages.is_damaged(page) {
        return Err(InvalidCommit::Damaged.into());
    }
    match pages.tip(page) {
        Some(image) => Ok(image),
        None => Err(NotNow::Needs(alloc::vec![page])),
    }
}

fn is_blind(op: &WriteOp) -> bool {
    (planted::is(Bug::PatchIsBlind) && matches!(op, WriteOp::Patch { .. }))
        || (planted::is(Bug::CreationNotChecked) && matches!(op, WriteOp::Create { .. }))
}
