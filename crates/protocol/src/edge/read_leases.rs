//! Read leases: a parent answers no change before these children have seen it (rules C1, C2 and C4).

use crate::edge::leases::Leases;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{MemberId, Millis, SegmentId};

/// The read leases of one home that a parent has granted to its children, and the bound of each.
///
/// Invariant: of several grants in one segment the tightest bound counts, until the lease is over.
#[derive(Debug, Default)]
pub(crate) struct ReadLeases {
    leases: Leases,
    mods: BTreeMap<(MemberId, SegmentId), u32>,
}

impl ReadLeases {
    /// A child holds leases until then, and may miss so many changes. False: it would hold more than it may, and gets none.
    pub(crate) fn grant(
        &mut self,
        child: MemberId,
        (segments, mods): (&[SegmentId], u32),
        (now, until): (Millis, Millis),
    ) -> bool {
        self.sweep(now);
        self.leases.grant(child, segments, until) && self.bound(child, segments, mods)
    }

    /// As [`ReadLeases::grant`], where all names share what their parent may hold ([`Leases::grant_shared`]).
    pub(crate) fn grant_shared(
        &mut self,
        child: MemberId,
        (segments, mods): (&[SegmentId], u32),
        (now, until): (Millis, Millis),
    ) -> bool {
        self.sweep(now);
        self.leases.grant_shared(child, segments, until) && self.bound(child, segments, mods)
    }

    /// Whether [`ReadLeases::grant_shared`] would grant it.
    pub(crate) fn fits_shared(&self, child: MemberId, segments: &[SegmentId]) -> bool {
        self.leases.fits_shared(child, segments)
    }

    /// Takes down the bound of leases that were granted: true.
    fn bound(&mut self, child: MemberId, segments: &[SegmentId], mods: u32) -> bool {
        for segment in segments {
            let bound = self.mods.entry((child, *segment)).or_insert(mods);
            *bound = mods.min(*bound);
        }
        true
    }

    /// The children that hold leases in these segments.
    pub(crate) fn holders(&self, segments: &[SegmentId], now: Millis) -> Vec<MemberId> {
        self.leases.holders(segments, now)
    }

    /// When the last lease of a child in these segments ends, if it holds one.
    pub(crate) fn until(
        &self,
        child: MemberId,
        segments: &[SegmentId],
        now: Millis,
    ) -> Option<Millis> {
        self.leases.until(child, segments, now)
    }

    /// The segments, of these, in which a child holds leases, and its bound in each.
    pub(crate) fn bounds(
        &self,
        child: MemberId,
        segments: &[SegmentId],
        now: Millis,
    ) -> impl Iterator<Item = (SegmentId, u32)> {
        let bound = move |segment: &SegmentId| {
            self.leases.until(child, &[*segment], now)?;
            let mods = self.mods.get(&(child, *segment));
            Some((*segment, mods.copied().unwrap_or_default()))
        };
        segments.iter().filter_map(bound)
    }

    /// A child gives leases back, or may not read any more.
    pub(crate) fn end(&mut self, child: MemberId, segments: &[SegmentId]) {
        self.leases.end(child, segments);
        self.forget_bounds();
    }

    /// As [`ReadLeases::end`], at a site whose own lease goes on.
    pub(crate) fn give_back_shared(&mut self, child: MemberId, segments: &[SegmentId]) {
        self.leases.give_back_shared(child, segments);
        self.forget_bounds();
    }

    /// Forgets those that have ended.
    pub(crate) fn sweep(&mut self, now: Millis) {
        self.leases.sweep(now);
        self.forget_bounds();
    }

    fn forget_bounds(&mut self) {
        let leases = &self.leases;
        self.mods
            .retain(|(child, segment), _| leases.until(*child, &[*segment], Millis(0)).is_some());
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_bound_counts_until_the_lease_is_over() {
        let (mut leases, child) = (ReadLeases::default(), MemberId(1));
        let one = [SegmentId(1)];
        let bounds = |leases: &ReadLeases, now| {
            let bounds = leases.bounds(child, &[SegmentId(1), SegmentId(2)], Millis(now));
            bounds.map(|(_, mods)| mods).collect::<Vec<_>>()
        };
        for (mods, at) in [(5, 0), (2, 10), (5, 20)] {
            assert!(leases.grant(child, (&one, mods), (Millis(at), Millis(at + 100))));
        }
        assert_eq!(bounds(&leases, 119), [2]);
        assert!(bounds(&leases, 120).is_empty());
        assert!(leases.grant(child, (&one, 5), (Millis(120), Millis(200))));
        assert_eq!(bounds(&leases, 121), [5]);
        leases.end(child, &one);
        assert_eq!((bounds(&leases, 121).len(), leases.len()), (0, 0));
    }
}
