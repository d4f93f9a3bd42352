//! A home's hybrid logical clock, and what it may promise (rules 5 and 12).

use crate::home::drift::{ClockDrift, DriftWatch};
use thorp_model::limits::{CLOCK_DRIFT_MS_MAX, CLOCK_RESERVE_MS, DECIDED_AHEAD_MS_MAX};
use thorp_model::records::CLOCK_KEY;
use thorp_model::{HomeId, Mark, Millis, NameId, Now, Op, Stamp, Table, records};

/// Gives stamps that rise, and reserves what it promises before it does.
#[derive(Debug)]
pub(super) struct Clock {
    home: HomeId,
    last: u64,
    /// Reserved in stable storage: watermarks stay below it.
    ceiling: u64,
    /// Reserved by the last such batch that is not durable yet.
    reserving: Option<(Mark, u64)>,
    watch: DriftWatch,
}

impl Clock {
    /// Starts above everything that an earlier life may have promised.
    pub(super) fn new(home: HomeId, ceiling: u64) -> Self {
        Clock {
            home,
            last: ceiling,
            ceiling,
            reserving: None,
            watch: DriftWatch::default(),
        }
    }

    /// The home whose stamps it gives.
    pub(super) fn home(&self) -> HomeId {
        self.home
    }

    /// What is reserved in stable storage: no watermark lies above it.
    pub(super) fn ceiling(&self) -> u64 {
        self.ceiling
    }

    /// The next stamp, above all that were given or promised.
    pub(super) fn stamp(&mut self, wall: Millis) -> Stamp {
        self.last = self.last.saturating_add(1).max(Stamp::clock_of(wall));
        Stamp {
            clock: self.last,
            home: self.home,
        }
    }

    /// Another home's stamp is about to stand in this home's log: what is given
    /// from now on lies above it (rule 10). So does what is promised with it: of two stamps of
    /// one clock the one of the higher home is the higher one.
    pub(super) fn observe(&mut self, stamp: Stamp) {
        self.last = self.last.max(self.past(stamp));
    }

    fn past(&self, stamp: Stamp) -> u64 {
        let higher = u64::from(stamp.home > self.home);
        stamp.clock.saturating_add(higher)
    }

    /// Whether more has to be reserved, seen from this time.
    pub(super) fn wants_reserve(&self, wall: Millis) -> bool {
        let ahead = self.last.max(Stamp::clock_of(wall));
        ahead.saturating_add(Stamp::clock_of(Millis(CLOCK_RESERVE_MS / 2))) > self.reserved()
    }

    /// Reserves; the operation goes into the batch with this mark.
    pub(super) fn reserve(&mut self, wall: Millis, mark: Mark) -> Op {
        let ahead = self.last.max(Stamp::clock_of(wall));
        let ceiling = ahead.saturating_add(Stamp::clock_of(Millis(CLOCK_RESERVE_MS)));
        self.reserving = Some((mark, ceiling));
        records::put(Table::Meta, CLOCK_KEY.to_vec(), &ceiling)
    }

    /// A batch became durable.
    pub(super) fn durable(&mut self, mark: Mark) {
        if let Some((_, ceiling)) = self.reserving.take_if(|(m, _)| *m <= mark) {
            self.ceiling = self.ceiling.max(ceiling);
        }
    }

    /// Later stamps lie above what time it is, as far as that may be promised.
    pub(super) fn pass(&mut self, wall: Millis) {
        let now = Stamp::clock_of(wall).min(self.ceiling.saturating_sub(1));
        self.last = self.last.max(now);
    }

    /// A name has brought a stamp of another home.
    pub(super) fn see(&mut self, now: Now, stamp: Stamp, by: NameId) {
        self.watch.see(now, stamp, by);
    }

    /// Whether one of the clocks is wrong, for people.
    pub(super) fn drift(&self, now: Now) -> Option<ClockDrift> {
        let own = Stamp {
            clock: self.last,
            home: self.home,
        };
        self.watch.report(now, own)
    }

    /// A reader wants to stand at a stamp: later ones lie above it, unless that is too far
    /// ahead of the time (trap 15).
    pub(super) fn move_up(&mut self, wall: Millis, to: Stamp) {
        let most = Stamp::clock_of(wall.plus(CLOCK_DRIFT_MS_MAX));
        let wanted = self.past(to);
        if wanted <= most {
            self.last = self.last.max(wanted);
        }
    }

