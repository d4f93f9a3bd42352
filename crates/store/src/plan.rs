//! What a group of batches does to a store.

use crate::engine::{self, Opened};
use crate::upkeep::Traces;
use crate::usage::{self, Usage};
use crate::{history, record};
use fjall::{OwnedWriteBatch, PersistMode};
use std::collections::BTreeMap;
use thorp_model::limits::KEY_BYTES_MAX;
use thorp_model::{Batch, Op, StorageError, Table};

/// What a group does to the store, worked out before anything is written.
pub(crate) struct Plan<'a> {
    /// The usage after it.
    pub(crate) after: Usage,
    changes: Vec<Change<'a>>,
    /// The store's history, if it changes.
    pub(crate) history: Option<Vec<u8>>,
    pub(crate) traces: Traces,
}

/// A table, a key, and its new value or none.
type Change<'a> = (Table, &'a [u8], Option<&'a [u8]>);

impl<'a> Plan<'a> {
    /// The plan of a group. Changes that change nothing are left out.
    pub(crate) fn of(
        engine: &Opened,
        before: Usage,
        group: &'a [Batch],
    ) -> Result<Plan<'a>, StorageError> {
        let mut plan = Plan {
            after: before,
            changes: Vec::new(),
            history: None,
            traces: Traces::default(),
        };
        for ((table, key), value) in last_changes(group) {
            let old = Old::of(engine, table, key)?;
            if old == Old::Absent && value.is_none() {
                continue;
            }
            if let Some(value_bytes) = old.value_bytes() {
                let charge = record::charge(key, value_bytes);
                plan.after.remove(table, charge);
                plan.traces.leave(table, charge);
            }
            if let Some(value) = value {
                let charge = record::charge(key, value.len());
                plan.after.add(table, charge);
                plan.traces.journaled += charge;
            }
            plan.traces.journaled += CHANGE_OVERHEAD_BYTES;
            plan.changes.push((table, key, value));
        }
        plan.after.groups += 1;
        plan.after.mark = group.last().map_or(before.mark, |batch| batch.mark);
        Ok(plan)
    }

    /// Whether nothing would change.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Writes the group, durably.
    pub(crate) fn write(&self, engine: &Opened) -> Result<(), fjall::Error> {
        let database = engine.database.clone();
        let mut batch = OwnedWriteBatch::with_capacity(database, self.changes.len() + 2)
            .durability(Some(PersistMode::SyncData));
        // First, so that a batch that was cut short can still say which it is.
        batch.insert(&engine.own, usage::KEY, self.after.encode());
        if let Some(history) = &self.history {
            batch.insert(&engine.own, history::KEY, history.as_slice());
        }
        for (table, key, value) in &self.changes {
            let keyspace = engine.table(*table);
            match value {
                Some(value) => batch.insert(keyspace, *key, record::seal(table.name(), key, value)),
                None => batch.remove(keyspace, *key),
            }
        }
        batch.commit()
    }
}

/// What stands under a key before a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Old {
    Absent,
    /// A record of so many bytes.
    Stored(u32),
    /// The engine cannot read the place where the record should be.
    Damaged,
}

impl Old {
    /// What a change replaces. What is damaged can be written over and deleted
    /// all the same: neither needs the old value.
    fn of(engine: &Opened, table: Table, key: &[u8]) -> Result<Old, StorageError> {
        let Ok(read) = engine::unpanicked(|| engine.table(table).size_of(key)) else {
            return Ok(Old::Damaged);
        };
        match read.map_err(|error| engine::read_error(table, key, &error)) {
            Ok(None) => Ok(Old::Absent),
            Ok(Some(stored_bytes)) => Ok(Old::Stored(stored_bytes)),
            Err(StorageError::Damaged { .. }) => Ok(Old::Damaged),
            Err(error) => Err(error),
        }
    }

    /// Bytes of the value that goes. Those of a damaged one are not known, so
    /// they stay counted: the usage is then too high, never too low.
    fn value_bytes(self) -> Option<usize> {
        match self {
            Old::Absent => None,
            Old::Stored(bytes) => Some((bytes as usize).saturating_sub(record::CHECKSUM_BYTES)),
            Old::Damaged => Some(0),
        }
    }
}

/// The last change of each key, in key order: the engine would not keep
/// several changes of one key in order.
fn last_changes(group: &[Batch]) -> BTreeMap<(Table, &[u8]), Option<&[u8]>> {
    let mut last = BTreeMap::new();
    for op in group.iter().flat_map(|batch| &batch.ops) {
        let (table, key, value) = match op {
            Op::Put { table, key, value } => (*table, key, Some(value.as_slice())),
            Op::Delete { table, key } => (*table, key, None),
        };
        assert!(
            (1..=KEY_BYTES_MAX).contains(&key.len()),
            "a key of {} bytes was made",
            key.len()
        );
        last.insert((table, key.as_slice()), value);
    }
    last
}

/// Bytes of the engine's frame around a change in its journal, at most.
const CHANGE_OVERHEAD_BYTES: u64 = 64;
