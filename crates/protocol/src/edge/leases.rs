//! What a parent has granted to its children: they may write what it has not seen, until their leases end (rules C1 and C4).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::LEASES_PER_CHILD_MAX;
use thorp_model::{MemberId, Millis, SegmentId};

/// The write leases of one home that a parent has granted to its children, by their process starts.
///
/// Invariant: a lease is here until it ends, whatever becomes of the edge of its holder. The holder believes in it for less long.
#[derive(Debug, Default)]
pub(crate) struct Leases(BTreeMap<MemberId, BTreeMap<SegmentId, Millis>>);

impl Leases {
    /// A child holds leases until then. False: it would hold more than it may, and gets none.
    pub(crate) fn grant(&mut self, child: MemberId, segments: &[SegmentId], until: Millis) -> bool {
        let held = self.0.entry(child).or_default();
        let more = segments
            .iter()
            .filter(|segment| !held.contains_key(segment));
        if held.len() + more.count() > LEASES_PER_CHILD_MAX {
            return false;
        }
        for segment in segments {
            let end = held.entry(*segment).or_default();
            *end = until.max(*end);
        }
        true
    }

    /// When the last lease of a child in these segments ends, if it holds one.
    pub(crate) fn until(
        &self,
        child: MemberId,
        segments: &[SegmentId],
        now: Millis,
    ) -> Option<Millis> {
        let held = self.0.get(&child)?;
        let ends = segments.iter().filter_map(|segment| held.get(segment));
        ends.copied().max().filter(|end| *end > now)
    }

    /// The children that hold leases in these segments.
    pub(crate) fn holders(&self, segments: &[SegmentId], now: Millis) -> Vec<MemberId> {
        let holds = |child: &&MemberId| self.until(**child, segments, now).is_some();
        self.0.keys().filter(holds).copied().collect()
    }

    /// A child gives leases back.
    pub(crate) fn end(&mut self, child: MemberId, segments: &[SegmentId]) {
        if let Some(held) = self.0.get_mut(&child) {
            held.retain(|segment, _| !segments.contains(segment));
        }
    }

    /// A planted bug: they end with the edge of their holder.
    pub(crate) fn forget(&mut self, child: MemberId) {
        self.0.remove(&child);
    }

    /// Forgets those that have ended.
    pub(crate) fn sweep(&mut self, now: Millis) {
        self.0.retain(|_, held| {
            held.retain(|_, end| *end > now);
            !held.is_empty()
        });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_to_its_end_and_never_becomes_shorter() {
        let (mut leases, child) = (Leases::default(), MemberId(1));
        let (one, two) = ([SegmentId(1)], [SegmentId(2)]);
        assert!(leases.grant(child, &one, Millis(100)));
        assert!(leases.grant(child, &one, Millis(50)));
        assert_eq!(leases.until(child, &one, Millis(99)), Some(Millis(100)));
        assert_eq!(leases.holders(&two, Millis(0)), []);
        assert_eq!(leases.holders(&one, Millis(100)), []);
        let two_held = leases.grant(child, &two, Millis(200));
        leases.end(child, &two);
        assert!(two_held && leases.until(child, &two, Millis(0)).is_none());
        leases.sweep(Millis(100));
        assert_eq!(leases.len(), 0);
        let many: Vec<_> = (0..=LEASES_PER_CHILD_MAX as u32).map(SegmentId).collect();
        assert!(!leases.grant(child, &many, Millis(200)));
    }
}
