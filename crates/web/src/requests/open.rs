//! At a proxy: the updates that it has begun, and that are not over. It does no I/O and reads no clock.

use super::wire::{FORWARDED_WITHIN_MS, KEY_BYTES_OF_UPDATE_MAX, ToKeeper};
use std::collections::BTreeMap;
use thorp_versions::{Bug, is_planted};
use tokio::sync::oneshot;

/// Updates of one proxy whose end it awaits. One more is not forwarded.
pub const FOLLOWED_MAX: usize = 8_192;

/// Updates whose end nobody will learn. More of them count as one that may change anything (rule W9), so that they hold up no others.
pub const LINGERING_MAX: usize = 1_024;

/// Whether an acknowledgement counts: it is of the table that the proxy reads now (trap W32).
pub fn counts(generation: u64, present: Option<u64>) -> bool {
    present == Some(generation) || is_planted(Bug::DeadAcknowledges)
}

/// Whether a request may leave whose update began then: a keeper of now knows the update, or still waits for its proxy.
pub fn may_leave(begun_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(begun_ms) <= FORWARDED_WITHIN_MS || is_planted(Bug::LeavesLate)
}

/// The open updates of a proxy.
///
/// Invariant: what a keeper has heard of this proxy, and is not over, is in here. So a list of it is all that the next keeper needs.
#[derive(Debug, Default)]
pub struct OpenUpdates {
    next: u64,
    of: BTreeMap<u64, Open>,
    lingering: usize,
    /// When one more began to linger than are counted.
    folded_ms: Option<u64>,
}

#[derive(Debug)]
struct Open {
    keys: Option<Vec<String>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// No keeper has acknowledged it: it is not forwarded. The generation of the table goes there.
    Waits(oneshot::Sender<u64>),
    /// It may be forwarded, or is.
    Followed,
    /// Its end comes by time, or by a call.
    Called,
    /// Its end comes by time.
    Lingers,
}

impl OpenUpdates {
    /// An update begins. None: too many are open.
    pub fn begin(
        &mut self,
        keys: Option<Vec<String>>,
    ) -> Option<(u64, ToKeeper, oneshot::Receiver<u64>)> {
        if self.of.len() - self.lingering >= FOLLOWED_MAX {
            return None;
        }
        let bytes = |keys: &Vec<String>| keys.iter().map(|key| key.len() + 8).sum::<usize>();
        let keys = keys.filter(|keys| bytes(keys) <= KEY_BYTES_OF_UPDATE_MAX);
        let (says, begun) = oneshot::channel();
        let update = self.insert(keys.clone(), State::Waits(says));
        Some((update, ToKeeper::Begin { update, keys }, begun))
    }

    /// What a keeper has to know that does not know this proxy: all that is open, also what no keeper has acknowledged (trap W32). A life is
    /// the longest of a request.
    pub fn list(&self, now_ms: u64, life_ms: u64) -> Vec<ToKeeper> {
        let mut list = Vec::new();
        let is_young = |at_ms: u64| now_ms.saturating_sub(at_ms) < life_ms;
        if self.folded_ms.is_some_and(is_young) {
            list.push(ToKeeper::Fold { update: None });
        }
        let is_left_out = |open: &Open| {
            matches!(open.state, State::Waits(_)) && is_planted(Bug::DeadAcknowledges)
        };
        for (update, open) in self.of.iter().filter(|(_, open)| !is_left_out(open)) {
            let (update, keys) = (*update, open.keys.clone());
            list.push(ToKeeper::Begin { update, keys });
            if matches!(open.state, State::Called | State::Lingers) {
                list.push(ToKeeper::Linger { update });
            }
        }
        list
    }

    /// The keeper has acknowledged an update.
    pub fn begun(&mut self, update: u64, generation: u64) {
        let Some(open) = self.of.get_mut(&update) else {
            return;
        };
        if !matches!(open.state, State::Waits(_)) {
            return;
        }
        if let State::Waits(says) = std::mem::replace(&mut open.state, State::Followed) {
            // If nobody waits any more, its end is on the way.
            let _ = says.send(generation);
        }
    }

    /// The keeper has refused an update, so it is not open there. One that is forwarded lingers here, for the next keeper.
    pub fn refused(&mut self, update: u64) {
        let waits = |open: &Open| matches!(open.state, State::Waits(_));
        if self.of.get(&update).is_some_and(waits) {
            self.of.remove(&update);
        }
    }

    /// An update is over. None: it was before.
    pub fn end(&mut self, update: u64) -> Option<ToKeeper> {
        self.remove(update)?;
        Some(ToKeeper::End { update })
    }

    /// An update that a call may end.
    pub fn called(&mut self, update: u64) -> Option<ToKeeper> {
        self.of.get_mut(&update)?.state = State::Called;
        Some(ToKeeper::Linger { update })
    }

