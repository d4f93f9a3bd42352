//! What a valid commit does to pages (rule 4).

use crate::home::Outbox;
use crate::home::commit::effects::Effects;
use crate::home::commit::refusal::{NotNow, conflict};
use crate::home::commit::validate::newest_image;
use crate::home::lists::is_list;
use crate::home::pages::store::Pages;
use crate::home::segments::Segments;
use crate::home::staging::Staging;
use crate::home::two_phase::votes::Votes;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::change::apply_slot;
use thorp_model::limits::{
    OBJECT_BYTES_MAX, OVERFLOW_HEAD_BYTES, RIGHTS_BYTES_MAX, SLOT_CHARGE_MIN, SLOTS_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    Blob, Content, Generation, Image, ImageEdit, Incarnation, InvalidCommit, Mark, NewValue,
    NotRun, Note, ObjectId, Overflow, PageId, PageNo, Part, Position, Procedure, RIGHTS_SLOT,
    Refusal, Registration, SegmentId, Slot, SlotChange, SlotSet, Table, WriteOp, change, planted,
    records, rights_page,
};

/// Works out the effects of one part.
///
/// It changes nothing but the numbers of overflow pages, which are never given again. A part that
/// turns out to be refused, or to wait for a page, has used up the numbers that were given for it,
/// and leaves no other trace.
#[derive(Debug)]
pub(in crate::home) struct Applier<'a> {
    pub(in crate::home) pages: &'a mut Pages,
    pub(in crate::home) segments: &'a mut Segments,
    pub(in crate::home) staging: &'a Staging,
    pub(in crate::home) votes: &'a Votes,
    /// Whose staged values the part names.
    pub(in crate::home) registration: Registration,
    /// New objects have a generation of this incarnation (rule R9).
    pub(in crate::home) incarnation: Incarnation,
    /// All batches up to this one are durable.
    pub(in crate::home) durable: Mark,
    pub(in crate::home) effects: Effects,
    pub(in crate::home) outbox: &'a mut Outbox,
}

