//! Which entries were dropped lately, and why.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use thorp_versions::Place;

/// Drops that the log has. One more takes the place of the oldest.
pub const DROPS_MAX: usize = 1_024;

/// An entry that was dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dropped<K> {
    /// Its name.
    pub name: K,
    /// Why.
    pub why: Why,
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
/// Invariant: it has at most [`DROPS_MAX`] of them, the newest last.
#[derive(Debug)]
pub(super) struct Drops<K>(Mutex<VecDeque<Dropped<K>>>);

impl<K: Clone> Drops<K> {
    pub(super) fn new() -> Self {
        Drops(Mutex::new(VecDeque::new()))
    }

    /// One more.
    pub(super) fn note(&self, dropped: Dropped<K>) {
        let mut drops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if drops.len() >= DROPS_MAX {
            drops.pop_front();
        }
        drops.push_back(dropped);
    }

    /// Those whose names are wanted, the newest first.
    pub(super) fn of(&self, is_wanted: impl Fn(&K) -> bool) -> Vec<Dropped<K>> {
        let drops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = drops.iter().rev();
        wanted
            .filter(|dropped| is_wanted(&dropped.name))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_last_ones_and_no_more() {
        let drops = Drops::new();
        for name in 0..DROPS_MAX + 3 {
            drops.note(Dropped {
                name,
                why: Why::Generation,
                at_ms: 0,
                hits: 0,
            });
        }
        let all = drops.of(|_| true);
        assert_eq!(all.len(), DROPS_MAX);
        assert_eq!((all[0].name, all[DROPS_MAX - 1].name), (DROPS_MAX + 2, 3));
        assert_eq!(drops.of(|name| *name == 7).len(), 1);
        assert!(drops.of(|name| *name == 2).is_empty());
    }
}
