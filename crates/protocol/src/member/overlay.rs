//! The overlay: values that the program sees before the stream delivers them. Those of commits that are known to be
//! committed are the vcache (rule 3). The others belong to commits that are not answered yet (rule 14). The overlay lies
//! over the pages that the program sees, and is never part of an image that leaves this process.

use crate::member::rests::Rests;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Content, HomeId, Image, NewValue, ObjectId, PageChange, PageId, PageNo, PageSlots,
    PageWrites, Part, Slot, SlotSet, Stamp, WriteOp, change, planted,
};

/// The overlay of one home: the writes of at most as many commits as the member has in flight, in the order in which
/// the member showed them.
#[derive(Debug, Default)]
pub(super) struct Overlay(Vec<Own>);

#[derive(Debug)]
struct Own {
    commit: CommitId,
    standing: Standing,
    pages: BTreeMap<PageId, BTreeMap<Slot, WriteOp>>,
}

/// How a commit stands whose values are shown.
#[derive(Debug)]
enum Standing {
    /// It is known to be committed under this stamp, and what it wrote is locked until its place.
    Committed(Stamp),
    /// It is not answered: it holds as long as what it rests on.
    Tentative(Rests),
}

/// What leaves with a step.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Slots whose values in the overlay are those that are delivered now.
    pub(super) delivered: BTreeMap<PageId, SlotSet>,
    /// Slots that showed values of commits whose hopes it ends.
    pub(super) withdrawn: Vec<(PageId, SlotSet)>,
    /// Pages that show something else than before.
    pub(super) pages: BTreeSet<PageId>,
}

/// Whether a part's values can be shown: large ones lie in pages that nobody can have yet, what only the home writes
/// it will refuse, what procedures leave only the home knows, and of a commit all is shown or nothing.
pub(super) fn can_be_shown(part: &Part) -> bool {
    let is_the_homes = |writes: &PageWrites| {
        let is_first = writes.page.page == PageNo(0);
        let has_extent = is_first && writes.slots.iter().any(|(slot, _)| *slot == Slot(0));
        has_extent || writes.page.page.is_overflow()
    };
    if part.writes.iter().any(is_the_homes) {
        return false;
    }
    let mut ops = part.writes.iter().flat_map(|writes| &writes.slots);
    ops.all(|(_, op)| match op {
        WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => {
            matches!(value, NewValue::Inline(_))
        }
        WriteOp::Patch { .. } | WriteOp::Delete { .. } => true,
        // Only the home knows what a procedure leaves.
        WriteOp::Apply { .. } => false,
    })
}

/// The objects that a part writes.
pub(super) fn objects(part: &Part) -> impl Iterator<Item = ObjectId> + '_ {
    part.writes.iter().flat_map(|writes| {
        let page = writes.page;
        let slots = writes.slots.iter();
        slots.map(move |(slot, _)| ObjectId { page, slot: *slot })
    })
}

/// Whether an operation can be done to what is there: what its home would refuse for sure is not shown.
pub(super) fn fits(image: &Image, slot: Slot, op: &WriteOp) -> bool {
    let (found, content) = image.slot(slot);
    match op {
        WriteOp::Create { generation, .. } => {
            content == Content::Free && *generation == found.next()
        }
        WriteOp::Write { generation, .. } | WriteOp::Delete { generation } => {
            !matches!(content, Content::Free | Content::Hole) && *generation == found
        }
        WriteOp::Patch {
            generation,
            offset,
            bytes,
        } => match content {
            Content::Value(base) => {
                *generation == found && change::patch(base, *offset, bytes.bytes()).is_some()
            }
            _ => false,
        },
        WriteOp::Apply { .. } => false,
    }
}

impl Overlay {
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

    /// The values of a commit are shown from now on that is known under this stamp. The slots that are.
    pub(super) fn enter(
        &mut self,
        commit: CommitId,
        stamp: Stamp,
        writes: &[PageWrites],
    ) -> Vec<(PageId, SlotSet)> {
        // Its place comes before theirs, if these get any: they have not seen it.
        let mut shown = self.withdraw_those(|_, rests| {
            let ends = |writes: &PageWrites| {
                let slots = writes.slots.iter().map(|(slot, _)| *slot).collect();
                !rests.outlives(Some(commit), writes.page, slots)
            };
            writes.iter().any(ends) && !planted::is(Bug::KnownEndsNothing)
        });
        shown.extend(self.put(commit, Standing::Committed(stamp), writes));
        shown
    }

    /// The same of one that is not answered (rule 14).
    pub(super) fn enter_early(
        &mut self,
        commit: CommitId,
        rests: Rests,
        writes: &[PageWrites],
    ) -> Vec<(PageId, SlotSet)> {
        self.put(commit, Standing::Tentative(rests), writes)
    }

