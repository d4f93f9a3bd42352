//! What has happened on the network, and how punctual it was.

use serde::Serialize;
use std::time::Duration;

/// How late packets were handed over, later than the link asked for. The machine's doing, not the link's.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    /// Counts by size: four classes to each doubling.
    classes: [u64; CLASSES],
    count: u64,
    sum: Duration,
    max: Duration,
}

const CLASSES: usize = 4 * 36;

impl Default for Lateness {
    fn default() -> Self {
        Lateness {
            classes: [0; CLASSES],
            count: 0,
            sum: Duration::ZERO,
            max: Duration::ZERO,
        }
    }
}

impl Lateness {
    pub(super) fn add(&mut self, late: Duration) {
        self.classes[class(late)] += 1;
        self.count += 1;
        self.sum += late;
        self.max = self.max.max(late);
    }

    fn merge(&mut self, other: &Lateness) {
        for (mine, theirs) in self.classes.iter_mut().zip(other.classes) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(super) fn summary(&self) -> Punctuality {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        Punctuality {
            late_mean_us: micros(self.sum) / self.count.max(1) as f64,
            late_p99_us: micros(self.below(0.99).min(self.max)),
            late_max_us: micros(self.max),
        }
    }

    /// A time that this share is not above.
    fn below(&self, share: f64) -> Duration {
        let enough = (self.count as f64 * share).ceil() as u64;
        let mut so_far = 0;
        let class = self.classes.iter().position(|count| {
            so_far += count;
            so_far >= enough
        });
        upper_end(class.unwrap_or(CLASSES - 1))
    }
}

fn class(late: Duration) -> usize {
    let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX).max(4);
    let doubling = nanos.ilog2();
    let quarter = (nanos >> (doubling - 2)) & 3;
    ((doubling as usize - 2) * 4 + quarter as usize).min(CLASSES - 1)
}

fn upper_end(class: usize) -> Duration {
    let (doubling, quarter) = (class / 4 + 2, class as u64 % 4);
    Duration::from_nanos((5 + quarter) << (doubling - 2))
}

/// How much later than asked for packets were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Punctuality {
    /// The mean.
    pub late_mean_us: f64,
    /// One in a hundred was later (known to a fifth).
    pub late_p99_us: f64,
    /// The latest.
    pub late_max_us: f64,
}

/// What has happened to packets from one spoke to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) segments: u64,
    pub(super) lost: u64,
    pub(super) overflowed: u64,
    pub(super) cut_off: u64,
    pub(super) lateness: Lateness,
}

impl Count {
    pub(super) fn told(&self, from: &str, to: &str) -> PairStatistics {
        PairStatistics {
            from: from.to_owned(),
            to: to.to_owned(),
            packets: self.packets,
            bytes: self.bytes,
            segments: self.segments,
            lost: self.lost,
            overflowed: self.overflowed,
            cut_off: self.cut_off,
            punctuality: self.lateness.summary(),
        }
    }
}

/// What has happened to packets from one spoke to another.
#[derive(Clone, Debug, Serialize)]
pub struct PairStatistics {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Packets sent, as a wire would have carried them.
    pub packets: u64,
    /// Their bytes, with their headers.
    pub bytes: u64,
    /// In so many segments were they handed over.
    pub segments: u64,
    /// Packets that vanished, as the link's loss asked for.
    pub lost: u64,
    /// Packets that found a queue full.
    pub overflowed: u64,
    /// Packets that met a link that was cut.
    pub cut_off: u64,
    /// How punctual those were that arrived.
    #[serde(flatten)]
    pub punctuality: Punctuality,
}

impl PairStatistics {
    /// Packets that did not arrive, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.lost + self.overflowed + self.cut_off
    }
}

/// What has happened on the whole network.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics {
    /// By pair and direction, without those on which nothing was sent.
    pub pairs: Vec<PairStatistics>,
    /// Of all pairs together.
    pub punctuality: Punctuality,
    /// Packets on their way now.
    pub on_the_way: usize,
    /// Packets to nobody in the plan, or of no protocol that is carried.
    pub strays: u64,
    /// Packets that a spoke's device did not take.
    pub refused: u64,
    /// Whether large segments cross whole now.
    pub whole_segments: bool,
    /// Processor time the carrying thread has taken since the network began: on a small machine it is what the spokes lack.
    pub carrier_cpu_s: f64,
}

pub(super) fn together<'a>(counts: impl Iterator<Item = &'a Count>) -> Punctuality {
    let mut all = Lateness::default();
    counts.for_each(|count| all.merge(&count.lateness));
    all.summary()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_class() {
        for nanos in [0, 1, 4, 5, 7, 8, 100, 999, 1_000_000, 123_456_789] {
            let time = Duration::from_nanos(nanos);
            let end = upper_end(class(time));
            assert!(time < end, "{time:?} {end:?}");
            assert!(
                nanos < 8 || end.as_nanos() <= u128::from(nanos) * 5 / 4 + 1,
                "{time:?} {end:?}"
            );
        }
        assert_eq!(class(Duration::MAX), CLASSES - 1);
    }

    #[test]
    fn the_summary_tells_mean_p99_and_max() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.summary(), Punctuality::default());
        (0..98).for_each(|_| lateness.add(Duration::from_micros(10)));
        (0..2).for_each(|_| lateness.add(Duration::from_millis(1)));
        let summary = lateness.summary();
        assert!((29.0..30.0).contains(&summary.late_mean_us), "{summary:?}");
        assert_eq!((summary.late_p99_us, summary.late_max_us), (1000.0, 1000.0));
    }
}
