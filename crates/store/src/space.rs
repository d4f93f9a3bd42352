//! Whether a group may be written: the store's own limit and the room on the
//! volume. Both are asked before anything is written, because an engine that
//! met a full disk must be opened again.

use crate::options::{DISK_RESERVE_BYTES_MAX, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use thorp_model::records;
use thorp_model::records::LogRecord;
use thorp_model::{Batch, Op, StorageError, Table};

/// What a group is for, from most to least refusable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Purpose {
    /// Something new: the log record of a commit, a staged value.
    Brings,
    /// The home's own work, installing pages for one, which makes room later.
    Housekeeping,
    /// Only removals.
    Frees,
}

impl Purpose {
    /// The purpose of a group: the least of its changes.
    pub(crate) fn of<'a>(group: impl IntoIterator<Item = &'a Batch>) -> Purpose {
        let ops = group.into_iter().flat_map(|batch| &batch.ops);
        ops.map(Purpose::of_op).min().unwrap_or(Purpose::Frees)
    }

    fn of_op(op: &Op) -> Purpose {
        match op {
            Op::Put {
                table: Table::Log,
                key,
                value,
            } if is_only_a_place(key, value) => Purpose::Housekeeping,
            Op::Put {
                table: Table::Log | Table::Staged,
                ..
            } => Purpose::Brings,
            Op::Put { .. } => Purpose::Housekeeping,
            Op::Delete { .. } => Purpose::Frees,
        }
    }
}

/// Whether a batch brings something new, so that it needs more room than the
/// home's own work does.
pub fn brings(batch: &Batch) -> bool {
    Purpose::of([batch]) == Purpose::Brings
}

/// Whether a log record is the home's own and changes no page: the removal of a
/// segment, which must be possible in a full store.
fn is_only_a_place(key: &[u8], value: &[u8]) -> bool {
    value.len() <= PLACE_BYTES_MAX
        && records::decode(Table::Log, key, value)
            .is_ok_and(|record: LogRecord| record.commit.is_none() && record.changes.is_empty())
}

/// Bytes of a log record that is only a place, at most: longer ones need not be
/// looked into.
const PLACE_BYTES_MAX: usize = 64;

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

    /// Refuses a group for which there is no room.
    pub(crate) fn ask(&self, demand: Demand) -> Result<(), StorageError> {
        self.ask_limit(demand)?;
        self.ask_disk(demand)
    }

    /// Bytes that could be brought to a store that holds so much, with so much
    /// waiting in memory to be written out. It takes each twice: in the journal
    /// and in a table.
    pub(crate) fn left(&self, held: u64, waiting: u64) -> u64 {
        let by_limit = self
            .limit()
            .map_or(u64::MAX, |limit| limit.saturating_sub(held));
        let by_volume = match self.volume() {
            Some((free, reserve)) if self.disk_reserve != Some(0) => {
                free.saturating_sub(reserve).saturating_sub(waiting) / 2
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
        let allowed = match demand.purpose {
            Purpose::Brings => limit,
            _ => limit.saturating_add(limit / HOUSEKEEPING_PART),
        };
        if demand.after <= demand.before || demand.after <= allowed {
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
        let left_alone = match demand.purpose {
            Purpose::Brings => reserve,
            Purpose::Housekeeping => reserve / 2,
            Purpose::Frees => reserve / 4,
        };
        if demand.written.saturating_add(left_alone) <= free {
            return Ok(());
        }
        Err(full(format!(
            "{free} bytes are free on the volume of {}, {left_alone} of them reserved",
            self.dir.display()
        )))
    }
}

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
    use thorp_model::{
        CommitId, HomeId, Mark, MemberId, PageChange, PageId, PageSlots, Position, Stamp,
    };

    fn room(limit_bytes: Option<u64>, disk_reserve_bytes: Option<u64>) -> Space {
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
    fn the_limit_leaves_room_for_what_makes_room() {
        let room = room(Some(1600), Some(0));
        assert!(room.ask(demand(Purpose::Brings, 1000, 1600)).is_ok());
        assert!(room.ask(demand(Purpose::Brings, 1000, 1601)).is_err());
        assert!(room.ask(demand(Purpose::Housekeeping, 1000, 1700)).is_ok());
        assert!(room.ask(demand(Purpose::Housekeeping, 1000, 1701)).is_err());
        assert!(room.ask(demand(Purpose::Brings, 5000, 4999)).is_ok());
        room.set_limit(None);
        assert!(room.ask(demand(Purpose::Brings, 1000, 1601)).is_ok());
    }

    #[test]
    fn a_removal_is_housekeeping_and_a_commit_is_not() {
        let record = |commit, changes| LogRecord {
            position: Position(u64::MAX),
            stamp: Stamp {
                clock: u64::MAX,
                home: HomeId(u32::MAX),
            },
            commit,
            changes,
        };
        let purpose = |record: &LogRecord| {
            let key = records::log_key(record.position);
            let ops = vec![records::put(Table::Log, key, record)];
            let mark = Mark(1);
            Purpose::of([&Batch { mark, ops }])
        };
        let change = PageChange {
            page: PageId::new(1, 2),
            slots: PageSlots::Whole,
        };
        let id = CommitId {
            member: MemberId(u128::MAX),
            sequence: u64::MAX,
        };
        assert_eq!(purpose(&record(None, vec![])), Purpose::Housekeeping);
        assert_eq!(purpose(&record(Some(id), vec![])), Purpose::Brings);
        assert_eq!(purpose(&record(None, vec![change])), Purpose::Brings);
    }

    #[test]
    fn a_volume_without_room_refuses() {
        let error = room(None, Some(u64::MAX)).ask(demand(Purpose::Frees, 9, 1));
        assert!(matches!(error, Err(StorageError::Full { .. })));
    }
}
