//! How a position is told to each child: what concerns it, as one step (rules 1
//! and 8).

use crate::edge::directory::Holder;
use crate::edge::downstream::Children;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::UPDATE_BYTES_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Down, EdgeId, Note, Outbox, PageChange, PageId, Position, Stamp, Step, message,
    planted,
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
    /// Who is told these.
    pub values: Values,
    /// The commit and the child that it came from, if it came from one.
    pub origin: Option<(EdgeId, CommitId)>,
}

/// Who is told values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Values {
    /// Everybody who holds the page: a redirector's neighbours.
    ToHolders,
    /// Whoever asked for them with the page: a home's children.
    ToWhoAsked,
}

/// What one child is told, and bytes of values in it that it asked for.
#[derive(Debug, Default)]
struct ChildNews {
    changes: Vec<PageChange>,
    updates: usize,
}

impl Children {
    /// Tells a position: to every child what concerns it, as ONE step (rule 1).
    /// The child that the commit came from is told without values: it kept them.
    pub(crate) fn deliver<A>(&mut self, news: News, outbox: &mut Outbox<A>) {
        let mut steps: BTreeMap<EdgeId, ChildNews> = BTreeMap::new();
        let origin = news
            .origin
            .filter(|(edge, _)| self.by_edge.contains_key(edge));
        if let Some((edge, _)) = origin {
            steps.insert(edge, ChildNews::default());
        }
        for change in &news.changes {
            let origin = origin.map(|(edge, _)| edge);
            self.sort_change(change, news.values, origin, &mut steps, outbox);
        }
        for (edge, ChildNews { changes, .. }) in steps {
            if let Some(child) = self.by_edge.get_mut(&edge) {
                child.told = child.told.max(news.position);
            }
            let commit = origin.filter(|(e, _)| *e == edge).map(|(_, id)| id);
            let step = Step {
                home: self.home,
                position: news.position,
                stamp: news.stamp,
                watermark: news.watermark,
                commit,
                changes,
            };
            send_step(edge, step, outbox);
        }
    }

    fn sort_change<A>(
        &mut self,
        change: &PageChange,
        values: Values,
        origin: Option<EdgeId>,
        steps: &mut BTreeMap<EdgeId, ChildNews>,
        outbox: &mut Outbox<A>,
    ) {
        let page = change.page;
        let silent = change.without_values();
        for edge in self.concerned(page) {
            if planted::is(Bug::InvalidationLost) && news_is_lost(page, steps.len()) {
                continue;
            }
            let told = steps.entry(edge).or_default();
            let is_told_values = match values {
                _ if Some(edge) == origin => false,
                Values::ToHolders => self.holds(edge, page),
                Values::ToWhoAsked => {
                    let fits = told.updates + change.bytes() <= UPDATE_BYTES_MAX;
                    silent.makes_holes() && fits && self.takes_update(edge, page)
                }
            };
            if is_told_values && values == Values::ToWhoAsked {
                outbox.note(Note::UpdateTold);
                told.updates += change.bytes();
            }
            told.changes.push(match is_told_values {
                true => change.clone(),
                false => silent.clone(),
            });
        }
        if change.slots == thorp_model::PageSlots::Whole {
            outbox.note(Note::WholePageInvalidated);
            self.strike_holders(page);
        } else if change.makes_holes() || (values == Values::ToWhoAsked && silent.makes_holes()) {
            let origin = origin.and_then(|edge| self.by_edge.get(&edge));
            self.directory.set_incomplete(page, origin.map(|c| c.no));
        }
    }

    /// Whether a child is to be told the values of one change more of a page; then there is one less.
    fn takes_update(&mut self, edge: EdgeId, page: PageId) -> bool {
        let Some(no) = self.by_edge.get(&edge).map(|child| child.no) else {
            return false;
        };
        let holder = self.directory.holder(page, no);
        let Some(left) = holder.and_then(|holder| holder.updates.checked_sub(1)) else {
            return false;
        };
        self.directory.set_updates(page, no, left);
        true
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
    pub(crate) fn heartbeat<A>(
        &mut self,
        position: Position,
        watermark: Stamp,
        outbox: &mut Outbox<A>,
    ) {
        for (edge, child) in &mut self.by_edge {
            child.told = child.told.max(position);
            outbox.down(
                *edge,
                Down::Heartbeat(message::Heartbeat {
                    home: self.home,
                    position,
                    watermark,
                }),
            );
        }
    }

    /// An image that comes beside the stream is as of no later than here. A child that nothing concerned for a
    /// while would have to wait for a heartbeat before it may show that (rule 9).
    pub(crate) fn tell_position<A>(
        &mut self,
        edge: EdgeId,
        position: Position,
        watermark: Stamp,
        outbox: &mut Outbox<A>,
    ) {
        let child = self.by_edge.get_mut(&edge);
        let Some(child) = child.filter(|child| child.told < position) else {
            return;
        };
        child.told = position;
        outbox.down(
            edge,
            Down::Step(Step {
                home: self.home,
                position,
                stamp: Stamp::default(),
                watermark,
                commit: None,
                changes: Vec::new(),
            }),
        );
    }
}

fn send_step<A>(edge: EdgeId, step: Step, outbox: &mut Outbox<A>) {
    if planted::is(Bug::StepSplit) && step.changes.len() > 1 {
        for change in step.changes.clone() {
            let changes = alloc::vec![change];
            let part = Step {
                commit: None,
                changes,
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
fn news_is_lost(page: PageId, told: usize) -> bool {
    (page.page.0 as usize + told) % 5 == 4
}
