//! What is measured.

use thorp_client::{Ref, Reference, Result, Transaction};

/// One of the operations, each of which is a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// An object whose page the member does not have.
    ColdRead,
    /// An object whose page the member has.
    CachedRead,
    /// One object that nobody else writes.
    CommitOne,
    /// Ten such objects.
    CommitTen,
    /// A counter that all members increment.
    Counter,
}

impl Operation {
    pub(super) const ALL: [Operation; 5] = [
        Operation::ColdRead,
        Operation::CachedRead,
        Operation::CommitOne,
        Operation::CommitTen,
        Operation::Counter,
    ];

    /// As documents name it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Operation::ColdRead => "cold_read",
            Operation::CachedRead => "cached_read",
            Operation::CommitOne => "commit_one",
            Operation::CommitTen => "commit_ten",
            Operation::Counter => "counter",
        }
    }

    /// For people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Operation::ColdRead => "cold read",
            Operation::CachedRead => "cached read",
            Operation::CommitOne => "commit of one object",
            Operation::CommitTen => "commit of ten objects",
            Operation::Counter => "contended counter",
        }
    }
}

/// Writes each of these anew.
pub(super) fn write_all(tx: &mut Transaction, objects: &[Reference], bytes: &[u8]) -> Result<()> {
    objects
        .iter()
        .try_for_each(|object| tx.write(object, bytes))
}

/// One more.
pub(super) fn increment(tx: &mut Transaction, counter: &Ref<u64>) -> Result<()> {
    let count = tx.get(counter)?;
    tx.put(counter, &count.wrapping_add(1))
}

/// Objects of a large commit.
pub(super) const TEN: usize = 10;
