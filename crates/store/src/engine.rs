//! The embedded engine: the only file, with `store` and `check`, that knows it.

use crate::error::OpenError;
use crate::{record, usage};
use fjall::compaction::Leveled;
use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use std::any::Any;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use thorp_model::{StorageError, Table};

/// The engine with the keyspaces of all tables.
pub(crate) struct Opened {
    pub(crate) tables: [Keyspace; Table::ALL.len()],
    pub(crate) own: Keyspace,
    pub(crate) database: Database,
    /// Without a background thread memory is written out, and tables are rewritten, only by whoever calls.
    has_worker: bool,
}

impl Opened {
    pub(crate) fn table(&self, table: Table) -> &Keyspace {
        &self.tables[record::place(table)]
    }

    fn keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.tables.iter().chain([&self.own])
    }

    /// Bytes that a table takes on the volume.
    pub(crate) fn bytes(&self, table: Table) -> u64 {
        self.table(table).disk_space()
    }

    /// Whether it does nothing by itself: there was no room for its compactions when it was opened.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_worker
    }

    /// Bytes in memory that wait to be written out to tables.
    pub(crate) fn waiting(&self) -> u64 {
        match self.has_worker {
            true => self.database.write_buffer_size(),
            false => self
                .keyspaces()
                .map(|each| each.tree.active_memtable().size())
                .sum(),
        }
    }

    /// Whether so much was written out that the engine, which is idle, stops writers for ever before long.
    pub(crate) fn is_stuffed(&self) -> bool {
        let runs = self.keyspaces().map(|each| each.tree.l0_run_count());
        self.is_idle() && runs.max().unwrap_or_default() >= IDLE_RUNS_MAX
    }

    /// Bytes that compactions may write before they delete what they read, at most: one of the background thread, and one
    /// of [`Opened::compact`], of two tables.
    pub(crate) fn merges(&self) -> u64 {
        merges(self.keyspaces().map(Keyspace::disk_space).collect())
    }

    /// Bytes in table files that are no part of a table: a compaction has not come to its end yet, or has just ended.
    pub(crate) fn beside_tables(&self) -> u64 {
        let beside = |keyspace: &Keyspace| {
            let files = bytes_in(&keyspace.path().join(TABLES_DIR));
            files.saturating_sub(keyspace.disk_space())
        };
        self.keyspaces().map(beside).sum()
    }

    /// Waits until the background thread has nothing to do, for some seconds at most.
    pub(crate) fn wait_for_worker(&self) {
        let database = &self.database;
        let mut quiet = 0;
        for _ in 0..WORKER_PATIENCE_MS {
            let is_at_work =
                database.outstanding_flushes() > 0 || database.active_compactions() > 0;
            // Between two pieces of work it is quiet for less than a moment.
            quiet = if is_at_work { 0 } else { quiet + 1 };
            if quiet > 2 || !self.has_worker {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets go of the files that compactions have read. The engine keeps them until something was written since, and a table
    /// is written out: a store that takes no commits would keep them for ever. So a record is removed that never was.
    pub(crate) fn drop_old_files(&self) -> fjall::Result<()> {
        let is_at_work = self.database.active_compactions() > 0;
        if self.has_worker && !is_at_work && self.own.sealed_memtable_count() == 0 {
            self.own.remove(usage::NO_KEY)?;
            self.own.rotate_memtable()?;
        }
        Ok(())
    }

    /// Lets the background thread write out the tables that have most in memory, if it is not at it.
    pub(crate) fn begin_to_write_out(&self, memory_max: u64) -> fjall::Result<()> {
        if self.is_idle() {
            return self.write_out();
        }
        for keyspace in self.keyspaces() {
            let large = keyspace.tree.active_memtable().size() > memory_max / MEMORY_PART;
            // The engine stops writers for ever when four wait and the thread has failed.
            if large && keyspace.sealed_memtable_count() == 0 {
                keyspace.rotate_memtable()?;
            }
        }
        Ok(())
    }

    /// Writes out everything in memory, and waits for it.
    pub(crate) fn write_out(&self) -> fjall::Result<()> {
        if self.is_idle() {
            return self.keyspaces().try_for_each(write_out_alone);
        }
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable()?;
        }
        while self
            .keyspaces()
            .any(|keyspace| keyspace.sealed_memtable_count() > 0)
        {
            // An error when the background thread has failed: nobody would write it out then.
            self.database.persist(PersistMode::Buffer)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Rewrites a table without what was deleted and overwritten, and waits for it.
    pub(crate) fn compact(&self, table: Table) -> fjall::Result<()> {
        self.table(table).major_compact()
    }
}

/// Makes an engine with empty tables in a directory that does not exist.
pub(crate) fn create(engine_dir: &Path) -> Result<(), OpenError> {
    guarded(engine_dir, || {
        let database = builder(engine_dir, CREATE_CACHE_BYTES, 1).open()?;
        for (name, memtable_bytes) in KEYSPACES {
            database.keyspace(name, || keyspace_options(memtable_bytes))?;
        }
        Ok(())
    })
}

/// Opens the engine in a directory. Without workers nothing is written in
/// the background.
pub(crate) fn open(
    engine_dir: &Path,
    cache_bytes: u64,
    workers: usize,
) -> Result<Opened, OpenError> {
    // Whatever is missing, the engine would make it anew, and empty.
    if !engine_dir.join(ENGINE_VERSION_FILE).exists() {
        return Err(OpenError::damaged(
            engine_dir,
            "the engine's files are missing",
        ));
    }
    let database = guarded(engine_dir, || {
        builder(engine_dir, cache_bytes, workers).open()
    })?;
    let table = |name: &str| {
        if !database.keyspace_exists(name) {
            return Err(OpenError::damaged(
                engine_dir,
                format!("table {name} is missing"),
            ));
        }
        guarded(engine_dir, || {
            database.keyspace(name, KeyspaceCreateOptions::default)
        })
    };
    let [meta, log, pages, outcomes, staged] = Table::ALL.map(|each| table(each.name()));
    Ok(Opened {
        tables: [meta?, log?, pages?, outcomes?, staged?],
        own: table(usage::KEYSPACE)?,
        database,
        has_worker: workers > 0,
    })
}

/// Writes out what a table has in memory, without the background thread. Nobody writes meanwhile.
fn write_out_alone(keyspace: &Keyspace) -> fjall::Result<()> {
    let tree = &keyspace.tree;
    tree.rotate_memtable();
    let lock = tree.get_flush_lock();
    // Old versions stay until the engine is opened again: a reader may see one.
    tree.flush(&lock, 0)?;
    Ok(())
}

/// What compactions of an engine that is not open may write, as [`Opened::merges`].
pub(crate) fn merges_of(engine_dir: &Path) -> u64 {
    let tables = fs::read_dir(engine_dir.join(KEYSPACES_DIR))
        .into_iter()
        .flatten();
    let tables = tables.filter_map(|table| Some(table.ok()?.path().join(TABLES_DIR)));
    merges(tables.map(|table| bytes_in(&table)).collect())
}

/// What two compactions may write, of the two largest of so many tables.
fn merges(mut tables: Vec<u64>) -> u64 {
    tables.sort_unstable();
    let largest = tables.iter().rev().take(2);
    largest.map(|bytes| (*bytes).min(MERGE_BYTES_MAX)).sum()
}

/// Bytes of the files in a directory. One that is deleted meanwhile takes nothing.
fn bytes_in(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten();
    let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
    sizes.sum()
}

/// What an error of the engine while reading means for the record read.
pub(crate) fn read_error(table: Table, key: &[u8], error: &fjall::Error) -> StorageError {
    let io = match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => Some(error.kind()),
        _ => None,
    };
    match io {
        // The disk does not answer: that says nothing about the record.
        Some(kind) if !shows_damage(kind) => broken(error),
        _ => StorageError::Damaged {
            table,
            key: key.to_vec(),
            detail: error.to_string(),
        },
    }
}

/// What any error of the engine while writing means: see the crate's
/// documentation on full disks.
pub(crate) fn broken(error: &fjall::Error) -> StorageError {
    StorageError::Broken {
        detail: error.to_string(),
    }
}

/// Runs a part of the engine that may panic on damaged files.
pub(crate) fn unpanicked<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|cause| panic_words(&*cause))
}

