//! The embedded engine: the only file, with `store` and `check`, that knows it.

use crate::error::OpenError;
use crate::{record, usage};
use fjall::compaction::Leveled;
use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use std::any::Any;
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

    /// Bytes in memory that wait to be written out to tables.
    pub(crate) fn waiting(&self) -> u64 {
        self.database.write_buffer_size()
    }

    /// Bytes that compactions may write before they delete what they read, at most: one of the background thread, and one
    /// of [`Opened::compact`], of two tables.
    pub(crate) fn merges(&self) -> u64 {
        let mut tables: Vec<u64> = self.keyspaces().map(Keyspace::disk_space).collect();
        tables.sort_unstable();
        let largest = tables.iter().rev().take(2);
        largest.map(|bytes| (*bytes).min(MERGE_BYTES_MAX)).sum()
    }

    /// Lets the background thread write out the tables that have most in memory, if it is not at it.
    pub(crate) fn begin_to_write_out(&self, memory_max: u64) -> fjall::Result<()> {
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
    })
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
