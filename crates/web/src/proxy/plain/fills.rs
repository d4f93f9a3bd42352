//! Questions that are under way, so that many clients who want the same ask once.

use crate::proxy::request::Name;
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

/// The addresses about which the origin is being asked for the first time.
#[derive(Clone, Debug)]
pub(super) struct Fills(Arc<State>);

#[derive(Debug)]
struct State {
    asking: Mutex<HashMap<Name, watch::Receiver<()>>>,
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
    Wait(watch::Receiver<()>),
    /// It asks, and nobody waits for it.
    Alone,
}

/// The right to ask.
#[derive(Debug)]
pub(super) struct Asking {
    fills: Fills,
    name: Name,
    /// Whoever waits sees that it is gone.
    _ends: watch::Sender<()>,
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
                let (ends, ended) = watch::channel(());
                place.insert(ended);
                Turn::Ask(Asking {
                    fills: self.clone(),
                    name: name.clone(),
                    _ends: ends,
                })
            }
        }
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

    fn locked(&self) -> MutexGuard<'_, HashMap<Name, watch::Receiver<()>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.fills.0.locked().remove(&self.name);
    }
}

/// Waits until another request has its answer, or knows that nobody else may have it.
pub(super) async fn wait(mut other: watch::Receiver<()>) {
    // Nobody sends: it ends with its sender.
    let _ = tokio::time::timeout(WAITS_FOR, other.changed()).await;
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
        let Turn::Wait(other) = fills.join(&name) else {
            panic!("somebody asks");
        };
        assert!(matches!(fills.join(&Name::new("a", "/b")), Turn::Ask(_)));
        drop(asking);
        wait(other).await;
        assert!(matches!(fills.join(&name), Turn::Ask(_)));
        fills.note_alone(&name);
        assert!(matches!(fills.join(&name), Turn::Alone));
    }
}
