//! Clocks that are wrong, for people: nothing that a home does depends on it (rule 12).

use thorp_model::limits::{CLOCK_DRIFT_MS_MAX, DRIFT_SHOWN_MS};
use thorp_model::{HomeId, Millis, NameId, Now, Stamp};

/// A stamp that lies further ahead of a home's time than [`CLOCK_DRIFT_MS_MAX`]. One of the two clocks is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockDrift {
    /// Whose stamp it is; it may be this home's own, if its clock was ahead.
    pub home: HomeId,
    /// The time in the stamp.
    pub stamp: Millis,
    /// This home's time at that moment.
    pub clock: Millis,
}

/// Remembers the last stamp that came from far ahead, for [`DRIFT_SHOWN_MS`].
///
/// Members bring stamps of homes, and one of them may make one up. So two names have to bring stamps of one home from far
/// ahead within that time. Stamps from far behind are no sign: whoever has been idle brings old ones.
#[derive(Debug, Default)]
pub(super) struct DriftWatch {
    last: Option<(Millis, ClockDrift)>,
    /// Of which home a name has brought one.
    brought: Option<(Millis, HomeId, NameId)>,
}

impl DriftWatch {
    /// A name has brought a stamp.
    pub(super) fn see(&mut self, now: Now, stamp: Stamp, by: NameId) {
        let Some(drift) = ClockDrift::of(now, stamp) else {
            return;
        };
        let other = self.brought.replace((now.mono, drift.home, by));
        let is_second = other.is_some_and(|(at, home, name)| {
            home == drift.home && name != by && now.mono.since(at) < DRIFT_SHOWN_MS
        });
        let is_shown = self.last.is_some_and(|(_, shown)| shown.home == drift.home);
        if is_second || (is_shown && self.report(now, Stamp::default()).is_some()) {
            self.last = Some((now.mono, drift));
        }
    }

    /// What people should hear of; `own` is the last stamp of this home.
    pub(super) fn report(&self, now: Now, own: Stamp) -> Option<ClockDrift> {
        let is_fresh = |seen: &Millis| now.mono.since(*seen) < DRIFT_SHOWN_MS;
        let seen = self.last.filter(|(seen, _)| is_fresh(seen));
        seen.map(|(_, drift)| drift)
            .or_else(|| ClockDrift::of(now, own))
    }
}

impl ClockDrift {
    fn of(now: Now, stamp: Stamp) -> Option<Self> {
        let most = Stamp::clock_of(now.wall.plus(CLOCK_DRIFT_MS_MAX));
        (stamp.clock > most).then_some(Self {
            home: stamp.home,
            stamp: Millis(stamp.clock >> 16),
            clock: now.wall,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: NameId = NameId(1);
    const BEN: NameId = NameId(2);

    fn at(mono: u64) -> Now {
        Now {
            mono: Millis(mono),
            wall: Millis(1_000_000 + mono),
        }
    }

    fn stamp(home: u32, wall: u64) -> Stamp {
        Stamp {
            clock: Stamp::clock_of(Millis(wall)),
            home: HomeId(home),
        }
    }

    #[test]
    fn a_stamp_from_far_ahead_is_shown_for_a_while_with_both_times() {
        let mut watch = DriftWatch::default();
        let own = stamp(1, 1_000_000);
        watch.see(at(0), stamp(2, 1_000_000 + CLOCK_DRIFT_MS_MAX), ANNA);
        watch.see(at(0), stamp(2, 5), BEN);
        assert_eq!(watch.report(at(0), own), None);
        let far = 1_000_000 + 90_000_000;
        watch.see(at(9), stamp(2, far), ANNA);
        watch.see(at(9), stamp(3, far), BEN);
        assert_eq!(watch.report(at(9), own), None, "one name for each home");
        watch.see(at(10), stamp(2, far), ANNA);
        watch.see(at(10), stamp(2, far), ANNA);
        assert_eq!(watch.report(at(10), own), None, "one name only");
        watch.see(at(10), stamp(2, far), BEN);
        let drift = ClockDrift {
            home: HomeId(2),
            stamp: Millis(far),
            clock: Millis(1_000_010),
        };
        assert_eq!(watch.report(at(20), own), Some(drift));
        assert_eq!(watch.report(at(10 + DRIFT_SHOWN_MS), own), None);
    }

    #[test]
    fn a_home_whose_own_clock_was_ahead_shows_it_until_its_time_has_caught_up() {
        let watch = DriftWatch::default();
        let own = stamp(1, 1_000_000 + 2 * CLOCK_DRIFT_MS_MAX);
        let shown = watch.report(at(0), own);
        assert_eq!(shown.map(|drift| drift.home), Some(HomeId(1)));
        assert_eq!(watch.report(at(CLOCK_DRIFT_MS_MAX), own), None);
    }
}
