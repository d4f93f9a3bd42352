//! What it costs to stray from LRU: thesis, section 3.4.3.

use super::Times;
use crate::evict::{Kind, LruAt, Order, hits};

/// One client that pages to one server, which lets go of the page at a fixed place of the global LRU stack instead of the oldest
/// (figure 3.6). Sizes are parts of the footprint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Deviation {
    /// The client's memory.
    pub(super) local: f64,
    /// The server's.
    pub(super) global: f64,
}

/// As in the thesis.
impl Default for Deviation {
    fn default() -> Self {
        Deviation {
            local: 0.25,
            global: 0.5,
        }
    }
}

impl Deviation {
    /// How many requests need the disk if the page goes that is at this place of global memory: 0 is the oldest there, 1 the
    /// youngest.
    pub(super) fn disk_faults(&self, pages: &[u32], footprint: usize, position: f64) -> u64 {
        let global = part(self.global, footprint);
        let capacity = part(self.local, footprint) + global;
        let spared = part(position, global.saturating_sub(1));
        let mut memory = LruAt::new(capacity.max(1), spared, footprint);
        pages.len() as u64 - hits(&mut memory, pages)
    }
}

/// A client with servers whose memory it has used for a third of its requests when another one joins them (figure 3.7). Sizes are
/// parts of the footprint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Newcomer {
    /// The client's memory.
    pub(super) local: f64,
    /// That of the two servers that are there from the beginning, together.
    pub(super) before: f64,
    /// That of the one that joins.
    pub(super) joining: f64,
}

/// Where requests were answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Faults {
    /// In the client's memory.
    pub(super) local: u64,
    /// In a server's.
    pub(super) remote: u64,
    /// On disk.
    pub(super) disk: u64,
}

impl Newcomer {
    /// The first configuration of figure 3.7.
    pub(super) const THIRD: Newcomer = Newcomer {
        local: 1.0 / 3.0,
        before: 1.0 / 3.0,
        joining: 1.0 / 3.0,
    };
    /// The second one.
    pub(super) const TWO_THIRDS: Newcomer = Newcomer {
        local: 1.0 / 9.0,
        before: 2.0 / 9.0,
        joining: 2.0 / 3.0,
    };

    /// If all of the new memory is used at once: it is the globally oldest.
    pub(super) fn at_once(&self, pages: &[u32], footprint: usize) -> Faults {
        self.replayed(pages, footprint, 0)
    }

    /// If every third page that has to go from the client goes to the new server, whatever the ages: a balanced load.
    pub(super) fn balanced(&self, pages: &[u32], footprint: usize) -> Faults {
        self.replayed(pages, footprint, 3)
    }

    /// How much longer all requests take if the load is balanced, as a part: an upper bound, since the new server is never busy.
    pub(super) fn increase(&self, pages: &[u32], footprint: usize, times: &Times) -> f64 {
        let [at_once, balanced] = [
            self.at_once(pages, footprint),
            self.balanced(pages, footprint),
        ]
        .map(|it| it.ms(times));
        if at_once > 0.0 {
            balanced / at_once - 1.0
        } else {
            0.0
        }
    }

    /// One more frame of the new server is used each so many faults; 0 for all of them at once.
    fn replayed(&self, pages: &[u32], footprint: usize, every: u64) -> Faults {
        let before = part(self.before, footprint);
        let full = before + part(self.joining, footprint);
        let mut local = Kind::Lru.memory(part(self.local, footprint), footprint);
        let mut global = Order::new(footprint);
        let (mut faults, mut capacity, mut since) = (Faults::default(), before, 0);
        for (at, &page) in pages.iter().enumerate() {
            if local.touch(page) {
                faults.local += 1;
                continue;
            }
            let has_joined = at >= pages.len() / 3;
            since += u64::from(has_joined);
            if has_joined && every == 0 {
                capacity = full;
            } else if every > 0 && has_joined && since % every == 0 {
                capacity = full.min(capacity + 1);
            }
            match global.remove(page) {
                true => faults.remote += 1,
                false => faults.disk += 1,
            }
            if let Some(gone) = local.admit(page) {
                global.push(gone);
            }
            if global.len() > capacity {
                global.pop_oldest();
            }
        }
        faults
    }
}

impl Faults {
    fn ms(&self, times: &Times) -> f64 {
        let requests = self.local + self.remote + self.disk;
        requests as f64 * times.think_ms
            + self.local as f64 * times.local_ms
            + self.remote as f64 * times.remote_ms
            + self.disk as f64 * times.disk_ms
    }
}

fn part(of: f64, pages: usize) -> usize {
    (of * pages as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evict::StackDistances;
    use crate::evict::tests::some_trace;
    use fastrand::Rng;

    #[test]
    fn deviating_from_the_oldest() {
        // A loop over a bit more than fits: LRU has no hit at all, and any other page is better to lose.
        let pages: Vec<u32> = (0..4000).map(|at| at % 100).collect();
        let deviation = Deviation::default();
        assert_eq!(deviation.disk_faults(&pages, 100, 0.0), 4000);
        assert!(deviation.disk_faults(&pages, 100, 1.0) < 2000);
        // Where pages are used again the sooner the less time has passed, the oldest is the one to lose.
        let pages = recent_first(20_000, 200);
        let faults = |position| deviation.disk_faults(&pages, 200, position);
        let lru = StackDistances::of(&pages, 200).hits(150);
        assert_eq!(faults(0.0), 20_000 - lru);
        let rising = [0.0, 0.3, 0.6, 1.0].map(faults);
        assert!(rising.is_sorted() && rising[0] < rising[3], "{rising:?}");
    }

    /// Positions of the LRU stack are asked for independently of each other, those at the top more often.
    fn recent_first(len: usize, footprint: u32) -> Vec<u32> {
        let mut random = Rng::with_seed(4);
        let mut stack: Vec<u32> = (0..footprint).collect();
        let next = |_| {
            let at = (f64::from(footprint) * random.f64().powi(3)) as usize;
            let page = stack.remove(at);
            stack.insert(0, page);
            page
        };
        (0..len).map(next).collect()
    }

    #[test]
    fn a_newcomer_is_used_at_once_or_bit_by_bit() {
        let pages = some_trace(2, 9000, 180);
        for newcomer in [Newcomer::THIRD, Newcomer::TWO_THIRDS] {
            let (at_once, balanced) = (
                newcomer.at_once(&pages, 180),
                newcomer.balanced(&pages, 180),
            );
            for faults in [at_once, balanced] {
                assert_eq!(faults.local + faults.remote + faults.disk, 9000);
            }
            assert_eq!(at_once.local, balanced.local);
            assert!(at_once.disk < balanced.disk, "{at_once:?} {balanced:?}");
            assert!(newcomer.increase(&pages, 180, &Times::default()) > 0.0);
        }
        // Six pages in a loop, of which the client has two and the servers two. When the second round begins, two are lost; with the
        // new one's room for two more, none is from then on.
        let pages: Vec<u32> = (0..18).map(|at| at % 6).collect();
        let faults = Newcomer::THIRD.at_once(&pages, 6);
        assert_eq!((faults.local, faults.remote, faults.disk), (0, 10, 8));
    }
}
