//! What a parent has granted to its children: they may write what it has not seen, until their leases end (rules C1 and C4).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::LEASES_PER_CHILD_MAX;
use thorp_model::{MemberId, Millis, NameId, SegmentId};

/// The write leases of one home that a parent has granted to its children, by their process starts.
///
/// Invariant: a lease is here until it ends, whatever becomes of the edge of its holder. The holder believes in it for less long.
#[derive(Debug, Default)]
pub(crate) struct Leases(BTreeMap<MemberId, BTreeMap<SegmentId, Millis>>);

impl Leases {
    /// A child holds leases until then. False: its name would hold more than it may, and it gets none.
    pub(crate) fn grant(&mut self, child: MemberId, segments: &[SegmentId], until: Millis) -> bool {
        let of_name = self.more_of_name(child, segments);
        of_name <= LEASES_PER_CHILD_MAX && self.put(child, segments, until)
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
        more == 0 || free.is_some_and(|free| of_name <= free)
    }

    /// How many of these a child does not hold.
    fn more(&self, child: MemberId, segments: &[SegmentId]) -> usize {
        let held = self.0.get(&child);
        let holds = |of: &&SegmentId| held.is_some_and(|held| held.contains_key(of));
        segments.iter().filter(|of| !holds(of)).count()
    }

    /// How many all process starts of a name would hold, with these.
    fn more_of_name(&self, child: MemberId, segments: &[SegmentId]) -> usize {
        let name = child.name();
        let starts = MemberId::new(name, u64::MIN)..=MemberId::new(name, u64::MAX);
        let held: usize = self.0.range(starts).map(|(_, held)| held.len()).sum();
        held + self.more(child, segments)
    }

    fn put(&mut self, child: MemberId, segments: &[SegmentId], until: Millis) -> bool {
        let held = self.0.entry(child).or_default();
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

    /// Whether a lease of a child in these segments has run to its end, and was not given back. It is known until it is swept.
    pub(crate) fn is_over(&self, child: MemberId, segments: &[SegmentId], now: Millis) -> bool {
        let held = self.0.get(&child);
        let is_over = |segment| held.and_then(|held| held.get(segment));
        segments.iter().filter_map(is_over).any(|end| *end <= now)
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

    /// All leases of a name in a segment are void (rule R5).
    pub(crate) fn end_of_name(&mut self, name: NameId, segment: SegmentId) {
        let starts = MemberId::new(name, u64::MIN)..=MemberId::new(name, u64::MAX);
        for (_, held) in self.0.range_mut(starts) {
            held.remove(&segment);
        }
    }

    /// A planted bug: they end with the edge of their holder.
    pub(crate) fn forget(&mut self, child: MemberId) {
        self.0.remove(&child);
    }

    /// A planted bug: a child holds what earlier starts of its name have held.
    pub(crate) fn take_over(&mut self, child: MemberId) {
        let is_of_name = |start: &MemberId| start.name() == child.name() && *start != child;
        let earlier = self.0.extract_if(.., |start, _| is_of_name(start));
        let held: Vec<_> = earlier.flat_map(|(_, held)| held).collect();
        self.0.entry(child).or_default().extend(held);
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
}