/// What a panic said.
pub(crate) fn panic_words(cause: &(dyn Any + Send)) -> String {
    let words = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied());
    format!("panic: {}", words.unwrap_or("no words"))
}

/// A file that the engine writes last when it makes its directory.
const ENGINE_VERSION_FILE: &str = "version";

/// How long the background thread is waited for, in milliseconds.
const WORKER_PATIENCE_MS: usize = 5_000;

/// Where the engine keeps its tables.
const KEYSPACES_DIR: &str = "keyspaces";

/// The engine stops writers for ever when the upper level of a table has 30 runs.
const IDLE_RUNS_MAX: usize = 20;

/// Where the engine keeps the files of a table's levels.
const TABLES_DIR: &str = "tables";

const CREATE_CACHE_BYTES: u64 = 1 << 20;

/// One worker: see the crate's documentation.
pub(crate) const WORKERS: usize = 1;

/// The engine's keyspaces, each with the most that it keeps in memory before
/// writing it out, in bytes. Kept by the engine from when the store is made.
const KEYSPACES: [(&str, u64); Table::ALL.len() + 1] = [
    ("meta", 4 << 20),
    ("log", 16 << 20),
    ("pages", 16 << 20),
    ("outcomes", 8 << 20),
    ("staged", 16 << 20),
    // One record, written with every group.
    (usage::KEYSPACE, 4 << 20),
];

