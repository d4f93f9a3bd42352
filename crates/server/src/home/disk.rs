//! The store of a home, and whether it has space.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thorp_model::{
    Batch, Engine, Lack, Mark, Purpose, Reader, Scan, SpaceBound, StorageError, Table, limits,
};
use thorp_protocol::HomeCommand;
use thorp_store::{Access, Opening, Options, Store, Volume};
use tracing::{info, warn};

use super::room::Room;
use crate::config::HomeConfigFile;
use crate::error::ServerError;

/// An open store that knows whether it has space.
///
/// With space, a batch that does not fit is an error, and the home's life ends. Without space the home takes no commits. It
/// appends its own housekeeping, which waits here until it fits and ends nothing, and what the kept room has space for (rule R7).
/// But what brings something, accepted when there was space, never waits: behind it is queued what would free some, and
/// nothing of it was acknowledged.
pub(super) struct Disk {
    store: Store,
    room: Room,
    /// On a volume of so many bytes or less, the next commits wait while its room is reclaimed. On a larger one that may
    /// take long.
    reclaimed_at_once_max: u64,
    batches: AtomicU64,
    groups: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

/// What an installation of pages brings at once, in bytes.
const INSTALLED_BYTES: u64 = (limits::INSTALL_PAGES_MIN * limits::PAGE_BYTES) as u64;

/// The largest volume whose room is reclaimed before commits are refused, in bytes.
const RECLAIMED_AT_ONCE_MAX: u64 = 1 << 30;

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
            room: Room::new(Duration::from_millis(config.store.room_probe_ms.max(1))),
            reclaimed_at_once_max: RECLAIMED_AT_ONCE_MAX,
            batches: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        })
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Whether commits are taken.
    pub(super) fn has_space(&self) -> bool {
        self.room.lack().is_none()
    }

    /// Looks whether there is space (still, or again), and tells what is new.
    pub(super) fn look(&self, tell: impl FnOnce(Option<Lack>)) {
        self.room.look(&self.store, tell);
    }

    /// Tells the home what a commit left, and that it is durable, up to a mark. Whoever sees the acknowledgement finds the
    /// home as this batch left it.
    ///
    /// What a small volume can give back is reclaimed before commits are refused. That may take seconds, so it comes after
    /// the acknowledgement. Meanwhile the home takes what fits into what it was told is left.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: the engine cannot write.
    pub(super) fn after_commit(
        &self,
        mark: Mark,
        mut tell: impl FnMut(HomeCommand),
    ) -> Result<(), StorageError> {
        let reclaims = self.reclaims_first();
        if !reclaims {
            self.look(|lack| tell(HomeCommand::Lacks(lack)));
        }
        tell(self.left(mark));
        tell(HomeCommand::Durable(mark));
        if !reclaims {
            return Ok(());
        }
        let reclaimed = self.store.reclaim();
        self.look(|lack| tell(HomeCommand::Lacks(lack)));
        tell(self.left(mark));
        reclaimed.map(drop)
    }

    /// Whether room has ended on a volume so small that it is reclaimed before commits are refused.
    fn reclaims_first(&self) -> bool {
        let is_small = |volume: Volume| volume.size <= self.reclaimed_at_once_max;
        self.room.ends(&self.store) && self.store.volume().is_some_and(is_small)
    }

    /// How much fits in the store, which has all batches up to a mark.
    pub(super) fn left(&self, as_of: Mark) -> HomeCommand {
        let (free, of) = self.store.space_left(Purpose::NewData);
        let (room, _) = self.store.space_left(Purpose::Kept);
        HomeCommand::Space {
            free,
            room,
            of,
            installs: self.installs(),
            as_of,
        }
    }

    /// Whether an installation of pages fits on the volume. The limit of the store grows with it.
    fn installs(&self) -> bool {
        let (left, of) = self.store.space_left(Purpose::Housekeeping);
        of == SpaceBound::Limit || left >= INSTALLED_BYTES
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

    /// Whether a group that does not fit may wait for space. Several batches are tried one by one first, by who gave them.
    fn may_wait(&self, group: &[Batch]) -> bool {
        matches!(group, [batch] if batch.purpose >= Purpose::Housekeeping)
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
        let mut may_reclaim = group.iter().all(|batch| batch.purpose > Purpose::NewData);
        loop {
            let began = Instant::now();
            match self.store.commit(group) {
                Ok(()) => {
                    self.count(group, began);
                    return Ok(());
                }
                Err(StorageError::Full { .. }) if may_reclaim => {
                    may_reclaim = false;
                    self.store.reclaim()?;
                }
                Err(StorageError::Full { .. }) if self.may_wait(group) && self.room.wait() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Bytes;
    use std::fs;
    use thorp_model::Op;

    /// How many tables of the engine have been written out.
    fn written_out(engine: &Path) -> usize {
        let tables = fs::read_dir(engine.join("keyspaces")).unwrap();
        let files = tables.map(|table| fs::read_dir(table.unwrap().path().join("tables")).unwrap());
        files.filter_map(|mut files| files.next()).count()
    }

    #[test]
    fn an_acknowledgement_waits_for_no_compaction() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = HomeConfigFile {
            data_dir: Some(dir.path().to_owned()),
            ..HomeConfigFile::default()
        };
        config.store.disk_reserve = Some(Bytes(0));
        let engine = config.store_dir().unwrap().join("thorp-engine");
        let disk = Disk::open(&config, Opening::Prove).unwrap();
        let op = |table| Op::Put {
            table,
            key: vec![1],
            value: vec![1; 5000],
        };
        let batch = Batch {
            mark: Mark(1),
            purpose: Purpose::NewData,
            ops: Table::ALL.map(op).to_vec(),
        };
        disk.commit(&[batch]).unwrap();
        drop(disk);
        // The volume is as good as full, and counts as small.
        config.store.disk_reserve = Some(Bytes(1 << 60));
        let mut disk = Disk::open(&config, Opening::Prove).unwrap();
        disk.reclaimed_at_once_max = u64::MAX;
        let mut told = Vec::new();
        disk.after_commit(Mark(1), |command| {
            told.push((command, written_out(&engine)))
        })
        .unwrap();
        let words = |command: &HomeCommand| match command {
            HomeCommand::Durable(_) => "durable",
            HomeCommand::Lacks(_) => "lacks",
            HomeCommand::Space { .. } => "space",
            _ => "other",
        };
        let order: Vec<&str> = told.iter().map(|(command, _)| words(command)).collect();
        assert_eq!(order, ["space", "durable", "lacks", "space"]);
        let written: Vec<usize> = told.iter().map(|(_, written)| *written).collect();
        assert!(written[1] < Table::ALL.len(), "{written:?}");
        assert!(
            written[2] >= Table::ALL.len(),
            "it has not reclaimed: {written:?}"
        );
        // Commits are refused now. After each it looks, and reclaims nothing: another thread does.
        told.clear();
        disk.after_commit(Mark(1), |command| told.push((command, 0)))
            .unwrap();
        assert_eq!(
            told.last().map(|(command, _)| words(command)),
            Some("durable")
        );
    }
}
