//! How a parent sends a position to each child: what concerns it, as one step (rules 1
//! and 8).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::UPDATE_BYTES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    Audience, CommitId, Down, EdgeId, HomeId, Outbox, PageChange, PageDigest, PageId, PartDigest,
    Position, SegmentId, SlotSet, Stamp, Step, UpdateId, message, planted,
};

/// What a position brings.
#[derive(Debug)]
pub(crate) struct News {
    /// The position.
    pub position: Position,
    /// Its stamp.
    pub stamp: Stamp,
    /// What is promised there.
    pub watermark: Stamp,
    /// What happened, with the values that are known here.
    pub changes: Vec<PageChange>,
    /// Which children get these.
    pub values: Values,
    /// The commit and the child that it came from, if it came from one.
    pub origin: Option<(EdgeId, CommitId)>,
    /// The digests of changed pages, as far as they are known here (rule R6).
    pub digests: BTreeMap<PageId, PageDigest>,
    /// The segments whose rights lists it changes, and who may read and carry them now (rule R4).
    pub readers: Vec<(SegmentId, Audience)>,
    /// The part of that commit that its home executed.
    pub executed: Option<PartDigest>,
    /// Slots in which a procedure of that commit ran. The child that it came from has kept no values of these (rule C8).
    pub run: BTreeMap<PageId, SlotSet>,
    /// The update that was saved, and the children that follow its segment. They hear of it, whatever they hold (rule C6).
    pub update: Option<(UpdateId, BTreeSet<EdgeId>)>,
}

impl News {
    /// The digests of changed pages, in the order of the changes (rule R6).
    pub(super) fn digests_of(&self, changes: &[PageChange]) -> Vec<PageDigest> {
        let known = |change: &PageChange| self.digests.get(&change.page).copied();
        let digests = changes.iter().map(known);
        digests
            .map(|digest| digest.unwrap_or(PageDigest::UNKNOWN))
            .collect()
    }
}

/// Which children get values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Values {
    /// All that hold the page: a redirector's neighbours.
    ToHolders,
    /// Those that asked for them with the page: a home's children.
    ToWhoAsked,
}

/// What one child gets, and the bytes of values in it that it asked for.
#[derive(Debug, Default)]
struct ChildNews {
    changes: Vec<PageChange>,
    updates: usize,
    readers: Vec<(SegmentId, Audience)>,
}

/// What each child gets of a position.
///
/// Invariant: a child's changes are in the order of the position's. Of the values that it asked for, its step has at most
/// [`UPDATE_BYTES_MAX`] bytes.
#[derive(Debug)]
pub(super) struct Steps(BTreeMap<EdgeId, ChildNews>);

impl Steps {
    /// Only the child that the commit came from gets a step yet.
    pub(super) fn new(origin: Option<EdgeId>) -> Self {
        let origin = origin.into_iter();
        Steps(origin.map(|edge| (edge, ChildNews::default())).collect())
    }

    /// How many children get a step.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a child's step has space for the values of a change that it asked for.
    pub(super) fn has_space(&self, edge: EdgeId, change: &PageChange) -> bool {
        let updates = self.0.get(&edge).map_or(0, |news| news.updates);
        updates + change.bytes() <= UPDATE_BYTES_MAX
    }

    /// A child gets a step, also if nothing else concerns it.
    pub(super) fn add_child(&mut self, edge: EdgeId) {
        self.0.entry(edge).or_default();
    }

    /// A child gets a change, as it is.
    pub(super) fn add(&mut self, edge: EdgeId, change: &PageChange) {
        let news = self.0.entry(edge).or_default();
        news.changes.push(change.clone());
    }

    /// A child gets a change with the values that it asked for.
    pub(super) fn add_update(&mut self, edge: EdgeId, change: &PageChange) {
        self.add(edge, change);
        let news = self.0.entry(edge).or_default();
        news.updates += change.bytes();
    }

