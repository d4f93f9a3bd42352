//! Fills that are under way, and who waits for them (rule W6).

use super::answer::Answer;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What a fill came to, for whoever waits for it.
#[derive(Clone, Debug)]
pub(crate) enum Landed {
    /// An answer that may be shared, and whether its check has passed.
    Shared(Arc<Answer>, bool),
    /// Nothing that others may have. Each asks for itself.
    Alone,
}

/// When a request has arrived, against the beginnings of fills.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(u64);

/// The running fills.
///
/// Invariant: a key has at most one fill whose check has not begun. A request may join only that one.
#[derive(Debug)]
pub(crate) struct Flights<K: Hash + Eq> {
    of: Mutex<HashMap<K, Flight>>,
    clock: AtomicU64,
}

#[derive(Clone, Debug)]
struct Flight {
    began: Moment,
    landed: watch::Receiver<Option<Landed>>,
}

/// What a request does.
#[derive(Debug)]
pub(crate) enum Turn<K: Hash + Eq> {
    /// It fills.
    Fill(Ticket<K>),
    /// It waits for this fill.
    Wait(Waiting),
}

/// A fill that others wait for.
#[derive(Debug)]
pub(crate) struct Waiting {
    began: Moment,
    landed: watch::Receiver<Option<Landed>>,
}

/// The right to fill.
#[derive(Debug)]
pub(crate) struct Ticket<K: Hash + Eq> {
    flights: Arc<Flights<K>>,
    key: Option<K>,
    says: watch::Sender<Option<Landed>>,
}

impl<K: Hash + Eq + Clone> Flights<K> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Flights {
            of: Mutex::new(HashMap::new()),
            clock: AtomicU64::new(0),
        })
    }

    /// A request has arrived.
    pub(crate) fn arrive(&self) -> Moment {
        Moment(self.clock.fetch_add(1, Ordering::SeqCst))
    }

    /// Joins the fill of a key, or begins one.
    pub(crate) fn join(self: &Arc<Self>, key: &K) -> Turn<K> {
        match self.locked().entry(key.clone()) {
            Entry::Occupied(flight) => {
                let Flight { began, landed } = flight.get().clone();
                Turn::Wait(Waiting { began, landed })
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

    fn locked(&self) -> MutexGuard<'_, HashMap<K, Flight>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Flights<K> {
    fn remove(&self, key: &K) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.remove(key);
    }
}

impl Waiting {
    /// The answer, if a request that arrived then may have it: its check has passed, or its fill began later.
    pub(crate) async fn answer(mut self, arrived: Moment) -> Landed {
        let landed = self.landed.wait_for(Option::is_some).await;
        match landed.ok().and_then(|landed| landed.clone()) {
            Some(Landed::Shared(answer, is_kept)) => {
                Landed::Shared(answer, is_kept || self.began > arrived)
            }
            Some(Landed::Alone) | None => Landed::Alone,
        }
    }
}

impl<K: Hash + Eq> Ticket<K> {
    /// The check begins: nobody joins any more. Whoever comes now makes a check of its own.
    pub(crate) fn close(&mut self) {
        if let Some(key) = self.key.take() {
            self.flights.remove(&key);
        }
    }

    /// Tells those who wait.
    pub(crate) fn land(mut self, landed: Landed) {
        self.close();
        self.says.send_replace(Some(landed));
    }
}

impl<K: Hash + Eq> Drop for Ticket<K> {
    fn drop(&mut self) {
        // A fill that failed: nobody may wait for it for ever. The sender goes with the ticket.
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper::{HeaderMap, StatusCode};

    fn answer() -> Arc<Answer> {
        let headers = HeaderMap::new();
        Arc::new(Answer::coherent(
            StatusCode::OK,
            headers,
            Bytes::new(),
            "\"a\"",
        ))
    }

    fn fill(flights: &Arc<Flights<u8>>) -> Ticket<u8> {
        match flights.join(&1) {
            Turn::Fill(ticket) => ticket,
            Turn::Wait(_) => panic!("nobody fills"),
        }
    }

    fn wait(flights: &Arc<Flights<u8>>) -> Waiting {
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
            let waiting = wait(&flights);
            ticket.land(Landed::Shared(answer(), is_kept));
            let landed = waiting.answer(arrived).await;
            assert!(matches!(landed, Landed::Shared(_, may_have) if may_have == is_kept));
        }
    }

    #[tokio::test]
    async fn a_younger_fill_is_shared_whether_it_is_kept_or_not() {
        let flights = Flights::new();
        let arrived = flights.arrive();
        let ticket = fill(&flights);
        let waiting = wait(&flights);
        ticket.land(Landed::Shared(answer(), false));
        assert!(matches!(
            waiting.answer(arrived).await,
            Landed::Shared(_, true)
        ));
    }

    #[tokio::test]
    async fn nobody_joins_once_the_check_has_begun() {
        let flights = Flights::new();
        let mut first = fill(&flights);
        first.close();
        let second = fill(&flights);
        first.land(Landed::Alone);
        let waiting = wait(&flights);
        drop(second);
        assert!(matches!(
            waiting.answer(flights.arrive()).await,
            Landed::Alone
        ));
        drop(fill(&flights));
    }
}
