//! Whether a group may be written: the store's own limit and the space on the
//! volume. Both are asked before anything is written, because an engine that
//! met a full disk must be opened again.

use crate::options::{DISK_RESERVE_BYTES_MAX, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_model::{Batch, Purpose, StorageError};

/// The purpose of a group: that of the batch which a full store refuses first.
pub(crate) fn purpose_of<'a>(group: impl IntoIterator<Item = &'a Batch>) -> Purpose {
    let purposes = group.into_iter().map(|batch| batch.purpose);
    purposes.min().unwrap_or(Purpose::Removal)
}

/// What a group would do to the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) purpose: Purpose,
    /// Bytes of the store's content before and after.
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// Bytes that will be written for it now or later, at least.
    pub(crate) written: u64,
}

/// The limits of a store.
pub(crate) struct Space {
    dir: PathBuf,
    /// `u64::MAX` for none.
    limit: AtomicU64,
    disk_reserve: Option<u64>,
}

impl Space {
    pub(crate) fn new(dir: &Path, options: &Options) -> Space {
        Space {
            dir: dir.to_path_buf(),
            limit: AtomicU64::new(options.limit_bytes.unwrap_or(u64::MAX)),
            disk_reserve: options.disk_reserve_bytes,
        }
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        let limit = self.limit.load(Ordering::Relaxed);
        (limit != u64::MAX).then_some(limit)
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit
            .store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Refuses a group that does not fit.
    pub(crate) fn ask(&self, demand: Demand) -> Result<(), StorageError> {
        self.ask_limit(demand)?;
        self.ask_disk(demand)
    }

    /// Bytes that could be brought for a purpose to a store that holds so much,
    /// with so much waiting in memory to be written out. It takes each twice: in
    /// the journal and in a table.
    pub(crate) fn left(&self, purpose: Purpose, held: u64, waiting: u64) -> u64 {
        let by_limit = self.limit().map_or(u64::MAX, |limit| {
            allowed(purpose, limit).saturating_sub(held)
        });
        let by_volume = match self.volume() {
            Some((free, reserve)) if self.disk_reserve != Some(0) => {
                let left_alone = left_alone(purpose, reserve);
                free.saturating_sub(left_alone).saturating_sub(waiting) / 2
            }
            _ => u64::MAX,
        };
        by_limit.min(by_volume)
    }

    /// Free and reserved bytes of the volume.
    fn volume(&self) -> Option<(u64, u64)> {
        let volume = rustix::fs::statvfs(&self.dir).ok()?;
        let free = volume.f_bavail.saturating_mul(volume.f_frsize);
        let all = volume.f_blocks.saturating_mul(volume.f_frsize);
        let reserve = (all / DISK_RESERVE_PART).min(DISK_RESERVE_BYTES_MAX);
        Some((free, self.disk_reserve.unwrap_or(reserve)))
    }

    fn ask_limit(&self, demand: Demand) -> Result<(), StorageError> {
        let Some(limit) = self.limit() else {
            return Ok(());
        };
        if demand.after <= demand.before || demand.after <= allowed(demand.purpose, limit) {
            return Ok(());
        }
        Err(full(format!(
            "the store holds {} bytes, would hold {}, its limit is {limit}",
            demand.before, demand.after
        )))
    }

    fn ask_disk(&self, demand: Demand) -> Result<(), StorageError> {
        if self.disk_reserve == Some(0) {
            return Ok(());
        }
        // Without an answer the engine will find out itself.
        let Some((free, reserve)) = self.volume() else {
            return Ok(());
        };
        let left_alone = left_alone(demand.purpose, reserve);
        if demand.written.saturating_add(left_alone) <= free {
            return Ok(());
        }
        Err(full(format!(
            "{free} bytes are free on the volume of {}, {left_alone} of them reserved",
            self.dir.display()
        )))
    }
}

/// What a store with a limit may hold after a group of a purpose, in bytes.
fn allowed(purpose: Purpose, limit: u64) -> u64 {
    let beyond = match purpose {
        Purpose::NewData => 0,
        Purpose::Kept => limit / KEPT_PART,
        Purpose::Housekeeping | Purpose::Removal => limit / HOUSEKEEPING_PART,
    };
    limit.saturating_add(beyond)
}

/// What a group of a purpose leaves alone of the reserve on the volume, in bytes.
fn left_alone(purpose: Purpose, reserve: u64) -> u64 {
    match purpose {
        Purpose::NewData => reserve,
        Purpose::Kept => reserve - reserve / 4,
        Purpose::Housekeeping => reserve / 2,
        Purpose::Removal => reserve / 4,
    }
}

/// The part of the limit by which changes of rights, deletions and audit records may go beyond it (rule R7).
const KEPT_PART: u64 = 32;

/// The part of the limit by which housekeeping may go beyond it.
pub(crate) const HOUSEKEEPING_PART: u64 = 16;

/// The part of the volume that is reserved unless told otherwise.
const DISK_RESERVE_PART: u64 = 8;

fn full(detail: String) -> StorageError {
    StorageError::Full { detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Mark;

    fn space(limit_bytes: Option<u64>, disk_reserve_bytes: Option<u64>) -> Space {
        let options = Options {
            limit_bytes,
            disk_reserve_bytes,
            ..Options::default()
        };
        Space::new(&std::env::temp_dir(), &options)
    }

    fn demand(purpose: Purpose, before: u64, after: u64) -> Demand {
        Demand {
            purpose,
            before,
            after,
            written: 1,
        }
    }

    #[test]
    fn the_limit_leaves_space_for_what_frees_some() {
        let space = space(Some(1600), Some(0));
        assert!(space.ask(demand(Purpose::NewData, 1000, 1600)).is_ok());
        assert!(space.ask(demand(Purpose::NewData, 1000, 1601)).is_err());
        assert!(space.ask(demand(Purpose::Kept, 1000, 1650)).is_ok());
        assert!(space.ask(demand(Purpose::Kept, 1000, 1651)).is_err());
        assert!(space.ask(demand(Purpose::Housekeeping, 1000, 1700)).is_ok());
        assert!(
            space
                .ask(demand(Purpose::Housekeeping, 1000, 1701))
                .is_err()
        );
        assert!(space.ask(demand(Purpose::NewData, 5000, 4999)).is_ok());
        space.set_limit(None);
        assert!(space.ask(demand(Purpose::NewData, 1000, 1601)).is_ok());
    }

    #[test]
    fn the_room_that_is_kept_back_lies_beyond_what_is_left_for_commits() {
        let limited = space(Some(1600), Some(0));
        assert_eq!(limited.left(Purpose::NewData, 1500, 0), 100);
        assert_eq!(limited.left(Purpose::Kept, 1500, 0), 150);
        assert_eq!(limited.left(Purpose::NewData, 1620, 0), 0);
        assert_eq!(limited.left(Purpose::Kept, 1620, 0), 30);
        let all = [
            Purpose::NewData,
            Purpose::Kept,
            Purpose::Housekeeping,
            Purpose::Removal,
        ];
        assert_eq!(
            all.map(|purpose| left_alone(purpose, 400)),
            [400, 300, 200, 100]
        );
    }

    #[test]
    fn a_group_is_refused_as_the_first_of_its_batches_is() {
        let batch = |purpose| Batch {
            mark: Mark(1),
            purpose,
            ops: Vec::new(),
        };
        let [data, work, removal] =
            [Purpose::NewData, Purpose::Housekeeping, Purpose::Removal].map(batch);
        assert_eq!(purpose_of([&removal, &data, &work]), Purpose::NewData);
        assert_eq!(purpose_of([&removal, &work]), Purpose::Housekeeping);
        assert_eq!(purpose_of([&removal]), Purpose::Removal);
    }

    #[test]
    fn a_volume_without_space_refuses() {
        let error = space(None, Some(u64::MAX)).ask(demand(Purpose::Removal, 9, 1));
        assert!(matches!(error, Err(StorageError::Full { .. })));
    }
}
