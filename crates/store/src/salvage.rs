//! Copying what can be read of a damaged store: behind `thorp salvage` (rule R9).

use crate::check::{CACHE_BYTES, mirror};
use crate::dir::Locked;
use crate::engine::{self, Opened};
use crate::error::OpenError;
use crate::history::{self, History};
use crate::options::Options;
use crate::store::{Store, read_usage, value_of};
use crate::{journal, manifest, note};
use std::fmt;
use std::fs;
use std::ops::{Bound, RangeInclusive};
use std::path::Path;
use thorp_model::records;
use thorp_model::{
    Batch, Engine as _, Mark, Op, PageId, Position, Purpose, Reader as _, StorageError, Table,
};

/// What was copied of a damaged store, and what was lost.
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// Records that were copied.
    pub records: u64,
    /// The last commit in the copy.
    pub position: Position,
    /// Groups that were acknowledged and cannot be read, as far as is known.
    pub groups: Option<RangeInclusive<u64>>,
    /// Records that cannot be read or used, the first [`Salvaged::LOST_MAX`] of them.
    pub lost: Vec<Lost>,
    /// How many these are, listed or not.
    pub lost_count: u64,
    /// What else is wrong, each a sentence for a person.
    pub remarks: Vec<String>,
}

/// What cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lost {
    /// A page.
    Page(PageId),
    /// A commit.
    Position(Position),
    /// Another record.
    Record {
        /// Its table.
        table: Table,
        /// Its key.
        key: Vec<u8>,
    },
    /// All records of a table between two keys that can be read; none stands for the table's end.
    Between {
        /// The table.
        table: Table,
        /// The last key before.
        after: Option<Vec<u8>>,
        /// The first key behind.
        before: Option<Vec<u8>>,
    },
}

/// Copies all that can be read of the store in `dir`, up to the first damaged group, into a new store in `into`. That one
/// is closed until an operator opens it. The store in `dir` is not changed.
///
/// # Errors
///
/// [`OpenError`]: there is no store, or one in use; `into` is not empty; or the engine cannot open what is left.
pub fn salvage(dir: impl AsRef<Path>, into: impl AsRef<Path>) -> Result<Salvaged, OpenError> {
    let (dir, into) = (dir.as_ref(), into.as_ref());
    let locked = Locked::existing(dir)?;
    ask_empty(into)?;
    let scratch =
        tempfile::tempdir().map_err(|error| OpenError::io(&std::env::temp_dir(), error))?;
    let copy = scratch.path().join("engine");
    mirror(&locked.engine_dir(), &copy)
        .map_err(|error| OpenError::io(&locked.engine_dir(), error))?;
    let mut salvaged = Salvaged::default();
    let failed = |error| OpenError::io(&copy, error);
    if let Err(detail) = manifest::inspect(&copy).map_err(failed)? {
        salvaged.remarks.push(detail);
    }
    let reach = journal::keep_readable(&copy).map_err(failed)?;
    let opened = engine::open(&copy, CACHE_BYTES, 0)?;
    let usage = read_usage(&opened).unwrap_or_else(|detail| {
        salvaged.remarks.push(detail);
        Default::default()
    });
    let noted = note::read(dir).map_err(|error| OpenError::io(dir, error))?;
    let last = usage.groups.max(reach.last_group.unwrap_or_default());
    let known = noted.max(reach.later_group).unwrap_or_default();
    salvaged.groups = (known > last).then(|| last + 1..=known);
    let new = Store::open(into, Options::default())?;
    let write = |error: StorageError| OpenError::damaged(into, error.to_string());
    new.continue_salvaged(known_history(&opened, &new, &mut salvaged))
        .map_err(write)?;
    let mut writer = Writer::new(&new, usage.mark);
    for table in Table::ALL {
        copy_table(&opened, table, &mut writer, &mut salvaged).map_err(write)?;
    }
    writer.flush().map_err(write)?;
    salvaged.records = writer.records;
    salvaged.position = last_position(&new).map_err(write)?;
    Ok(salvaged)
}

impl Salvaged {
    /// How much of what is lost is listed.
    pub const LOST_MAX: usize = 1_000;

    /// Whether nothing is known to be lost.
    pub fn is_whole(&self) -> bool {
        self.groups.is_none() && self.lost_count == 0 && self.remarks.is_empty()
    }

    fn lose(&mut self, lost: Lost) {
        self.lost_count += 1;
        if self.lost.len() < Salvaged::LOST_MAX {
            self.lost.push(lost);
        }
    }

