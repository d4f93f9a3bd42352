//! Leases to write that a parent wants back (rule C1).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::{MemberId, SegmentId};

/// The leases that a parent has recalled from its children, and that none has given back.
///
/// Invariant: a child was asked for each since it was granted last. So what it gives back is no later grant.
#[derive(Debug, Default)]
pub(crate) struct Recalls(BTreeMap<MemberId, BTreeSet<SegmentId>>);

impl Recalls {
    /// Wants these back from a child. Returns those that the child was not asked for yet.
    pub(crate) fn add(&mut self, child: MemberId, segments: &[SegmentId]) -> Vec<SegmentId> {
        let asked = self.0.entry(child).or_default();
        let segments = segments.iter().copied();
        segments.filter(|of| asked.insert(*of)).collect()
    }

    /// Those that a child has not given back. It is asked again when it comes by a new edge.
    pub(crate) fn of(&self, child: MemberId) -> Vec<SegmentId> {
        let asked = self.0.get(&child).into_iter().flatten();
        asked.copied().collect()
    }

    /// A child was granted these anew, or gives them back. Returns those that were recalled.
    pub(crate) fn end(&mut self, child: MemberId, segments: &[SegmentId]) -> Vec<SegmentId> {
        let Some(asked) = self.0.get_mut(&child) else {
            return Vec::new();
        };
        let ended = segments.iter().copied().filter(|of| asked.remove(of));
        let ended = ended.collect();
        self.0.retain(|_, asked| !asked.is_empty());
        ended
    }

    /// Keeps those that a child may still hold.
    pub(crate) fn retain(&mut self, is_held: impl Fn(MemberId, SegmentId) -> bool) {
        self.0.retain(|child, asked| {
            asked.retain(|of| is_held(*child, *of));
            !asked.is_empty()
        });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: MemberId = MemberId(7);
    const ONE: SegmentId = SegmentId(1);
    const TWO: SegmentId = SegmentId(2);

    #[test]
    fn a_child_is_asked_once_until_it_gives_back_or_is_granted_anew() {
        let mut recalls = Recalls::default();
        assert_eq!(recalls.add(CHILD, &[ONE, TWO]), [ONE, TWO]);
        assert_eq!(recalls.add(CHILD, &[ONE]), []);
        assert_eq!(recalls.end(CHILD, &[ONE]), [ONE]);
        assert_eq!(recalls.end(CHILD, &[ONE]), [], "a later grant stays");
        assert_eq!(recalls.of(CHILD), [TWO]);
        recalls.retain(|_, segment| segment == ONE);
        assert_eq!(recalls.len(), 0);
    }
}
