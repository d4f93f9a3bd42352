//! How a position is told to each child: what concerns it, as one step (rules 1
//! and 8).

use super::Children;
use crate::change::PageChange;
use crate::directory::Holder;
use crate::door::Out;
use crate::ids::{CommitId, EdgeId, PageId, Position, Stamp};
use crate::message::{Down, Step};
use crate::note::Note;
use crate::planted::{self, Bug};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// What a position brings.
#[derive(Debug)]
pub struct News {
    /// The position.
    pub position: Position,
    /// Its stamp.
    pub stamp: Stamp,
    /// What is promised there.
    pub watermark: Stamp,
    /// What happened, with the values that are known here.
    pub changes: Vec<PageChange>,
    /// The commit and the child that it came from, if it came from one.
    pub origin: Option<(EdgeId, CommitId)>,
}

impl Children {
    /// Tells a position: to every child what concerns it, as ONE step (rule 1).
    /// The child that the commit came from is told without values: it kept them.
    pub fn deliver(&mut self, news: News, out: &mut Out) {
        let mut steps: BTreeMap<EdgeId, Vec<PageChange>> = BTreeMap::new();
        let origin = news
            .origin
            .filter(|(edge, _)| self.by_edge.contains_key(edge));
        if let Some((edge, _)) = origin {
            steps.insert(edge, Vec::new());
        }
        for change in &news.changes {
            self.sort_change(change, origin.map(|(edge, _)| edge), &mut steps, out);
        }
        for (edge, changes) in steps {
            let commit = origin.filter(|(e, _)| *e == edge).map(|(_, id)| id);
            let step = Step {
                home: self.home,
                position: news.position,
                stamp: news.stamp,
                watermark: news.watermark,
                commit,
                changes,
            };
            send_step(edge, step, out);
        }
    }

    fn sort_change(
        &mut self,
        change: &PageChange,
        origin: Option<EdgeId>,
        steps: &mut BTreeMap<EdgeId, Vec<PageChange>>,
        out: &mut Out,
    ) {
        let page = change.page;
        for edge in self.concerned(page) {
            if planted::is(Bug::InvalidationLost) && news_is_lost(page, steps.len()) {
                continue;
            }
            let told = if Some(edge) == origin || !self.holds(edge, page) {
                change.without_values()
            } else {
                change.clone()
            };
            steps.entry(edge).or_default().push(told);
        }
        if change.slots == crate::change::PageSlots::Whole {
            out.note(Note::WholePageInvalidated);
            self.strike_holders(page);
        } else if change.makes_holes() {
            let origin = origin.and_then(|edge| self.by_edge.get(&edge));
            self.directory.set_incomplete(page, origin.map(|c| c.no));
        }
    }

    fn concerned(&self, page: PageId) -> BTreeSet<EdgeId> {
        let holders = self.directory.holders(page);
        let mut edges: BTreeSet<EdgeId> = holders
            .filter_map(|holder| self.by_no.get(&holder.child.0).copied())
            .collect();
        if !planted::is(Bug::WatchNotTold) {
            edges.extend(self.watchers.get(&page.segment).into_iter().flatten());
        }
        edges
    }

    fn strike_holders(&mut self, page: PageId) {
        let holders: Vec<Holder> = self.directory.holders(page).collect();
        for holder in holders {
            self.directory.remove(page, holder.child);
        }
    }

    /// Tells every child that nothing more concerns it up to a position.
    pub fn heartbeat(&self, position: Position, watermark: Stamp, out: &mut Out) {
        for edge in self.by_edge.keys() {
            out.down(
                *edge,
                Down::Heartbeat {
                    home: self.home,
                    position,
                    watermark,
                },
            );
        }
    }
}

fn send_step(edge: EdgeId, step: Step, out: &mut Out) {
    if planted::is(Bug::StepSplit) && step.changes.len() > 1 {
        for change in step.changes.clone() {
            let changes = alloc::vec![change];
            let part = Step {
                commit: None,
                changes,
                ..step.clone()
            };
            out.down(edge, Down::Step(part));
        }
        if step.commit.is_none() {
            return;
        }
    }
    out.down(edge, Down::Step(step));
}

/// Which invalidations the planted bug loses.
fn news_is_lost(page: PageId, told: usize) -> bool {
    (page.page.0 as usize + told) % 5 == 4
}
