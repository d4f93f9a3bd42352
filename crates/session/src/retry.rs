//! Pauses between the attempts of a transaction.

use std::time::Duration;

/// Pauses that double up to a limit, each cut by up to its whole at random: so that transactions that conflicted do not
/// meet again. Its caller brings the random numbers.
#[derive(Debug)]
pub struct Pauses {
    taken: u32,
    longest: Duration,
}

impl Pauses {
    /// Pauses of which none is longer than this, beyond what is asked for.
    pub fn new(longest: Duration) -> Self {
        Pauses { taken: 0, longest }
    }

    /// Pauses taken so far.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// The next one, at least as long as `asked`; `random` is any number.
    pub fn next(&mut self, asked: Duration, random: u32) -> Duration {
        self.taken = self.taken.saturating_add(1);
        let step = FIRST.saturating_mul(1 << (self.taken - 1).min(DOUBLINGS_MAX));
        let part = f64::from(random) / f64::from(u32::MAX);
        asked + step.min(self.longest).mul_f64(part)
    }
}

const FIRST: Duration = Duration::from_millis(1);
const DOUBLINGS_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_within_their_limit() {
        let longest = Duration::from_millis(100);
        let mut pauses = Pauses::new(longest);
        assert_eq!(pauses.next(Duration::ZERO, u32::MAX), FIRST);
        let later: Vec<Duration> = (0..100)
            .map(|_| pauses.next(Duration::ZERO, u32::MAX))
            .collect();
        assert_eq!(later[0], FIRST * 2);
        assert!(later.iter().all(|pause| *pause <= longest));
        assert_eq!(later.last(), Some(&longest));
        assert_eq!(pauses.next(longest, 0), longest);
        assert_eq!(pauses.taken(), 102);
    }
}
