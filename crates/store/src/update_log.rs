//! The log of a member: updates that their homes have not executed, in a directory of its own (rule C6).

use crate::error::OpenError;
use crate::older_log;
use crate::options::Options;
use crate::store::Store;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use thorp_model::records::{self, ConflictRecord, HomeRecord, UpdateRecord};
use thorp_model::{
    Batch, Engine, HomeId, Lack, LeftRecord, LogId, Mark, MemberId, Op, Purpose, Reader, Scan,
    SegmentId, StorageError, Table, Update, UpdateId,
};

/// The version of the records of a log. In version 1 no conflict routine gave an update up, and in versions 1 and 2 no update had
/// another author than the member of its log.
const LOG_FORMAT: u32 = 3;

/// Memory for blocks of a log that are read from disk. It is read once.
const LOG_CACHE_BYTES: u64 = 1 << 20;

/// Whose log a directory is: `meta/log`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OwnerRecord {
    format: u32,
    name: String,
}

/// A member's log, in a directory that this process alone uses.
///
/// It is a store: so it is durable, bounded by its volume, and guarded against damage as a home's is.
pub struct UpdateLog {
    store: Store,
}

/// Why a log cannot be used.
#[derive(Debug)]
pub enum LogError {
    /// The directory is in use, damaged, or cannot be read.
    Open(OpenError),
    /// The directory is something else, or the log of another name.
    Foreign {
        /// Where.
        dir: PathBuf,
        /// What it is.
        what: String,
    },
    /// There is no room for what is to be written. Nothing of it was.
    Full(Lack),
    /// It cannot be read or written.
    Storage(StorageError),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Open(error) => error.fmt(f),
            LogError::Foreign { dir, what } => {
                write!(
                    f,
                    "{} is {what}: name another directory for the log",
                    dir.display()
                )
            }
            LogError::Full(lack) => write!(f, "the log has no room: {lack}"),
            LogError::Storage(error) => write!(f, "the log cannot be used: {error}"),
        }
    }
}

impl std::error::Error for LogError {}

impl From<OpenError> for LogError {
    fn from(error: OpenError) -> Self {
        LogError::Open(error)
    }
}

impl From<StorageError> for LogError {
    fn from(error: StorageError) -> Self {
        LogError::Storage(error)
    }
}

/// Why a batch is not durable.
#[derive(Debug)]
pub enum NotDurable {
    /// There is no room. Nothing of it was written.
    Full(Lack),
    /// The disk failed: whether it is there, the next opening shows.
    Broken(String),
}

impl UpdateLog {
    /// Opens the log of a member of this name, or begins one in a directory that is missing or empty.
    ///
    /// # Errors
    ///
    /// [`LogError`]: the directory is in use by another process, damaged, or no log of this name.
    pub fn open(dir: impl AsRef<Path>, name: &str) -> Result<UpdateLog, LogError> {
        UpdateLog::open_as(dir.as_ref(), Some(name))
    }

    /// Opens a log that is there, whoever it belongs to: to look into it.
    ///
    /// # Errors
    ///
    /// As [`UpdateLog::open`].
    pub fn existing(dir: impl AsRef<Path>) -> Result<UpdateLog, LogError> {
        UpdateLog::open_as(dir.as_ref(), None)
    }

    fn open_as(dir: &Path, name: Option<&str>) -> Result<UpdateLog, LogError> {
        let options = Options {
            create: name.is_some(),
            cache_bytes: LOG_CACHE_BYTES,
            ..Options::default()
        };
        let store = Store::open(dir, options)?;
        let foreign = |what: String| LogError::Foreign {
            dir: dir.to_owned(),
            what,
        };
        if let Some(home) = store.get(Table::Meta, records::HOME_KEY)? {
            let home: Option<HomeRecord> =
                records::decode(Table::Meta, records::HOME_KEY, &home).ok();
            let of = home.map_or_else(String::new, |home| format!(" {}", home.name));
            return Err(foreign(format!("the store of home{of}, and no log")));
        }
        let key = records::LOG_OWNER_KEY;
        match (store.get(Table::Meta, key)?, name) {
            (Some(owner), name) => {
                let owner: OwnerRecord = records::decode(Table::Meta, key, &owner)?;
                if owner.format > LOG_FORMAT {
                    let known = format!(
                        "format {}, this program knows 1 to {LOG_FORMAT}",
                        owner.format
                    );
                    return Err(foreign(format!("a log of a later program ({known})")));
                }
                if name.is_some_and(|name| name != owner.name) {
                    return Err(foreign(format!("the log of {}", owner.name)));
                }
                if owner.format < LOG_FORMAT {
                    // An earlier program is not to read what this one writes.
                    begin(&store, &owner.name, older_log::converted(&store)?)?;
                }
            }
            (None, None) => return Err(foreign("a store without a log".to_owned())),
            (None, Some(name)) => begin(&store, name, Vec::new())?,
        }
        Ok(UpdateLog { store })
    }

