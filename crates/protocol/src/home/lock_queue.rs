//! The sessions that wait for locks (rule C5).

use crate::home::calls::Caller;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{EdgeId, LockMode, Millis, NameId, SegmentId, planted};

/// A session that waits for a lock.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) caller: Caller,
    pub(super) carrier: Option<NameId>,
    pub(super) mode: LockMode,
    pub(super) segments: Vec<SegmentId>,
    /// It waits no longer.
    pub(super) due: Millis,
    /// How many calls of its name are served before it, beside those of others. [`LockQueue::push`] sets it.
    pub(super) round: u64,
}

/// The sessions that wait for locks, in the order in which they get them.
///
/// Invariant: nobody gets a lock that stands against one that comes before. Names take turns: the second call of a name comes behind
/// the first calls of all others that wait.
#[derive(Debug)]
pub(super) struct LockQueue {
    pub(super) waiting: Vec<Waiting>,
    /// Something has changed since it was looked who gets a lock.
    pub(super) is_stirred: bool,
    pub(super) next: Option<Millis>,
}

impl LockQueue {
    /// The home starts. It looks again when the first lock ends that an earlier life has granted.
    pub(super) fn new(next: Option<Millis>) -> Self {
        LockQueue {
            waiting: Vec::new(),
            is_stirred: false,
            next: next.filter(|_| !planted::is(Bug::FoundLockNotLooked)),
        }
    }

    /// When it is to be looked who gets a lock, if nothing changes.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.next
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A session waits from now on. Nobody gets more turns by waiting more often.
    pub(super) fn push(&mut self, mut waiting: Waiting) {
        let name = waiting.caller.who.name;
        let of_name = self.waiting.iter().rev();
        let mut of_name = of_name.filter(|before| before.caller.who.name == name);
        let first = self.waiting.first().map_or(0, |before| before.round);
        waiting.round = of_name.next().map_or(first, |before| before.round + 1);
        let round = waiting.round;
        let place = self.waiting.partition_point(|before| before.round <= round);
        self.waiting.insert(place, waiting);
        self.is_stirred = true;
    }

    /// An edge is gone: whoever waited there asks again.
    pub(super) fn edge_gone(&mut self, edge: EdgeId) {
        self.is_stirred = true;
        self.waiting.retain(|waiting| waiting.caller.edge != edge);
    }

    /// Whether somebody waits for a lock on one of these segments.
    pub(super) fn wants(&self, segments: &[SegmentId]) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| waiting.segments.iter().any(|of| segments.contains(of)))
    }

    /// How many sessions of a name wait.
    pub(super) fn of_name(&self, name: NameId) -> usize {
        let waiting = self.waiting.iter();
        waiting
            .filter(|waiting| waiting.caller.who.name == name)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{CallId, MemberId, Principal};

    fn waiting(name: u64, number: u64) -> Waiting {
        let name = NameId(name);
        let member = MemberId::new(name, 1);
        Waiting {
            caller: Caller {
                edge: EdgeId(name.0),
                call: CallId { member, number },
                who: Principal {
                    name,
                    is_operator: false,
                },
                site: None,
                is_home: false,
                ends_unknown: false,
            },
            carrier: None,
            mode: LockMode::Write,
            segments: vec![SegmentId(1)],
            due: Millis(100),
            round: 0,
        }
    }

    /// An attack: a name waits a hundred times, and then somebody else comes.
    #[test]
    fn names_take_turns() {
        let mut queue = LockQueue::new(None);
        let names = |queue: &LockQueue| {
            let waiting = queue.waiting.iter();
            waiting.map(|of| of.caller.who.name.0).collect::<Vec<_>>()
        };
        (0..3).for_each(|number| queue.push(waiting(1, number)));
        queue.push(waiting(2, 0));
        assert_eq!(names(&queue), [1, 2, 1, 1]);
        queue.waiting.remove(0);
        queue.push(waiting(1, 3));
        queue.push(waiting(3, 0));
        queue.push(waiting(2, 1));
        assert_eq!(names(&queue), [2, 3, 1, 2, 1, 1]);
    }
}