    /// Whether a member is believed that other homes have given a stamp: it does not move this clock,
    /// or not further than the clocks of homes are wrong (rule 10, trap 15).
    pub(super) fn may_be_told(&self, wall: Millis, stamp: Stamp) -> bool {
        let most = Stamp::clock_of(wall.plus(DECIDED_AHEAD_MS_MAX));
        self.past(stamp) <= self.last.max(most)
    }

    /// Whether all that is stamped from now on lies above a stamp, in this life of the home.
    pub(super) fn is_past(&self, stamp: Stamp) -> bool {
        self.last >= stamp.clock
    }

    /// Whether that is so in the next life, too, once what is appended is durable (rule 12).
    pub(super) fn keeps(&self, stamp: Stamp) -> bool {
        stamp.clock <= self.reserved()
    }

    fn reserved(&self) -> u64 {
        self.reserving.map_or(self.ceiling, |(_, ceiling)| ceiling)
    }

    /// A watermark: below `open`, the lowest stamp of a commit that was accepted or
    /// voted for and not told, and below the reserved ceiling. Later stamps lie above it.
    pub(super) fn watermark(&self, open: Option<Stamp>) -> Stamp {
        let below_open = open.map_or(u64::MAX, |stamp| stamp.clock.saturating_sub(1));
        Stamp {
            clock: self
                .last
                .min(self.ceiling.saturating_sub(1))
                .min(below_open),
            home: self.home,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_clock_keeps_its_promises() {
        let mut clock = Clock::new(HomeId(1), 0);
        let wall = Millis(100_000);
        clock.pass(wall);
        assert_eq!(clock.watermark(None).clock, 0, "nothing is reserved yet");
        clock.reserve(wall, Mark(1));
        clock.durable(Mark(1));
        clock.pass(wall);
        let promised = clock.watermark(None);
        assert_eq!(promised.clock, Stamp::clock_of(wall));
        let mut restarted = Clock::new(HomeId(1), clock.ceiling);
        assert!(restarted.stamp(Millis(80_000)) > promised);
    }

    #[test]
    fn a_watermark_stays_below_what_is_open() {
        let mut clock = Clock::new(HomeId(1), 0);
        let wall = Millis(100_000);
        clock.reserve(wall, Mark(1));
        clock.durable(Mark(1));
        let open = clock.stamp(wall);
        clock.pass(wall.plus(10));
        assert!(clock.watermark(Some(open)) < open);
        let promised = clock.watermark(None);
        assert!(clock.stamp(wall) > promised);
    }

    #[test]
    fn what_another_home_stamped_can_be_promised() {
        let mut clock = Clock::new(HomeId(1), 0);
        let wall = Millis(100_000);
        clock.reserve(wall, Mark(1));
        clock.durable(Mark(1));
        let common = Stamp {
            clock: clock.stamp(wall).clock,
            home: HomeId(2),
        };
        clock.observe(common);
        let promised = clock.watermark(None);
        assert!(promised > common);
        assert!(clock.stamp(wall) > promised);
    }

    #[test]
    fn a_clock_is_moved_up_within_a_drift() {
        let mut clock = Clock::new(HomeId(1), 0);
        let wall = Millis(100_000);
        clock.reserve(wall.plus(CLOCK_DRIFT_MS_MAX), Mark(1));
        clock.durable(Mark(1));
        let of_other = |ms| Stamp {
            clock: Stamp::clock_of(wall.plus(ms)),
            home: HomeId(2),
        };
        clock.move_up(wall, of_other(5_000));
        assert!(clock.watermark(None) > of_other(5_000));
        clock.move_up(wall, of_other(CLOCK_DRIFT_MS_MAX));
        assert!(clock.watermark(None) < of_other(5_001), "that is too far");
    }

    #[test]
    fn what_lies_above_the_ceiling_is_not_kept() {
        let mut clock = Clock::new(HomeId(1), 0);
        let wall = Millis(100_000);
        clock.reserve(wall, Mark(1));
        clock.durable(Mark(1));
        let of_other = Stamp {
            clock: Stamp::clock_of(wall.plus(CLOCK_RESERVE_MS + 1)),
            home: HomeId(2),
        };
        clock.move_up(wall, of_other);
        assert!(clock.is_past(of_other) && !clock.keeps(of_other));
        let mut restarted = Clock::new(HomeId(1), clock.ceiling);
        assert!(restarted.stamp(wall) < of_other, "it is forgotten");
        assert!(clock.wants_reserve(wall));
        clock.reserve(wall, Mark(2));
        assert!(clock.keeps(of_other), "once that is durable");
        clock.durable(Mark(2));
        let mut restarted = Clock::new(HomeId(1), clock.ceiling);
        assert!(restarted.stamp(wall) > of_other);
    }
}