impl Applier<'_> {
    /// The effects of a valid part.
    pub(in crate::home) fn effects(mut self, part: &Part) -> Result<Effects, NotNow> {
        self.require(part)?;
        for writes in &part.writes {
            let image = self.newest_image(writes.page)?;
            if image.version() == Position(0) {
                self.effects.begin_pages(writes.page.segment, 1, 0);
            }
            let mut edit = ImageEdit::of(&image);
            for (slot, op) in &writes.slots {
                let object = ObjectId {
                    page: writes.page,
                    slot: *slot,
                };
                self.write(object, op, &mut edit)?;
                self.effects.check_size()?;
            }
            let slots = self.votes.slots_of(writes.page);
            self.spill(writes.page, slots, &mut edit)?;
        }
        self.put_spilled();
        self.raise_extents(part)?;
        Ok(self.effects)
    }

    /// What the home does before it votes for a part: in its pages it makes space for the slots that
    /// the part creates. It moves objects now, while no other vote has locked them. When the vote
    /// is carried out it moves nothing that the part does not write, and commits that come
    /// meanwhile leave the space to it.
    pub(in crate::home) fn space_for(mut self, part: &Part) -> Result<Effects, NotNow> {
        if planted::is(Bug::LockedIsMoved) {
            return Ok(self.effects);
        }
        for writes in &part.writes {
            let last = writes.slots.last().map_or(0, |(slot, _)| slot.0 + 1);
            let slots = self.votes.slots_of(writes.page).max(last);
            let mut edit = ImageEdit::of(&self.newest_image(writes.page)?);
            self.spill(writes.page, slots, &mut edit)?;
        }
        self.put_spilled();
        // No transaction can list the position, so that it excuses nothing: the objects count as
        // changed there. A child that holds their page as of before learns so also after a gap
        // (rule 13).
        self.effects.moved.clear();
        Ok(self.effects)
    }

    fn newest_image(&mut self, page: PageId) -> Result<Image, NotNow> {
        newest_image(self.pages, self.segments, page)
    }

    /// Once for all the numbers given.
    fn put_spilled(&mut self) {
        for segment in core::mem::take(&mut self.effects.spilled) {
            self.effects.ops.extend(self.segments.put(segment));
        }
    }

    /// All pages that a commit writes to, loaded at once rather than one by one.
    fn require(&mut self, part: &Part) -> Result<(), NotNow> {
        let mut needs = Vec::new();
        for writes in &part.writes {
            match self.newest_image(writes.page) {
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
        edit: &mut ImageEdit,
    ) -> Result<(), NotNow> {
        let (found, content) = edit.get(object.slot);
        check_generation(self.incarnation, object, op, (found, content))?;
        let old = match content {
            Content::Overflow(overflow) => Some(overflow),
            _ => None,
        };
        let copies = if is_list(object) { 2 } else { 1 };
        self.effects.freed = self
            .effects
            .freed
            .saturating_add(copies * bytes_of(content));
        let change = match op {
            WriteOp::Patch {
                generation,
                offset,
                bytes,
            } => self.patched(object, *generation, content, *offset, bytes)?,
            WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => {
                self.check_staged(object, value)?;
                op.effect()
            }
            WriteOp::Delete { .. } => op.effect(),
            WriteOp::Apply {
                generation,
                procedures,
            } => self.run(object, *generation, content, procedures)?,
        };
        for page in old.into_iter().flat_map(Overflow::page_numbers) {
            self.effects.end_page(PageId {
                segment: object.page.segment,
                page,
            });
        }
        apply_slot(edit, object.slot, &change);
        self.effects.set(object.page, object.slot, change);
        Ok(())
    }

    /// Procedures run on the newest value, whatever the writer has seen (rule C8).
    fn run(
        &mut self,
        object: ObjectId,
        generation: Generation,
        content: Content<'_>,
        procedures: &[Procedure],
    ) -> Result<SlotChange, NotNow> {
        let wrong = |why| NotNow::from(InvalidCommit::Procedure { object, why });
        let durable = match planted::is(Bug::ProcedureOnDurable) {
            true => self.pages.durable_image(object.page).cloned(),
            false => None,
        };
        let content = durable
            .as_ref()
            .map_or(content, |image| image.content(object.slot));
        let base = self.small_value(object, content)?;
        let mut value = base.ok_or_else(|| wrong(NotRun::TooLarge))?;
        for procedure in procedures {
            value = procedure.run(&value).map_err(wrong)?;
        }
        let run = self.effects.run.entry(object.page).or_default();
        run.insert(object.slot);
        self.outbox.note(Note::ProcedureRun);
        Ok(SlotChange::Value {
            generation,
            bytes: value.into(),
        })
    }

    /// The bytes of an object that is in its page, or in one overflow page; none of a larger one.
    fn small_value(
        &mut self,
        object: ObjectId,
        content: Content<'_>,
    ) -> Result<Option<Vec<u8>>, NotNow> {
        match content {
            Content::Value(value) => Ok(Some(value.to_vec())),
            Content::Overflow(overflow) if overflow.pages == 1 => {
                let page = PageId {
                    segment: object.page.segment,
                    page: overflow.first,
                };
                let image = self.newest_image(page)?;
                match image.content(Slot(0)) {
                    Content::Value(value) => Ok(Some(value.to_vec())),
                    _ => Err(InvalidCommit::Damaged.into()),
                }
            }
            _ => Ok(None),
        }
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
            _ => {
                let base = self.small_value(object, content)?.ok_or(wrong)?;
                let value = change::patch(&base, offset, bytes.bytes()).ok_or(wrong)?;
                Ok(SlotChange::Value {
                    generation,
                    bytes: value.into(),
                })
            }
        }
    }

    fn check_staged(&mut self, object: ObjectId, value: &NewValue) -> Result<(), NotNow> {
        let NewValue::Staged(overflow) = value else {
            return Ok(());
        };
        let token = self.staging.find(self.registration, *overflow);
        let staged = token.and_then(|token| self.staging.get(self.registration, token));
        let is_durable = |token| {
            self.staging
                .is_durable(self.registration, token, self.durable)
        };
        let right = staged.is_some_and(|s| s.segment == object.page.segment)
            && token.is_some_and(is_durable);
        let (Some(token), true) = (token, right && overflow.bytes <= OBJECT_BYTES_MAX) else {
            return Err(InvalidCommit::NotStaged.into());
        };
        // One object's end would end the other's pages.
        if self.effects.staged.contains(&token) {
            return Err(InvalidCommit::NotStaged.into());
        }
        self.outbox.note(Note::LargeCommitted);
        let key = records::pair_key(self.registration, token);
        self.effects.ops.push(records::delete(Table::Staged, key));
        self.effects.staged.push(token);
        let (segment, pages) = (object.page.segment, overflow.pages);
        self.effects.begin_pages(segment, pages, pages);
        Ok(())
    }

    /// Moves objects to overflow pages until the page fits with so many slots (foundation 1): first
    /// the objects that the commit changed, and of those the largest. An object that a vote will
    /// write stays where it is: its member may show it before its place (rule 3). A part that was
    /// voted for goes on nevertheless, where no space was made for it.
    fn spill(&mut self, page: PageId, slots: u16, edit: &mut ImageEdit) -> Result<(), NotNow> {
        while !edit.fits_with(slots, free_for_rights(page, edit)) {
            let changed = match self.effects.changes.get(&page) {
                Some(change) => change.slot_set(),
                None => SlotSet::default(),
            };
            let locked = if planted::is(Bug::LockedIsMoved) {
                SlotSet::default()
            } else {
                self.votes.will_write(page)
            };
            let Some((slot, generation, value)) = largest(page, edit, &changed, &locked) else {
                return Err(InvalidCommit::TooLarge.into());
            };
            if !changed.contains(slot) && locked.contains(slot) && !self.effects.is_unbounded() {
                return Err(NotNow::Refused(Refusal::InDoubt));
            }
            let overflow = self
                .segments
                .give_overflow(page.segment, value.len() as u64, 1)
                .ok_or(InvalidCommit::TooLarge)?;
            self.effects.begin_pages(page.segment, 1, 0);
            self.outbox.note(Note::ObjectSpilled);
            if !changed.contains(slot) {
                self.outbox.note(Note::ObjectMoved);
                self.effects.moved.insert(ObjectId { page, slot });
            }
            let spilled = SlotChange::Overflow {
                generation,
                overflow,
            };
            apply_slot(edit, slot, &spilled);
            self.effects.set(page, slot, spilled);
            let home_page = PageId {
                segment: page.segment,
                page: overflow.first,
            };
            let value = SlotChange::Value {
                generation,
                bytes: value.into(),
            };
            self.effects.set(home_page, Slot(0), value);
            self.pages.put_fresh(home_page);
            self.effects.spilled.insert(page.segment);
            self.effects.check_size()?;
        }
        Ok(())
    }

    /// Objects in pages beyond the extent raise it, in the same commit: a scan that read it is then refused (trap 12).
    /// System pages raise none, because no scan visits them.
    fn raise_extents(&mut self, part: &Part) -> Result<(), NotNow> {
        let mut extents: BTreeMap<SegmentId, PageNo> = BTreeMap::new();
        let raises =
            |page: PageId| page.page.is_of_objects() || planted::is(Bug::SystemPageRaisesExtent);
        for writes in part.writes.iter().filter(|writes| raises(writes.page)) {
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
            self.newest_image(first)?;
            self.effects.set(first, Slot(0), extent_value(extent));
        }
        Ok(())
    }
}