/// Journals together before tables are written out only to be rid of one.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// The size of a table file. Half the engine's usual: a compaction is in the
/// way of the next flush, there being one worker.
const TABLE_FILE_BYTES: u64 = 32 << 20;

/// The most that two compactions write, of whatever tables.
pub(crate) const MERGES_MAX: u64 = 2 * MERGE_BYTES_MAX;

/// The most that one compaction writes, by the size of its levels: the upper ones whole, or a file of one level with the
/// dozen that it overlaps below.
const MERGE_BYTES_MAX: u64 = 13 * TABLE_FILE_BYTES;

/// A table is written out early if it has so large a part of what may wait in memory.
const MEMORY_PART: u64 = 8;

fn builder(
    engine_dir: &Path,
    cache_bytes: u64,
    workers: usize,
) -> fjall::DatabaseBuilder<Database> {
    Database::builder(engine_dir)
        .cache_size(cache_bytes)
        .max_journaling_size(JOURNAL_BYTES_MAX)
        .worker_threads_unchecked(workers)
}

fn keyspace_options(memtable_bytes: u64) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .compaction_strategy(Arc::new(
            Leveled::default().with_table_target_size(TABLE_FILE_BYTES),
        ))
}

fn guarded<T>(dir: &Path, run: impl FnOnce() -> fjall::Result<T>) -> Result<T, OpenError> {
    match unpanicked(run) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(open_error(dir, error)),
        Err(words) => Err(OpenError::damaged(dir, words)),
    }
}

fn open_error(dir: &Path, error: fjall::Error) -> OpenError {
    match error {
        fjall::Error::Locked => OpenError::InUse {
            dir: dir.to_path_buf(),
        },
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error))
            if !shows_damage(error.kind()) =>
        {
            OpenError::io(dir, error)
        }
        error => OpenError::damaged(dir, error.to_string()),
    }
}

/// Whether an error comes from what is in the files rather than from the disk.
fn shows_damage(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotFound
            | io::ErrorKind::Other
    )
}