    /// All updates in it, in the order of their homes, logs, segments and numbers.
    ///
    /// # Errors
    ///
    /// [`LogError::Storage`]: a record is damaged, or the disk fails.
    pub fn updates(&self) -> Result<Vec<UpdateRecord>, LogError> {
        self.all(records::update_range())
    }

    /// What it notes of its updates for conflict routines.
    ///
    /// # Errors
    ///
    /// [`LogError::Storage`]: a record is damaged, or the disk fails.
    pub fn conflicts(&self) -> Result<Vec<ConflictRecord>, LogError> {
        self.all(records::conflict_range())
    }

    fn all<R: DeserializeOwned>(&self, (from, to): (Vec<u8>, Vec<u8>)) -> Result<Vec<R>, LogError> {
        let (mut all, mut damaged) = (Vec::new(), None);
        self.store.scan(
            Table::Meta,
            &from,
            &to,
            &mut |key, value| match records::decode(Table::Meta, key, value) {
                Ok(record) => {
                    all.push(record);
                    Scan::Go
                }
                Err(error) => {
                    damaged = Some(error);
                    Scan::Stop
                }
            },
        )?;
        match damaged {
            Some(error) => Err(error.into()),
            None => Ok(all),
        }
    }

    /// What has left it although no step of its own said so.
    ///
    /// # Errors
    ///
    /// [`LogError::Storage`]: the record is damaged, or the disk fails.
    pub fn left(&self) -> Result<LeftRecord, LogError> {
        let found = self.store.get(Table::Meta, records::LEFT_KEY)?;
        let decode = |value: Vec<u8>| records::decode(Table::Meta, records::LEFT_KEY, &value);
        Ok(found.map(decode).transpose()?.unwrap_or_default())
    }

    /// Forgets what has left it.
    ///
    /// # Errors
    ///
    /// [`LogError::Storage`]: the disk fails.
    pub fn forget_left(&self) -> Result<(), LogError> {
        let batch = Batch {
            mark: Mark(0),
            purpose: Purpose::Removal,
            ops: vec![records::delete(Table::Meta, records::LEFT_KEY.to_vec())],
        };
        Ok(self.store.commit(&[batch])?)
    }

    /// Takes updates out that a home has refused, and that nobody sends again.
    ///
    /// # Errors
    ///
    /// [`LogError::Storage`]: the disk fails.
    pub fn drop_updates(&self, updates: &[Update]) -> Result<(), LogError> {
        let batch = Batch {
            mark: Mark(0),
            purpose: Purpose::Removal,
            ops: updates.iter().flat_map(delete).collect(),
        };
        Ok(self.store.commit(&[batch])?)
    }

    /// Puts updates in again that a home has refused. They are new updates of a log that nobody has used before, with numbers from 1
    /// in each segment, because a home takes each number once (rule C7). The refused ones leave in the same batch: none is there
    /// twice, and none is lost. Returns the new ones in the same order.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`], [`LogError::Storage`]: nothing has changed.
    pub fn retry(&self, refused: &[Update]) -> Result<Vec<Update>, LogError> {
        let random = random_bits()?;
        let mut last: BTreeMap<(HomeId, LogId, SegmentId), u64> = BTreeMap::new();
        let mut renewed = |update: &Update| {
            let log = LogId(MemberId::new(update.id.log.name(), random));
            let segment = update.id.segment;
            let number = last.entry((update.home, log, segment)).or_default();
            *number += 1;
            let number = *number;
            let id = UpdateId {
                log,
                segment,
                number,
            };
            Update {
                id,
                ..update.clone()
            }
        };
        let renewed: Vec<Update> = refused.iter().map(&mut renewed).collect();
        let put = renewed.iter().map(|update| {
            let key = records::update_key(update.home, update.id);
            let update = update.clone();
            // Whoever sends it again answers for it (rule C7).
            let (rejected, author) = (None, None);
            let record = UpdateRecord {
                update,
                rejected,
                author,
            };
            records::put(Table::Meta, key, &record)
        });
        let batch = Batch {
            mark: Mark(0),
            purpose: Purpose::NewData,
            ops: put.chain(refused.iter().flat_map(delete)).collect(),
        };
        let asked = self.store.ask_space(batch.bytes() as u64);
        asked.map_err(LogError::Full)?;
        self.store.commit(&[batch])?;
        Ok(renewed)
    }

