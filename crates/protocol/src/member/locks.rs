//! Locks that sessions of the program hold (rules C4 and C5).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::BUSY_RETRY_MS;
use thorp_model::planted::Bug;
use thorp_model::{Fence, HomeId, Millis, believed_until, planted};

/// One lock.
#[derive(Debug)]
struct Held {
    until: Millis,
    /// When the member asks for more time.
    due: Millis,
    is_asked: bool,
}

/// The locks that the member holds.
///
/// Invariant: the member believes in a lock for less long than its home, because its time counts from sending the request.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<(HomeId, Fence), Held>);

impl Locks {
    /// A home grants a lock, or gives it more time: the request was sent then. Returns until when the program may believe in it.
    pub(super) fn granted(&mut self, of: (HomeId, Fence), sent: Millis, lease_ms: u32) -> Millis {
        let lease_ms = u64::from(lease_ms);
        let held = Held {
            until: believed_until(sent, lease_ms),
            due: sent.plus(lease_ms / 4),
            is_asked: false,
        };
        let until = held.until;
        self.0.insert(of, held);
        until
    }

    /// The home gives it no more time now.
    pub(super) fn refused(&mut self, of: (HomeId, Fence), now: Millis) {
        if let Some(held) = self.0.get_mut(&of) {
            (held.is_asked, held.due) = (false, now.plus(u64::from(BUSY_RETRY_MS)));
        }
    }

    /// A lock is over, or given back.
    pub(super) fn end(&mut self, of: (HomeId, Fence)) {
        self.0.remove(&of);
    }

    /// Whether the program wants a lock still.
    pub(super) fn has(&self, of: (HomeId, Fence)) -> bool {
        self.0.contains_key(&of)
    }

    /// The locks that need more time now; it is asked for.
    pub(super) fn ask_due(
        &mut self,
        now: Millis,
        is_reached: impl Fn(HomeId) -> bool,
    ) -> Vec<(HomeId, Fence)> {
        // The program has been told until when it may believe in them.
        self.0.retain(|_, held| held.until > now);
        let due = self.0.iter_mut();
        let due =
            due.filter(|((home, _), held)| !held.is_asked && held.due <= now && is_reached(*home));
        due.map(|(of, held)| {
            held.is_asked = true;
            *of
        })
        .collect()
    }

    /// When something is due.
    pub(super) fn deadline(&self, is_reached: impl Fn(HomeId) -> bool) -> Option<Millis> {
        let due = self.0.iter();
        let due = due.filter(|((home, _), held)| !held.is_asked && is_reached(*home));
        let due = due.map(|(_, held)| held.due);
        due.chain(self.0.values().map(|held| held.until)).min()
    }

    /// The stream of a home has ended: locks last. The home may have started again, so each lock is asked for at once.
    pub(super) fn stream_ended(&mut self, home: HomeId) {
        let here = self.0.iter_mut().filter(|((of, _), _)| *of == home);
        here.for_each(|(_, held)| (held.is_asked, held.due) = (false, Millis(0)));
    }

    /// A home has gone back in time: it knows none of its locks any more (rule R9).
    pub(super) fn went_back(&mut self, home: HomeId) -> Vec<Fence> {
        let over = self.0.extract_if(.., |(of, _), _| *of == home);
        over.map(|((_, fence), _)| fence).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Whether a lock that is granted now would soon be over, because its turn came long after the request.
pub(super) fn comes_late(now: Millis, sent: Millis, lease_ms: u32) -> bool {
    now.since(sent) > u64::from(lease_ms / 2) && !planted::is(Bug::LateLockTold)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: HomeId = HomeId(1);

    #[test]
    fn a_lock_gets_more_time_before_it_ends() {
        let mut locks = Locks::default();
        let of = (HERE, Fence(5));
        assert_eq!(locks.granted(of, Millis(0), 1_600), Millis(1_500));
        assert_eq!(locks.deadline(|_| true), Some(Millis(400)));
        assert_eq!(locks.ask_due(Millis(399), |_| true), []);
        assert_eq!(locks.ask_due(Millis(400), |_| false), []);
        assert_eq!(locks.ask_due(Millis(400), |_| true), [of]);
        assert_eq!(locks.ask_due(Millis(900), |_| true), []);
        locks.stream_ended(HERE);
        assert_eq!(locks.ask_due(Millis(900), |_| true), [of]);
        locks.refused(of, Millis(901));
        assert_eq!(locks.len(), 1);
        assert_eq!(locks.ask_due(Millis(1_500), |_| true), []);
        assert_eq!(locks.len(), 0, "it is over");
        locks.granted(of, Millis(0), 1_600);
        assert_eq!(locks.went_back(HERE), [Fence(5)]);
    }
}
