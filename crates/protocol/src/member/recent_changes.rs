//! What the last positions of a home changed: whether a commit's reads are still so when it is asked for, so that its
//! values may be shown before its answer (rule 14).

use crate::member::rests::Rests;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use thorp_model::limits::{RECENT_PAGES_MAX, RECENT_STEPS_MAX};
use thorp_model::{CommitId, PageChange, PageId, Position, SlotSet, Stamp};

/// The last positions that were told. Nothing is kept before a program first asks to be ahead of its answers.
#[derive(Debug, Default)]
pub(super) struct RecentChanges {
    /// All that was told above this is known; none is kept without.
    floor: Option<Position>,
    steps: VecDeque<Told>,
    /// Pages in all of them.
    pages: usize,
}

#[derive(Debug)]
struct Told {
    position: Position,
    stamp: Stamp,
    commit: Option<CommitId>,
    /// What that stood on before it was answered, if it was shown.
    stood_on: BTreeSet<CommitId>,
    touched: Vec<(PageId, SlotSet)>,
}

impl RecentChanges {
    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// From this position on what is told is kept, if it is not yet.
    pub(super) fn begin(&mut self, position: Position) {
        self.floor.get_or_insert(position);
    }

    /// A stream begins, or goes on elsewhere: what was told between is not known.
    pub(super) fn begin_anew(&mut self, position: Position) {
        self.steps.clear();
        self.pages = 0;
        self.floor = self.floor.map(|_| position);
    }

    /// A position is told.
    pub(super) fn note(
        &mut self,
        (position, stamp): (Position, Stamp),
        (commit, stood_on): (Option<CommitId>, BTreeSet<CommitId>),
        changes: &[PageChange],
    ) {
        if self.floor.is_none() {
            return;
        }
        let touched = changes.iter();
        let touched = touched.map(|change| (change.page, change.slot_set()));
        self.pages += changes.len();
        self.steps.push_back(Told {
            position,
            stamp,
            commit,
            stood_on,
            touched: touched.collect(),
        });
        while self.steps.len() > RECENT_STEPS_MAX || self.pages > RECENT_PAGES_MAX {
            let Some(told) = self.steps.pop_front() else {
                return;
            };
            self.pages -= told.touched.len();
            self.floor = Some(told.position);
        }
    }

    /// Where a commit was delivered, if that is known, and under which stamp.
    pub(super) fn delivered(&self, commit: CommitId) -> Option<(Position, Stamp)> {
        let told = self.told(commit)?;
        Some((told.position, told.stamp))
    }

    /// What a commit that was delivered stood on before.
    pub(super) fn stood_on(&self, commit: CommitId) -> Option<&BTreeSet<CommitId>> {
        self.told(commit).map(|told| &told.stood_on)
    }

    fn told(&self, commit: CommitId) -> Option<&Told> {
        let mut steps = self.steps.iter().rev();
        steps.find(|told| told.commit == Some(commit))
    }

    /// Whether nothing that was told after the evidence ends what rests on it.
    pub(super) fn leaves(&self, rests: &Rests, evidence: Position) -> bool {
        let later = self.steps.iter().rev();
        let mut later = later.take_while(|told| told.position > evidence);
        self.floor.is_some_and(|floor| floor <= evidence)
            && later.all(|told| {
                let mut touched = told.touched.iter();
                touched.all(|(page, slots)| rests.outlives(told.commit, *page, *slots))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{HomeId, MemberId, PageSlots, Part, Slot, SlotChange};

    const PAGE: PageId = PageId::new(1, 1);

    fn id(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    fn at(position: u64) -> (Position, Stamp) {
        (Position(position), Stamp::default())
    }

    fn change(slot: u16) -> [PageChange; 1] {
        let slots = PageSlots::Some(alloc::vec![(Slot(slot), SlotChange::Invalid)]);
        [PageChange { page: PAGE, slots }]
    }

    fn reads(slot: u16, depends_on: Vec<CommitId>) -> Rests {
        let part = Part {
            home: HomeId(1),
            evidence: Position(0),
            reads: alloc::vec![(PAGE, SlotSet::of(Slot(slot)))],
            writes: Vec::new(),
            under: None,
        };
        let stands_on = depends_on.iter().copied().collect();
        Rests::of(&part, depends_on, stands_on)
    }

    #[test]
    fn what_was_read_is_as_it_was_unless_another_commit_changed_it() {
        let mut recent = RecentChanges::default();
        recent.note(at(2), (None, BTreeSet::new()), &change(5));
        assert!(
            !recent.leaves(&reads(1, Vec::new()), Position(9)),
            "nothing is known"
        );
        recent.begin(Position(2));
        recent.note(at(3), (Some(id(1)), BTreeSet::new()), &change(5));
        recent.note(at(4), (Some(id(2)), BTreeSet::new()), &change(6));
        assert_eq!(recent.delivered(id(1)), Some(at(3)));
        assert!(recent.leaves(&reads(1, Vec::new()), Position(2)));
        assert!(!recent.leaves(&reads(5, Vec::new()), Position(2)));
        assert!(
            recent.leaves(&reads(5, Vec::new()), Position(3)),
            "it was read after that"
        );
        assert!(
            recent.leaves(&reads(5, alloc::vec![id(1)]), Position(2)),
            "it has read that"
        );
        assert!(!recent.leaves(&reads(5, alloc::vec![id(2)]), Position(2)));
        assert!(
            !recent.leaves(&reads(1, Vec::new()), Position(1)),
            "below what is known"
        );
        recent.begin_anew(Position(7));
        assert_eq!(recent.delivered(id(1)), None);
        assert!(!recent.leaves(&reads(1, Vec::new()), Position(6)));
    }

    #[test]
    fn a_few_are_kept() {
        let mut recent = RecentChanges::default();
        recent.begin(Position(0));
        let all = RECENT_STEPS_MAX as u64 + 10;
        for position in 1..=all {
            recent.note(
                at(position),
                (Some(id(position)), BTreeSet::new()),
                &change(5),
            );
        }
        assert_eq!(recent.len(), RECENT_STEPS_MAX);
        assert_eq!(recent.delivered(id(10)), None);
        assert!(recent.leaves(&reads(1, Vec::new()), Position(10)));
        assert!(!recent.leaves(&reads(1, Vec::new()), Position(9)));
    }
}
