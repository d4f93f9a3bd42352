//! What a parent has granted to its children: they may write what it has not seen, until their leases end (rules C1 and C4).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use thorp_model::limits::{LEASE_STARTS_OF_NAME_MAX, LEASES_PER_CHILD_MAX};
use thorp_model::{MemberId, Millis, NameId, SegmentId};

/// The leases of one kind of one home that a parent has granted to its children, by their process starts.
///
/// Invariant: a lease is here until it ends, whatever becomes of the edge of its holder. The holder believes in it for less long.
/// `of_segment` names the children that `of` has something of.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    of: BTreeMap<MemberId, BTreeMap<SegmentId, Held>>,
    of_segment: BTreeMap<SegmentId, BTreeSet<MemberId>>,
}

/// A lease in one segment.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    until: Millis,
    /// Its holder has given it back. The parent's own lease goes on, so it counts for the holder's name until it ends.
    is_back: bool,
}

impl Leases {
    /// A child holds leases until then. False: its name would hold more than it may, and it gets none.
    pub(crate) fn grant(&mut self, child: MemberId, segments: &[SegmentId], until: Millis) -> bool {
        let of_name = self.more_of_name(child, segments);
        let fits = of_name <= LEASES_PER_CHILD_MAX && self.may_start(child);
        fits && self.put(child, segments, until)
    }

    /// As [`Leases::grant`], where all names share what their parent may hold. One has no more than all leave free.
    pub(crate) fn grant_shared(
        &mut self,
        child: MemberId,
        segments: &[SegmentId],
        until: Millis,
    ) -> bool {
        self.fits_shared(child, segments) && self.put(child, segments, until)
    }

    /// Whether [`Leases::grant_shared`] would grant it.
    pub(crate) fn fits_shared(&self, child: MemberId, segments: &[SegmentId]) -> bool {
        let more = self.more(child, segments);
        let free = LEASES_PER_CHILD_MAX.checked_sub(self.len() + more);
        let of_name = self.more_of_name(child, segments);
        more == 0 || free.is_some_and(|free| of_name <= free) && self.may_start(child)
    }

    /// Whether one more process start of a name may hold leases.
    fn may_start(&self, child: MemberId) -> bool {
        let starts = self.of.range(starts_of(child.name()));
        self.of.contains_key(&child) || starts.count() < LEASE_STARTS_OF_NAME_MAX
    }

    /// How many of these a child does not hold.
    fn more(&self, child: MemberId, segments: &[SegmentId]) -> usize {
        let held = self.of.get(&child);
        let holds = |of: &&SegmentId| held.is_some_and(|held| held.contains_key(of));
        segments.iter().filter(|of| !holds(of)).count()
    }

    /// How many all process starts of a name would hold, with these.
    fn more_of_name(&self, child: MemberId, segments: &[SegmentId]) -> usize {
        let starts = self.of.range(starts_of(child.name()));
        let held: usize = starts.map(|(_, held)| held.len()).sum();
        held + self.more(child, segments)
    }