    fn put(
        &mut self,
        commit: CommitId,
        standing: Standing,
        writes: &[PageWrites],
    ) -> Vec<(PageId, SlotSet)> {
        let pages = writes.iter().map(|writes| {
            let slots = writes.slots.iter().cloned().collect();
            (writes.page, slots)
        });
        let own = Own {
            commit,
            standing,
            pages: pages.collect(),
        };
        let slots = own.slots();
        self.0.push(own);
        slots
    }

    /// Whether a commit's values are shown.
    pub(super) fn has(&self, commit: CommitId) -> bool {
        self.0.iter().any(|own| own.commit == commit)
    }

    /// Whether a commit that is shown wrote one of these slots.
    fn writes(&self, commit: CommitId, page: PageId, slots: &SlotSet) -> bool {
        let mut own = self.0.iter().filter(|own| own.commit == commit);
        own.any(|own| {
            let written = own.pages.get(&page);
            written.is_some_and(|written| written.keys().any(|slot| slots.contains(*slot)))
        })
    }

    /// What a commit stands on that is not answered.
    pub(super) fn stands_on(&self, commit: CommitId) -> Option<&BTreeSet<CommitId>> {
        let own = self.0.iter().find(|own| own.commit == commit)?;
        match &own.standing {
            Standing::Tentative(rests) => Some(rests.stands_on()),
            Standing::Committed(_) => None,
        }
    }

