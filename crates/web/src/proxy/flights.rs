//! Fills that are under way, and who waits for them (rule W6).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thorp_versions::{Bug, is_planted};
use tokio::sync::watch;

/// What a fill came to, for whoever waits for it.
#[derive(Debug)]
pub(super) enum Landed<A> {
    /// An answer that may be shared, and whether its check has passed.
    Shared(Arc<A>, bool),
    /// Nothing that others may have. Each asks for itself.
    Alone,
    /// The origin has failed. Those who have waited share that with this status.
    Failed(u16),
}

/// When a request has arrived, against the beginnings of fills.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment(u64);

/// The running fills.
///
/// Invariant: a key has at most one fill whose check has not begun. A request may join only that one.
#[derive(Debug)]
pub(super) struct Flights<K: Hash + Eq, A> {
    of: Mutex<HashMap<K, Flight<A>>>,
    clock: AtomicU64,
}

#[derive(Debug)]
struct Flight<A> {
    began: Moment,
    landed: watch::Receiver<Option<Landed<A>>>,
}

/// What a request does.
#[derive(Debug)]
pub(super) enum Turn<K: Hash + Eq, A> {
    /// It fills.
    Fill(Ticket<K, A>),
    /// It waits for this fill.
    Wait(Waiting<A>),
}

/// A fill of another, which this request waits for.
#[derive(Debug)]
pub struct Waiting<A> {
    began: Moment,
    landed: watch::Receiver<Option<Landed<A>>>,
}

/// The right to fill.
#[derive(Debug)]
pub(super) struct Ticket<K: Hash + Eq, A> {
    flights: Arc<Flights<K, A>>,
    key: Option<K>,
    says: watch::Sender<Option<Landed<A>>>,
}

impl<K: Hash + Eq + Clone, A> Flights<K, A> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Flights {
            of: Mutex::new(HashMap::new()),
            clock: AtomicU64::new(0),
        })
    }

    /// A request has arrived.
    pub(super) fn arrive(&self) -> Moment {
        Moment(self.clock.fetch_add(1, Ordering::SeqCst))
    }

    /// Joins the fill of a key, or begins one.
    pub(super) fn join(self: &Arc<Self>, key: &K) -> Turn<K, A> {
        match self.locked().entry(key.clone()) {
            Entry::Occupied(flight) => {
                let Flight { began, landed } = flight.get();
                Turn::Wait(Waiting {
                    began: *began,
                    landed: landed.clone(),
                })
            }
            Entry::Vacant(vacant) => {
                let (says, landed) = watch::channel(None);
                let began = self.arrive();
                vacant.insert(Flight { began, landed });
                Turn::Fill(Ticket {
                    flights: Arc::clone(self),
                    key: Some(key.clone()),
                    says,
                })
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<K, Flight<A>>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, A> Flights<K, A> {
    fn remove(&self, key: &K) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.remove(key);
    }
}

impl<A> Waiting<A> {
    /// Returns when the fill has come to something, or is gone.
    pub(super) async fn over(&mut self) {
        // An error: it is gone.
        let _ = self.landed.wait_for(Option::is_some).await;
    }

    /// Whether the fill has come to something, or is gone.
    pub fn is_over(&self) -> bool {
        self.landed.borrow().is_some() || self.landed.has_changed().is_err()
    }

    /// What a request gets that arrived then. It shares the answer if the check has passed, or if the fill began later.
    pub(super) fn landed(&self, arrived: Moment) -> Landed<A> {
        match &*self.landed.borrow() {
            Some(Landed::Shared(answer, is_kept)) => {
                let may_have = *is_kept || self.began > arrived || is_planted(Bug::OlderFillShared);
                Landed::Shared(Arc::clone(answer), may_have)
            }
            Some(Landed::Failed(status)) => Landed::Failed(*status),
            Some(Landed::Alone) | None => Landed::Alone,
        }
    }

    /// The status with which the origin has failed, if it has.
    pub(crate) fn failed(&self) -> Option<u16> {
        match &*self.landed.borrow() {
            Some(Landed::Failed(status)) => Some(*status),
            Some(Landed::Shared(..) | Landed::Alone) | None => None,
        }
    }
}

impl<K: Hash + Eq, A> Ticket<K, A> {
    /// The check begins: nobody joins any more. Whoever comes now makes a check of its own.
    pub(super) fn close(&mut self) {
        if let Some(key) = self.key.take() {
            self.flights.remove(&key);
        }
    }

    /// Tells those who wait.
    pub(super) fn land(mut self, landed: Landed<A>) {
        self.close();
        self.says.send_replace(Some(landed));
    }
}

impl<K: Hash + Eq, A> Drop for Ticket<K, A> {
    fn drop(&mut self) {
        // A fill that failed: nobody may wait for it for ever. The sender goes with the ticket.
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(flights: &Arc<Flights<u8, ()>>) -> Ticket<u8, ()> {
        match flights.join(&1) {
            Turn::Fill(ticket) => ticket,
            Turn::Wait(_) => panic!("nobody fills"),
        }
    }

    fn wait(flights: &Arc<Flights<u8, ()>>) -> Waiting<()> {
        match flights.join(&1) {
            Turn::Wait(waiting) => waiting,
            Turn::Fill(_) => panic!("somebody fills"),
        }
    }

    #[tokio::test]
    async fn an_older_fill_is_shared_only_if_its_check_has_passed() {
        for is_kept in [true, false] {
            let flights = Flights::new();
            let ticket = fill(&flights);
            let arrived = flights.arrive();
            let mut waiting = wait(&flights);
            assert!(!waiting.is_over());
            ticket.land(Landed::Shared(Arc::new(()), is_kept));
            waiting.over().await;
            assert!(waiting.is_over());
            let landed = waiting.landed(arrived);
            assert!(matches!(landed, Landed::Shared(_, may_have) if may_have == is_kept));
        }
    }

    #[tokio::test]
    async fn a_younger_fill_is_shared_whether_it_is_kept_or_not() {
        let flights = Flights::new();
        let arrived = flights.arrive();
        let ticket = fill(&flights);
        let waiting = wait(&flights);
        ticket.land(Landed::Shared(Arc::new(()), false));
        assert!(matches!(waiting.landed(arrived), Landed::Shared(_, true)));
    }

    #[tokio::test]
    async fn those_who_wait_share_a_failure() {
        let flights = Flights::new();
        let ticket = fill(&flights);
        let mut waiting = wait(&flights);
        assert_eq!(waiting.failed(), None);
        ticket.land(Landed::Failed(503));
        waiting.over().await;
        assert_eq!(waiting.failed(), Some(503));
        drop(fill(&flights));
    }

    #[tokio::test]
    async fn nobody_joins_once_the_check_has_begun() {
        let flights = Flights::new();
        let mut first = fill(&flights);
        first.close();
        let second = fill(&flights);
        first.land(Landed::Alone);
        let mut waiting = wait(&flights);
        drop(second);
        waiting.over().await;
        assert!(waiting.is_over());
        assert!(matches!(waiting.landed(flights.arrive()), Landed::Alone));
        drop(fill(&flights));
    }
}
