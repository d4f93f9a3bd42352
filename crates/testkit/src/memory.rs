//! A storage engine without a disk.

use std::collections::BTreeMap;
use std::sync::Mutex;

use thorp_model::{Batch, Engine, Op, Reader, Scan, StorageError, Table};

/// Keeps everything in memory; a batch is durable at once.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Records>);

type Records = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

impl Reader for Memory {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let records = self.0.lock().unwrap();
        Ok(records.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        let records = self.0.lock().unwrap();
        let beginning = (table, from.to_vec());
        for ((of, key), value) in records.range(beginning..) {
            let within = *of == table && (to.is_empty() || &key[..] < to);
            if !within || visit(key, value) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }
}

impl Engine for Memory {
    fn commit(&self, batches: &[Batch]) -> Result<(), StorageError> {
        let mut records = self.0.lock().unwrap();
        for op in batches.iter().flat_map(|batch| &batch.ops) {
            match op.clone() {
                Op::Put { table, key, value } => records.insert((table, key), value),
                Op::Delete { table, key } => records.remove(&(table, key)),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Mark, Purpose};

    #[test]
    fn a_scan_stays_in_its_table_and_its_range() {
        let memory = Memory::default();
        let put = |table, key: u8| Op::Put {
            table,
            key: vec![key],
            value: vec![],
        };
        let ops = vec![
            put(Table::Meta, 9),
            put(Table::Log, 1),
            put(Table::Log, 2),
            put(Table::Log, 3),
            put(Table::Pages, 1),
        ];
        let (mark, purpose) = (Mark(1), Purpose::NewData);
        memory.commit(&[Batch { mark, purpose, ops }]).unwrap();
        let seen = |from: &[u8], to: &[u8]| {
            let mut seen = Vec::new();
            let mut visit = |key: &[u8], _: &[u8]| {
                seen.push(key[0]);
                Scan::Go
            };
            memory.scan(Table::Log, from, to, &mut visit).unwrap();
            seen
        };
        assert_eq!(seen(&[], &[]), [1, 2, 3]);
        assert_eq!(seen(&[2], &[]), [2, 3]);
        assert_eq!(seen(&[1], &[3]), [1, 2]);
    }
}
