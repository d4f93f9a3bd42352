//! Who follows which segment: such a child hears of each update that is saved there (rule C6).

use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::limits::{FOLLOWED_SEGMENTS_MAX, WATCHES_PER_SITE_MAX};
use thorp_model::{EdgeId, SegmentId};

/// The children of a parent that follow segments of one home.
///
/// Invariant: no edge follows more segments than a child of its kind may.
#[derive(Debug, Default)]
pub(crate) struct Followers(BTreeMap<SegmentId, BTreeSet<EdgeId>>);

impl Followers {
    /// A child follows a segment from now on. False: it follows as many as it may.
    pub(crate) fn add(&mut self, edge: EdgeId, segment: SegmentId, is_member: bool) -> bool {
        let most = match is_member {
            true => FOLLOWED_SEGMENTS_MAX,
            false => WATCHES_PER_SITE_MAX,
        };
        let followed = self.0.values().filter(|edges| edges.contains(&edge));
        let is_new = !self.has(edge, segment);
        if is_new && followed.count() >= most {
            return false;
        }
        self.0.entry(segment).or_default().insert(edge);
        true
    }

    /// Whether a child follows a segment.
    pub(crate) fn has(&self, edge: EdgeId, segment: SegmentId) -> bool {
        let edges = self.0.get(&segment);
        edges.is_some_and(|edges| edges.contains(&edge))
    }

    /// The children that follow a segment.
    pub(crate) fn of(&self, segment: SegmentId) -> BTreeSet<EdgeId> {
        self.0.get(&segment).cloned().unwrap_or_default()
    }

    /// A child follows a segment no more.
    pub(crate) fn end(&mut self, edge: EdgeId, segment: SegmentId) {
        if let Some(edges) = self.0.get_mut(&segment) {
            edges.remove(&edge);
        }
    }

    /// A child is gone.
    pub(crate) fn went(&mut self, edge: EdgeId) {
        self.0.retain(|_, edges| {
            edges.remove(&edge);
            !edges.is_empty()
        });
    }

    /// Another stream begins: every child follows anew, with what it holds then.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many there are, of all segments.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_follows_so_many_segments_until_it_goes() {
        let (mut followers, edge, other) = (Followers::default(), EdgeId(1), EdgeId(2));
        for segment in 0..FOLLOWED_SEGMENTS_MAX as u32 {
            assert!(followers.add(edge, SegmentId(segment), true));
        }
        assert!(!followers.add(edge, SegmentId(u32::MAX), true));
        assert!(followers.add(edge, SegmentId(0), true), "once more");
        assert!(followers.add(other, SegmentId(0), true));
        followers.went(edge);
        assert_eq!(followers.len(), 1);
        assert!(followers.has(other, SegmentId(0)) && !followers.has(edge, SegmentId(0)));
    }
}
