//! What a commit that is not answered rests on: as long as all of that is as the commit has seen it, the member may show
//! what the commit wrote (rule 14).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::{CommitId, ObjectId, PageId, Part, Slot, SlotSet};

/// What a commit that is not answered rests on.
#[derive(Clone, Debug)]
pub(super) struct Rests {
    /// What it read or wrote.
    touched: BTreeMap<PageId, SlotSet>,
    /// The commits that it names.
    names: Vec<CommitId>,
    /// These, and those on which these stand: what they change it has seen, or what was written over it.
    stands_on: BTreeSet<CommitId>,
}

impl Rests {
    /// What a part rests on that names these commits and stands on those.
    pub(super) fn of(part: &Part, names: Vec<CommitId>, stands_on: BTreeSet<CommitId>) -> Self {
        let mut touched: BTreeMap<PageId, SlotSet> = BTreeMap::new();
        for (page, slots) in &part.reads {
            touched.entry(*page).or_default().extend(*slots);
        }
        for writes in &part.writes {
            let slots: SlotSet = writes.slots.iter().map(|(slot, _)| *slot).collect();
            touched.entry(writes.page).or_default().extend(slots);
        }
        Rests {
            touched,
            names,
            stands_on,
        }
    }

    /// The pages of all that.
    pub(super) fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.touched.keys().copied()
    }

    /// Whether it has read or written an object.
    pub(super) fn includes(&self, object: ObjectId) -> bool {
        let touched = self.touched.get(&object.page);
        touched.is_some_and(|slots| slots.contains(object.slot))
    }

    pub(super) fn names(&self) -> &[CommitId] {
        &self.names
    }

    pub(super) fn stands_on(&self) -> &BTreeSet<CommitId> {
        &self.stands_on
    }

    /// Whether it has read or written anything in a page.
    pub(super) fn touches(&self, page: PageId) -> bool {
        self.touched.contains_key(&page)
    }

    /// Whether it stands after a position at which this commit changed these slots of a page. What the home did for a
    /// commit beside what that wrote, no name excuses (rule 4).
    pub(super) fn outlives(&self, commit: Option<CommitId>, page: PageId, slots: SlotSet) -> bool {
        let Some(touched) = self.touched.get(&page).filter(|own| own.touches(&slots)) else {
            return true;
        };
        let is_seen = commit.is_some_and(|commit| self.stands_on.contains(&commit));
        is_seen && !is_of_the_home(page, slots, touched)
    }
}

/// Whether these changed slots of a page include some that the writer itself did not write. The home raises the end of a
/// segment, or ends a page; the writer sees both in the stream, as everybody else does.
fn is_of_the_home(page: PageId, changed: SlotSet, read: &SlotSet) -> bool {
    let extent = page.page.0 == 0 && changed.contains(Slot(0)) && read.contains(Slot(0));
    extent || changed == SlotSet::ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{HomeId, MemberId, Position};

    const FIRST: PageId = PageId::new(1, 0);
    const PAGE: PageId = PageId::new(1, 1);

    fn id(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    /// It has read slots 0 and 1 of two pages, and depends on the first commit.
    fn rests() -> Rests {
        let read: SlotSet = [Slot(0), Slot(1)].into_iter().collect();
        let part = Part {
            home: HomeId(1),
            evidence: Position(0),
            reads: vec![(FIRST, read), (PAGE, read)],
            writes: Vec::new(),
            under: None,
        };
        Rests::of(&part, vec![id(1)], BTreeSet::from([id(1)]))
    }

    #[test]
    fn it_outlives_what_it_has_not_read_and_the_commits_that_it_stands_on() {
        let (rests, read, other) = (rests(), SlotSet::of(Slot(1)), SlotSet::of(Slot(2)));
        assert!(rests.outlives(Some(id(2)), PAGE, other));
        assert!(rests.outlives(Some(id(2)), PageId::new(1, 2), read));
        assert!(!rests.outlives(Some(id(2)), PAGE, read));
        assert!(!rests.outlives(None, PAGE, read));
        assert!(rests.outlives(Some(id(1)), PAGE, read));
    }

    #[test]
    fn it_does_not_outlive_what_the_home_did_for_a_commit_that_it_stands_on() {
        let rests = rests();
        assert!(!rests.outlives(Some(id(1)), PAGE, SlotSet::ALL));
        // The end of the segment.
        assert!(!rests.outlives(Some(id(1)), FIRST, SlotSet::of(Slot(0))));
        assert!(rests.outlives(Some(id(1)), PAGE, SlotSet::of(Slot(0))));
    }
}
