//! The store of a home, and whether it has space.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thorp_model::{Batch, Engine, Mark, Purpose, Reader, Scan, StorageError, Table};
use thorp_protocol::HomeCommand;
use thorp_store::{Access, Opening, Options, Store};
use tracing::{info, warn};

use crate::config::{HomeConfigFile, StoreConfig};
use crate::error::ServerError;

/// An open store that knows whether it has space.
///
/// With space, a batch that does not fit is an error, and the home's life ends. Without space the home takes no commits and
/// appends its own housekeeping, which waits here until it fits and ends nothing, and what the kept room has space for (rule R7). But what brings something, accepted
/// when there was space, never waits: behind it is queued what would free some, and nothing of it was acknowledged.
pub(super) struct Disk {
    store: Store,
    space: Mutex<Space>,
    changed: Condvar,
    probe_every: Duration,
    batches: AtomicU64,
    groups: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

#[derive(Clone, Copy)]
struct Space {
    is_there: bool,
    /// What did not fit the last time: so much is wanted before commits are taken again.
    wanted: u64,
    stopped: bool,
}

impl Space {
    /// How much must be free so that commits are taken.
    fn wants(self, limit: Option<u64>) -> u64 {
        let low = StoreConfig::room_low(limit);
        if self.is_there {
            return low;
        }
        // An empty store must have what is wanted, and one that holds something may.
        let wanted = self
            .wanted
            .min(limit.map_or(u64::MAX, |limit| limit / WANTED_PART));
        // More is wanted to begin again than to go on, or it would flutter.
        wanted.max(low.saturating_mul(2))
    }
}

/// The part of the limit that is wanted at most before commits are taken again.
const WANTED_PART: u64 = 4;

/// Counts of what was made durable since the store was opened.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) batches: u64,
    pub(super) groups: u64,
    pub(super) bytes: u64,
    pub(super) time: Duration,
}

impl Disk {
    /// Opens the store of a home.
    pub(super) fn open(config: &HomeConfigFile, opening: Opening) -> Result<Self, ServerError> {
        let options = Options {
            limit_bytes: config.store.limit.map(|limit| limit.0),
            cache_bytes: config.store.cache.0,
            disk_reserve_bytes: config.store.disk_reserve.map(|reserve| reserve.0),
            opening,
            origin_proof: config.store.origin_proof,
            ..Options::default()
        };
        let dir = config.store_dir()?;
        let store = Store::open(&dir, options).map_err(ServerError::Store)?;
        log_access(&dir, store.access());
        Ok(Self {
            store,
            space: Mutex::new(Space {
                is_there: true,
                wanted: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
            probe_every: Duration::from_millis(config.store.room_probe_ms.max(1)),
            batches: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        })
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn probe_every(&self) -> Duration {
        self.probe_every
    }

    /// Whether commits are taken.
    pub(super) fn has_space(&self) -> bool {
        self.lock().is_there
    }

    /// A batch of so many bytes did not fit: so much must be free before commits are taken again, within reason.
    pub(super) fn wants(&self, bytes: u64) {
        let mut space = self.lock();
        space.is_there = false;
        space.wanted = bytes;
    }

    /// Looks whether there is space (still, or again), and tells if that has changed. `tell` is called under the lock, so
    /// that what is told last is so.
    pub(super) fn look(&self, tell: impl FnOnce(bool)) {
        let mut space = self.lock();
        let asked = self.store.ask_space(space.wants(self.store.limit()));
        if asked.is_ok() == space.is_there {
            return;
        }
        space.is_there = asked.is_ok();
        space.wanted = 0;
        match asked {
            Ok(()) => info!("there is room again: commits are taken"),
            Err(error) => warn!("commits are refused, reads go on: {error}"),
        }
        tell(space.is_there);
        drop(space);
        self.changed.notify_all();
    }

    /// How much fits in the store, which has all batches up to a mark.
    pub(super) fn left(&self, as_of: Mark) -> HomeCommand {
        let free = self.store.space_left(Purpose::NewData);
        let room = self.store.space_left(Purpose::Kept);
        HomeCommand::Space { free, room, as_of }
    }

    /// A new life begins: batches may wait again.
    pub(super) fn begin(&self) {
        self.lock().stopped = false;
    }

    /// The life ends: what waits for space waits no more.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn written(&self) -> Written {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Written {
            batches: count(&self.batches),
            groups: count(&self.groups),
            bytes: count(&self.bytes),
            time: Duration::from_nanos(count(&self.nanos)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Space> {
        // Nothing panics half-way through a change.
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a group that does not fit may wait for space. Several batches are tried one by one first, by who gave them.
    fn may_wait(&self, group: &[Batch]) -> bool {
        matches!(group, [batch] if batch.purpose >= Purpose::Housekeeping)
    }

    /// Waits for a change or for the next look. Tells whether it is worth trying again.
    fn wait(&self) -> bool {
        let space = self.lock();
        if space.is_there || space.stopped {
            return false;
        }
        let waited = self.changed.wait_timeout(space, self.probe_every);
        let (space, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !space.stopped
    }

    fn count(&self, group: &[Batch], began: Instant) {
        let add = |counter: &AtomicU64, count: u64| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.batches, group.len() as u64);
        add(&self.groups, 1);
        add(&self.bytes, group.iter().map(|b| b.bytes() as u64).sum());
        let nanos = u64::try_from(began.elapsed().as_nanos());
        add(&self.nanos, nanos.unwrap_or(u64::MAX));
    }
}

fn log_access(dir: &Path, access: &Access) {
    let dir = dir.display();
    match access {
        Access::Private => {}
        Access::Closed { mode } => {
            info!("other users could read {dir} (mode {mode:03o}): its mode is 700 now");
        }
        Access::Open { mode, error } => warn!(
            "other users can read {dir} (mode {mode:03o}), and this process may not change that ({error}): run `chmod 700` on it"
        ),
    }
}

impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.store.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        self.store.scan(table, from, to, visit)
    }
}

impl Engine for Disk {
    fn commit(&self, group: &[Batch]) -> Result<(), StorageError> {
        loop {
            let began = Instant::now();
            match self.store.commit(group) {
                Ok(()) => {
                    self.count(group, began);
                    return Ok(());
                }
                Err(StorageError::Full { .. }) if self.may_wait(group) && self.wait() => {}
                Err(error) => return Err(error),
            }
        }
    }
}
