//! What the home asks of durable storage: atomic batches, reads, ordered
//! scans and a durable mark. Nothing here names an engine (foundation 6).
//!
//! The home writes batches and never waits for them: the driver hands them to
//! the engine in order and tells the home the highest [`Mark`] that is in
//! stable storage. Whatever depends on the disk is sent only after that.

use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The tables of a home. An engine keeps each as an ordered map of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// Format, identity, ceilings, segments, registrations.
    Meta,
    /// One record for each commit, keyed by position, until it is installed.
    Log,
    /// Installed page images, keyed by segment and page.
    Pages,
    /// Commit outcomes, keyed by registration and sequence.
    Outcomes,
    /// Overflow pages staged for a commit that has not happened yet.
    Staged,
}

impl Table {
    /// Every table, in the order in which `thorp check` walks them.
    pub const ALL: [Table; 5] = [
        Table::Meta,
        Table::Log,
        Table::Pages,
        Table::Outcomes,
        Table::Staged,
    ];

    /// A short name for messages and for engines that name their tables.
    pub fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Log => "log",
            Table::Pages => "pages",
            Table::Outcomes => "outcomes",
            Table::Staged => "staged",
        }
    }
}

/// The number of a batch: one for each, rising by one from 1 in one life of a
/// home. *Durable up to here* is told as a mark.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Mark(pub u64);

impl Mark {
    /// The mark of the next batch.
    #[must_use]
    pub fn next(self) -> Mark {
        Mark(self.0 + 1)
    }
}

/// One change of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Sets a key.
    Put {
        /// The table.
        table: Table,
        /// The key, at most [`crate::limits::KEY_BYTES_MAX`] bytes.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Removes a key; removing an absent key is no error.
    Delete {
        /// The table.
        table: Table,
        /// The key.
        key: Vec<u8>,
    },
}

impl Op {
    /// Whether it sets a key.
    pub fn is_put(&self) -> bool {
        matches!(self, Op::Put { .. })
    }

    /// Bytes of its key and value.
    pub fn bytes(&self) -> usize {
        match self {
            Op::Put { key, value, .. } => key.len() + value.len(),
            Op::Delete { key, .. } => key.len(),
        }
    }
}

/// What a batch is for, from the first that a full store refuses to the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Purpose {
    /// It brings something new: the log record of a commit, a staged value, a vote. It may be refused, because nobody was
    /// told of it.
    NewData,
    /// It takes from the room that the home keeps back on a full store: a change of rights, a deletion, a registration, a
    /// record of the audit (rule R7).
    Kept,
    /// The home's own work, installing pages for one, which frees space later. So are small records that a full store has
    /// refused before, or that somebody has paid for: an extent, a registration, a refusal.
    Housekeeping,
    /// It only removes.
    Removal,
}

/// Changes that become durable together or not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The number of this batch.
    pub mark: Mark,
    /// What it is for.
    pub purpose: Purpose,
    /// The changes, applied in order.
    pub ops: Vec<Op>,
}

impl Batch {
    /// Bytes of keys and values, for limits and metrics.
    pub fn bytes(&self) -> usize {
        self.ops.iter().map(Op::bytes).sum()
    }
}

/// Why a read or a batch did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorageError {
    /// There is no room; nothing of the batch was written. Free some and retry.
    Full {
        /// What is full, for a person.
        detail: alloc::string::String,
    },
    /// What was read is not what was written. `thorp check` tells more.
    Damaged {
        /// Which table.
        table: Table,
        /// Which key.
        key: Vec<u8>,
        /// What is wrong with it, for a person.
        detail: alloc::string::String,
    },
    /// The engine failed; whether the last batches are durable is unknown
    /// until it was opened again.
    Broken {
        /// The engine's words.
        detail: alloc::string::String,
    },
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Full { detail } => write!(f, "no room in the store: {detail}"),
            StorageError::Damaged { table, key, detail } => {
                write!(f, "damaged record in table {}, key ", table.name())?;
                for byte in key {
                    write!(f, "{byte:02x}")?;
                }
                write!(f, ": {detail}")
            }
            StorageError::Broken { detail } => {
                write!(
                    f,
                    "the storage engine failed and must be reopened: {detail}"
                )
            }
        }
    }
}

impl core::error::Error for StorageError {}

/// What a visitor of a scan wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// The next record.
    Go,
    /// No more.
    Stop,
}

/// Reading side of an engine: used when a home starts, and by the driver to
/// answer the home's loads.
pub trait Reader {
    /// The value of a key, or `None`.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError>;

    /// Visits the records with `from <= key < to`, in key order (`to` empty
    /// means to the end), until the visitor says stop.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError>;
}

/// A whole engine. `commit` is called by ONE thread, with as many batches as
/// have gathered, and returns when all of them are in stable storage.
pub trait Engine: Reader {
    /// Makes the batches durable, in order, with one sync for all of them.
    /// Either all of them are durable or, after an error other than
    /// [`StorageError::Broken`], none.
    fn commit(&self, batches: &[Batch]) -> Result<(), StorageError>;
}
