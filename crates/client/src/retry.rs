//! Pauses between the attempts of a transaction.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Pauses that double up to a limit, each cut by up to its whole at random: so that those who conflicted do not meet again.
#[derive(Debug)]
pub(crate) struct Pauses {
    random: RandomState,
    taken: u32,
    longest: Duration,
}

impl Pauses {
    pub(crate) fn new(longest: Duration) -> Self {
        Pauses {
            random: RandomState::new(),
            taken: 0,
            longest,
        }
    }

    /// Pauses taken so far.
    pub(crate) fn taken(&self) -> u32 {
        self.taken
    }

    /// The next one, at least as long as somebody asked for.
    pub(crate) fn next(&mut self, asked: Duration) -> Duration {
        self.taken = self.taken.saturating_add(1);
        let step = FIRST.saturating_mul(1 << (self.taken - 1).min(DOUBLINGS_MAX));
        let part = (self.random.hash_one(self.taken) >> 32) as f64 / f64::from(u32::MAX);
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
        assert!(pauses.next(Duration::ZERO) <= FIRST);
        let later: Vec<Duration> = (0..100).map(|_| pauses.next(Duration::ZERO)).collect();
        assert!(later.iter().all(|pause| *pause <= longest));
        assert!(later.iter().any(|pause| *pause > longest / 4));
        assert!(pauses.next(longest) >= longest);
        assert_eq!(pauses.taken(), 102);
    }
}
