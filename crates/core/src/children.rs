//! A parent's side of its edges, for one home: who the children are, what they
//! may hold, and how a position is told to each (rules 1, 2, 7, 8).

use crate::change::PageChange;
use crate::directory::{ChildNo, Directory, Holder, Notice};
use crate::door::Out;
use crate::ids::{
    CommitId, EdgeId, EntryNo, Epoch, HomeId, MemberId, PageId, Position, SegmentId, Stamp,
};
use crate::limits::{CHILDREN_MAX, WATCHES_PER_CHILD_MAX};
use crate::message::{Down, Step};
use crate::note::Note;
use crate::planted::{self, Bug};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

/// One child's stream of one home.
#[derive(Debug)]
pub struct Child {
    /// Its process start.
    pub node: MemberId,
    /// This life of its stream.
    pub epoch: Epoch,
    /// How far it has acknowledged.
    pub acked: Position,
    no: ChildNo,
    entries: EntryNo,
    watches: BTreeSet<SegmentId>,
}

/// All children of a parent, for one home.
#[derive(Debug)]
pub struct Children {
    home: HomeId,
    by_edge: BTreeMap<EdgeId, Child>,
    by_no: BTreeMap<u16, EdgeId>,
    next_epoch: Epoch,
    /// Which child may hold which page.
    pub directory: Directory,
}

/// What a position brings.
#[derive(Debug)]
pub struct News {
    /// The position.
    pub position: Position,
    /// Its stamp.
    pub stamp: Stamp,
    /// What happened, with the values that are known here.
    pub changes: Vec<PageChange>,
    /// The commit and the child that it came from, if it came from one.
    pub origin: Option<(EdgeId, CommitId)>,
}

impl Children {
    /// No children yet. Epochs begin above `epoch`, which no earlier life used.
    pub fn new(home: HomeId, epoch: Epoch) -> Self {
        Children {
            home,
            by_edge: BTreeMap::new(),
            by_no: BTreeMap::new(),
            next_epoch: epoch,
            directory: Directory::default(),
        }
    }

    /// Begins a child's stream. False at the limit of children.
    pub fn begin(
        &mut self,
        edge: EdgeId,
        node: MemberId,
        at: (Position, Stamp),
        name: &str,
        out: &mut Out,
    ) -> bool {
        if self.by_edge.len() >= CHILDREN_MAX {
            out.note(Note::ChildLimited);
            return false;
        }
        let no = self.free_no();
        self.next_epoch = self.next_epoch.next();
        self.by_no.insert(no.0, edge);
        self.by_edge.insert(
            edge,
            Child {
                node,
                epoch: self.next_epoch,
                acked: at.0,
                no,
                entries: EntryNo(0),
                watches: BTreeSet::new(),
            },
        );
        out.note(Note::StreamBegan);
        out.down(
            edge,
            Down::Begin {
                home: self.home,
                name: String::from(name),
                epoch: self.next_epoch,
                position: at.0,
                watermark: at.1,
            },
        );
        true
    }

    /// Ends a child's stream; tells the pages that no child holds any more.
    pub fn end(&mut self, edge: EdgeId) -> Vec<PageId> {
        let Some(child) = self.by_edge.remove(&edge) else {
            return Vec::new();
        };
        self.by_no.remove(&child.no.0);
        self.directory.remove_child(child.no)
    }

    /// Ends all streams, and tells whose they were.
    pub fn end_all(&mut self) -> Vec<(EdgeId, MemberId)> {
        let ended = core::mem::take(&mut self.by_edge);
        self.by_no.clear();
        self.directory = Directory::default();
        ended
            .into_iter()
            .map(|(edge, child)| (edge, child.node))
            .collect()
    }

    /// A child's stream.
    pub fn get(&self, edge: EdgeId) -> Option<&Child> {
        self.by_edge.get(&edge)
    }

    /// A child's stream, if a message of this epoch belongs to it (rule 1).
    pub fn in_epoch(&self, edge: EdgeId, epoch: Epoch, out: &mut Out) -> Option<&Child> {
        let child = self.by_edge.get(&edge).filter(|c| c.epoch == epoch);
        if child.is_none() {
            out.note(Note::OtherEpochDropped);
        }
        child
    }

    /// The edge of a child.
    pub fn edge_of(&self, node: MemberId) -> Option<EdgeId> {
        self.by_edge
            .iter()
            .find(|(_, child)| child.node == node)
            .map(|(edge, _)| *edge)
    }

