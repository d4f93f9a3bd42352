//! Names whose leases a parent had to wait for to their end (rules C2 and C4).

use alloc::collections::BTreeMap;
use thorp_model::limits::{LEASE_MS_MAX, SLOW_HOLDERS_MAX};
use thorp_model::{Millis, NameId};

/// A name that kept others waiting.
#[derive(Debug)]
struct Slow {
    times: u32,
    /// Until then it gets no lease.
    until: Millis,
}

/// Names that get no lease for a time, which doubles with each time that they keep others waiting.
///
/// Invariant: there are at most [`SLOW_HOLDERS_MAX`]; the one whose time ends first makes room.
#[derive(Debug, Default)]
pub(crate) struct SlowHolders(BTreeMap<NameId, Slow>);

impl SlowHolders {
    /// Somebody had to wait until a lease of this name was over.
    pub(crate) fn note(&mut self, name: NameId, lease_ms: u32, now: Millis) {
        let is_new = !self.0.contains_key(&name);
        if is_new && self.0.len() >= SLOW_HOLDERS_MAX {
            let first = self.0.iter().min_by_key(|(_, slow)| slow.until);
            if let Some(first) = first.map(|(name, _)| *name) {
                self.0.remove(&first);
            }
        }
        let slow = self.0.entry(name).or_insert(Slow {
            times: 0,
            until: Millis(0),
        });
        if now < slow.until {
            // It is the same wait, of somebody else.
            return;
        }
        let wait = u64::from(lease_ms) << slow.times.min(16);
        slow.times += 1;
        slow.until = now.plus(wait.min(u64::from(LEASE_MS_MAX)));
    }

    /// Whether a name gets no lease now.
    pub(crate) fn has(&self, name: NameId, now: Millis) -> bool {
        self.0.get(&name).is_some_and(|slow| slow.until > now)
    }

    /// Forgets names that have kept nobody waiting for long.
    pub(crate) fn sweep(&mut self, now: Millis) {
        let long = u64::from(LEASE_MS_MAX);
        self.0.retain(|_, slow| slow.until.plus(long) > now);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_without_a_lease_doubles() {
        let (mut slow, name) = (SlowHolders::default(), NameId(1));
        slow.note(name, 1_000, Millis(0));
        slow.note(name, 1_000, Millis(500));
        assert!(slow.has(name, Millis(999)) && !slow.has(name, Millis(1_000)));
        slow.note(name, 1_000, Millis(5_000));
        assert!(slow.has(name, Millis(6_999)) && !slow.has(name, Millis(7_000)));
        for time in 0..40 {
            slow.note(name, 1_000, Millis(10_000_000 * (time + 1)));
        }
        slow.sweep(Millis(400_000_000));
        assert_eq!(slow.len(), 1);
        slow.sweep(Millis(500_000_000));
        assert_eq!(slow.len(), 0);
        for number in 0..=SLOW_HOLDERS_MAX as u64 {
            slow.note(NameId(number), 1_000, Millis(number));
        }
        assert_eq!(slow.len(), SLOW_HOLDERS_MAX);
        assert!(!slow.has(NameId(0), Millis(1)), "the first made room");
    }
}
