//! Questions that are under way, so that many clients who want the same ask once.

use crate::proxy::request::Name;
use hyper::StatusCode;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// So long a request waits for the answer of another. That one's client may be slow.
const WAITS_FOR: Duration = Duration::from_secs(1);

/// After an answer that nobody else may have, nobody waits at its address for so many milliseconds.
const ALONE_FOR_MS: u64 = 60_000;

/// Marks of such addresses. Those that share one only ask more often.
const MARKS: usize = 1 << 14;

/// What others learn of a question: nothing, or that the origin has failed.
type Outcome = Option<StatusCode>;

/// The addresses about which the origin is being asked.
#[derive(Clone, Debug)]
pub(super) struct Fills(Arc<State>);

#[derive(Debug)]
struct State {
    asking: Mutex<HashMap<Name, watch::Receiver<Outcome>>>,
    /// When an answer was nobody else's, in milliseconds since the machine started.
    alone_ms: Box<[AtomicU64]>,
    hasher: RandomState,
}

/// What a request does.
#[derive(Debug)]
pub(super) enum Turn {
    /// It asks. Others wait until this is dropped.
    Ask(Asking),
    /// It waits for another one.
    Wait(watch::Receiver<Outcome>),
    /// It asks, and nobody waits for it.
    Alone,
}

/// The right to ask.
#[derive(Debug)]
pub(super) struct Asking {
    fills: Fills,
    name: Name,
    /// Whoever waits sees that it is gone.
    ends: watch::Sender<Outcome>,
}

/// What a wait came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waited {
    /// The other request has its answer.
    Ended,
    /// The origin has failed with this status.
    Failed(StatusCode),
    /// The other request still has none, or its client does not read it.
    InVain,
}

impl Default for Fills {
    fn default() -> Self {
        Fills(Arc::new(State {
            asking: Mutex::default(),
            alone_ms: (0..MARKS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }))
    }
}

impl Fills {
    /// Asks about an address, or waits for who does.
    pub(super) fn join(&self, name: &Name) -> Turn {
        let alone_ms = self.0.mark(name).load(Ordering::Relaxed);
        if alone_ms > 0 && crate::clock::now_ms() < alone_ms.saturating_add(ALONE_FOR_MS) {
            return Turn::Alone;
        }
        match self.0.locked().entry(name.clone()) {
            Entry::Occupied(other) => Turn::Wait(other.get().clone()),
            Entry::Vacant(place) => {
                let (asking, ended) = self.ask(name);
                place.insert(ended);
                Turn::Ask(asking)
            }
        }
    }

    /// Asks in the place of another request, for which this one has waited in vain. If a third one does so already, this one waits for it.
    pub(super) fn replace(&self, name: &Name, other: &watch::Receiver<Outcome>) -> Turn {
        let mut asking = self.0.locked();
        match asking.get(name) {
            Some(third) if !third.same_channel(other) => Turn::Wait(third.clone()),
            Some(_) | None => {
                let (own, ended) = self.ask(name);
                asking.insert(name.clone(), ended);
                Turn::Ask(own)
            }
        }
    }

    fn ask(&self, name: &Name) -> (Asking, watch::Receiver<Outcome>) {
        let (ends, ended) = watch::channel(None);
        let asking = Asking {
            fills: self.clone(),
            name: name.clone(),
            ends,
        };
        (asking, ended)
    }

    /// An answer of this address was nobody else's: who waited has waited in vain.
    pub(super) fn note_alone(&self, name: &Name) {
        let now_ms = crate::clock::now_ms();
        self.0.mark(name).store(now_ms, Ordering::Relaxed);
    }
}

impl State {
    fn mark(&self, name: &Name) -> &AtomicU64 {
        &self.alone_ms[(self.hasher.hash_one(name) % MARKS as u64) as usize]
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Name, watch::Receiver<Outcome>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking {
    /// The origin has failed: those who wait share that. Asked by all of them at once, it would fail again.
    pub(super) fn fails(&self, status: StatusCode) {
        self.ends.send_replace(Some(status));
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut asking = self.fills.0.locked();
        // Another one may ask in its place.
        let is_own =
            |current: &watch::Receiver<Outcome>| current.same_channel(&self.ends.subscribe());
        if asking.get(&self.name).is_some_and(is_own) {
            asking.remove(&self.name);
        }
    }
}

/// Waits until another request has its answer, or knows that nobody else may have it.
pub(super) async fn wait(other: &mut watch::Receiver<Outcome>) -> Waited {
    // An error: it has ended without a word.
    let changed = tokio::time::timeout(WAITS_FOR, other.changed()).await;
    match (changed, *other.borrow()) {
        (_, Some(status)) => Waited::Failed(status),
        (Ok(_), None) => Waited::Ended,
        (Err(_), None) => Waited::InVain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_asks_and_others_wait_until_it_has_ended() {
        let fills = Fills::default();
        let name = Name::new("a", "/");
        let Turn::Ask(asking) = fills.join(&name) else {
            panic!("nobody asks yet");
        };
        let Turn::Wait(mut other) = fills.join(&name) else {
            panic!("somebody asks");
        };
        assert!(matches!(fills.join(&Name::new("a", "/b")), Turn::Ask(_)));
        drop(asking);
        assert_eq!(wait(&mut other).await, Waited::Ended);
        assert!(matches!(fills.join(&name), Turn::Ask(_)));
        fills.note_alone(&name);
        assert!(matches!(fills.join(&name), Turn::Alone));
    }

    #[tokio::test]
    async fn those_who_wait_share_a_failure() {
        let fills = Fills::default();
        let name = Name::new("a", "/");
        let Turn::Ask(asking) = fills.join(&name) else {
            panic!("nobody asks yet");
        };
        let Turn::Wait(mut other) = fills.join(&name) else {
            panic!("somebody asks");
        };
        asking.fails(StatusCode::SERVICE_UNAVAILABLE);
        drop(asking);
        let failed = Waited::Failed(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(wait(&mut other).await, failed);
        assert!(matches!(fills.join(&name), Turn::Ask(_)));
    }

    #[test]
    fn of_those_who_have_waited_in_vain_one_asks() {
        let fills = Fills::default();
        let name = Name::new("a", "/");
        let (Turn::Ask(slow), Turn::Wait(other)) = (fills.join(&name), fills.join(&name)) else {
            panic!("one asks, and one waits");
        };
        let Turn::Ask(second) = fills.replace(&name, &other) else {
            panic!("nobody else asks");
        };
        assert!(matches!(fills.replace(&name, &other), Turn::Wait(_)));
        // The slow one is no longer waited for: its end changes nothing.
        drop(slow);
        assert!(matches!(fills.join(&name), Turn::Wait(_)));
        drop(second);
        assert!(matches!(fills.join(&name), Turn::Ask(_)));
    }
}
