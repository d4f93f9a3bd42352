//! In whose name the leases to write were asked for (rules C4 and R5).

use crate::edge::shares::Shares;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{LEASES_PER_CHILD_MAX, VOID_LEASES_TOLD_MAX};
use thorp_model::{MemberId, Millis, NameId, Principal, SegmentId};

/// A lease that was granted for one member.
#[derive(Clone, Copy, Debug)]
struct Origin {
    until: Millis,
    /// Its member has lost the right: nobody waits for it.
    is_void: bool,
}

/// What a change of rights does to the lease of a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Nobody below it may write there: it is over.
    Over,
    /// Some may, and the child is not to wait for the others.
    Less,
    /// Somebody may again, and believes in it until then.
    Back(Millis),
}

/// For which members a home has granted each lease of its children. A site asks for many.
///
/// Invariant: a child holds a lease in a segment only as long as it has an origin there that is not void.
#[derive(Debug, Default)]
pub(super) struct LeaseOrigins {
    of: BTreeMap<(SegmentId, MemberId), BTreeMap<Principal, Origin>>,
    /// How many each name has.
    of_names: Shares<NameId>,
}

impl LeaseOrigins {
    /// A child asks for a lease in these segments, in the name of a member. False: its name has as many as it may, and nothing is noted.
    pub(super) fn note(
        &mut self,
        child: MemberId,
        segments: &[SegmentId],
        (who, until): (Principal, Millis),
    ) -> bool {
        let new = segments.iter().filter(|segment| {
            let origins = self.of.get(&(**segment, child));
            origins.is_none_or(|origins| !origins.contains_key(&who))
        });
        let (new, most) = (new.count() as u64, 2 * LEASES_PER_CHILD_MAX as u64);
        if self.of_names.of(who.name) + new > most {
            return false;
        }
        for segment in segments {
            let origins = self.of.entry((*segment, child)).or_default();
            let is_void = false;
            origins.insert(who, Origin { until, is_void });
        }
        self.of_names.take(Some(who.name), new);
        true
    }

    /// A member gives its leases back.
    pub(super) fn end(&mut self, child: MemberId, segments: &[SegmentId]) {
        for segment in segments {
            let origins = self.of.remove(&(*segment, child)).into_iter().flatten();
            for (who, _) in origins {
                self.of_names.give_back(Some(who.name), 1);
            }
        }
    }

    /// Others may write in a segment from now on. Returns what that does to the leases of children there.
    pub(super) fn rights_changed(
        &mut self,
        segment: SegmentId,
        may: impl Fn(Principal) -> bool,
    ) -> Vec<(MemberId, Turn)> {
        let (first, last) = (MemberId(u128::MIN), MemberId(u128::MAX));
        let here = self.of.range_mut((segment, first)..=(segment, last));
        let turns = here.filter_map(|((_, child), origins)| Some((*child, turn(origins, &may)?)));
        turns.collect()
    }

    /// The names of which all leases in these segments are void.
    pub(super) fn void(&self, segments: &[SegmentId]) -> Vec<(SegmentId, NameId)> {
        let void = segments.iter().flat_map(|segment| {
            let void = self.names(*segment, true).into_iter();
            let valid = self.names(*segment, false);
            let void = void.filter(move |name| !valid.contains(name));
            void.map(|name| (*segment, name))
        });
        void.take(VOID_LEASES_TOLD_MAX).collect()
    }

    fn names(&self, segment: SegmentId, is_void: bool) -> BTreeSet<NameId> {
        let (first, last) = (MemberId(u128::MIN), MemberId(u128::MAX));
        let here = self.of.range((segment, first)..=(segment, last));
        let origins = here.flat_map(|(_, origins)| origins);
        let of_kind = origins.filter(|(_, origin)| origin.is_void == is_void);
        of_kind.map(|(who, _)| who.name).collect()
    }

    /// Forgets those that have ended.
    pub(super) fn sweep(&mut self, now: Millis) {
        let of_names = &mut self.of_names;
        self.of.retain(|_, origins| {
            for (who, _) in origins.extract_if(.., |_, origin| origin.until <= now) {
                of_names.give_back(Some(who.name), 1);
            }
            !origins.is_empty()
        });
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.of.values().map(BTreeMap::len).sum()
    }
}

/// Judges the origins of one child in one segment anew. None: nothing changes.
fn turn(
    origins: &mut BTreeMap<Principal, Origin>,
    may: impl Fn(Principal) -> bool,
) -> Option<Turn> {
    let (mut is_less, mut back) = (false, None);
    for (who, origin) in origins.iter_mut() {
        let was_void = core::mem::replace(&mut origin.is_void, !may(*who));
        is_less |= origin.is_void && !was_void;
        if was_void && !origin.is_void {
            back = Some(origin.until.max(back.unwrap_or_default()));
        }
    }
    let is_left = origins.values().any(|origin| !origin.is_void);
    match (back, is_less, is_left) {
        (Some(until), _, _) => Some(Turn::Back(until)),
        (None, true, true) => Some(Turn::Less),
        (None, true, false) => Some(Turn::Over),
        (None, false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: MemberId = MemberId(9);
    const ONE: SegmentId = SegmentId(1);

    fn who(name: u64) -> Principal {
        Principal {
            name: NameId(name),
            is_operator: false,
        }
    }

    #[test]
    fn a_site_loses_its_lease_when_nobody_below_it_may_write() {
        let mut origins = LeaseOrigins::default();
        assert!(origins.note(SITE, &[ONE], (who(1), Millis(100))));
        assert!(origins.note(SITE, &[ONE], (who(2), Millis(90))));
        let first = origins.rights_changed(ONE, |of| of != who(1));
        assert_eq!(first, [(SITE, Turn::Less)]);
        assert_eq!(origins.void(&[ONE]), [(ONE, who(1).name)]);
        assert_eq!(origins.rights_changed(ONE, |of| of != who(1)), []);
        assert_eq!(origins.rights_changed(ONE, |_| false), [(SITE, Turn::Over)]);
        let back = origins.rights_changed(ONE, |of| of == who(2));
        assert_eq!(back, [(SITE, Turn::Back(Millis(90)))]);
        assert_eq!(origins.rights_changed(ONE, |_| false), [(SITE, Turn::Over)]);
        assert!(
            origins.note(SITE, &[ONE], (who(1), Millis(100))),
            "given back"
        );
        assert_eq!(origins.void(&[ONE]), [(ONE, who(2).name)]);
        origins.sweep(Millis(100));
        assert_eq!((origins.len(), origins.of_names.taken()), (0, 0));
    }

    /// An attack: a member starts again and again, takes leases and gives them back.
    #[test]
    fn a_name_has_so_many_origins() {
        let mut origins = LeaseOrigins::default();
        let start = |random| MemberId::new(NameId(1), random);
        let many: Vec<_> = (0..2 * LEASES_PER_CHILD_MAX as u32)
            .map(SegmentId)
            .collect();
        assert!(origins.note(start(1), &many, (who(1), Millis(100))));
        assert!(!origins.note(start(2), &many[..1], (who(1), Millis(100))));
        assert!(
            origins.note(start(1), &many[..1], (who(1), Millis(200))),
            "longer"
        );
        assert!(origins.note(SITE, &many[..1], (who(2), Millis(100))));
        origins.end(start(1), &many);
        assert!(origins.note(start(2), &many[..1], (who(1), Millis(100))));
        assert_eq!(origins.len(), 2);
    }
}
