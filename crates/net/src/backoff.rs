//! How long to wait before dialing again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::config::{BACKOFF_MAX, BACKOFF_MIN};

/// Waits that double from [`BACKOFF_MIN`] to [`BACKOFF_MAX`], each cut by up to half at random, so that the members of a
/// site do not all come back in the same instant.
#[derive(Debug)]
pub struct Backoff {
    jitter: Jitter,
    failures: u32,
}

/// Cuts waits at random.
#[derive(Debug)]
pub(crate) struct Jitter {
    /// Seeded by std at random for each process; all the randomness a jitter needs.
    hasher: RandomState,
    draws: u64,
}

impl Backoff {
    /// A fresh row of waits.
    pub fn new() -> Self {
        Self {
            jitter: Jitter::new(),
            failures: 0,
        }
    }

    /// Counts one more failure and says how long to wait: between half of the current step and all of it.
    pub fn failed(&mut self) -> Duration {
        let step = BACKOFF_MIN
            .saturating_mul(1 << self.failures.min(DOUBLINGS_MAX))
            .min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        self.jitter.cut(step)
    }

    /// A connection stood: the next failure begins from the shortest wait again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

impl Jitter {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            draws: 0,
        }
    }

    /// Between half of a wait and all of it.
    pub(crate) fn cut(&mut self, wait: Duration) -> Duration {
        let half = wait / 2;
        half + half.mul_f64(self.draw())
    }

    /// A number from 0 up to (not including) 1.
    fn draw(&mut self) -> f64 {
        self.draws = self.draws.wrapping_add(1);
        (self.hasher.hash_one(self.draws) >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// Enough to get from the shortest wait past the longest; keeps the shift in range.
const DOUBLINGS_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_begin_again() {
        let mut backoff = Backoff::new();
        let mut step = BACKOFF_MIN;
        for _ in 0..100 {
            let wait = backoff.failed();
            assert!(
                wait >= step / 2 && wait <= step,
                "{wait:?} for a step of {step:?}"
            );
            step = (step * 2).min(BACKOFF_MAX);
        }
        backoff.succeeded();
        assert!(backoff.failed() <= BACKOFF_MIN);
    }
}