    /// Makes batches durable, with one sync for all of them.
    ///
    /// # Errors
    ///
    /// [`NotDurable`]: none of them is, unless the disk failed.
    pub fn commit(&self, batches: &[Batch]) -> Result<(), NotDurable> {
        let new = batches.iter();
        let new = new.filter(|batch| batch.purpose == Purpose::NewData);
        let bytes: usize = new.map(Batch::bytes).sum();
        if bytes > 0 {
            let asked = self.store.ask_space(bytes as u64);
            asked.map_err(NotDurable::Full)?;
        }
        let committed = self.store.commit(batches);
        committed.map_err(|error| match error {
            StorageError::Full { .. } => match self.store.ask_space(bytes as u64) {
                Err(lack) => NotDurable::Full(lack),
                Ok(()) => NotDurable::Broken(error.to_string()),
            },
            _ => NotDurable::Broken(error.to_string()),
        })
    }
}

/// An update leaves, and what is noted of it: a new one that it becomes has all attempts of its conflict routine again.
fn delete(update: &Update) -> [Op; 2] {
    let (home, id) = (update.home, update.id);
    let keys = [
        records::update_key(home, id),
        records::conflict_key(home, id),
    ];
    keys.map(|key| records::delete(Table::Meta, key))
}

/// Half of the id of a log that nobody has used before (rule R1).
fn random_bits() -> Result<u64, StorageError> {
    let mut random = [0; 8];
    let filled = getrandom::fill(&mut random);
    filled.map_err(|error| StorageError::Broken {
        detail: error.to_string(),
    })?;
    Ok(u64::from_be_bytes(random))
}