    fn lose_key(&mut self, table: Table, key: &[u8]) {
        self.lose(Lost::of(table, key));
    }
}

impl Lost {
    fn of(table: Table, key: &[u8]) -> Lost {
        let number = <[u8; 8]>::try_from(key).ok().map(u64::from_be_bytes);
        match (table, number) {
            (Table::Pages, Some(page)) => Lost::Page(PageId::from_key(page)),
            (Table::Log, Some(position)) => Lost::Position(Position(position)),
            _ => Lost::Record {
                table,
                key: key.to_vec(),
            },
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Page(page) => write!(f, "page {page}"),
            Lost::Position(position) => write!(f, "position {position}"),
            Lost::Record { table, key } => {
                write!(f, "table {}, key {}", table.name(), key.escape_ascii())
            }
            Lost::Between {
                table,
                after,
                before,
            } => {
                let end = |key: &Option<Vec<u8>>, none: &str| match key {
                    Some(key) => Lost::of(*table, key).to_string(),
                    None => none.to_string(),
                };
                write!(
                    f,
                    "table {}: all between {} and {}",
                    table.name(),
                    end(after, "its beginning"),
                    end(before, "its end")
                )
            }
        }
    }
}

/// Nothing may be mixed.
fn ask_empty(into: &Path) -> Result<(), OpenError> {
    let Ok(mut entries) = fs::read_dir(into) else {
        return Ok(());
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(OpenError::NotAStore {
            dir: into.to_path_buf(),
            found: "files already".to_string(),
        }),
    }
}

/// The history of the damaged store; where that cannot be read, the one of the new store.
fn known_history(opened: &Opened, new: &Store, salvaged: &mut Salvaged) -> History {
    match history::read(opened) {
        Ok(Some(known)) => known,
        Ok(None) => new.history(),
        Err(detail) => {
            salvaged.remarks.push(detail);
            new.history()
        }
    }
}

/// The log begins above this position.
fn installed(opened: &Opened) -> Position {
    let key = records::INSTALLED_KEY;
    let read = engine::unpanicked(|| opened.table(Table::Meta).get(key));
    let stored = read.ok().and_then(Result::ok).flatten();
    let value = stored
        .as_ref()
        .and_then(|stored| value_of(Table::Meta, key, stored).ok());
    let decoded = value.and_then(|value| records::decode(Table::Meta, key, value).ok());
    decoded.unwrap_or_default()
}

/// Copies a table: forwards as far as the engine can read, and from its end backwards.
fn copy_table(
    opened: &Opened,
    table: Table,
    writer: &mut Writer<'_>,
    salvaged: &mut Salvaged,
) -> Result<(), StorageError> {
    let mut gaps = LogGaps::above(installed(opened));
    let mut take = |key: &[u8], stored: &[u8], salvaged: &mut Salvaged| {
        match value_of(table, key, stored) {
            Ok(_) if table == Table::Log && gaps.is_behind(key) => salvaged.lose_key(table, key),
            Ok(value) => return writer.put(table, key, value),
            Err(_) => salvaged.lose_key(table, key),
        }
        Ok(())
    };
    let mut after: Option<Vec<u8>> = None;
    let mut records = opened.table(table).iter();
    loop {
        match engine::unpanicked(|| records.next().map(fjall::Guard::into_inner)) {
            Ok(None) => return Ok(()),
            Ok(Some(Ok((key, stored)))) => {
                take(&key, &stored, salvaged)?;
                after = Some(key.to_vec());
            }
            Ok(Some(Err(_))) | Err(_) => break,
        }
    }
    let from = after
        .as_ref()
        .map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
    let mut behind = Vec::new();
    let mut records = opened.table(table).range((from, Bound::Unbounded));
    while let Ok(Some(Ok(record))) =
        engine::unpanicked(|| records.next_back().map(fjall::Guard::into_inner))
    {
        behind.push((record.0.to_vec(), record.1.to_vec()));
    }
    let before = behind.last().map(|(key, _)| key.clone());
    salvaged.lose(Lost::Between {
        table,
        after,
        before,
    });
    for (key, stored) in behind.into_iter().rev() {
        take(&key, &stored, salvaged)?;
    }
    Ok(())
}

/// A home does not open a log with a gap: what stands behind the first one is of no use.
struct LogGaps {
    last: u64,
    is_broken: bool,
}

impl LogGaps {
    fn above(installed: Position) -> Self {
        Self {
            last: installed.0,
            is_broken: false,
        }
    }