/// Bytes of a value.
fn bytes_of(content: Content<'_>) -> u64 {
    match content {
        Content::Value(value) => value.len() as u64,
        Content::Overflow(overflow) => overflow.bytes,
        _ => 0,
    }
}

/// The extent object's new value.
pub(in crate::home) fn extent_value(extent: PageNo) -> SlotChange {
    SlotChange::Value {
        generation: Generation(1),
        bytes: Blob::from(&extent.0.to_le_bytes()[..]),
    }
}

fn check_generation(
    incarnation: Incarnation,
    object: ObjectId,
    op: &WriteOp,
    (found, content): (Generation, Content<'_>),
) -> Result<(), NotNow> {
    let exists = content != Content::Free;
    match op {
        WriteOp::Create { .. } if planted::is(Bug::CreationNotChecked) => Ok(()),
        WriteOp::Create { generation, .. } => {
            // What a segment keeps of itself has a place that no reference names.
            let is_fixed = object.page.page == PageNo(0);
            let next = match is_fixed || planted::is(Bug::GenerationsGivenAgain) {
                true => Some(found.next()),
                false => incarnation.generation_after(found),
            };
            match next {
                None => Err(InvalidCommit::Generation { object, found }.into()),
                Some(next) if exists || *generation != next => Err(conflict(object)),
                Some(_) => Ok(()),
            }
        }
        _ if planted::is(Bug::GenerationNotChecked) && exists => Ok(()),
        _ if exists && op.generation() == found => Ok(()),
        _ => Err(InvalidCommit::Generation { object, found }.into()),
    }
}

/// Bytes of a segment's first page that stay free, so that its rights list never moves (rule R3).
fn free_for_rights(page: PageId, edit: &ImageEdit) -> usize {
    if page != rights_page(page.segment) {
        return 0;
    }
    let held = match edit.get(RIGHTS_SLOT).1 {
        Content::Value(list) => list.len(),
        _ => 0,
    };
    // With the entries of its slot and of the one before.
    (RIGHTS_BYTES_MAX + 2 * SLOT_CHARGE_MIN).saturating_sub(held)
}

/// The object to spill next: the largest of those that changed, else of those that are not locked,
/// else of all. An object that is no larger than its reference to an overflow page stays, and so
/// does a rights list.
fn largest(
    page: PageId,
    edit: &ImageEdit,
    changed: &SlotSet,
    locked: &SlotSet,
) -> Option<(Slot, Generation, Vec<u8>)> {
    let slots = (0..SLOTS_MAX).map(Slot);
    let slots = slots.filter(|slot| !is_list(ObjectId { page, slot: *slot }));
    let values = slots.filter_map(|slot| {
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
