//! Who watches which segment, by child and by segment.

use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::limits::{WATCHES_PER_CHILD_MAX, WATCHES_PER_SITE_MAX};
use thorp_model::{EdgeId, NodeKind, SegmentId};

/// The watches of all children.
///
/// Invariant: both tables say the same, and neither has an empty set. No member has more than
/// [`WATCHES_PER_CHILD_MAX`], and no site more than [`WATCHES_PER_SITE_MAX`].
#[derive(Debug, Default)]
pub(super) struct Watches {
    by_child: BTreeMap<EdgeId, BTreeSet<SegmentId>>,
    by_segment: BTreeMap<SegmentId, BTreeSet<EdgeId>>,
}

impl Watches {
    /// Begins a child's watching of a segment. False at the limit.
    pub(super) fn begin(&mut self, (edge, kind): (EdgeId, NodeKind), segment: SegmentId) -> bool {
        let most = match kind {
            NodeKind::Member => WATCHES_PER_CHILD_MAX,
            _ => WATCHES_PER_SITE_MAX,
        };
        let own = self.by_child.get(&edge);
        let is_full = own.is_some_and(|own| own.len() >= most && !own.contains(&segment));
        if !is_full {
            self.by_child.entry(edge).or_default().insert(segment);
            self.by_segment.entry(segment).or_default().insert(edge);
        }
        !is_full
    }

    /// Ends a child's watching of a segment. False if it did not watch that.
    pub(super) fn end(&mut self, edge: EdgeId, segment: SegmentId) -> bool {
        let own = self.by_child.get(&edge);
        let watched = own.is_some_and(|own| own.contains(&segment));
        remove(&mut self.by_child, edge, segment);
        remove(&mut self.by_segment, segment, edge);
        watched
    }

    /// Ends every child's watching of a segment. Returns whose that was.
    pub(super) fn end_segment(&mut self, segment: SegmentId) -> BTreeSet<EdgeId> {
        let watchers = self.by_segment.remove(&segment).unwrap_or_default();
        for edge in &watchers {
            remove(&mut self.by_child, *edge, segment);
        }
        watchers
    }

    /// A child has gone.
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        for segment in self.by_child.remove(&edge).unwrap_or_default() {
            remove(&mut self.by_segment, segment, edge);
        }
    }

    /// The children that watch a segment.
    pub(super) fn watchers(&self, segment: SegmentId) -> impl Iterator<Item = EdgeId> + '_ {
        let watchers = self.by_segment.get(&segment);
        watchers.into_iter().flatten().copied()
    }

    /// How many watches there are, of all children.
    pub(super) fn len(&self) -> usize {
        self.by_child.values().map(BTreeSet::len).sum()
    }

    /// The segments that some of these children watch.
    pub(super) fn watched_by(&self, edges: impl Iterator<Item = EdgeId>) -> BTreeSet<SegmentId> {
        let watched = edges.filter_map(|edge| self.by_child.get(&edge));
        watched.flatten().copied().collect()
    }

    /// The segments that any child watches.
    pub(super) fn watched(&self) -> BTreeSet<SegmentId> {
        self.by_segment.keys().copied().collect()
    }
}

/// Removes one of a set; an empty set goes.
fn remove<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V) {
    if let Some(set) = sets.get_mut(&key) {
        set.remove(&value);
        if set.is_empty() {
            sets.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const A: EdgeId = EdgeId(1);
    const B: EdgeId = EdgeId(2);

    fn begins(watches: &mut Watches, edge: EdgeId, segment: u32) -> bool {
        watches.begin((edge, NodeKind::Member), SegmentId(segment))
    }

    fn watchers(watches: &Watches, segment: u32) -> Vec<EdgeId> {
        watches.watchers(SegmentId(segment)).collect()
    }

    #[test]
    fn a_segment_is_watched_until_its_last_child_ends_that() {
        let mut watches = Watches::default();
        for (edge, segment) in [(A, 1), (B, 1), (B, 2), (B, 2)] {
            assert!(begins(&mut watches, edge, segment));
        }
        assert_eq!(
            (watches.len(), watchers(&watches, 1)),
            (3, Vec::from([A, B]))
        );
        watches.end(A, SegmentId(1));
        watches.end(A, SegmentId(2));
        assert_eq!(watchers(&watches, 1), [B]);
        watches.child_went(B);
        assert_eq!((watches.len(), watches.watched()), (0, BTreeSet::new()));
    }

    #[test]
    fn the_end_of_a_segment_ends_the_watches_of_all_children() {
        let mut watches = Watches::default();
        for (edge, segment) in [(A, 1), (B, 1), (B, 2)] {
            assert!(begins(&mut watches, edge, segment));
        }
        assert_eq!(watches.end_segment(SegmentId(1)), BTreeSet::from([A, B]));
        assert_eq!((watches.len(), watchers(&watches, 2)), (1, Vec::from([B])));
        assert!(watches.end_segment(SegmentId(1)).is_empty());
    }

    #[test]
    fn a_child_watches_so_many_segments() {
        let mut watches = Watches::default();
        let all = WATCHES_PER_CHILD_MAX as u32;
        assert!((0..all).all(|segment| begins(&mut watches, A, segment)));
        assert!(!begins(&mut watches, A, all));
        // What it watches it may watch again; another child has its own limit.
        assert!(begins(&mut watches, A, 0) && begins(&mut watches, B, all));
    }

    #[test]
    fn a_site_watches_more_for_those_below_it() {
        let mut watches = Watches::default();
        let mut begin = |segment| watches.begin((A, NodeKind::Redirector), SegmentId(segment));
        let all = WATCHES_PER_SITE_MAX as u32;
        assert!((0..all).all(&mut begin));
        assert!(!begin(all));
        let both = watches.watched_by([A, B].into_iter());
        assert_eq!(both.len(), WATCHES_PER_SITE_MAX);
    }
}