    /// The commits that are shown and wrote an object, the last one first.
    fn writers(&self, object: ObjectId) -> impl Iterator<Item = CommitId> + '_ {
        let wrote = move |own: &&Own| {
            let slots = own.pages.get(&object.page);
            slots.is_some_and(|slots| slots.contains_key(&object.slot))
        };
        self.0.iter().rev().filter(wrote).map(|own| own.commit)
    }

    /// The commits whose values a part overwrites without having read them. Of each object this is the last such commit: it is
    /// bound to those below it. A part that depends on a commit is excused for everything that the commit changed. So a commit
    /// of which the part has read something is left out: the part may have read it before the overlay showed the commit. It
    /// stays in if the part has read what stands on it: that was shown later, and an earlier reader was doomed then. What was
    /// read of it at another home proves nothing here.
    pub(super) fn written_over(&self, part: &Part, read: &[(HomeId, CommitId)]) -> Vec<CommitId> {
        if self.is_empty() || planted::is(Bug::WrittenOverNotNamed) {
            return Vec::new();
        }
        // Itself, or what stands on it.
        let is_known = |id: &CommitId| {
            let is_here = |home| home == part.home || planted::is(Bug::KnownElsewhere);
            let mut read = read.iter().filter(|(home, _)| is_here(*home));
            read.any(|(_, read)| {
                let below = self.stands_on(*read);
                read == id || below.is_some_and(|below| below.contains(id))
            })
        };
        let may_be_named = |id: &CommitId| {
            let mut reads = part.reads.iter();
            !reads.any(|(page, slots)| self.writes(*id, *page, slots))
                || is_known(id)
                || planted::is(Bug::WrittenOverTakenForRead)
        };
        let looked_at = match planted::is(Bug::WrittenOverLastOnly) {
            true => 1,
            false => usize::MAX,
        };
        let over = |object| self.writers(object).take(looked_at).find(may_be_named);
        objects(part).filter_map(over).collect()
    }

    /// A commit that is not answered is shown no more, nor what builds on it: it was refused, or nobody would hear here
    /// when it has to be. The slots that were.
    pub(super) fn withdraw(&mut self, commit: CommitId) -> Vec<(PageId, SlotSet)> {
        self.withdraw_those(|own, _| own.commit == commit)
    }

    /// The same of all that rest on a page of which nothing will be heard.
    pub(super) fn withdraw_resting_on(&mut self, page: PageId) -> Vec<(PageId, SlotSet)> {
        self.withdraw_those(|_, rests| rests.touches(page))
    }

    fn withdraw_those(&mut self, ends: impl Fn(&Own, &Rests) -> bool) -> Vec<(PageId, SlotSet)> {
        let (mut gone, mut shown) = (Vec::new(), Vec::new());
        // Whoever builds on another was shown after it.
        self.0.retain(|own| {
            let Standing::Tentative(rests) = &own.standing else {
                return true;
            };
            let has_lost = gone.iter().any(|gone| rests.stands_on().contains(gone));
            let stays = !has_lost && !ends(own, rests);
            if !stays {
                gone.push(own.commit);
                shown.extend(own.slots());
            }
            stays
        });
        shown
    }

    /// A page under the overlay; none if the overlay does not fit.
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
            // Where it will stand that is not answered, nobody knows: whoever has read it waits for that (rule 5).
            let stamp = match own.standing {
                Standing::Committed(stamp) if !planted::is(Bug::OwnStampNotTold) => stamp,
                _ => image.stamp(),
            };
            image = change::apply(&image, &change, image.version(), stamp)?;
        }
        Some(image)
    }

    /// The slots of a page that the overlay covers, and whose value each of them shows: the last one.
    pub(super) fn of(&self, page: PageId) -> impl Iterator<Item = (SlotSet, CommitId)> + '_ {
        let mut covered = SlotSet::default();
        self.0.iter().rev().filter_map(move |own| {
            let slots: SlotSet = own.pages.get(&page)?.keys().copied().collect();
            let shown = slots.without(covered.iter());
            covered.extend(slots);
            (!shown.is_empty()).then_some((shown, own.commit))
        })
    }

    /// A position is told. What it changes of what is locked leaves, whoever changed it: this is its place or a later one.
    /// What is not answered stays over what it has seen, and leaves as a whole, with all that builds on it, when
    /// something else that it rests on is changed: its home will refuse it. What is delivered leaves as a whole, too.
    pub(super) fn step(&mut self, commit: Option<CommitId>, changes: &[PageChange]) -> Left {
        let mut left = Left::default();
        if self.is_empty() {
            return left;
        }
        left.withdrawn = self.overtaken(commit, changes);
        left.pages
            .extend(left.withdrawn.iter().map(|(page, _)| *page));
        for own in self.0.extract_if(.., |own| Some(own.commit) == commit) {
            left.pages.extend(own.pages.keys());
            left.delivered.extend(own.slots());
        }
        for change in changes {
            let touched = change.slot_set();
            for own in self.0.iter_mut().filter(|own| own.is_committed()) {
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

    fn overtaken(
        &mut self,
        commit: Option<CommitId>,
        changes: &[PageChange],
    ) -> Vec<(PageId, SlotSet)> {
        if planted::is(Bug::TentativeStays) {
            return Vec::new();
        }
        self.withdraw_those(|own, rests| {
            let ends =
                |change: &PageChange| !rests.outlives(commit, change.page, change.slot_set());
            Some(own.commit) != commit && changes.iter().any(ends)
        })
    }

    /// A commit is told to have its place, and was not delivered. Its slots.
    pub(super) fn passed(&mut self, commit: CommitId) -> Vec<(PageId, SlotSet)> {
        let passed = self.0.extract_if(.., |own| own.commit == commit);
        passed.flat_map(|own| own.slots()).collect()
    }
}

impl Own {
    fn is_committed(&self) -> bool {
        matches!(self.standing, Standing::Committed(_))
    }

    fn slots(&self) -> Vec<(PageId, SlotSet)> {
        let pages = self.pages.iter();
        pages
            .map(|(page, slots)| (*page, slots.keys().copied().collect()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Generation, MemberId, Position, SlotChange};

    const PAGE: PageId = PageId::new(1, 1);

    fn id(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    /// Three transactions, each of which has read and written the same object.
    fn chain() -> Overlay {
        let mut own = Overlay::default();
        for sequence in 1..=3 {
            let value = NewValue::Inline([sequence as u8][..].into());
            let generation = Generation(1);
            let part = Part {
                home: HomeId(1),
                evidence: Position(0),
                reads: alloc::vec![(PAGE, SlotSet::of(Slot(0)))],
                writes: alloc::vec![PageWrites {
                    page: PAGE,
                    slots: alloc::vec![(Slot(0), WriteOp::Write { generation, value })],
                }],
                under: None,
            };
            let names = (1..sequence).last().map(id).into_iter().collect();
            let rests = Rests::of(&part, names, (1..sequence).map(id).collect());
            own.enter_early(id(sequence), rests, &part.writes);
        }
        own
    }

    fn change() -> [PageChange; 1] {
        let slots = PageSlots::Some(alloc::vec![(Slot(0), SlotChange::Invalid)]);
        [PageChange { page: PAGE, slots }]
    }

    fn shown(own: &Overlay) -> Vec<u64> {
        (1..=3).filter(|sequence| own.has(id(*sequence))).collect()
    }

    #[test]
    fn a_chain_outlives_the_delivery_of_its_first() {
        let mut own = chain();
        for first in 1..=2 {
            let left = own.step(Some(id(first)), &change());
            assert_eq!(left.withdrawn, []);
            let delivered = left.delivered.get(&PAGE);
            assert!(delivered.is_some_and(|slots| slots.contains(Slot(0))));
            assert_eq!(shown(&own), Vec::from_iter(first + 1..=3));
        }
    }

    #[test]
    fn of_each_slot_the_last_one_shows() {
        let own = chain();
        let shown: Vec<_> = own.of(PAGE).collect();
        assert_eq!(shown, [(SlotSet::of(Slot(0)), id(3))]);
    }

    #[test]
    fn what_another_one_changes_ends_the_whole_chain() {
        let mut own = chain();
        let left = own.step(None, &change());
        assert_eq!((left.withdrawn.len(), shown(&own)), (3, Vec::new()));
    }

    #[test]
    fn a_refused_one_takes_with_it_what_stands_on_it() {
        let mut own = chain();
        assert_eq!(own.withdraw(id(2)).len(), 2);
        assert_eq!(shown(&own), [1]);
    }
}
