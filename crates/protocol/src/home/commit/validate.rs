//! Validation of a commit and what it does to pages (rules 4 and 6).

use crate::home::commit::changes::Verdict;
use crate::home::commit::effects::Effects;
use crate::home::{Home, Outbox};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::change::apply_slot;
use thorp_model::limits::{
    INLINE_VALUE_BYTES_MAX, OBJECT_BYTES_MAX, OVERFLOW_HEAD_BYTES, SLOTS_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    Blob, CommitId, Content, Generation, ImageEdit, InvalidCommit, NewValue, Note, ObjectId,
    Overflow, PageId, PageNo, Part, Position, Refusal, Registration, SegmentId, Slot, SlotChange,
    SlotSet, Table, WriteOp, change, planted, records,
};

/// Why a commit is not accepted now.
#[derive(Debug)]
pub(in crate::home) enum NotNow {
    /// It is refused.
    Refused(Refusal),
    /// These pages have to be in memory first.
    Needs(Vec<PageId>),
}

impl From<InvalidCommit> for NotNow {
    fn from(reason: InvalidCommit) -> Self {
        NotNow::Refused(Refusal::Invalid { reason })
    }
}

fn conflict(object: ObjectId) -> NotNow {
    NotNow::Refused(Refusal::Conflict { object })
}

impl Home {
    /// Judges a transaction's reads: its own, and those that its writes imply.
    /// Objects changed last by a named commit were read as it left them (rule 4).
    pub(in crate::home) fn validate(
        &mut self,
        part: &Part,
        named: &[Position],
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        self.check_shape(part)?;
        for (page, slots) in &part.reads {
            self.validate_page(*page, slots, (part.evidence, named), outbox)?;
        }
        for writes in &part.writes {
            let reads = |(_, op): &&(Slot, WriteOp)| op.reads() && !is_blind(op);
            let slots: SlotSet = writes.slots.iter().filter(reads).map(|(s, _)| *s).collect();
            self.validate_page(writes.page, &slots, (part.evidence, named), outbox)?;
        }
        Ok(())
    }

    fn check_shape(&self, part: &Part) -> Result<(), NotNow> {
        let ascending = part.writes.windows(2).all(|w| w[0].page < w[1].page);
        let slots_ascend = part
            .writes
            .iter()
            .all(|page| page.slots.windows(2).all(|w| w[0].0 < w[1].0) && !page.slots.is_empty());
        if !ascending || !slots_ascend || part.evidence > self.log.tip() {
            return Err(InvalidCommit::Malformed.into());
        }
        let pages = part.reads.iter().map(|(page, _)| *page);
        for page in pages.chain(part.writes.iter().map(|w| w.page)) {
            if self.segments.get(page.segment).is_none() {
                return Err(InvalidCommit::NoSuchSegment.into());
            }
        }
        // Nobody was ever sent an image of such a page. To look for it in the
        // store would keep its absence in memory, also when something is put there.
        if part
            .reads
            .iter()
            .any(|(page, _)| self.is_not_named_yet(*page))
        {
            return Err(InvalidCommit::Malformed.into());
        }
        part.writes.iter().try_for_each(|w| self.check_writes(w))
    }

