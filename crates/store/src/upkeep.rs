//! The work that keeps a store small on its volume: it writes memory out, rewrites tables without what was deleted, and
//! empties the engine's journals.
//!
//! The engine does all that itself, but by its own measures: it keeps a journal until it has 64 MB, and a table with
//! deleted records until enough new ones come. A small volume is full by then.

use crate::engine::{self, Opened};
use crate::error::OpenError;
use crate::journal;
use crate::record;
use crate::slot::Slot;
use crate::usage::Usage;
use crate::volume::Volume;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thorp_model::{StorageError, Table};

/// What a group did to the volume, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traces {
    /// What it wrote to the journal.
    pub(crate) journaled: u64,
    /// What it deleted or wrote over, by table. It takes its room until the table is rewritten.
    garbage: [u64; Table::ALL.len()],
}

impl Traces {
    /// A record of so many bytes is deleted or written over.
    pub(crate) fn leave(&mut self, table: Table, bytes: u64) {
        self.garbage[record::place(table)] += bytes;
    }
}

/// Keeps account of what the engine could give back, and makes it.
pub(crate) struct Upkeep {
    engine_dir: PathBuf,
    cache_bytes: u64,
    /// Bytes written to journals since it was looked at what they take.
    journaled: AtomicU64,
    garbage: [AtomicU64; Table::ALL.len()],
    /// Held by whoever reclaims. Taken before the store's lock for writing.
    reclaiming: Mutex<()>,
}

impl Upkeep {
    /// For a store that was just opened: what the engine could give back is not known, so it is tried.
    pub(crate) fn new(engine_dir: PathBuf, cache_bytes: u64) -> Upkeep {
        let unknown = || AtomicU64::new(UNKNOWN);
        Upkeep {
            engine_dir,
            cache_bytes,
            journaled: unknown(),
            garbage: Table::ALL.map(|_| unknown()),
            reclaiming: Mutex::default(),
        }
    }

    /// Waits until nobody else reclaims.
    pub(crate) fn begin(&self) -> MutexGuard<'_, ()> {
        self.reclaiming
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A group was written.
    pub(crate) fn count(&self, traces: &Traces) {
        add(&self.journaled, traces.journaled);
        for (all, bytes) in self.garbage.iter().zip(traces.garbage) {
            add(all, bytes);
        }
    }

    /// What has to be done after a group, so that memory and journals stay within what the volume allows. Nobody writes
    /// meanwhile. Most often there is nothing to do.
    pub(crate) fn tend(&self, slot: &Slot, volume: Volume) -> Result<(), StorageError> {
        let engine = slot.borrow()?;
        if engine.is_idle() && volume.free <= engine.waiting() {
            return Ok(());
        }
        if engine.waiting() > volume.memory_max() {
            engine
                .begin_to_write_out(volume.memory_max())
                .map_err(broken)?;
        }
        drop(engine);
        if self.journaled.load(Ordering::Relaxed) < volume.journals_max() / JOURNAL_LOOKS {
            return Ok(());
        }
        self.journaled.store(0, Ordering::Relaxed);
        if self.journals_take()? > volume.journals_max() {
            self.empty_journals(slot)?;
        }
        Ok(())
    }

    /// Rewrites the tables that have something to give back and fit beside themselves. Others read and write meanwhile. Tells
    /// whether there were any. An idle engine lets nobody write meanwhile.
    pub(crate) fn compact(
        &self,
        slot: &Slot,
        volume: Volume,
        usage: &Usage,
    ) -> Result<bool, StorageError> {
        let free = || Volume::of(&self.engine_dir).unwrap_or(volume).free;
        self.compact_within(slot, usage, free)
    }

    /// The same on a volume of which so much is free.
    fn compact_within(
        &self,
        slot: &Slot,
        usage: &Usage,
        free: impl Fn() -> u64,
    ) -> Result<bool, StorageError> {
        let engine = slot.borrow()?;
        let mut some = false;
        for table in Table::ALL {
            let garbage = &self.garbage[record::place(table)];
            if garbage.load(Ordering::Relaxed) < worth(engine.bytes(table)) {
                continue;
            }
            if free() <= engine.waiting() {
                return Ok(some);
            }
            let kept = usage.table(table).bytes;
            let written = || engine.bytes(table).min(kept + kept / 8 + (64 << 10));
            // What lingers may be free soon. If the table does not fit even then, memory is not written out for it: a volume
            // that stays short would have that done every second.
            if free().saturating_add(engine.beside_tables()) <= written() {
                continue;
            }
            engine.write_out().map_err(broken)?;
            // What other compactions write, or have read, would take room beside what this one writes.
            engine.wait_for_worker();
            engine.drop_old_files().map_err(broken)?;
            if free() > written() {
                garbage.store(0, Ordering::Relaxed);
                engine.compact(table).map_err(broken)?;
                some = true;
            }
        }
        Ok(some)
    }