/// Makes a store the log of a member, in one batch with what it has.
fn begin(store: &Store, name: &str, mut ops: Vec<Op>) -> Result<(), LogError> {
    let owner = OwnerRecord {
        format: LOG_FORMAT,
        name: name.to_owned(),
    };
    ops.push(records::put(
        Table::Meta,
        records::LOG_OWNER_KEY.to_vec(),
        &owner,
    ));
    let batch = Batch {
        mark: Mark(0),
        purpose: Purpose::NewData,
        ops,
    };
    Ok(store.commit(&[batch])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::older_log::UnauthoredRecord;
    use thorp_model::{Refusal, WhyLeft};

    fn update(number: u64) -> Update {
        Update {
            home: HomeId(1),
            id: UpdateId {
                log: LogId(MemberId(7)),
                segment: SegmentId(2),
                number,
            },
            writes: vec![],
        }
    }

    fn put(number: u64) -> Op {
        let update = update(number);
        let key = records::update_key(update.home, update.id);
        let record = UpdateRecord {
            update,
            rejected: None,
            author: None,
        };
        records::put(Table::Meta, key, &record)
    }

    fn batch(mark: u64, op: Op) -> Batch {
        let purpose = match op {
            Op::Put { .. } => Purpose::NewData,
            Op::Delete { .. } => Purpose::Removal,
        };
        Batch {
            mark: Mark(mark),
            purpose,
            ops: vec![op],
        }
    }

    fn numbers(log: &UpdateLog) -> Vec<u64> {
        let updates = log.updates().unwrap();
        updates
            .iter()
            .map(|record| record.update.id.number)
            .collect()
    }

    #[test]
    fn a_log_keeps_updates_over_a_restart_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        log.commit(&[batch(1, put(2)), batch(2, put(1)), batch(3, put(300))])
            .unwrap();
        drop(log);
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        assert_eq!(numbers(&log), [1, 2, 300]);
        let Op::Put { table, key, .. } = put(2) else {
            unreachable!()
        };
        log.commit(&[batch(1, Op::Delete { table, key })]).unwrap();
        assert_eq!(numbers(&log), [1, 300]);
    }

    #[test]
    fn a_refused_update_that_is_put_in_again_never_has_a_used_number() {
        let dir = tempfile::tempdir().unwrap();
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        let refuse = |number| {
            let mut record: UpdateRecord = match put(number) {
                Op::Put { table, key, value } => records::decode(table, &key, &value).unwrap(),
                Op::Delete { .. } => unreachable!(),
            };
            record.rejected = Some(Refusal::Unknown);
            let key = records::update_key(record.update.home, record.update.id);
            records::put(Table::Meta, key, &record)
        };
        for (mark, op) in [(1, refuse(3)), (2, refuse(4)), (3, put(5))] {
            log.commit(&[batch(mark, op)]).unwrap();
        }
        let before = log.updates().unwrap();
        let refused: Vec<Update> = before[..2].iter().map(|of| of.update.clone()).collect();
        let again = log.retry(&refused).unwrap();
        drop(log);
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        let after = log.updates().unwrap();
        assert_eq!(after.len(), 3, "the refused ones have left");
        assert!(after.iter().all(|of| of.rejected.is_none()));
        assert!(after.contains(&before[2]), "the other one stays as it is");
        let old = before[0].update.id.log;
        let ids = || again.iter().map(|update| update.id);
        assert!(ids().all(|id| id.log != old && id.log.name() == old.name()));
        assert!(ids().map(|id| id.number).eq([1, 2]), "a new log has no gap");
        let second = log.retry(&again).unwrap();
        assert!(second[0].id.log != again[0].id.log, "each time another log");
    }

    #[test]
    fn what_is_noted_for_a_routine_leaves_with_its_update() {
        let dir = tempfile::tempdir().unwrap();
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        let note = |number| {
            let update = update(number);
            let record = ConflictRecord {
                home: update.home,
                id: update.id,
                attempts: 1,
                is_open: true,
            };
            let key = records::conflict_key(update.home, update.id);
            records::put(Table::Meta, key, &record)
        };
        for (mark, number) in [(1, 3), (2, 4), (3, 5)] {
            log.commit(&[batch(mark, put(number)), batch(mark, note(number))])
                .unwrap();
        }
        let open = || -> Vec<u64> {
            let noted = log.conflicts().unwrap();
            noted.iter().map(|record| record.id.number).collect()
        };
        assert_eq!(open(), [3, 4, 5]);
        log.drop_updates(&[update(3)]).unwrap();
        assert_eq!(open(), [4, 5]);
        log.retry(&[update(4)]).unwrap();
        assert_eq!(open(), [5], "a person has all attempts again");
    }

    #[test]
    fn a_log_of_the_first_version_is_read_and_becomes_one_of_this() {
        let dir = tempfile::tempdir().unwrap();
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        let format = |log: &UpdateLog| {
            let key = records::LOG_OWNER_KEY;
            let owner = log.store.get(Table::Meta, key).unwrap().unwrap();
            let owner: OwnerRecord = records::decode(Table::Meta, key, &owner).unwrap();
            owner.format
        };
        let first = OwnerRecord {
            format: 1,
            name: "anna".to_owned(),
        };
        let key = records::LOG_OWNER_KEY.to_vec();
        let owner = records::put(Table::Meta, key, &first);
        let (update, rejected) = (update(4), Some(Refusal::Unknown));
        let key = records::update_key(update.home, update.id);
        let old = UnauthoredRecord { update, rejected };
        let old = records::put(Table::Meta, key, &old);
        log.commit(&[batch(1, owner), batch(2, old)]).unwrap();
        assert_eq!(format(&log), 1);
        drop(log);
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        assert_eq!(format(&log), LOG_FORMAT);
        let read = log.updates().unwrap();
        let read = read
            .iter()
            .map(|of| (of.update.id.number, &of.rejected, &of.author));
        assert!(read.eq([(4, &Some(Refusal::Unknown), &None)]));
    }

    #[test]
    fn what_has_left_a_log_is_kept_until_somebody_forgets_it() {
        let dir = tempfile::tempdir().unwrap();
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        assert_eq!(log.left().unwrap(), LeftRecord::default());
        let mut left = LeftRecord::default();
        let id = UpdateId {
            log: LogId(MemberId(7)),
            segment: SegmentId(2),
            number: 3,
        };
        assert!(left.add(HomeId(1), id, WhyLeft::Void));
        let op = records::put(Table::Meta, records::LEFT_KEY.to_vec(), &left);
        log.commit(&[batch(1, op), batch(2, put(4))]).unwrap();
        drop(log);
        let log = UpdateLog::open(dir.path(), "anna").unwrap();
        assert_eq!(log.left().unwrap(), left);
        log.forget_left().unwrap();
        assert_eq!(log.left().unwrap(), LeftRecord::default());
        assert_eq!(numbers(&log), [4], "the updates stay");
    }

    #[test]
    fn a_directory_that_is_no_log_of_this_name_is_refused_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        drop(UpdateLog::open(dir.path(), "anna").unwrap());
        let why = |name: &str| UpdateLog::open(dir.path(), name).err().unwrap().to_string();
        assert!(why("ben").contains("the log of anna"), "{}", why("ben"));
        let in_use = UpdateLog::open(dir.path(), "anna").unwrap();
        assert!(matches!(
            UpdateLog::open(dir.path(), "anna"),
            Err(LogError::Open(_))
        ));
        drop(in_use);
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path(), Options::default()).unwrap();
        let record = HomeRecord {
            format: records::FORMAT_VERSION,
            home: HomeId(1),
            name: "alps".to_owned(),
        };
        let op = records::put(Table::Meta, records::HOME_KEY.to_vec(), &record);
        store.commit(&[batch(1, op)]).unwrap();
        drop(store);
        let said = UpdateLog::open(home.path(), "anna").err().unwrap();
        assert!(
            said.to_string().contains("the store of home alps"),
            "{said}"
        );
        let empty = tempfile::tempdir().unwrap();
        assert!(UpdateLog::existing(empty.path()).is_err());
    }
}
