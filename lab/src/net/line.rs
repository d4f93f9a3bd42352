//! A line that carries one bit after another, with a queue in front of it that ends somewhere.

use crate::quantity::Rate;
use std::time::{Duration, Instant};

/// One direction of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// When the last bit of what it was given so far has left.
    free: Option<Instant>,
}

impl Line {
    /// When the last bit of these bytes has left; `None` if the queue is full and they are dropped. The queue is as long as a
    /// packet at its end may wait.
    pub(super) fn send(
        &mut self,
        now: Instant,
        bytes: u64,
        rate: Option<Rate>,
        queue: Duration,
    ) -> Option<Instant> {
        let Some(rate) = rate else { return Some(now) };
        let start = self.free.map_or(now, |free| free.max(now));
        if start - now > queue {
            return None;
        }
        let left = start + rate.time_for(bytes);
        self.free = Some(left);
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 1500 bytes takes a millisecond.
    fn rate() -> Option<Rate> {
        Some(Rate::bits_per_second(12_000_000))
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_after_another() {
        let (mut line, start) = (Line::default(), Instant::now());
        assert_eq!(line.send(start, 1500, rate(), ms(100)), Some(start + ms(1)));
        assert_eq!(line.send(start, 1500, rate(), ms(100)), Some(start + ms(2)));
        // Idle in between: nothing is saved up.
        assert_eq!(
            line.send(start + ms(50), 3000, rate(), ms(100)),
            Some(start + ms(52))
        );
    }

    #[test]
    fn a_full_queue_drops_what_comes_and_takes_again_when_it_has_drained() {
        let (mut line, start) = (Line::default(), Instant::now());
        let taken = (0..100)
            .filter(|_| line.send(start, 1500, rate(), ms(10)).is_some())
            .count();
        assert_eq!(taken, 11, "ten wait, one is on the wire");
        assert!(line.send(start + ms(5), 1500, rate(), ms(10)).is_some());
    }

    #[test]
    fn without_a_rate_there_is_no_wait() {
        let (mut line, start) = (Line::default(), Instant::now());
        assert_eq!(line.send(start, 1 << 40, None, ms(0)), Some(start));
        assert_eq!(line.send(start, 1, None, ms(0)), Some(start));
    }
}