    fn is_behind(&mut self, key: &[u8]) -> bool {
        let position = <[u8; 8]>::try_from(key).map_or(u64::MAX, u64::from_be_bytes);
        self.is_broken |= position > self.last.saturating_add(1);
        self.last = self.last.max(position);
        self.is_broken
    }
}

/// Writes records into a store, many at once.
struct Writer<'a> {
    store: &'a Store,
    mark: Mark,
    ops: Vec<Op>,
    bytes: usize,
    records: u64,
}

impl<'a> Writer<'a> {
    fn new(store: &'a Store, mark: Mark) -> Self {
        Self {
            store,
            mark,
            ops: Vec::new(),
            bytes: 0,
            records: 0,
        }
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.bytes += key.len() + value.len();
        self.records += 1;
        self.ops.push(Op::Put {
            table,
            key: key.to_vec(),
            value: value.to_vec(),
        });
        match self.bytes >= GROUP_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), StorageError> {
        self.bytes = 0;
        self.store.commit(&[Batch {
            mark: self.mark,
            purpose: Purpose::NewData,
            ops: std::mem::take(&mut self.ops),
        }])
    }
}

fn last_position(store: &Store) -> Result<Position, StorageError> {
    let mut last = Position::default();
    if let Some(stored) = store.get(Table::Meta, records::INSTALLED_KEY)? {
        last = records::decode(Table::Meta, records::INSTALLED_KEY, &stored)?;
    }
    store.scan(Table::Log, &[], &[], &mut |key, _| {
        if let Lost::Position(position) = Lost::of(Table::Log, key) {
            last = last.max(position);
        }
        thorp_model::Scan::Go
    })?;
    Ok(last)
}

/// Bytes of records that become durable together.
const GROUP_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::records::{log_key, page_key};

    fn put(table: Table, key: Vec<u8>) -> Op {
        let value = vec![5; 3_000];
        Op::Put { table, key, value }
    }

    fn commit(store: &Store, ops: Vec<Op>) {
        let batch = Batch {
            mark: Mark(1),
            purpose: Purpose::Housekeeping,
            ops,
        };
        store.commit(&[batch]).unwrap();
    }

    #[test]
    fn records_that_are_not_what_was_written_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (here, new) = (dir.path().join("here"), dir.path().join("new"));
        let store = Store::open(&here, Options::default()).unwrap();
        let page = |number| PageId::new(1, number);
        commit(&store, vec![put(Table::Pages, page_key(page(1)))]);
        // Past the store's own checksums.
        let pages = store.engine().table(Table::Pages).clone();
        let moved = pages.get(page_key(page(1))).unwrap().unwrap();
        pages.insert(page_key(page(2)), moved).unwrap();
        // A home does not open a log with a gap.
        let positions = [1, 2, 4, 5].map(|number| put(Table::Log, log_key(Position(number))));
        commit(&store, positions.to_vec());
        drop(store);
        let salvaged = salvage(&here, &new).unwrap();
        let lost = [
            Lost::Position(Position(4)),
            Lost::Position(Position(5)),
            Lost::Page(page(2)),
        ];
        assert_eq!(salvaged.lost, lost);
        assert_eq!(salvaged.position, Position(2));
        assert_eq!((salvaged.records, salvaged.groups), (3, None));
    }

    #[test]
    fn what_stands_on_both_sides_of_a_damaged_block_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (here, new) = (dir.path().join("here"), dir.path().join("new"));
        let store = Store::open(&here, Options::default()).unwrap();
        let key = |number| page_key(PageId::new(1, number));
        commit(
            &store,
            (0..100)
                .map(|number| put(Table::Pages, key(number)))
                .collect(),
        );
        let pages = store.engine().table(Table::Pages).clone();
        pages.rotate_memtable_and_wait().unwrap();
        let id = pages.id();
        drop(store);
        let tables = here.join(format!("thorp-engine/keyspaces/{id}/tables"));
        let file = fs::read_dir(tables)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();

        let salvaged = salvage(&here, &new).unwrap();
        let [
            Lost::Between {
                table: Table::Pages,
                after: Some(after),
                before: Some(before),
            },
        ] = &salvaged.lost[..]
        else {
            panic!("{salvaged:?}");
        };
        let store = Store::open(&new, Options::default()).unwrap();
        let is_there = |number| store.get(Table::Pages, &key(number)).unwrap().is_some();
        for number in 0..100 {
            let key = key(number);
            let is_lost = key > *after && key < *before;
            assert_eq!(is_there(number), !is_lost, "{number}");
        }
        assert!(is_there(0) && is_there(99));
        assert!(salvaged.records > 50, "{salvaged:?}");
    }
}
