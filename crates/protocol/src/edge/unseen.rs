//! Which positions children with read leases have not said that they show (rule C2).

use crate::edge::read_leases::ReadLeases;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::{MemberId, Millis, Position, SegmentId, message};

/// A position that children have to see.
#[derive(Debug)]
pub(crate) struct Awaited {
    /// The segments that change there, as far as children hold read leases in them.
    pub(crate) segments: Vec<SegmentId>,
    /// The children that have not seen it.
    pub(crate) children: BTreeSet<MemberId>,
    since: Millis,
}

/// What a child says that it shows, of all that it was asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shown {
    /// Only what is behind this position.
    pub(crate) after: Position,
    /// Up to this one.
    pub(crate) to: Position,
}

impl Shown {
    /// What a child says.
    pub(crate) fn of(seen: &message::Seen) -> Self {
        Shown {
            after: seen.after,
            to: seen.position,
        }
    }

    /// Whether it shows a position, if it was asked about that.
    pub(crate) fn has(self, position: Position) -> bool {
        self.after < position && position <= self.to
    }
}

/// The positions of one home that a parent has asked its children about.
///
/// Invariant: a child is awaited until it says that it shows the position, or holds no read lease in its segments.
#[derive(Debug, Default)]
pub(crate) struct Unseen(BTreeMap<Position, Awaited>);

impl Unseen {
    /// These children have to see a position.
    pub(crate) fn add(
        &mut self,
        now: Millis,
        position: Position,
        segments: Vec<SegmentId>,
        children: impl IntoIterator<Item = MemberId>,
    ) {
        let awaited = self.0.entry(position).or_insert(Awaited {
            segments,
            children: BTreeSet::new(),
            since: now,
        });
        awaited.children.extend(children);
    }

    /// A child shows what it was asked about, between some positions.
    pub(crate) fn seen(&mut self, child: MemberId, shown: Shown) {
        for (position, awaited) in self.0.range_mut(..=shown.to) {
            if shown.has(*position) {
                awaited.children.remove(&child);
            }
        }
    }

    /// What a child is asked once more, because it has come by a new edge.
    pub(crate) fn of(&self, child: MemberId) -> Vec<(Position, Vec<SegmentId>)> {
        let owed = self
            .0
            .iter()
            .filter(|(_, awaited)| awaited.children.contains(&child));
        owed.map(|(position, awaited)| (*position, awaited.segments.clone()))
            .collect()
    }

    /// Awaits nobody any more whose leases are over. Returns these children, and since when each was awaited.
    pub(crate) fn end_over(
        &mut self,
        now: Millis,
        leases: &ReadLeases,
    ) -> BTreeMap<MemberId, Millis> {
        let mut over = BTreeMap::new();
        // The first position is the one that was awaited longest.
        for awaited in self.0.values_mut() {
            let segments = &awaited.segments;
            let is_over = |child: &MemberId| leases.until(*child, segments, now).is_none();
            for child in awaited.children.extract_if(.., |child| is_over(child)) {
                over.entry(child).or_insert(awaited.since);
            }
        }
        over
    }

    /// Who is awaited at a position.
    pub(crate) fn at(&self, position: Position) -> Option<&Awaited> {
        self.0.get(&position)
    }

    /// A position is of no concern any more.
    pub(crate) fn remove(&mut self, position: Position) {
        self.0.remove(&position);
    }

    /// Takes out what everybody has seen. What is still awaited lies between.
    pub(crate) fn take_seen(&mut self) -> Vec<Shown> {
        let (mut seen, mut after, mut last) = (Vec::new(), Position(0), None);
        for (position, awaited) in &self.0 {
            if awaited.children.is_empty() {
                last = Some(*position);
                continue;
            }
            seen.extend(last.take().map(|to| Shown { after, to }));
            after = *position;
        }
        seen.extend(last.map(|to| Shown { after, to }));
        self.0.retain(|_, awaited| !awaited.children.is_empty());
        seen
    }

    /// Since when a child owes an answer about one of these segments.
    pub(crate) fn owes_since(&self, child: MemberId, segments: &[SegmentId]) -> Option<Millis> {
        let owed = self.0.values().filter(|awaited| {
            let is_here = awaited.segments.iter().any(|of| segments.contains(of));
            is_here && awaited.children.contains(&child)
        });
        owed.map(|awaited| awaited.since).min()
    }

    /// When the next lease ends that an answer waits for.
    pub(crate) fn deadline(&self, leases: &ReadLeases) -> Option<Millis> {
        let ends = self.0.values().flat_map(|awaited| {
            let end = |child| leases.until(child, &awaited.segments, Millis(0));
            awaited.children.iter().copied().filter_map(end)
        });
        ends.min()
    }

    /// How many positions are awaited.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const ONE: SegmentId = SegmentId(1);
    const CHILD: MemberId = MemberId(1);
    const OTHER: MemberId = MemberId(2);

    fn unseen() -> Unseen {
        let mut unseen = Unseen::default();
        unseen.add(Millis(0), Position(3), vec![ONE], [CHILD, OTHER]);
        unseen.add(Millis(5), Position(4), vec![ONE], [CHILD]);
        unseen
    }

    fn up_to(position: u64) -> Shown {
        Shown {
            after: Position(0),
            to: Position(position),
        }
    }

    #[test]
    fn a_position_is_seen_when_each_child_has_said_so_of_it_or_a_later_one() {
        let mut unseen = unseen();
        unseen.seen(OTHER, up_to(2));
        assert!(unseen.take_seen().is_empty(), "nobody has seen 3");
        unseen.seen(CHILD, up_to(4));
        let only_4 = Shown {
            after: Position(3),
            to: Position(4),
        };
        assert_eq!(unseen.take_seen(), [only_4], "the other has not seen 3");
        assert_eq!(unseen.of(OTHER).len(), 1);
        unseen.seen(OTHER, only_4);
        unseen.seen(
            OTHER,
            Shown {
                after: Position(u64::MAX),
                to: Position(9),
            },
        );
        assert!(
            unseen.take_seen().is_empty(),
            "it was not asked about 4, and says nothing of 3"
        );
        unseen.seen(OTHER, up_to(9));
        assert_eq!(unseen.take_seen(), [up_to(3)]);
        assert!(unseen.take_seen().is_empty() && unseen.len() == 0);
    }

    #[test]
    fn nobody_is_awaited_whose_lease_is_over() {
        let (mut unseen, mut leases) = (unseen(), ReadLeases::default());
        for (child, until) in [(CHILD, 100), (OTHER, 50)] {
            leases.grant(child, (&[ONE], 0), (Millis(0), Millis(until)));
        }
        assert_eq!(unseen.deadline(&leases), Some(Millis(50)));
        assert_eq!(unseen.owes_since(CHILD, &[ONE]), Some(Millis(0)));
        let over = unseen.end_over(Millis(50), &leases);
        assert_eq!(over, [(OTHER, Millis(0))].into());
        unseen.seen(CHILD, up_to(3));
        assert_eq!(unseen.take_seen(), [up_to(3)]);
        assert_eq!(unseen.owes_since(CHILD, &[ONE]), Some(Millis(5)));
        assert_eq!(unseen.owes_since(CHILD, &[]), None);
        let over = unseen.end_over(Millis(100), &leases);
        assert_eq!(over, [(CHILD, Millis(5))].into());
        assert_eq!(unseen.take_seen(), [up_to(4)]);
    }
}