    /// Nobody will learn when an update ends.
    pub fn linger(&mut self, update: u64, now_ms: u64) -> Option<ToKeeper> {
        if !self.of.contains_key(&update) {
            return None;
        }
        if self.lingering < LINGERING_MAX {
            self.set_lingering(update);
            return Some(ToKeeper::Linger { update });
        }
        self.folded_ms = Some(now_ms);
        self.remove(update);
        let update = Some(update);
        Some(ToKeeper::Fold { update })
    }

    /// An update has ended at the keeper, by time or by hand.
    pub fn over(&mut self, update: u64) {
        let by_time = |open: &Open| matches!(open.state, State::Called | State::Lingers);
        if self.of.get(&update).is_some_and(by_time) {
            self.remove(update);
        }
    }

    /// How many updates have an end that this proxy learns.
    pub fn followed(&self) -> usize {
        let of = self.of.values();
        of.filter(|open| matches!(open.state, State::Waits(_) | State::Followed))
            .count()
    }

    /// The number of the next update.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether another update than this one is open, with a number below the next one of a time.
    pub(super) fn is_open_beside(&self, update: u64, next: u64) -> bool {
        self.of.range(..next).any(|(open, _)| *open != update)
    }

    /// Whether an update is open.
    pub fn is_open(&self, update: u64) -> bool {
        self.of.contains_key(&update)
    }

    fn insert(&mut self, keys: Option<Vec<String>>, state: State) -> u64 {
        self.next += 1;
        self.of.insert(self.next, Open { keys, state });
        self.next
    }

    fn set_lingering(&mut self, update: u64) {
        if let Some(open) = self.of.get_mut(&update)
            && !matches!(open.state, State::Lingers)
        {
            open.state = State::Lingers;
            self.lingering += 1;
        }
    }

    fn remove(&mut self, update: u64) -> Option<()> {
        let open = self.of.remove(&update)?;
        if matches!(open.state, State::Lingers) {
            self.lingering -= 1;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE_MS: u64 = 1_000;

    fn begun(open: &mut OpenUpdates, key: &str) -> u64 {
        let (update, ..) = open.begin(Some(vec![key.to_owned()])).expect("room");
        open.begun(update, 7);
        update
    }

    /// Trap W32: what an old keeper may have acknowledged meanwhile is in the list, too.
    #[test]
    fn a_list_has_all_that_is_open_whatever_a_keeper_has_said() {
        let mut open = OpenUpdates::default();
        let (waits, said, mut waiting) = open.begin(Some(vec![String::from("a")])).expect("room");
        let followed = begun(&mut open, "b");
        let lingers = begun(&mut open, "c");
        let over = begun(&mut open, "d");
        open.linger(lingers, 0);
        assert!(open.end(over).is_some() && open.end(over).is_none());
        let list = open.list(0, LIFE_MS);
        assert!(list.contains(&said) && waiting.try_recv().is_err());
        assert!(list.contains(&ToKeeper::Linger { update: lingers }));
        assert_eq!(list.len(), 4);
        open.begun(waits, 9);
        assert_eq!(waiting.try_recv(), Ok(9));
        open.over(followed);
        open.refused(followed);
        open.over(lingers);
        assert!(open.is_open(followed) && !open.is_open(lingers));
    }

    #[test]
    fn one_that_is_refused_is_not_forwarded() {
        let mut open = OpenUpdates::default();
        let (update, _, mut waiting) = open.begin(None).expect("room");
        open.refused(update);
        assert_eq!(
            waiting.try_recv(),
            Err(oneshot::error::TryRecvError::Closed)
        );
        for _ in 0..FOLLOWED_MAX {
            open.begin(None).expect("room");
        }
        assert!(open.begin(None).is_none());
    }

    #[test]
    fn more_that_linger_count_as_one_that_may_change_anything() {
        let mut open = OpenUpdates::default();
        for _ in 0..LINGERING_MAX {
            let update = begun(&mut open, "a");
            open.linger(update, 0);
        }
        let first = begun(&mut open, "b");
        let said = open.linger(first, 10);
        let update = Some(first);
        assert_eq!(said, Some(ToKeeper::Fold { update }));
        assert!(!open.is_open(first) && open.linger(first, 10).is_none());
        let folded = ToKeeper::Fold { update: None };
        assert!(open.list(9 + LIFE_MS, LIFE_MS).contains(&folded));
        let late = open.list(10 + LIFE_MS, LIFE_MS);
        assert!(!late.contains(&folded) && late.len() == 2 * LINGERING_MAX);
    }

    #[test]
    fn keys_that_fit_into_no_line_are_not_known() {
        let mut open = OpenUpdates::default();
        let large = Some(vec!["x".repeat(KEY_BYTES_OF_UPDATE_MAX)]);
        let (_, said, _) = open.begin(large).expect("room");
        assert!(matches!(said, ToKeeper::Begin { keys: None, .. }));
    }
}
