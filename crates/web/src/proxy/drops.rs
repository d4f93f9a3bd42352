//! Which entries were dropped lately, and why.

use super::entries::Weight;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use thorp_versions::Place;

/// Drops that the log has. One more takes the place of the oldest.
pub(crate) const DROPS_MAX: usize = 1_024;

/// What the names in it have together. A client chooses how long its names are.
pub(crate) const DROPS_BYTES_MAX: u64 = 1 << 20;

/// An entry that was dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dropped<K> {
    /// Its name.
    pub name: K,
    /// Why.
    pub why: Why,
    /// The key that changed, if the answer itself named it.
    pub key: Option<String>,
    /// When, in milliseconds since the machine started.
    pub at_ms: u64,
    /// How often it was a hit.
    pub hits: u64,
}

/// Why an entry was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The word of a key has another number: in this generation of the table, at this place, this number.
    Changed(u64, Place, u64),
    /// The keeper has begun anew: it may have missed something (rule W8).
    Generation,
}

/// The last entries that were dropped.
///
/// Invariant: it has at most [`DROPS_MAX`] of them, whose names have at most [`DROPS_BYTES_MAX`], the newest last.
#[derive(Debug)]
pub(super) struct Drops<K>(Mutex<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    drops: VecDeque<Dropped<K>>,
    bytes: u64,
    all: u64,
}

impl<K: Clone + Weight> Drops<K> {
    pub(super) fn new() -> Self {
        Drops(Mutex::new(Inner {
            drops: VecDeque::new(),
            bytes: 0,
            all: 0,
        }))
    }

    /// One more.
    pub(super) fn note(&self, dropped: Dropped<K>) {
        let mut inner = self.locked();
        inner.all += 1;
        inner.bytes += dropped.name.bytes();
        inner.drops.push_back(dropped);
        while inner.drops.len() > DROPS_MAX || inner.bytes > DROPS_BYTES_MAX {
            let Some(oldest) = inner.drops.pop_front() else {
                return;
            };
            inner.bytes -= oldest.name.bytes();
        }
    }

    /// How many there have been, with those that the log has no more.
    pub(super) fn all(&self) -> u64 {
        self.locked().all
    }

    fn locked(&self) -> MutexGuard<'_, Inner<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those whose names are wanted, the newest first.
    pub(super) fn of(&self, is_wanted: impl Fn(&K) -> bool) -> Vec<Dropped<K>> {
        let inner = self.locked();
        let wanted = inner.drops.iter().rev();
        wanted
            .filter(|dropped| is_wanted(&dropped.name))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Long(usize, u64);

    impl Weight for Long {
        fn bytes(&self) -> u64 {
            self.1
        }
    }

    fn log(count: usize, bytes: u64) -> Drops<Long> {
        let drops = Drops::new();
        for number in 0..count {
            drops.note(Dropped {
                name: Long(number, bytes),
                why: Why::Generation,
                key: None,
                at_ms: 0,
                hits: 0,
            });
        }
        drops
    }

    #[test]
    fn the_log_has_the_last_ones_and_no_more() {
        let drops = log(DROPS_MAX + 3, 1);
        let all = drops.of(|_| true);
        assert_eq!(all.len(), DROPS_MAX);
        assert_eq!(
            (all[0].name.0, all[DROPS_MAX - 1].name.0),
            (DROPS_MAX + 2, 3)
        );
        assert_eq!(drops.all(), DROPS_MAX as u64 + 3);
        assert_eq!(drops.of(|name| name.0 == 7).len(), 1);
        assert!(drops.of(|name| name.0 == 2).is_empty());
    }

    #[test]
    fn long_names_make_the_log_short() {
        assert_eq!(log(9, DROPS_BYTES_MAX / 4).of(|_| true).len(), 4);
        assert_eq!(log(9, DROPS_BYTES_MAX + 1).of(|_| true).len(), 0);
    }
}
