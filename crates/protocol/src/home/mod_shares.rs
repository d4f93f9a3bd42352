//! How many updates each log may answer before readers with hard bounds have seen them (rule C2).

use alloc::collections::BTreeMap;
use thorp_model::limits::READ_LEASE_MODS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{MemberId, Millis, SegmentId, planted};

/// What one writer was granted in one segment.
#[derive(Debug)]
struct Share {
    /// The child on whose edge it was granted.
    child: MemberId,
    mods: u32,
    until: Millis,
}

/// Writers with shares in one segment, at most. Each has one change at least, of a bound that is no larger.
const PLACES: usize = READ_LEASE_MODS_MAX as usize;

/// A share that a writer may be granted, in changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fitting {
    /// It has it already.
    Kept(u32),
    /// As far as no answer that readers miss has used it.
    New(u32),
}

/// The shares of bounds that a home has granted to writers, and until when writers hold leases without one.
///
/// Invariant: a share lasts as long as the lease to write with which it was granted, as the home counts. It grows in no refresh.
#[derive(Debug, Default)]
pub(super) struct ModShares {
    of: BTreeMap<(SegmentId, MemberId), Share>,
    unbounded: BTreeMap<SegmentId, Millis>,
}

impl ModShares {
    /// How many updates of a segment all writers may answer, but for one of them.
    pub(super) fn of_others(&self, segment: SegmentId, writer: MemberId, now: Millis) -> u32 {
        let others = self.here(segment, now);
        let others = others.filter(|(member, _)| *member != writer);
        others.map(|(_, mods)| mods).sum()
    }

    /// Whether a writer has a share in a segment.
    pub(super) fn has(&self, segment: SegmentId, writer: MemberId, now: Millis) -> bool {
        let share = self.of.get(&(segment, writer));
        share.is_some_and(|share| share.until > now)
    }

    /// How many updates of a segment all writers together may answer.
    pub(super) fn sum(&self, segment: SegmentId, now: Millis) -> u32 {
        match planted::is(Bug::ShareNotCounted) {
            true => 0,
            false => self.here(segment, now).map(|(_, mods)| mods).sum(),
        }
    }

    /// The share that a writer gets of what the others and the home leave, in changes. None: nothing is left. Whoever has a share
    /// keeps it. Another one gets half, so that something is left for the next.
    pub(super) fn fitting(
        &self,
        segment: SegmentId,
        writer: MemberId,
        left: u32,
        now: Millis,
    ) -> Option<Fitting> {
        let mut own = self.here(segment, now);
        let own = own.find(|(member, _)| *member == writer);
        let share = match own {
            Some((_, own)) => Fitting::Kept(own.min(left)),
            None if self.has_place(segment, writer, now) => Fitting::New(left.div_ceil(2)),
            None => return None,
        };
        (left > 0).then_some(share)
    }

    /// Whether a writer has a share in a segment, or may have one.
    fn has_place(&self, segment: SegmentId, writer: MemberId, now: Millis) -> bool {
        self.has(segment, writer, now) || self.here(segment, now).count() < PLACES
    }

    fn here(&self, segment: SegmentId, now: Millis) -> impl Iterator<Item = (MemberId, u32)> {
        let all = (segment, MemberId(0))..=(segment, MemberId(u128::MAX));
        let all = self
            .of
            .range(all)
            .filter(move |(_, share)| share.until > now);
        all.map(|((_, member), share)| (*member, share.mods))
    }

    /// A writer got a lease in a segment until then: with a share, or without a bound. Where there is no place for its share, nobody
    /// reads under a bound, and its lease counts as one without.
    pub(super) fn granted(
        &mut self,
        segment: SegmentId,
        (writer, child): (MemberId, MemberId),
        mods: Option<u32>,
        (now, until): (Millis, Millis),
    ) {
        match mods.filter(|_| self.has_place(segment, writer, now)) {
            Some(mods) => {
                let share = Share { child, mods, until };
                self.of.insert((segment, writer), share);
            }
            None => {
                self.of.remove(&(segment, writer));
                let last = self.unbounded.entry(segment).or_default();
                *last = until.max(*last);
            }
        }
    }

