//! How long operations took, in little memory, however many they are.

use std::time::Duration;

/// Counts durations by their nanoseconds: each power of two is cut into 64 parts, so a part is exact to 1.6 %.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    parts: Vec<u64>,
    count: u64,
    sum: Duration,
    max: Duration,
}

impl Latencies {
    pub(super) fn add(&mut self, took: Duration) {
        let at = part_of(nanos(took));
        if self.parts.len() <= at {
            self.parts.resize(at + 1, 0);
        }
        self.parts[at] += 1;
        self.count += 1;
        self.sum += took;
        self.max = self.max.max(took);
    }

    /// Those of another member, too.
    pub(super) fn add_all(&mut self, other: &Latencies) {
        if self.parts.len() < other.parts.len() {
            self.parts.resize(other.parts.len(), 0);
        }
        for (own, other) in self.parts.iter_mut().zip(&other.parts) {
            *own += other;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn sum(&self) -> Duration {
        self.sum
    }

    /// None without any.
    pub(super) fn max(&self) -> Option<Duration> {
        (self.count > 0).then_some(self.max)
    }

    /// So many in a hundred took no longer. None without any.
    pub(super) fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (at, count) in self.parts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(Duration::from_nanos(last_of(at)).min(self.max));
            }
        }
        None
    }
}

fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

/// Below 64, a part each. Above, the highest bit and the six bits below it.
fn part_of(nanos: u64) -> usize {
    match nanos.checked_ilog2() {
        Some(bit) if bit >= BITS => {
            let below = (nanos >> (bit - BITS)) & (PARTS - 1);
            (u64::from(bit - BITS + 1) * PARTS + below) as usize
        }
        _ => nanos as usize,
    }
}

/// The longest time of a part.
fn last_of(at: usize) -> u64 {
    let (power, below) = (at as u64 / PARTS, at as u64 % PARTS);
    match power {
        0 => below,
        power => {
            let first = u128::from(PARTS + below) << (power - 1);
            let next = first + (1 << (power - 1));
            u64::try_from(next - 1).unwrap_or(u64::MAX)
        }
    }
}

const BITS: u32 = 6;
const PARTS: u64 = 1 << BITS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_are_narrow() {
        let mut before = None;
        for nanos in (0..5_000).chain([u64::MAX / 3, u64::MAX]) {
            let at = part_of(nanos);
            assert!(before.is_none_or(|before| at >= before));
            before = Some(at);
            let last = last_of(at);
            assert!(
                last >= nanos && last - nanos <= nanos / 64,
                "{nanos}: {last}"
            );
            assert_eq!(part_of(last), at);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_durations() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.percentile(50), latencies.max()), (None, None));
        let mut other = latencies.clone();
        for ms in 1..=100 {
            let to = if ms % 2 == 0 {
                &mut latencies
            } else {
                &mut other
            };
            to.add(Duration::from_millis(ms));
        }
        latencies.add_all(&other);
        assert_eq!(latencies.count(), 100);
        assert_eq!(latencies.sum(), Duration::from_millis(5050));
        assert_eq!(latencies.max(), Some(Duration::from_millis(100)));
        for (percent, ms) in [(1, 1.), (50, 50.), (95, 95.), (99, 99.), (100, 100.)] {
            let found = latencies.percentile(percent).unwrap().as_secs_f64() * 1000.;
            assert!((ms..=ms * 1.02).contains(&found), "{percent}: {found}");
        }
    }
}
