//! Samples of a time, and what is told of them.

use std::time::{Duration, Instant};

/// Times of one thing, sorted when asked.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Times something so many times.
    pub fn of(count: usize, mut what: impl FnMut()) -> Self {
        let mut samples = Self::default();
        for _ in 0..count {
            let start = Instant::now();
            what();
            samples.push(start.elapsed());
        }
        samples
    }

    /// Adds a time.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The time below which a share of the samples lies, in microseconds.
    pub fn micros(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        let time = self.0.get(index).copied().unwrap_or_default();
        time.as_secs_f64() * 1e6
    }
}