    /// Empties the journals if that gives back something worth it. Nobody writes meanwhile. Tells whether it did.
    pub(crate) fn empty_journals_if_worth(
        &self,
        slot: &Slot,
        volume: Volume,
    ) -> Result<bool, StorageError> {
        if self.journals_take()? < volume.journals_max() / JOURNAL_LOOKS {
            return Ok(false);
        }
        self.empty_journals(slot)
    }

    /// Stops the engine's own work when there is no room for it, and lets it go on when there is. Nobody writes meanwhile. Tells
    /// whether it goes on now.
    pub(crate) fn settle(&self, slot: &Slot, volume: Volume) -> Result<bool, StorageError> {
        let engine = slot.borrow()?;
        let is_idle = engine.is_idle();
        let work = engine.merges().saturating_add(engine.waiting());
        let written = engine.beside_tables();
        drop(engine);
        let free = Volume::of(&self.engine_dir).unwrap_or(volume).free;
        let has_room = match is_idle {
            true => free > work.saturating_add(volume.share() / 2),
            false => free > work.saturating_sub(written),
        };
        match (is_idle, has_room) {
            (true, true) => self.empty_journals(slot),
            (false, false) => slot.renew(|| self.open_again()).map(|_| false),
            _ => Ok(false),
        }
    }

    /// Opens the engine: idle, if its compactions do not fit on the volume.
    pub(crate) fn open(
        engine_dir: &Path,
        cache_bytes: u64,
        volume: Option<Volume>,
    ) -> Result<Opened, OpenError> {
        // All that the journals hold may be in memory soon, and is written out first.
        let journals = journal::bytes_taken(engine_dir).unwrap_or_default();
        let work = engine::merges_of(engine_dir).saturating_add(journals);
        let workers = match volume {
            Some(volume) if volume.free <= work => 0,
            _ => engine::WORKERS,
        };
        engine::open(engine_dir, cache_bytes, workers)
    }

    /// Writes out what the journals hold, if that fits, and opens the engine anew with empty ones. Tells whether it did.
    pub(crate) fn empty_journals(&self, slot: &Slot) -> Result<bool, StorageError> {
        let engine = slot.borrow()?;
        let has_room = |volume: Volume| volume.free > engine.waiting();
        if !Volume::of(&self.engine_dir).is_none_or(has_room) {
            return Ok(false);
        }
        engine.write_out().map_err(broken)?;
        drop(engine);
        slot.renew(|| {
            journal::empty(&self.engine_dir).map_err(failed)?;
            self.open_again()
        })
    }

    fn open_again(&self) -> Result<Opened, StorageError> {
        let volume = Volume::of(&self.engine_dir);
        Self::open(&self.engine_dir, self.cache_bytes, volume).map_err(failed)
    }

    fn journals_take(&self) -> Result<u64, StorageError> {
        journal::bytes_taken(&self.engine_dir).map_err(failed)
    }
}

/// How much garbage in a table of so many bytes is worth rewriting it.
fn worth(table_bytes: u64) -> u64 {
    (table_bytes / 16).max(64 << 10)
}

fn add(counter: &AtomicU64, bytes: u64) {
    counter.fetch_add(bytes, Ordering::Relaxed);
}

fn broken(error: fjall::Error) -> StorageError {
    engine::broken(&error)
}

fn failed(error: impl std::fmt::Display) -> StorageError {
    StorageError::Broken {
        detail: error.to_string(),
    }
}

/// More than any table or journal has, and far from an overflow.
const UNKNOWN: u64 = u64::MAX / 2;

