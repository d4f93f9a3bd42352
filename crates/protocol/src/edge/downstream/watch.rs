//! Who watches which segment, by child and by segment.

use crate::edge::downstream::Children;
use alloc::collections::BTreeSet;
use thorp_model::limits::WATCHES_PER_CHILD_MAX;
use thorp_model::{Down, EdgeId, Outbox, SegmentId, message};

impl Children {
    /// Begins or ends a child's watching of a segment. False at the limit.
    pub(crate) fn watch(&mut self, edge: EdgeId, segment: SegmentId, on: bool) -> bool {
        let Some(child) = self.by_edge.get_mut(&edge) else {
            return true;
        };
        if !on {
            child.watches.remove(&segment);
            self.watches_no_more(edge, segment);
            return true;
        }
        if child.watches.len() >= WATCHES_PER_CHILD_MAX && !child.watches.contains(&segment) {
            return false;
        }
        child.watches.insert(segment);
        self.watchers.entry(segment).or_default().insert(edge);
        true
    }

    /// Ends every child's watching of a segment, and tells them so.
    pub(crate) fn unwatch<A>(&mut self, segment: SegmentId, outbox: &mut Outbox<A>) {
        let home = self.home;
        for edge in self.watchers.remove(&segment).unwrap_or_default() {
            if let Some(child) = self.by_edge.get_mut(&edge) {
                child.watches.remove(&segment);
                outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
            }
        }
    }

    /// How many watches there are, of all children.
    pub(crate) fn watches(&self) -> usize {
        let children = self.by_edge.values();
        children.map(|child| child.watches.len()).sum()
    }

    /// The segments that any child watches.
    pub(crate) fn watched(&self) -> BTreeSet<SegmentId> {
        self.watchers.keys().copied().collect()
    }

    pub(super) fn watches_no_more(&mut self, edge: EdgeId, segment: SegmentId) {
        if let Some(watchers) = self.watchers.get_mut(&segment) {
            watchers.remove(&edge);
            if watchers.is_empty() {
                self.watchers.remove(&segment);
            }
        }
    }
}