    /// A site is told who may read and carry a segment from now on.
    pub(super) fn add_readers(&mut self, edge: EdgeId, segment: SegmentId, readers: &Audience) {
        let news = self.0.entry(edge).or_default();
        news.readers.push((segment, readers.clone()));
    }

    /// The step of each child, in the order of their edges.
    pub(super) fn of(self, home: HomeId, news: &News) -> impl Iterator<Item = (EdgeId, Step)> {
        let (origin, executed) = (news.origin, news.executed);
        let (position, stamp, watermark) = (news.position, news.stamp, news.watermark);
        self.0.into_iter().map(move |(edge, own)| {
            let commit = origin.filter(|(e, _)| *e == edge).map(|(_, id)| id);
            let step = Step {
                home,
                position,
                stamp,
                watermark,
                commit,
                executed: executed.filter(|_| commit.is_some()),
                changes: own.changes,
                digests: Vec::new(),
                readers: own.readers,
            };
            (edge, step)
        })
    }
}

/// Sends a child its step.
pub(super) fn send_step<A>(
    edge: EdgeId,
    step: Step,
    update: Option<UpdateId>,
    outbox: &mut Outbox<A>,
) {
    if let Some(update) = update {
        let is_executed = true;
        let saved = message::Saved {
            update,
            is_executed,
            step,
        };
        return outbox.down(edge, Down::Saved(Box::new(saved)));
    }
    if planted::is(Bug::StepSplit) && step.changes.len() > 1 {
        for change in step.changes.clone() {
            let part = Step {
                commit: None,
                executed: None,
                changes: alloc::vec![change],
                digests: Vec::new(),
                ..step.clone()
            };
            outbox.down(edge, Down::Step(part));
        }
        if step.commit.is_none() {
            return;
        }
    }
    outbox.down(edge, Down::Step(step));
}

/// Which invalidations the planted bug loses.
pub(super) fn news_is_lost(page: PageId, told: usize) -> bool {
    (page.page.0 as usize + told) % 5 == 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{Blob, Generation, MemberId, PageSlots, Slot, SlotChange};

    const A: EdgeId = EdgeId(1);
    const B: EdgeId = EdgeId(2);

    fn change(bytes: usize) -> PageChange {
        let value = SlotChange::Value {
            generation: Generation(1),
            bytes: Blob::from(vec![0; bytes]),
        };
        PageChange {
            page: PageId::new(1, 1),
            slots: PageSlots::Some(vec![(Slot(0), value)]),
        }
    }

    #[test]
    fn each_child_gets_one_step_and_only_the_origin_its_commit() {
        let id = CommitId {
            member: MemberId(1),
            sequence: 1,
        };
        let news = News {
            position: Position(7),
            stamp: Stamp::default(),
            watermark: Stamp::default(),
            changes: Vec::new(),
            values: Values::ToHolders,
            origin: Some((A, id)),
            readers: Vec::new(),
            digests: BTreeMap::new(),
            executed: None,
            run: BTreeMap::new(),
            update: None,
        };
        let mut steps = Steps::new(Some(A));
        steps.add(B, &change(1));
        steps.add(B, &change(2));
        let steps: Vec<_> = steps.of(HomeId(1), &news).collect();
        let seen = steps.iter();
        let seen = seen.map(|(edge, step)| (*edge, step.commit, step.changes.len()));
        assert!(seen.eq([(A, Some(id), 0), (B, None, 2)]));
    }

    #[test]
    fn a_step_has_so_many_bytes_of_values_that_its_child_asked_for() {
        let mut steps = Steps::new(None);
        let half = change(UPDATE_BYTES_MAX / 2);
        assert!(steps.has_space(A, &half));
        steps.add_update(A, &half);
        assert!(!steps.has_space(A, &change(UPDATE_BYTES_MAX / 2 + 1)));
        assert!(steps.has_space(B, &half), "another child has its own step");
        // Values for all holders have no such limit.
        steps.add(B, &change(UPDATE_BYTES_MAX));
        assert!(steps.has_space(B, &half));
    }
}
