//! A disk that has everything at once.

use std::collections::BTreeMap;
use std::ops::Bound;
use thorp_core::door::LoadResult;
use thorp_core::home::{decode_page, page_key};
use thorp_core::ids::PageId;
use thorp_core::storage::{Batch, Op, Reader, Scan, StorageError, Table};

/// Records in memory.
#[derive(Default)]
pub(crate) struct Disk(BTreeMap<(Table, Vec<u8>), Vec<u8>>);

impl Disk {
    /// Takes a batch.
    pub(crate) fn take(&mut self, batch: Batch) {
        for op in batch.ops {
            match op {
                Op::Put { table, key, value } => self.0.insert((table, key), value),
                Op::Delete { table, key } => self.0.remove(&(table, key)),
            };
        }
    }

    /// What is stored of a page.
    pub(crate) fn load(&self, page: PageId) -> LoadResult {
        let key = page_key(page);
        let stored = self.0.get(&(Table::Pages, key.clone()));
        match stored.map(|value| decode_page(&key, value)).transpose() {
            Ok(image) => LoadResult::Found(image),
            Err(_) => LoadResult::Damaged,
        }
    }
}

impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.0.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        let from = Bound::Included((table, from.to_vec()));
        let records = self.0.range((from, Bound::Unbounded));
        let inside =
            |(of, key): &(Table, Vec<u8>)| *of == table && (to.is_empty() || key.as_slice() < to);
        for ((_, key), value) in records.take_while(|(key, _)| inside(key)) {
            if visit(key, value) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }
}