    /// All edges, in order.
    pub fn edges(&self) -> impl Iterator<Item = EdgeId> + '_ {
        self.by_edge.keys().copied()
    }

    /// How many children there are.
    pub fn len(&self) -> usize {
        self.by_edge.len()
    }

    /// Whether there is no child.
    pub fn is_empty(&self) -> bool {
        self.by_edge.is_empty()
    }

    /// Enters a page for a child under the next number (rule 2): to be called
    /// before its image is taken.
    pub fn enter(&mut self, edge: EdgeId, page: PageId, complete: bool) -> EntryNo {
        let Some(child) = self.by_edge.get_mut(&edge) else {
            return EntryNo(0);
        };
        child.entries = child.entries.next();
        let holder = Holder {
            child: child.no,
            complete,
            entry: child.entries,
        };
        let entry = child.entries;
        if !planted::is(Bug::SentBeforeEntered) || entry.0 % 4 != 0 {
            self.directory.enter(page, holder);
        }
        entry
    }

    /// Takes an eviction notice. True if nobody below holds the page any more.
    pub fn evict(&mut self, edge: EdgeId, page: PageId, entry: EntryNo, out: &mut Out) -> bool {
        let Some(child) = self.by_edge.get(&edge) else {
            return false;
        };
        let entry = if planted::is(Bug::LateNoticeStrikes) {
            EntryNo(u32::MAX)
        } else {
            entry
        };
        match self.directory.strike(page, child.no, entry) {
            Notice::Struck => {
                out.note(Note::EvictionTaken);
                !self.directory.is_held(page)
            }
            Notice::Late => {
                out.note(Note::EvictionIgnored);
                false
            }
            Notice::Absent => false,
        }
    }

    /// Whether a child is entered for a page.
    pub fn holds(&self, edge: EdgeId, page: PageId) -> bool {
        let child = self.by_edge.get(&edge);
        child.is_some_and(|child| self.directory.holder(page, child.no).is_some())
    }

    /// The number of a child's last entering of a page; zero if it is not entered.
    pub fn entry(&self, edge: EdgeId, page: PageId) -> EntryNo {
        let child = self.by_edge.get(&edge);
        let holder = child.and_then(|child| self.directory.holder(page, child.no));
        holder.map_or(EntryNo(0), |holder| holder.entry)
    }

    /// Notes whether a child's copy of a page is complete.
    pub fn set_complete(&mut self, edge: EdgeId, page: PageId, complete: bool) {
        if let Some(child) = self.by_edge.get(&edge) {
            let no = child.no;
            self.directory.set_complete(page, no, complete);
        }
    }

    /// A child with a complete copy, other than those in `except`.
    pub fn helper(&self, page: PageId, except: &[EdgeId]) -> Option<EdgeId> {
        let holders = self.directory.holders(page).iter();
        holders
            .filter(|holder| holder.complete)
            .filter_map(|holder| self.by_no.get(&holder.child.0).copied())
            .find(|edge| !except.contains(edge))
    }

    /// Takes an acknowledgement; tells the lowest over all children.
    pub fn ack(&mut self, edge: EdgeId, position: Position) {
        if let Some(child) = self.by_edge.get_mut(&edge) {
            child.acked = child.acked.max(position);
        }
    }

    /// What all children have acknowledged (rule 7).
    pub fn acknowledged(&self) -> Option<Position> {
        self.by_edge.values().map(|child| child.acked).min()
    }

    /// Begins or ends a child's watching of a segment. False at the limit.
    pub fn watch(&mut self, edge: EdgeId, segment: SegmentId, on: bool) -> bool {
        let Some(child) = self.by_edge.get_mut(&edge) else {
            return true;
        };
        if !on {
            child.watches.remove(&segment);
            return true;
        }
        if child.watches.len() >= WATCHES_PER_CHILD_MAX && !child.watches.contains(&segment) {
            return false;
        }
        child.watches.insert(segment);
        true
    }

    /// Ends every child's watching of a segment, and tells them so.
    pub fn unwatch(&mut self, segment: SegmentId, out: &mut Out) {
        let home = self.home;
        for (edge, child) in &mut self.by_edge {
            if child.watches.remove(&segment) {
                out.down(*edge, Down::Unwatched { home, segment });
            }
        }
    }

    /// How many watches there are, of all children.
    pub fn watches(&self) -> usize {
        let children = self.by_edge.values();
        children.map(|child| child.watches.len()).sum()
    }

    /// The segments that any child watches.
    pub fn watched(&self) -> BTreeSet<SegmentId> {
        self.by_edge
            .values()
            .flat_map(|child| child.watches.iter().copied())
            .collect()
    }

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
        let holders = self.directory.holders(page).iter();
        let mut edges: BTreeSet<EdgeId> = holders
            .filter_map(|holder| self.by_no.get(&holder.child.0).copied())
            .collect();
        for (edge, child) in &self.by_edge {
            if child.watches.contains(&page.segment) {
                edges.insert(*edge);
            }
        }
        edges
    }

    fn strike_holders(&mut self, page: PageId) {
        let holders = self.directory.holders(page).to_vec();
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

    fn free_no(&self) -> ChildNo {
        let free = (0..u16::MAX).find(|no| !self.by_no.contains_key(no));
        ChildNo(free.unwrap_or(u16::MAX))
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