    fn check_writes(&self, writes: &thorp_model::PageWrites) -> Result<(), NotNow> {
        let page = writes.page;
        let granted = self.segments.get(page.segment).map(|s| s.granted);
        if granted.is_none_or(|granted| page.page >= granted) {
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
            if op.bytes() > INLINE_VALUE_BYTES_MAX {
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
        let image = self.tip_of(page)?;
        if image.version() <= evidence {
            outbox.note(Note::AcceptedOnPageGrounds);
            return Ok(());
        }
        outbox.note(Note::RefusedOnPageGrounds);
        let slot = slots.iter().next().unwrap_or_default();
        Err(conflict(ObjectId { page, slot }))
    }

    /// A page's newest accepted image, or what it takes to have it.
    fn tip_of(&mut self, page: PageId) -> Result<thorp_model::Image, NotNow> {
        let extent = self.segments.get(page.segment).map(|s| s.extent);
        if !page.page.is_overflow() && extent.is_some_and(|extent| page.page >= extent) {
            self.pages.put_fresh(page);
        }
        if self.pages.is_damaged(page) {
            return Err(InvalidCommit::Damaged.into());
        }
        match self.pages.tip(page) {
            Some(image) => Ok(image),
            None => Err(NotNow::Needs(alloc::vec![page])),
        }
    }

    /// Works out what a valid commit does. Changes nothing but the overflow
    /// pages given, which are never given again.
    pub(in crate::home) fn effects(
        &mut self,
        part: &Part,
        registration: Registration,
        mut effects: Effects,
        outbox: &mut Outbox,
    ) -> Result<Effects, NotNow> {
        self.require(part)?;
        for writes in &part.writes {
            let mut edit = ImageEdit::of(&self.tip_of(writes.page)?);
            for (slot, op) in &writes.slots {
                let object = ObjectId {
                    page: writes.page,
                    slot: *slot,
                };
                self.write(object, op, registration, &mut edit, &mut effects, outbox)?;
                effects.check_size()?;
            }
            let slots = self.votes.slots_of(writes.page);
            self.spill(writes.page, slots, &mut edit, &mut effects, outbox)?;
        }
        self.put_spilled(&mut effects);
        self.raise_extents(part, &mut effects)?;
        Ok(effects)
    }

    /// What is done before a part is voted for: in its pages room for the slots that it creates. Whatever is moved for them is
    /// moved now, while no other vote has locked it; when the vote is carried out there is nothing to be moved that it does
    /// not write, and what comes meanwhile leaves the room to it.
    pub(in crate::home) fn space_for(
        &mut self,
        part: &Part,
        outbox: &mut Outbox,
    ) -> Result<Effects, NotNow> {
        let mut effects = Effects::default();
        if planted::is(Bug::LockedIsMoved) {
            return Ok(effects);
        }
        for writes in &part.writes {
            let last = writes.slots.last().map_or(0, |(slot, _)| slot.0 + 1);
            let slots = self.votes.slots_of(writes.page).max(last);
            let mut edit = ImageEdit::of(&self.tip_of(writes.page)?);
            self.spill(writes.page, slots, &mut edit, &mut effects, outbox)?;
        }
        self.put_spilled(&mut effects);
        // Nobody can name the position, so that it excuses nothing: the objects count as changed there, and who holds their
        // page as of before hears so also after a gap (rule 13).
        effects.moved.clear();
        Ok(effects)
    }

    /// Once for all the numbers given.
    fn put_spilled(&mut self, effects: &mut Effects) {
        for segment in core::mem::take(&mut effects.spilled) {
            effects.ops.extend(self.segments.put(segment));
        }
    }

    /// All pages that a commit writes to, loaded at once rather than one by one.
    fn require(&mut self, part: &Part) -> Result<(), NotNow> {
        let mut needs = Vec::new();
        for writes in &part.writes {
            match self.tip_of(writes.page) {
                Ok(_) => {}
                Err(NotNow::Needs(pages)) => needs.extend(pages),
                Err(refused) => return Err(refused),
            }
        }
        if needs.is_empty() {
            Ok(())
        } else {
            Err(NotNow::Needs(needs))
        }
    }

    fn write(
        &mut self,
        object: ObjectId,
        op: &WriteOp,
        registration: Registration,
        edit: &mut ImageEdit,
        effects: &mut Effects,
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        let (found, content) = edit.get(object.slot);
        check_generation(object, op, found, content)?;
        let old = match content {
            Content::Overflow(overflow) => Some(overflow),
            _ => None,
        };
        let change = match op {
            WriteOp::Patch {
                generation,
                offset,
                bytes,
            } => self.patched(object, *generation, content, *offset, bytes)?,
            WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => {
                self.check_staged(object, value, registration, effects, outbox)?;
                op.effect()
            }
            WriteOp::Delete { .. } => op.effect(),
        };
        for page in old.into_iter().flat_map(Overflow::page_numbers) {
            effects.end_page(PageId {
                segment: object.page.segment,
                page,
            });
        }
        apply_slot(edit, object.slot, &change);
        effects.set(object.page, object.slot, change);
        Ok(())
    }

    /// A patch of an inline value stays a patch; one that the home had spilled
    /// becomes a new value.
    fn patched(
        &mut self,
        object: ObjectId,
        generation: Generation,
        content: Content<'_>,
        offset: u32,
        bytes: &Blob,
    ) -> Result<SlotChange, NotNow> {
        let wrong = InvalidCommit::Patch { object };
        match content {
            Content::Value(base) => {
                change::patch(base, offset, bytes.bytes()).ok_or(wrong)?;
                Ok(SlotChange::Patch {
                    generation,
                    offset,
                    bytes: bytes.clone(),
                })
            }
            Content::Overflow(overflow) if overflow.pages == 1 => {
                let page = PageId {
                    segment: object.page.segment,
                    page: overflow.first,
                };
                let image = self.tip_of(page)?;
                let Content::Value(base) = image.content(Slot(0)) else {
                    return Err(InvalidCommit::Damaged.into());
                };
                let value = change::patch(base, offset, bytes.bytes()).ok_or(wrong)?;
                Ok(SlotChange::Value {
                    generation,
                    bytes: value.into(),
                })
            }
            _ => Err(wrong.into()),
        }
    }

    fn check_staged(
        &mut self,
        object: ObjectId,
        value: &NewValue,
        registration: Registration,
        effects: &mut Effects,
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        let NewValue::Staged(overflow) = value else {
            return Ok(());
        };
        let token = self.staging.find(registration, *overflow);
        let staged = token.and_then(|token| self.staging.get(registration, token));
        let is_durable = |token| {
            let durable = self.log.durable_mark();
            self.staging.is_durable(registration, token, durable)
        };
        let right = staged.is_some_and(|s| s.segment == object.page.segment)
            && token.is_some_and(is_durable);
        let (Some(token), true) = (token, right && overflow.bytes <= OBJECT_BYTES_MAX) else {
            return Err(InvalidCommit::NotStaged.into());
        };
        // One object's end would end the other's pages.
        if effects.staged.contains(&token) {
            return Err(InvalidCommit::NotStaged.into());
        }
        outbox.note(Note::LargeCommitted);
        let key = records::pair_key(registration, token);
        effects.ops.push(records::delete(Table::Staged, key));
        effects.staged.push(token);
        Ok(())
    }

    /// Moves objects to overflow pages until the page fits with so many slots: those that the
    /// commit changed first, the largest first (foundation 1). What a vote will write stays where it is: its member may show
    /// it before its place, which ends with the next word of it (rule 3). Only what is voted for itself has to go on,
    /// where no room was made for it.
    fn spill(
        &mut self,
        page: PageId,
        slots: u16,
        edit: &mut ImageEdit,
        effects: &mut Effects,
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        while !edit.fits_with(slots) {
            let changed = match effects.changes.get(&page) {
                Some(change) => change.slot_set(),
                None => SlotSet::default(),
            };
            let locked = match planted::is(Bug::LockedIsMoved) {
                false => self.votes.will_write(page),
                true => SlotSet::default(),
            };
            let Some((slot, generation, value)) = largest(edit, &changed, &locked) else {
                return Err(InvalidCommit::TooLarge.into());
            };
            if !changed.contains(slot) && locked.contains(slot) && !effects.is_unbounded() {
                return Err(NotNow::Refused(Refusal::InDoubt));
            }
            let overflow = self
                .segments
                .give_overflow(page.segment, value.len() as u64, 1)
                .ok_or(InvalidCommit::TooLarge)?;
            outbox.note(Note::ObjectSpilled);
            if !changed.contains(slot) {
                outbox.note(Note::ObjectMoved);
                effects.moved.insert(ObjectId { page, slot });
            }
            let spilled = SlotChange::Overflow {
                generation,
                overflow,
            };
            apply_slot(edit, slot, &spilled);
            effects.set(page, slot, spilled);
            let home_page = PageId {
                segment: page.segment,
                page: overflow.first,
            };
            let value = SlotChange::Value {
                generation,
                bytes: value.into(),
            };
            effects.set(home_page, Slot(0), value);
            self.pages.put_fresh(home_page);
            effects.spilled.insert(page.segment);
            effects.check_size()?;
        }
        Ok(())
    }

    /// Objects in pages beyond the extent raise it, in the same commit: a scan
    /// that read it is then refused (trap 12).
    fn raise_extents(&mut self, part: &Part, effects: &mut Effects) -> Result<(), NotNow> {
        let mut extents: BTreeMap<SegmentId, PageNo> = BTreeMap::new();
        for writes in &part.writes {
            let extent = extents.entry(writes.page.segment).or_default();
            *extent = (*extent).max(writes.page.page.next());
        }
        for (segment, extent) in extents {
            let known = self.segments.get(segment).map(|s| s.extent);
            if known.is_none_or(|known| extent <= known) || planted::is(Bug::ExtentNotRaised) {
                continue;
            }
            let first = PageId {
                segment,
                page: PageNo(0),
            };
            self.tip_of(first)?;
            effects.set(first, Slot(0), extent_value(extent));
        }
        Ok(())
    }
}

/// The extent object's new value.
pub(in crate::home) fn extent_value(extent: PageNo) -> SlotChange {
    SlotChange::Value {
        generation: Generation(1),
        bytes: Blob::from(&extent.0.to_le_bytes()[..]),
    }
}

fn is_blind(op: &WriteOp) -> bool {
    (planted::is(Bug::PatchIsBlind) && matches!(op, WriteOp::Patch { .. }))
        || (planted::is(Bug::CreationNotChecked) && matches!(op, WriteOp::Create { .. }))
}

fn check_generation(
    object: ObjectId,
    op: &WriteOp,
    found: Generation,
    content: Content<'_>,
) -> Result<(), NotNow> {
    let exists = content != Content::Free;
    match op {
        WriteOp::Create { .. } if planted::is(Bug::CreationNotChecked) => Ok(()),
        WriteOp::Create { generation, .. } => {
            if exists || *generation != found.next() {
                return Err(conflict(object));
            }
            Ok(())
        }
        _ if planted::is(Bug::GenerationNotChecked) && exists => Ok(()),
        _ if exists && op.generation() == found => Ok(()),
        _ => Err(InvalidCommit::Generation { object, found }.into()),
    }
}

/// The object to spill next: of those that changed, else of those that are not locked, else of all, the largest. Not one
/// that takes no more room than what says where it would be.
fn largest(
    edit: &ImageEdit,
    changed: &SlotSet,
    locked: &SlotSet,
) -> Option<(Slot, Generation, Vec<u8>)> {
    let values = (0..SLOTS_MAX).map(Slot).filter_map(|slot| {
        let (generation, content) = edit.get(slot);
        match content {
            Content::Value(value) if value.len() > OVERFLOW_HEAD_BYTES => {
                Some((slot, generation, value))
            }
            _ => None,
        }
    });
    let (slot, generation, value) = values.max_by_key(|(slot, _, value)| {
        let is_free = !locked.contains(*slot);
        (changed.contains(*slot), is_free, value.len())
    })?;
    Some((slot, generation, value.to_vec()))
}

/// One commit's identity on its way through a home.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Whose {
    pub(in crate::home) id: CommitId,
    pub(in crate::home) registration: Registration,
}
