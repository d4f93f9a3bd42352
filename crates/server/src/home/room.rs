//! Whether a home's store has room for commits, and who waits for that.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thorp_model::{Lack, SpaceBound};
use thorp_store::Store;
use tracing::{info, warn};

use crate::config::StoreConfig;

/// What a store lacks, as it was found at the last look.
pub(super) struct Room {
    state: Mutex<State>,
    changed: Condvar,
    probe_every: Duration,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// None: commits are taken.
    lack: Option<Lack>,
    /// What did not fit the last time, in bytes: so much is wanted before commits are taken again, within reason.
    wanted: u64,
    /// Soon there is no room: it is time to reclaim some.
    is_tight: bool,
    /// It has ended since the last rest.
    has_ended: bool,
    stopped: bool,
}

impl Room {
    /// There is room until somebody looks; that happens at least so often.
    pub(super) fn new(probe_every: Duration) -> Self {
        Room {
            state: Mutex::default(),
            changed: Condvar::new(),
            probe_every,
        }
    }

    /// What is lacking; none: commits are taken.
    pub(super) fn lack(&self) -> Option<Lack> {
        self.lock().lack
    }

    /// Whether room has ended on the volume since the last look.
    pub(super) fn ends(&self, store: &Store) -> bool {
        let lacks = || store.ask_space(low(store)).err();
        self.lack().is_none() && lacks().is_some_and(|lack| lack.of == SpaceBound::Volume)
    }

    /// A batch of so many bytes did not fit: so much must be free before commits are taken again, within reason.
    pub(super) fn wants(&self, bytes: u64) {
        let mut state = self.lock();
        let lack = state.lack.unwrap_or(Lack::OF_ALL);
        (state.lack, state.wanted) = (Some(lack), bytes);
    }

    /// Looks whether there is room (still, or again), and tells what is new. `tell` is called under the lock, so that what is
    /// told last is so. The log has one line when room ends and one when it begins.
    pub(super) fn look(&self, store: &Store, tell: impl FnOnce(Option<Lack>)) {
        let mut state = self.lock();
        let low = low(store);
        let found = store.ask_space(state.wants(low, store)).err();
        state.is_tight = found.is_some() || store.ask_space(low.saturating_mul(TIGHT)).is_err();
        if found == state.lack {
            return;
        }
        match (state.lack, found) {
            (None, Some(lack)) => {
                warn!("the store is full: {lack}; commits are refused, reads and deletes go on");
            }
            (Some(_), None) => info!("the store has room again: commits are taken"),
            _ => {}
        }
        state.has_ended |= state.lack.is_none();
        state.lack = found;
        if found.is_none() {
            state.wanted = 0;
        }
        tell(found);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until somebody has to look again. None when the life has ended; otherwise whether room on the volume is short.
    pub(super) fn rest(&self) -> Option<bool> {
        let mut state = self.lock();
        state.has_ended &= state.lack.is_some();
        let is_short = |state: &State| match state.lack {
            Some(lack) => lack.of == SpaceBound::Volume,
            None => state.is_tight,
        };
        let woken = self
            .changed
            .wait_timeout_while(state, self.probe_every, |state| {
                !state.stopped && !state.has_ended
            });
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        state.has_ended = false;
        (!state.stopped).then(|| is_short(&state))
    }

    /// Waits for a change or for the next look. Tells whether it is worth trying again.
    pub(super) fn wait(&self) -> bool {
        let state = self.lock();
        if state.lack.is_none() || state.stopped {
            return false;
        }
        let waited = self.changed.wait_timeout(state, self.probe_every);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.stopped
    }

    /// A new life begins: who waits for room may wait again.
    pub(super) fn begin(&self) {
        self.lock().stopped = false;
    }

    /// The life ends: nobody waits any more.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How much must be free so that commits are taken.
    fn wants(self, low: u64, store: &Store) -> u64 {
        if self.lack.is_none() {
            return low;
        }
        // An empty store must have what is wanted, and one that holds something may.
        let most = store.limit().map_or(u64::MAX, |limit| limit / WANTED_PART);
        let most_of_volume = low.saturating_mul(WANTED_TIMES);
        // More is wanted to begin again than to go on, or it would flutter.
        let wanted = self.wanted.min(most).min(most_of_volume);
        wanted.max(low.saturating_mul(2))
    }
}

/// When less than this can still be brought, commits are refused, so that one is rarely caught halfway.
fn low(store: &Store) -> u64 {
    let low = StoreConfig::room_low(store.limit());
    match store.volume() {
        Some(volume) => low.min(volume.size / LOW_PART_OF_VOLUME),
        None => low,
    }
}

/// The part of the limit that is wanted at most before commits are taken again.
const WANTED_PART: u64 = 4;

/// And so many times what must be free for commits to go on.
const WANTED_TIMES: u64 = 4;

/// The part of a volume that must be free for commits.
const LOW_PART_OF_VOLUME: u64 = 32;

/// With so many times what must be free for commits, the store reclaims what it can.
const TIGHT: u64 = 4;