    /// Whether a reader may be granted a bound of so many changes, as far as writers with leases are concerned.
    pub(super) fn leaves(&self, segment: SegmentId, mods: u32, now: Millis) -> bool {
        let is_unbounded = self
            .unbounded
            .get(&segment)
            .is_some_and(|until| *until > now);
        !is_unbounded && self.here(segment, now).map(|(_, mods)| mods).sum::<u32>() <= mods
    }

    /// A child holds no leases to write in these segments any more.
    pub(super) fn end(&mut self, child: MemberId, segments: &[SegmentId]) {
        self.of
            .retain(|(segment, _), share| share.child != child || !segments.contains(segment));
    }

    /// Nobody holds a lease to write in a segment any more.
    pub(super) fn nobody_writes(&mut self, segment: SegmentId) {
        self.unbounded.remove(&segment);
    }

    /// Forgets what is over.
    pub(super) fn sweep(&mut self, now: Millis) {
        self.of.retain(|_, share| share.until > now);
        self.unbounded.retain(|_, until| *until > now);
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.of.len() + self.unbounded.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: SegmentId = SegmentId(1);
    const SITE: MemberId = MemberId(9);

    fn grant(shares: &mut ModShares, writer: u128, left: u32, (now, until): (u64, u64)) -> u32 {
        let writer = MemberId(writer);
        let share = match shares.fitting(S, writer, left, Millis(now)) {
            Some(Fitting::Kept(share) | Fitting::New(share)) => share,
            None => return 0,
        };
        shares.granted(S, (writer, SITE), Some(share), (Millis(now), Millis(until)));
        share
    }

    #[test]
    fn what_is_left_of_a_bound_is_divided_and_lasts_as_long_as_the_lease() {
        let mut shares = ModShares::default();
        assert_eq!(grant(&mut shares, 1, 5, (0, 100)), 3);
        assert_eq!(shares.of_others(S, MemberId(2), Millis(0)), 3);
        assert_eq!(grant(&mut shares, 2, 2, (10, 110)), 1);
        assert_eq!(grant(&mut shares, 1, 4, (20, 120)), 3, "it does not grow");
        assert_eq!(grant(&mut shares, 3, 1, (20, 120)), 1);
        assert_eq!(grant(&mut shares, 4, 0, (20, 120)), 0);
        assert_eq!(shares.sum(S, Millis(109)), 5);
        assert_eq!(shares.sum(S, Millis(110)), 4);
        assert!(shares.leaves(S, 4, Millis(110)) && !shares.leaves(S, 3, Millis(110)));
        shares.sweep(Millis(120));
        assert_eq!(shares.len(), 0);
    }

    #[test]
    fn a_writer_without_a_bound_leaves_no_room_until_nobody_writes() {
        let mut shares = ModShares::default();
        assert_eq!(grant(&mut shares, 1, 5, (0, 100)), 3);
        shares.granted(S, (MemberId(1), SITE), None, (Millis(0), Millis(200)));
        assert_eq!(shares.sum(S, Millis(0)), 0);
        assert!(!shares.leaves(S, 64, Millis(199)) && shares.leaves(S, 0, Millis(200)));
        shares.nobody_writes(S);
        assert!(shares.leaves(S, 0, Millis(0)));
    }

    #[test]
    fn a_child_that_gives_back_leaves_its_shares() {
        let mut shares = ModShares::default();
        assert_eq!(grant(&mut shares, 1, 8, (0, 100)), 4);
        shares.end(MemberId(1), &[S]);
        assert_eq!(shares.sum(S, Millis(0)), 4, "it was granted to a site");
        shares.end(SITE, &[S]);
        assert_eq!(shares.sum(S, Millis(0)), 0);
    }

    #[test]
    fn each_of_so_many_writers_has_a_place_and_no_more() {
        let mut shares = ModShares::default();
        for writer in 0..PLACES as u128 {
            assert_eq!(grant(&mut shares, writer, 1, (0, 100)), 1);
        }
        assert_eq!(grant(&mut shares, 1_000, 1, (0, 100)), 0);
        assert_eq!(grant(&mut shares, 1, 1, (0, 100)), 1);
        shares.granted(
            S,
            (MemberId(1_000), SITE),
            Some(1),
            (Millis(0), Millis(100)),
        );
        assert!(!shares.has(S, MemberId(1_000), Millis(0)));
        assert!(!shares.leaves(S, 64, Millis(99)), "it has no bound");
    }
}
