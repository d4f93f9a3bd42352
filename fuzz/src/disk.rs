//! A home's disk in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;
use thorp_model::{Op, Reader, Scan, StorageError, Table};

type Records = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// It never fails, and everything is durable at once.
#[derive(Default)]
pub(crate) struct Disk(Mutex<Records>);

impl Disk {
    pub(crate) fn write(&self, op: Op) {
        let mut disk = self.0.lock().expect("one thread");
        match op {
            Op::Put { table, key, value } => disk.insert((table, key), value),
            Op::Delete { table, key } => disk.remove(&(table, key)),
        };
    }
}

impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let disk = self.0.lock().expect("one thread");
        Ok(disk.get(&(table, key.to_vec())).cloned())
    }

    /// Homes scan only when they start, and here that is on an empty disk.
    fn scan(
        &self,
        _: Table,
        _: &[u8],
        _: &[u8],
        _: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        Ok(())
    }
}
