//! A home's disk, synced by hand: what was not synced, a crash loses.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use thorp_model::records::{decode_page, page_key};
use thorp_model::{Batch, Mark, Op, PageId, Reader, Scan, StorageError, Table};
use thorp_protocol::LoadResult;

/// One home's disk. It outlives the home's restarts.
#[derive(Default)]
pub(crate) struct Disk {
    durable: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    pending: Vec<Batch>,
    synced: Option<Mark>,
    damaged: BTreeSet<PageId>,
    /// Pages that are asked for and are to come later; none if they come at once.
    pub(crate) held: Option<Vec<PageId>>,
}

impl Disk {
    /// Takes a batch that is not durable yet.
    pub(crate) fn append(&mut self, batch: Batch) {
        self.pending.push(batch);
    }

    /// Batches that are not durable.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Makes the first batches durable; the mark of the last one.
    pub(crate) fn sync(&mut self, batches: usize) -> Option<Mark> {
        let count = batches.min(self.pending.len());
        let mut mark = None;
        for batch in self.pending.drain(..count) {
            mark = Some(batch.mark);
            for op in batch.ops {
                let (Op::Put { table, key, .. } | Op::Delete { table, key }) = &op;
                self.damaged
                    .retain(|page| *table != Table::Pages || page_key(*page) != *key);
                match op {
                    Op::Put { table, key, value } => self.durable.insert((table, key), value),
                    Op::Delete { table, key } => self.durable.remove(&(table, key)),
                };
            }
        }
        self.synced = mark.or(self.synced);
        mark
    }

    /// The mark of the last batch that it has.
    pub(crate) fn synced(&self) -> Mark {
        self.synced.unwrap_or_default()
    }

    /// Pages cannot be read as they were written, or can be again.
    pub(crate) fn set_damaged(&mut self, page: PageId, damaged: bool) {
        if damaged {
            self.damaged.insert(page);
        } else {
            self.damaged.remove(&page);
        }
    }

    /// Records of the commit log.
    pub(crate) fn log(&self) -> usize {
        let log = self
            .durable
            .keys()
            .filter(|(table, _)| *table == Table::Log);
        log.count()
    }

    /// The power goes.
    pub(crate) fn crash(&mut self) {
        self.pending.clear();
        self.held = None;
    }

    /// Whether a page is durable.
    pub(crate) fn stores(&self, page: PageId) -> bool {
        let key = (Table::Pages, page_key(page));
        self.durable.contains_key(&key)
    }

    /// What is durable of a page.
    pub(crate) fn load(&self, page: PageId) -> LoadResult {
        if self.damaged.contains(&page) {
            return LoadResult::Damaged;
        }
        let key = page_key(page);
        match self.durable.get(&(Table::Pages, key.clone())) {
            None => LoadResult::Found(None),
            Some(bytes) => match decode_page(&key, bytes) {
                Ok(image) => LoadResult::Found(Some(image)),
                Err(_) => LoadResult::Damaged,
            },
        }
    }
}

impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.durable.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        let from = Bound::Included((table, from.to_vec()));
        for ((t, key), value) in self.durable.range((from, Bound::Unbounded)) {
            let ended = *t != table || (!to.is_empty() && key.as_slice() >= to);
            if ended || visit(key, value) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }
}
