//! How long a name waits for its next vote when it leaves its votes to the homes (rule R7).

use alloc::collections::BTreeMap;
use thorp_model::limits::{DOUBT_BUSY_MS_MAX, DOUBT_BUSY_MS_MIN, DOUBT_FORGIVEN_MS, DOUBTERS_MAX};
use thorp_model::planted::Bug;
use thorp_model::{Millis, NameId, planted};

/// A name that has left votes to the homes.
#[derive(Clone, Copy, Debug)]
struct Doubter {
    /// The doubts that count: each one doubles the wait, and the first one is free.
    doubts: u32,
    /// The name gets no vote until then.
    until: Millis,
    /// A further doubt counts from then on: many at once are one.
    counts_from: Millis,
    /// One doubt is forgiven then.
    forgiven_at: Millis,
}

/// The names that have left votes to the homes.
///
/// Invariant: there are at most [`DOUBTERS_MAX`] names, each with at least one doubt that counts. It is in memory only.
#[derive(Debug, Default)]
pub(super) struct Patience(BTreeMap<NameId, Doubter>);

/// More doubts than these make no wait longer.
const DOUBTS_MAX: u32 = 2 + (DOUBT_BUSY_MS_MAX / DOUBT_BUSY_MS_MIN).ilog2();

impl Patience {
    /// The other homes had to decide a vote of a name.
    pub(super) fn doubted(&mut self, name: NameId, now: Millis) {
        if planted::is(Bug::DoubtsNotCounted) {
            return;
        }
        self.forgive(now);
        let known = self.0.get(&name).copied();
        if known.is_some_and(|doubter| now < doubter.counts_from) {
            return;
        }
        if known.is_none() && self.0.len() >= DOUBTERS_MAX {
            self.forget_one();
        }
        let doubts = known.map_or(0, |doubter| doubter.doubts) + 1;
        let doubts = doubts.min(DOUBTS_MAX);
        let until = now.plus(wait_ms(doubts));
        let doubter = Doubter {
            doubts,
            until,
            counts_from: now.plus(wait_ms(doubts).max(DOUBT_BUSY_MS_MIN)),
            forgiven_at: until.plus(DOUBT_FORGIVEN_MS),
        };
        self.0.insert(name, doubter);
    }

    /// How long a name has to wait for its next vote, in milliseconds. None: it may vote now.
    pub(super) fn busy_ms(&self, name: NameId, now: Millis) -> Option<u32> {
        let doubter = self.0.get(&name)?;
        let left = doubter.until.since(now);
        (left > 0).then(|| u32::try_from(left).unwrap_or(u32::MAX))
    }

    /// Forgives what is due, one doubt after the other.
    fn forgive(&mut self, now: Millis) {
        self.0.retain(|_, doubter| {
            while doubter.doubts > 0 && doubter.forgiven_at <= now {
                doubter.doubts -= 1;
                doubter.forgiven_at = doubter.forgiven_at.plus(DOUBT_FORGIVEN_MS);
            }
            doubter.doubts > 0
        });
    }

    /// Forgets the name that would be forgiven first.
    fn forget_one(&mut self) {
        let first = self.0.iter().min_by_key(|(_, doubter)| {
            let more = u64::from(doubter.doubts.saturating_sub(1));
            doubter.forgiven_at.plus(more * DOUBT_FORGIVEN_MS)
        });
        if let Some(name) = first.map(|(name, _)| *name) {
            self.0.remove(&name);
        }
    }
}

/// How long a name with so many doubts waits, in milliseconds.
fn wait_ms(doubts: u32) -> u64 {
    match doubts.checked_sub(2) {
        Some(doubled) => (DOUBT_BUSY_MS_MIN << doubled).min(DOUBT_BUSY_MS_MAX),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MALLORY: NameId = NameId(66);
    const ANNA: NameId = NameId(1);

    #[test]
    fn each_doubt_doubles_the_wait_up_to_eight_seconds_and_the_first_is_free() {
        let (mut patience, mut now) = (Patience::default(), Millis(1_000));
        let mut waits = Vec::new();
        for _ in 0..9 {
            patience.doubted(MALLORY, now);
            let wait = patience.busy_ms(MALLORY, now);
            waits.push(wait.unwrap_or_default());
            now = now.plus(u64::from(wait.unwrap_or_default()).max(DOUBT_BUSY_MS_MIN));
            assert_eq!(patience.busy_ms(MALLORY, now), None, "the wait is over");
        }
        assert_eq!(
            waits,
            [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]
        );
        assert_eq!(patience.busy_ms(ANNA, Millis(0)), None);
    }

    #[test]
    fn many_doubts_at_once_are_one() {
        let (mut patience, now) = (Patience::default(), Millis(1_000));
        for _ in 0..100 {
            patience.doubted(ANNA, now);
        }
        assert_eq!(patience.busy_ms(ANNA, now), None);
        let later = now.plus(DOUBT_BUSY_MS_MIN);
        for _ in 0..100 {
            patience.doubted(ANNA, later);
        }
        assert_eq!(patience.busy_ms(ANNA, later), Some(250));
    }

    #[test]
    fn a_name_that_behaves_is_forgiven_step_by_step() {
        let (mut patience, now) = (Patience::default(), Millis(1_000));
        let again = now.plus(DOUBT_BUSY_MS_MIN);
        patience.doubted(ANNA, now);
        patience.doubted(ANNA, again);
        let until = again.plus(250);
        // One of two is forgiven: the next doubt is the second one again.
        let later = until.plus(DOUBT_FORGIVEN_MS);
        patience.doubted(ANNA, later);
        assert_eq!(patience.busy_ms(ANNA, later), Some(250));
        let later = later.plus(250 + 2 * DOUBT_FORGIVEN_MS);
        patience.doubted(MALLORY, later);
        assert!(!patience.0.contains_key(&ANNA), "all is forgiven");
    }

    #[test]
    fn a_flood_of_names_takes_no_more_than_its_space() {
        let (mut patience, now) = (Patience::default(), Millis(1_000));
        patience.doubted(MALLORY, now);
        let again = now.plus(DOUBT_BUSY_MS_MIN);
        patience.doubted(MALLORY, again);
        for name in 0..2 * DOUBTERS_MAX as u64 {
            patience.doubted(NameId(1_000 + name), again);
        }
        assert_eq!(patience.0.len(), DOUBTERS_MAX);
        assert!(
            patience.busy_ms(MALLORY, again).is_some(),
            "it is not forgotten first"
        );
    }
}
