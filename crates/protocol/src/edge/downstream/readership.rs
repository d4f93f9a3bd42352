//! Who may read and carry which segment, as of where the streams to the children stand (rule R4).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{Audience, NameId, Principal, SegmentId};

/// The audience of each segment that not every member may read, or not every site may carry.
///
/// Invariant: no segment in it has [`Audience::EVERYBODY`]. A segment that is not in it is for everybody, or is not
/// there.
#[derive(Debug, Default)]
pub(super) struct Readership(BTreeMap<SegmentId, Audience>);

impl Readership {
    /// These segments are restricted, and no others are.
    pub(super) fn of(readers: impl IntoIterator<Item = (SegmentId, Audience)>) -> Self {
        let mut all = Readership::default();
        for (segment, audience) in readers {
            all.set(segment, audience);
        }
        all
    }

    /// A segment has this audience from now on. False if it had it before.
    pub(super) fn set(&mut self, segment: SegmentId, audience: Audience) -> bool {
        let old = match audience == Audience::EVERYBODY {
            true => self.0.remove(&segment),
            false => self.0.insert(segment, audience.clone()),
        };
        old.unwrap_or(Audience::EVERYBODY) != audience
    }

    /// Whether somebody may read a segment, if it is there.
    pub(super) fn includes(&self, segment: SegmentId, who: Principal) -> bool {
        let audience = self.0.get(&segment);
        audience.is_none_or(|audience| audience.may_read(who))
    }

    /// Whether a site may carry a segment, if it is there.
    pub(super) fn is_carried_by(
        &self,
        segment: SegmentId,
        site: NameId,
        site_is_carried: bool,
    ) -> bool {
        let everybody = Audience::EVERYBODY;
        let audience = self.0.get(&segment).unwrap_or(&everybody);
        audience.may_carry(site, site_is_carried)
    }

    /// All of it, for a site that begins.
    pub(super) fn all(&self) -> Vec<(SegmentId, Audience)> {
        let all = self.0.iter();
        all.map(|(segment, audience)| (*segment, audience.clone()))
            .collect()
    }

    /// How many segments are restricted.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Carriers, Readers};

    const SEGMENT: SegmentId = SegmentId(3);

    fn for_names(names: Vec<NameId>) -> Audience {
        Audience {
            readers: Readers::Names(names),
            carriers: Carriers::ALL_SITES,
        }
    }

    fn who(name: u64) -> Principal {
        Principal {
            name: NameId(name),
            is_operator: false,
        }
    }

    #[test]
    fn only_restricted_segments_are_in_it() {
        let mut all = Readership::default();
        assert!(all.includes(SEGMENT, who(1)));
        assert!(!all.set(SEGMENT, Audience::EVERYBODY), "as before");
        let names = for_names(Vec::from([NameId(1)]));
        assert!(all.set(SEGMENT, names.clone()));
        assert!(!all.set(SEGMENT, names.clone()));
        assert!(all.includes(SEGMENT, who(1)) && !all.includes(SEGMENT, who(2)));
        assert_eq!(all.all(), [(SEGMENT, names)]);
        assert!(all.set(SEGMENT, Audience::EVERYBODY));
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn a_segment_that_every_member_reads_may_be_closed_to_a_site() {
        let carriers = Carriers {
            sites: false,
            names: Vec::from([NameId(7)]),
        };
        let mut all = Readership::default();
        assert!(all.is_carried_by(SEGMENT, NameId(8), false));
        let audience = Audience {
            carriers,
            ..Audience::EVERYBODY
        };
        assert!(all.set(SEGMENT, audience));
        assert_eq!(all.len(), 1);
        assert!(all.includes(SEGMENT, who(1)));
        assert!(all.is_carried_by(SEGMENT, NameId(7), false));
        assert!(!all.is_carried_by(SEGMENT, NameId(8), false));
    }

    #[test]
    fn an_operator_may_read_what_nobody_may() {
        let all = Readership::of([(SEGMENT, for_names(Vec::new()))]);
        let operator = Principal {
            is_operator: true,
            ..who(1)
        };
        assert!(all.includes(SEGMENT, operator) && !all.includes(SEGMENT, who(1)));
    }
}
