//! A home's hybrid logical clock, and what it may promise (rules 5 and 12).

use super::records::{self, CLOCK_KEY};
use crate::ids::{HomeId, Millis, Stamp};
use crate::limits::CLOCK_RESERVE_MS;
use crate::storage::{Mark, Op, Table};

/// Gives stamps that rise, and reserves what it promises before it does.
#[derive(Debug)]
pub(super) struct Clock {
    home: HomeId,
    last: u64,
    /// Reserved in stable storage: watermarks stay below it.
    ceiling: u64,
    /// Reserved by the last such batch that is not durable yet.
    reserving: Option<(Mark, u64)>,
}

impl Clock {
    /// Starts above everything that an earlier life may have promised.
    pub(super) fn new(home: HomeId, ceiling: u64) -> Self {
        Clock {
            home,
            last: ceiling,
            ceiling,
            reserving: None,
        }
    }

    /// The next stamp, above all that were given or promised.
    pub(super) fn stamp(&mut self, wall: Millis) -> Stamp {
        self.last = (self.last + 1).max(Stamp::clock_of(wall));
        Stamp {
            clock: self.last,
            home: self.home,
        }
    }

    /// Another home's stamp is about to stand in this home's log: what is given
    /// from now on lies above it (rule 10).
    pub(super) fn observe(&mut self, stamp: Stamp) {
        self.last = self.last.max(stamp.clock);
    }

    /// Whether more has to be reserved, seen from this time.
    pub(super) fn wants_reserve(&self, wall: Millis) -> bool {
        let ahead = self.last.max(Stamp::clock_of(wall));
        let reserved = self.reserving.map_or(self.ceiling, |(_, ceiling)| ceiling);
        ahead + Stamp::clock_of(Millis(CLOCK_RESERVE_MS / 2)) > reserved
    }

    /// Reserves; the operation goes into the batch with this mark.
    pub(super) fn reserve(&mut self, wall: Millis, mark: Mark) -> Op {
        let ahead = self.last.max(Stamp::clock_of(wall));
        let ceiling = ahead + Stamp::clock_of(Millis(CLOCK_RESERVE_MS));
        self.reserving = Some((mark, ceiling));
        records::put(Table::Meta, CLOCK_KEY.to_vec(), &ceiling)
    }

    /// A batch became durable.
    pub(super) fn durable(&mut self, mark: Mark) {
        if let Some((_, ceiling)) = self.reserving.take_if(|(m, _)| *m <= mark) {
            self.ceiling = self.ceiling.max(ceiling);
        }
    }

    /// A watermark: below `open`, the stamp of the first commit that was accepted
    /// and not told, and below the reserved ceiling. Later stamps lie above it.
    pub(super) fn watermark(&mut self, wall: Millis, open: Option<Stamp>) -> Stamp {
        let now = Stamp::clock_of(wall).min(self.ceiling.saturating_sub(1));
        self.last = self.last.max(now);
        let below_open = open.map_or(u64::MAX, |stamp| stamp.clock - 1);
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
        assert_eq!(
            clock.watermark(wall, None).clock,
            0,
            "nothing is reserved yet"
        );
        clock.reserve(wall, Mark(1));
        clock.durable(Mark(1));
        let promised = clock.watermark(wall, None);
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
        assert!(clock.watermark(wall.plus(10), Some(open)) < open);
        let promised = clock.watermark(wall.plus(10), None);
        assert!(clock.stamp(wall) > promised);
    }
}