/// How often it is looked at what journals take, until they take what they may.
const JOURNAL_LOOKS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::options::Options;
    use crate::store::Store;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use thorp_model::{Batch, Engine as _, Mark, Op, Purpose, Reader as _, Scan, SplitMix64};

    const ROUNDS: u64 = 8;

    /// Readers end also when the test fails.
    struct EndsReaders<'a>(&'a AtomicBool);

    impl Drop for EndsReaders<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn put(round: u64) -> Batch {
        let op = |key: Vec<u8>| Op::Put {
            table: Table::Pages,
            key,
            value: vec![round as u8; 3000],
        };
        Batch {
            mark: Mark(round),
            purpose: Purpose::Housekeeping,
            ops: vec![
                op(b"same".to_vec()),
                op(format!("each-{round}").into_bytes()),
            ],
        }
    }

    #[test]
    fn journals_are_emptied_under_readers_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let upkeep = Upkeep::new(store.engine_dir(), 1 << 20);
        store.commit(&[put(0)]).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // It reads while it scans, as whoever opens a home may.
                    let mut visit = |key: &[u8], _: &[u8]| {
                        assert!(store.get(Table::Pages, key).unwrap().is_some());
                        Scan::Go
                    };
                    store.scan(Table::Pages, b"", b"", &mut visit).unwrap();
                }
            });
            let _ends = EndsReaders(&done);
            for round in 1..=ROUNDS {
                store.commit(&[put(round)]).unwrap();
                while !upkeep.empty_journals(store.slot()).unwrap() {}
                let taken = journal::bytes_taken(&store.engine_dir()).unwrap();
                assert!(taken < 64 << 10, "journals take {taken} bytes");
                // What comes after is newer than all before.
                let last = store.get(Table::Pages, b"same").unwrap().unwrap();
                assert_eq!(last[0], round as u8);
            }
        });
        drop(store);
        let report = check(dir.path()).unwrap();
        assert!(report.is_good(), "{report}");
        let store = Store::open(dir.path(), Options::default()).unwrap();
        assert_eq!(store.usage().table(Table::Pages).records, ROUNDS + 2);
    }

    #[test]
    fn a_table_whose_records_are_gone_takes_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let volume = Volume::of(dir.path()).unwrap();
        let upkeep = Upkeep::new(store.engine_dir(), 1 << 20);
        for round in 0..ROUNDS {
            store.commit(&[put(round)]).unwrap();
        }
        assert!(
            upkeep
                .compact(store.slot(), volume, &store.usage())
                .unwrap()
        );
        let bytes = || store.engine().bytes(Table::Pages);
        assert!(bytes() > 0);
        let delete = |key: Vec<u8>| Op::Delete {
            table: Table::Pages,
            key,
        };
        let mut ops: Vec<Op> = (0..ROUNDS)
            .map(|round| delete(format!("each-{round}").into_bytes()))
            .collect();
        ops.push(delete(b"same".to_vec()));
        let removal = Batch {
            mark: Mark(ROUNDS),
            purpose: Purpose::Removal,
            ops,
        };
        store.commit(&[removal]).unwrap();
        // It has heard of nothing, so there is nothing to do for it.
        assert!(
            !upkeep
                .compact(store.slot(), volume, &store.usage())
                .unwrap()
        );
        let mut traces = Traces::default();
        traces.leave(Table::Pages, 1 << 20);
        upkeep.count(&traces);
        assert!(
            upkeep
                .compact(store.slot(), volume, &store.usage())
                .unwrap()
        );
        assert_eq!(bytes(), 0);
        // Nothing is committed meanwhile, and still the files go.
        for _ in 0..1_000 {
            // What is written for it is small, and goes in its turn.
            if store.engine().beside_tables() < 8_000 {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(1));
            store.engine().drop_old_files().unwrap();
        }
        panic!("{} bytes linger", store.engine().beside_tables());
    }

    #[test]
    fn memory_is_not_written_out_for_a_table_that_cannot_fit() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default()).unwrap();
        let volume = Volume::of(dir.path()).unwrap();
        let upkeep = Upkeep::new(store.engine_dir(), 1 << 20);
        let fill = |rounds: std::ops::Range<u64>| {
            rounds.for_each(|round| store.commit(&[random_pages(round)]).unwrap());
        };
        fill(0..20);
        upkeep
            .compact(store.slot(), volume, &store.usage())
            .unwrap();
        fill(20..22);
        let mut traces = Traces::default();
        traces.leave(Table::Pages, 1 << 20);
        upkeep.count(&traces);
        let engine = store.engine();
        engine.wait_for_worker();
        let (waits, table) = (engine.waiting(), engine.bytes(Table::Pages));
        assert!(waits < table / 2, "{waits} wait, the table has {table}");
        let compacted = |free: u64| upkeep.compact_within(store.slot(), &store.usage(), || free);
        assert!(!compacted(table / 2).unwrap());
        assert!(engine.waiting() >= waits, "it was written out");
        assert!(compacted(3 * table).unwrap());
        assert!(engine.waiting() < waits);
    }

    /// Pages that no engine makes smaller.
    fn random_pages(round: u64) -> Batch {
        let mut random = SplitMix64::new(round);
        let mut bytes = || (0..3000).map(|_| random.bits() as u8).collect::<Vec<u8>>();
        let op = |at: u64| Op::Put {
            table: Table::Pages,
            key: format!("{round}-{at}").into_bytes(),
            value: bytes(),
        };
        Batch {
            mark: Mark(round),
            purpose: Purpose::Housekeeping,
            ops: (0..10).map(op).collect(),
        }
    }
}