    fn put(&mut self, child: MemberId, segments: &[SegmentId], until: Millis) -> bool {
        let held = self.of.entry(child).or_default();
        for segment in segments {
            let lease = held.entry(*segment).or_default();
            let until = until.max(lease.until);
            let is_back = false;
            *lease = Held { until, is_back };
            self.of_segment.entry(*segment).or_default().insert(child);
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
        let ends = self.held(child, segments).map(|lease| lease.until);
        ends.max().filter(|end| *end > now)
    }

    fn held(&self, child: MemberId, segments: &[SegmentId]) -> impl Iterator<Item = &Held> {
        let held = self.of.get(&child);
        let held = segments.iter().filter_map(move |of| held?.get(of));
        held.filter(|lease| !lease.is_back)
    }

    /// Whether a lease of a child in these segments has run to its end, and was not given back. It is known until it is swept.
    pub(crate) fn is_over(&self, child: MemberId, segments: &[SegmentId], now: Millis) -> bool {
        self.held(child, segments).any(|lease| lease.until <= now)
    }

    /// The children that hold leases in these segments.
    pub(crate) fn holders(&self, segments: &[SegmentId], now: Millis) -> Vec<MemberId> {
        let children = segments.iter().filter_map(|of| self.of_segment.get(of));
        let children: BTreeSet<MemberId> = children.flatten().copied().collect();
        let holds = |child: &MemberId| self.until(*child, segments, now).is_some();
        children.into_iter().filter(holds).collect()
    }

    /// A child gives leases back.
    pub(crate) fn end(&mut self, child: MemberId, segments: &[SegmentId]) {
        for segment in segments {
            self.remove(child, *segment);
        }
    }

    /// A child gives leases back to a site, whose own go on: nobody has to ask the child any more, but they count for its name.
    pub(crate) fn give_back_shared(&mut self, child: MemberId, segments: &[SegmentId]) {
        let Some(held) = self.of.get_mut(&child) else {
            return;
        };
        for segment in segments {
            if let Some(lease) = held.get_mut(segment) {
                lease.is_back = true;
            }
        }
    }

    /// The parent of a site has these back: nothing of them counts any more.
    pub(crate) fn forget_given_back(&mut self, segments: &[SegmentId]) {
        for segment in segments {
            let children = self.of_segment.get(segment).into_iter().flatten();
            let children: Vec<MemberId> = children.copied().collect();
            for child in children {
                let held = self.of.get(&child).and_then(|held| held.get(segment));
                if held.is_some_and(|lease| lease.is_back) {
                    self.remove(child, *segment);
                }
            }
        }
    }

    fn remove(&mut self, child: MemberId, segment: SegmentId) {
        if let Some(held) = self.of.get_mut(&child) {
            held.remove(&segment);
            if held.is_empty() {
                self.of.remove(&child);
            }
        }
        if let Some(children) = self.of_segment.get_mut(&segment) {
            children.remove(&child);
            if children.is_empty() {
                self.of_segment.remove(&segment);
            }
        }
    }

    /// A lease that was void stands again: its holder has the right back, and may have believed in it all the time.
    pub(crate) fn restore(&mut self, child: MemberId, segment: SegmentId, until: Millis) {
        self.put(child, &[segment], until);
    }

    /// A planted bug: they end with the edge of their holder.
    pub(crate) fn forget(&mut self, child: MemberId) {
        let held = self.of.get(&child).into_iter().flatten();
        let held: Vec<SegmentId> = held.map(|(segment, _)| *segment).collect();
        self.end(child, &held);
    }

    /// A planted bug: a child holds what earlier starts of its name have held.
    pub(crate) fn take_over(&mut self, child: MemberId) {
        let starts = self.of.range(starts_of(child.name()));
        let earlier = starts.filter(|(start, _)| **start != child);
        let of_one = |(_, held): (&MemberId, &BTreeMap<SegmentId, Held>)| held.clone();
        let held: Vec<(SegmentId, Held)> = earlier.flat_map(of_one).collect();
        let starts: Vec<MemberId> = self
            .of
            .range(starts_of(child.name()))
            .map(|(of, _)| *of)
            .collect();
        for start in starts.into_iter().filter(|start| *start != child) {
            self.forget(start);
        }
        for (segment, lease) in held {
            self.put(child, &[segment], lease.until);
        }
    }

    /// Forgets those that have ended.
    pub(crate) fn sweep(&mut self, now: Millis) {
        let all = self.of.iter();
        let ended = all.flat_map(|(child, held)| {
            let ended = held.iter().filter(|(_, lease)| lease.until <= now);
            ended.map(|(segment, _)| (*child, *segment))
        });
        let ended: Vec<(MemberId, SegmentId)> = ended.collect();
        for (child, segment) in ended {
            self.remove(child, segment);
        }
    }

    /// Whether there is anything of a child.
    pub(crate) fn has_any(&self, child: MemberId) -> bool {
        self.of.contains_key(&child)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.of.values().map(BTreeMap::len).sum()
    }
}

fn starts_of(name: NameId) -> RangeInclusive<MemberId> {
    MemberId::new(name, u64::MIN)..=MemberId::new(name, u64::MAX)
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

    #[test]
    fn a_lease_that_ran_out_is_not_one_that_was_given_back() {
        let (mut leases, child) = (Leases::default(), MemberId(1));
        let (one, two) = ([SegmentId(1)], [SegmentId(2)]);
        assert!(leases.grant(child, &[one[0], two[0]], Millis(100)));
        leases.end(child, &two);
        assert!(!leases.is_over(child, &one, Millis(99)));
        assert!(leases.is_over(child, &one, Millis(100)));
        assert!(!leases.is_over(child, &two, Millis(100)));
    }

    /// An attack: a member that starts again and again, each time with new leases.
    #[test]
    fn all_starts_of_a_name_count_together() {
        let mut leases = Leases::default();
        let start = |random| MemberId::new(NameId(7), random);
        let half: Vec<_> = (0..LEASES_PER_CHILD_MAX as u32 / 2)
            .map(SegmentId)
            .collect();
        assert!(leases.grant(start(1), &half, Millis(100)));
        assert!(leases.grant(start(2), &half, Millis(100)));
        assert!(!leases.grant(start(3), &half[..1], Millis(100)));
        assert!(leases.grant(MemberId::new(NameId(8), 1), &half[..1], Millis(100)));
        assert!(
            leases.grant(start(2), &half, Millis(200)),
            "longer, not more"
        );
    }

    /// An attack: one member below a site takes all that the site may hold.
    #[test]
    fn a_name_leaves_others_room_at_a_site() {
        let mut leases = Leases::default();
        let start = |random| MemberId::new(NameId(7), random);
        let half: Vec<_> = (0..LEASES_PER_CHILD_MAX as u32 / 2)
            .map(SegmentId)
            .collect();
        assert!(leases.grant_shared(start(1), &half, Millis(100)));
        assert!(!leases.grant_shared(start(2), &half[..1], Millis(100)));
        assert!(leases.grant_shared(MemberId::new(NameId(8), 1), &half[..9], Millis(100)));
        assert!(
            leases.grant_shared(start(1), &half, Millis(200)),
            "longer, not more"
        );
    }

    /// An attack: a member below a site takes leases and gives them back, so that the site's own table is full above.
    #[test]
    fn what_was_given_back_to_a_site_counts_for_its_name_until_it_ends() {
        let mut leases = Leases::default();
        let mallory = MemberId::new(NameId(7), 1);
        let anna = MemberId::new(NameId(8), 1);
        let many: Vec<_> = (0..LEASES_PER_CHILD_MAX as u32).map(SegmentId).collect();
        let (half, rest) = many.split_at(LEASES_PER_CHILD_MAX / 2);
        assert!(leases.grant_shared(mallory, half, Millis(100)));
        leases.give_back_shared(mallory, half);
        assert_eq!(leases.holders(half, Millis(0)), []);
        assert!(!leases.grant_shared(mallory, &rest[..1], Millis(100)));
        assert!(leases.grant_shared(anna, &rest[..9], Millis(100)));
        leases.forget_given_back(&half[1..]);
        assert!(leases.grant_shared(mallory, &rest[..1], Millis(100)));
        leases.sweep(Millis(100));
        assert_eq!(leases.len(), 0);
    }

    /// An attack: each start takes one lease and goes.
    #[test]
    fn so_many_starts_of_a_name_hold_leases() {
        let mut leases = Leases::default();
        let start = |random| MemberId::new(NameId(7), random);
        for random in 0..LEASE_STARTS_OF_NAME_MAX as u64 {
            assert!(leases.grant(start(random), &[SegmentId(1)], Millis(100)));
        }
        assert!(!leases.grant(start(u64::MAX), &[SegmentId(1)], Millis(100)));
        assert!(leases.grant(start(0), &[SegmentId(2)], Millis(100)));
    }
}
