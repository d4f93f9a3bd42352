//! What a member knows of values that are not delivered yet, when a transaction has read or overwritten them (rule 14).

use crate::member::overlay::Overlay;
use crate::member::recent_changes::RecentChanges;
use crate::member::rests::Rests;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{CommitId, HomeId, Part, Position, SlotSet, Stamp, planted};

/// The overlay of one home, and what its last positions changed: together they know of each own commit whether the
/// program sees it, and where the stream delivered it.
#[derive(Debug)]
pub(super) struct Speculation<'a> {
    pub(super) overlay: &'a Overlay,
    pub(super) recent_changes: &'a RecentChanges,
}

impl Speculation<'_> {
    /// The commits whose values a part overwrites blindly.
    pub(super) fn written_over(&self, part: &Part, read: &[(HomeId, CommitId)]) -> Vec<CommitId> {
        self.overlay.written_over(part, read)
    }

    /// The stamp of a commit that the stream delivered within some evidence.
    pub(super) fn delivered_within(&self, id: CommitId, evidence: Position) -> Option<Stamp> {
        let (at, stamp) = self.recent_changes.delivered(id)?;
        (at <= evidence).then_some(stamp)
    }

    /// What a part rests on that names these commits.
    pub(super) fn rests(&self, part: &Part, names: Vec<CommitId>) -> Rests {
        let stands_on = self.stands_on(&names, part.evidence);
        Rests::of(part, names, stands_on)
    }

    /// The commits that these stand on, and these, as far as they are not delivered within the evidence.
    fn stands_on(&self, names: &[CommitId], evidence: Position) -> BTreeSet<CommitId> {
        let below = |id: &CommitId| {
            if planted::is(Bug::OnlyNamesSeen) {
                return None.into_iter().flatten();
            }
            let own = self.overlay.stands_on(*id);
            own.or_else(|| self.recent_changes.stood_on(*id))
                .into_iter()
                .flatten()
        };
        let all = names.iter().chain(names.iter().flat_map(below));
        let is_open = |id: &&CommitId| {
            let delivered = self.recent_changes.delivered(**id);
            delivered.map_or(self.overlay.has(**id), |(at, _)| at > evidence)
        };
        all.filter(is_open).copied().collect()
    }

    /// Whether all that it names is shown or delivered, and all else that it has read is as it was.
    pub(super) fn is_as_read(&self, part: &Part, rests: &Rests) -> bool {
        let is_there =
            |id: &CommitId| self.overlay.has(*id) || self.recent_changes.delivered(*id).is_some();
        let has_seen = |(page, slots): &(_, SlotSet)| {
            let mut own = self.overlay.of(*page);
            own.all(|(own, id)| !own.touches(slots) || rests.names().contains(&id))
        };
        rests.names().iter().all(is_there)
            && part.reads.iter().all(has_seen)
            && self.recent_changes.leaves(rests, part.evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{MemberId, PageChange, PageId, PageSlots, Slot, SlotChange};

    const PAGE: PageId = PageId::new(1, 1);

    fn id(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    fn part(evidence: u64) -> Part {
        Part {
            home: HomeId(1),
            evidence: Position(evidence),
            reads: vec![(PAGE, SlotSet::of(Slot(0)))],
            writes: Vec::new(),
            under: None,
        }
    }

    #[test]
    fn a_part_stands_on_what_its_names_stood_on_until_its_evidence_has_them() {
        let (overlay, mut recent_changes) = (Overlay::default(), RecentChanges::default());
        let slots = PageSlots::Some(vec![(Slot(0), SlotChange::Invalid)]);
        let change = [PageChange { page: PAGE, slots }];
        let (first, stamp) = (BTreeSet::new(), Stamp::default());
        recent_changes.begin(Position(0));
        recent_changes.note((Position(1), stamp), (Some(id(1)), first), &change);
        let stood_on = BTreeSet::from([id(1)]);
        recent_changes.note((Position(2), stamp), (Some(id(2)), stood_on), &change);
        let speculation = Speculation {
            overlay: &overlay,
            recent_changes: &recent_changes,
        };
        let stands_on = |evidence| {
            speculation
                .rests(&part(evidence), vec![id(2)])
                .stands_on()
                .len()
        };
        assert_eq!([0, 1, 2].map(stands_on), [2, 1, 0]);
        assert_eq!(speculation.delivered_within(id(2), Position(1)), None);
        assert_eq!(
            speculation.delivered_within(id(2), Position(2)),
            Some(stamp)
        );
        let rests = speculation.rests(&part(0), vec![id(2)]);
        assert!(speculation.is_as_read(&part(0), &rests));
        let rests = speculation.rests(&part(0), Vec::new());
        assert!(
            !speculation.is_as_read(&part(0), &rests),
            "another commit changed it"
        );
    }
}
