//! Own values that are known to be committed before they are delivered: the vcache (rule 3).
//! They lie over the pages that are shown to the program, and are never part of an image that
//! leaves this process.

use crate::change::{self, NewValue, PageChange, PageSlots, SlotSet, WriteOp};
use crate::ids::{CommitId, PageId, Slot, Stamp};
use crate::image::Image;
use crate::message::{PageWrites, Part};
use crate::planted::{self, Bug};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The vcache of one home: as many commits as its member has in flight.
#[derive(Debug, Default)]
pub(super) struct OwnValues(Vec<Own>);

#[derive(Debug)]
struct Own {
    commit: CommitId,
    stamp: Stamp,
    pages: BTreeMap<PageId, BTreeMap<Slot, WriteOp>>,
}

/// What leaves with a step.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Slots whose own values were shown and are those that are delivered now.
    pub(super) delivered: BTreeMap<PageId, SlotSet>,
    /// Pages that show something else than before.
    pub(super) pages: BTreeSet<PageId>,
}

/// Whether a part's values can be shown: large ones lie in pages that nobody can have yet, and
/// of a commit all is shown or nothing.
pub(super) fn can_be_shown(part: &Part) -> bool {
    let mut ops = part.writes.iter().flat_map(|writes| &writes.slots);
    ops.all(|(_, op)| match op {
        WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => {
            matches!(value, NewValue::Inline(_))
        }
        WriteOp::Patch { .. } | WriteOp::Delete { .. } => true,
    })
}

impl OwnValues {
    /// Whether nothing is shown before its place.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Commits that are shown before their place.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The epoch has ended. The slots that were shown.
    pub(super) fn clear(&mut self) -> Vec<(PageId, SlotSet)> {
        let all = core::mem::take(&mut self.0);
        all.iter().flat_map(Own::slots).collect()
    }

    /// A commit's values are shown from now on. The slots that are.
    pub(super) fn enter(
        &mut self,
        commit: CommitId,
        stamp: Stamp,
        writes: &[PageWrites],
    ) -> Vec<(PageId, SlotSet)> {
        let pages = writes.iter().map(|writes| {
            let slots = writes.slots.iter().cloned().collect();
            (writes.page, slots)
        });
        let own = Own {
            commit,
            stamp,
            pages: pages.collect(),
        };
        let slots = own.slots();
        self.0.push(own);
        slots
    }

    /// A page with own values over it; none if they do not fit.
    pub(super) fn over(&self, page: PageId, image: &Image) -> Option<Image> {
        let mut image = image.clone();
        for own in &self.0 {
            let Some(ops) = own.pages.get(&page) else {
                continue;
            };
            let slots = ops.iter().map(|(slot, op)| (*slot, op.effect()));
            let change = PageChange {
                page,
                slots: PageSlots::Some(slots.collect()),
            };
            let stamp = match planted::is(Bug::OwnStampNotTold) {
                true => image.stamp(),
                false => own.stamp,
            };
            image = change::apply(&image, &change, image.version(), stamp)?;
        }
        Some(image)
    }

    /// The slots of a page that show own values, and whose they are.
    pub(super) fn of(&self, page: PageId) -> impl Iterator<Item = (SlotSet, CommitId)> + '_ {
        self.0.iter().filter_map(move |own| {
            let slots: SlotSet = own.pages.get(&page)?.keys().copied().collect();
            Some((slots, own.commit))
        })
    }

    /// A position is told. What it changes leaves, whoever changed it: an own value is locked
    /// until its place, so this is its place or a later one. What it delivers leaves as a whole.
    pub(super) fn step(&mut self, commit: Option<CommitId>, changes: &[PageChange]) -> Left {
        let mut left = Left::default();
        if self.is_empty() {
            return left;
        }
        for own in self.0.extract_if(.., |own| Some(own.commit) == commit) {
            left.pages.extend(own.pages.keys());
            left.delivered.extend(own.slots());
        }
        for change in changes {
            let touched = change.slot_set();
            for own in &mut self.0 {
                let Some(slots) = own.pages.get_mut(&change.page) else {
                    continue;
                };
                // What another own commit wrote over it was shown, and is not what is delivered.
                if let Some(delivered) = left.delivered.get_mut(&change.page) {
                    *delivered = delivered.without(slots.keys().copied());
                }
                slots.retain(|slot, _| !touched.contains(*slot));
                left.pages.insert(change.page);
            }
        }
        left
    }

    /// A commit is told to have its place, and was not delivered. Its slots.
    pub(super) fn passed(&mut self, commit: CommitId) -> Vec<(PageId, SlotSet)> {
        let passed = self.0.extract_if(.., |own| own.commit == commit);
        passed.flat_map(|own| own.slots()).collect()
    }
}

impl Own {
    fn slots(&self) -> Vec<(PageId, SlotSet)> {
        let pages = self.pages.iter();
        pages
            .map(|(page, slots)| (*page, slots.keys().copied().collect()))
            .collect()
    }
}
