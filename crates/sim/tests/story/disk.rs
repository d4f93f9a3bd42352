//! A home's disk, synced by hand: what was not synced, a crash loses.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use thorp_model::records::{decode_page, page_key};
use thorp_model::{
    Batch, Closed, HomeOpened, HowOpened, LifeEnd, LifeId, Mark, Op, Operator, PageId, Reader,
    ReceiptKey, Scan, StorageError, Table, records,
};
use thorp_protocol::{HomeHistory, LoadResult, Reopen};

/// One home's disk. It outlives the home's restarts.
#[derive(Clone)]
pub(crate) struct Disk {
    durable: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    pending: Vec<Batch>,
    synced: Option<Mark>,
    damaged: BTreeSet<PageId>,
    /// Pages that are asked for and are to come later; none if they come at once.
    pub(crate) held: Option<Vec<PageId>>,
    /// What it knows of its own history (rule R9).
    history: HomeHistory,
    /// An operator has opened its home: the next life begins so.
    wanted: Option<Reopen>,
    /// A copy of all that is durable, from before.
    copy: Option<Box<Disk>>,
}

impl Disk {
    /// An empty disk.
    pub(crate) fn new() -> Self {
        Disk {
            durable: BTreeMap::new(),
            pending: Vec::new(),
            synced: None,
            damaged: BTreeSet::new(),
            held: None,
            history: HomeHistory::first(0, ReceiptKey::new([1; 32])),
            wanted: None,
            copy: None,
        }
    }

    // --- History (rule R9) ---

    /// What a home finds that starts on it.
    pub(crate) fn history(&self, random: u64) -> HomeHistory {
        HomeHistory {
            random,
            ..self.history.clone()
        }
    }

    /// A life begins, at once durable.
    pub(crate) fn begin_life(&mut self, (life, end_of_last): (LifeId, LifeEnd)) {
        self.history.lives.begin(life, end_of_last);
        self.history.mark = Mark::default();
    }

    /// Keeps a copy of what is durable now.
    pub(crate) fn keep_copy(&mut self) {
        let mut copy = self.clone();
        copy.crash();
        self.copy = Some(Box::new(copy));
    }

    /// It is as it was when the copy was made. The copy stays.
    pub(crate) fn go_back(&mut self) {
        if let Some(copy) = self.copy.take() {
            *self = Disk {
                copy: Some(copy.clone()),
                ..*copy
            };
        }
    }

    /// Whether its home is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.history.closed.is_some()
    }

    /// The home has met another history.
    pub(crate) fn close(&mut self, why: Closed) {
        self.history.closed.get_or_insert(why);
    }

    /// An operator opens it, as one that goes on from an older state; `apart` as a copy for a test. Nobody: somebody who
    /// looks after it while it does not run.
    pub(crate) fn reopen(&mut self, apart: bool, by: Option<Operator>) {
        let closed = self.history.closed.take();
        let next = self.history.incarnation.after(closed.as_ref());
        self.history.incarnation = next.expect("a story opens it few times");
        let mut how = HowOpened::Confirmed;
        if apart {
            self.history.key = ReceiptKey::new([2; 32]);
            how = HowOpened::Apart;
        }
        self.history.openings.push(HomeOpened {
            number: self.history.openings.len() as u64 + 1,
            how,
            by,
            incarnation: self.history.incarnation,
            life: self.history.lives.last().map_or(0, |life| life.counter),
        });
        let clock = match closed {
            Some(Closed::OtherHistory(met)) => met.point.clock,
            _ => 0,
        };
        let ops = records::reopened(self, self.history.incarnation, clock);
        for op in ops.expect("the disk of a story is sound") {
            self.apply(op);
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Put { table, key, value } => self.durable.insert((table, key), value),
            Op::Delete { table, key } => self.durable.remove(&(table, key)),
        };
    }

    /// The home wants to begin its next life so.
    pub(crate) fn want(&mut self, reopen: Reopen) {
        self.wanted.get_or_insert(reopen);
    }

    /// Begins what an operator wants. All that the last life wrote is there.
    pub(crate) fn carry_out(&mut self) {
        if let Some(Reopen { apart, by }) = self.wanted.take() {
            self.reopen(apart, Some(by));
        }
    }

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
        let batches: Vec<Batch> = self.pending.drain(..count).collect();
        for batch in batches {
            mark = Some(batch.mark);
            if !batch.ops.is_empty() {
                self.history.mark = batch.mark;
            }
            for op in batch.ops {
                let (Op::Put { table, key, .. } | Op::Delete { table, key }) = &op;
                self.damaged
                    .retain(|page| *table != Table::Pages || page_key(*page) != *key);
                self.apply(op);
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
