//! What the transactions of a program hand on to each other.

use crate::limits::IDLE_READ_SETS_MAX;
use crate::lock::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;
use thorp_cache::{Cache, ReadSet};
use thorp_model::{HomeId, Stamp};

/// What a transaction begins with. The session floor only rises: no transaction gets a serialization point below a
/// stamp that the program has seen (rule 5).
#[derive(Default)]
pub(crate) struct SessionState(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    idle: Vec<ReadSet>,
    floor: Stamp,
    /// Homes that have gone back, until a transaction there has reported it to the program (rule R9).
    went_back: BTreeSet<HomeId>,
}

impl SessionState {
    /// A read set for a transaction that begins, and the session floor.
    pub(crate) fn begin(&self) -> (ReadSet, Stamp) {
        let mut inner = lock(&self.0);
        (inner.idle.pop().unwrap_or_default(), inner.floor)
    }

    /// The session floor.
    pub(crate) fn floor(&self) -> Stamp {
        lock(&self.0).floor
    }

    /// The program has seen this stamp.
    pub(crate) fn raise_floor(&self, stamp: Stamp) {
        let floor = &mut lock(&self.0).floor;
        *floor = stamp.max(*floor);
    }

    /// A home has gone back.
    pub(super) fn home_went_back(&self, home: HomeId) {
        lock(&self.0).went_back.insert(home);
    }

    /// Whether a home has gone back and no transaction has reported it: this one does.
    pub(crate) fn take_went_back(&self, home: HomeId) -> bool {
        lock(&self.0).went_back.remove(&home)
    }

    /// Whether any has.
    pub(crate) fn has_any_gone_back(&self) -> bool {
        !lock(&self.0).went_back.is_empty()
    }

    /// Takes back the read set of a transaction that has ended.
    pub(crate) fn end(&self, mut reads: ReadSet, cache: &Cache) {
        reads.finish(cache);
        let idle = &mut lock(&self.0).idle;
        if idle.len() < IDLE_READ_SETS_MAX {
            idle.push(reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_floor_only_rises() {
        let state = SessionState::default();
        let stamp = |clock| Stamp {
            clock,
            home: HomeId(1),
        };
        for (seen, floor) in [(5, 5), (3, 5), (8, 8)] {
            state.raise_floor(stamp(seen));
            assert_eq!(state.floor(), stamp(floor));
        }
        assert_eq!(state.begin().1, stamp(8));
    }
}
