//! Whether the neighbours are there: *alive* messages on every edge, both ways
//! (rule 13).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use thorp_model::limits::{ALIVE_MISSED_MAX, ALIVE_MISSED_MIN, ALIVE_MS, ALIVE_MS_MIN};
use thorp_model::{EdgeId, Millis, Outbox};

/// How often a node shows that it is there, and how long it waits for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AliveLimits {
    /// Between two *alive* messages.
    pub every_ms: u64,
    /// So many of its own periods without a word make a neighbour silent.
    pub missed_max: u32,
}

/// Limits under which a node would give up a neighbour that is only slow, or do nothing but show that it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliveLimitsError {
    /// The period is too short.
    Period,
    /// The number of periods is too small.
    Missed,
}

impl AliveLimits {
    /// Whether a node can work with these limits.
    ///
    /// # Errors
    ///
    /// [`AliveLimitsError`]: which limit is too small, and why.
    pub fn check(&self) -> Result<(), AliveLimitsError> {
        if self.every_ms < ALIVE_MS_MIN {
            return Err(AliveLimitsError::Period);
        }
        if self.missed_max < ALIVE_MISSED_MIN {
            return Err(AliveLimitsError::Missed);
        }
        Ok(())
    }
}

impl core::error::Error for AliveLimitsError {}

impl fmt::Display for AliveLimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period => write!(
                f,
                "at least {ALIVE_MS_MIN}: a neighbour needs time to say something"
            ),
            Self::Missed => write!(
                f,
                "at least {ALIVE_MISSED_MIN}: a neighbour with the same period may just miss one"
            ),
        }
    }
}

impl Default for AliveLimits {
    fn default() -> Self {
        AliveLimits {
            every_ms: ALIVE_MS,
            missed_max: ALIVE_MISSED_MAX,
        }
    }
}

/// A node's neighbours. A node counts their silence in its own periods and not in time: if it was stopped itself, and wakes up
/// late, it blames nobody.
#[derive(Debug)]
pub(crate) struct Neighbours {
    limits: Option<AliveLimits>,
    missed: BTreeMap<EdgeId, u32>,
    next: Millis,
}

impl Neighbours {
    /// Nobody is there yet. Without limits nobody is ever silent.
    pub(crate) fn new(limits: Option<AliveLimits>) -> Self {
        Neighbours {
            limits,
            missed: BTreeMap::new(),
            next: Millis(0),
        }
    }

    pub(crate) fn came(&mut self, edge: EdgeId) {
        self.missed.insert(edge, 0);
    }

    pub(crate) fn went(&mut self, edge: EdgeId) {
        self.missed.remove(&edge);
    }

    /// Anything that comes is a sign of life.
    pub(crate) fn heard(&mut self, edge: EdgeId) {
        if let Some(missed) = self.missed.get_mut(&edge) {
            *missed = 0;
        }
    }

    /// Says on every edge that this node is there. Tells who has been silent for too long.
    pub(crate) fn tick<A>(&mut self, now: Millis, outbox: &mut Outbox<A>) -> Vec<EdgeId> {
        let Some(limits) = self.limits.filter(|_| now >= self.next) else {
            return Vec::new();
        };
        self.next = now.plus(limits.every_ms);
        for (edge, missed) in &mut self.missed {
            *missed += 1;
            outbox.alive(*edge);
        }
        let silent = self.missed.iter();
        silent
            .filter(|(_, missed)| **missed > limits.missed_max)
            .map(|(edge, _)| *edge)
            .collect()
    }

    /// When [`Neighbours::tick`] is wanted.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        let is_wanted = self.limits.is_some() && !self.missed.is_empty();
        is_wanted.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGE: EdgeId = EdgeId(1);

    fn neighbours() -> Neighbours {
        let mut neighbours = Neighbours::new(Some(AliveLimits {
            every_ms: 10,
            missed_max: 2,
        }));
        neighbours.came(EDGE);
        neighbours
    }

    #[test]
    fn a_neighbour_is_silent_after_so_many_periods() {
        let mut neighbours = neighbours();
        let mut outbox = Outbox::<()>::new();
        let silent: Vec<bool> = (0..4)
            .map(|period| !neighbours.tick(Millis(10 * period), &mut outbox).is_empty())
            .collect();
        assert_eq!(silent, [false, false, true, true]);
        assert_eq!(outbox.actions.len(), 4);
        neighbours.heard(EDGE);
        assert!(neighbours.tick(Millis(40), &mut outbox).is_empty());
    }

    #[test]
    fn who_was_stopped_itself_blames_nobody() {
        let mut neighbours = neighbours();
        let mut outbox = Outbox::<()>::new();
        assert!(neighbours.tick(Millis(0), &mut outbox).is_empty());
        assert!(neighbours.tick(Millis(60_000), &mut outbox).is_empty());
        assert_eq!(neighbours.deadline(), Some(Millis(60_010)));
        neighbours.went(EDGE);
        assert_eq!(neighbours.deadline(), None);
    }
}
