//! A database with the visibility gap: a commit waits for its standby, and is visible some time after the acknowledgement.
//!
//! It is as PostgreSQL 15 was measured. It does no I/O and has no clock: who calls it lets the time pass.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction's whole number.
pub(crate) type Xid = u64;

/// A row, by its number.
pub(crate) type Row = usize;

/// A place in the log: how many records are before its end.
pub(crate) type Position = usize;

/// For whom commits wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standby {
    Nobody,
    Keeper,
    Gone,
}

/// A commit in the log.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) xid: Xid,
    pub(crate) content: Content,
}

/// What a commit has changed.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// These rows. Without names: as a table that no recipe knows.
    Rows(Vec<Row>, bool),
    /// A message of the keeper's.
    Message(u64),
}

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Open,
    /// Its commit is in the log, and it waits for the standby.
    Waits(Position),
    /// It will be visible in a moment.
    Released,
}

#[derive(Clone, Debug)]
struct Transaction {
    stage: Stage,
    writes: Vec<(Row, u64)>,
}

/// The database.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) is_up: bool,
    /// How often it has started.
    pub(crate) life: u64,
    rows: Vec<u64>,
    next: Xid,
    /// Behind the last one that is over. A snapshot knows of none from there on.
    known: Xid,
    running: BTreeMap<Xid, Transaction>,
    log: Vec<Record>,
    /// As it is set, and as the sessions say.
    pub(crate) names: Standby,
    /// As commits see it: the checkpointer may be busy.
    effective: Standby,
    /// How far the keeper's slot is.
    pub(crate) slot: Option<Position>,
    /// The connection of the keeper's stream.
    pub(crate) stream: Option<u64>,
}

impl Database {
    /// A database with so many rows, all 0. It gives this number to its first transaction.
    pub(crate) fn new(rows: usize, first: Xid) -> Self {
        Database {
            is_up: true,
            life: 0,
            rows: vec![0; rows],
            next: first,
            known: first,
            running: BTreeMap::new(),
            log: Vec::new(),
            names: Standby::Nobody,
            effective: Standby::Nobody,
            slot: None,
            stream: None,
        }
    }

    // --- What sessions do ---

    /// What everybody sees of a row.
    pub(crate) fn read(&self, row: Row) -> u64 {
        self.rows.get(row).copied().unwrap_or_default()
    }

    /// A transaction that will write this.
    pub(crate) fn begin(&mut self, writes: Vec<(Row, u64)>) -> Xid {
        let xid = self.next;
        self.next += 1;
        let stage = Stage::Open;
        self.running.insert(xid, Transaction { stage, writes });
        xid
    }

    /// The commit is in the log. Whether it goes on without a standby; otherwise [`acknowledge`](Database::acknowledge) says so.
    pub(crate) fn commit(&mut self, xid: Xid, content: Content) -> bool {
        self.log.push(Record { xid, content });
        let end = self.log.len();
        let waits = self.effective != Standby::Nobody;
        if let Some(transaction) = self.running.get_mut(&xid) {
            transaction.stage = match waits {
                true => Stage::Waits(end),
                false => Stage::Released,
            };
        }
        !waits
    }

    /// The transaction is over. Everybody sees what it has written.
    pub(crate) fn show(&mut self, xid: Xid) {
        let Some(transaction) = self.running.remove(&xid) else {
            return;
        };
        self.known = self.known.max(xid + 1);
        for (row, value) in transaction.writes {
            if let Some(now) = self.rows.get_mut(row) {
                *now = value;
            }
        }
    }

    // --- Snapshots ---

    /// About the number of the next transaction, from a snapshot: behind the last one that is over.
    pub(crate) fn next_number(&self) -> Xid {
        self.known
    }

    /// The number of the oldest transaction that a snapshot knows, and that is not over.
    pub(crate) fn oldest(&self) -> Xid {
        let oldest = self.running.keys().next().copied();
        oldest.map_or(self.known, |oldest| oldest.min(self.known))
    }

    /// Whether a fresh snapshot has this transaction.
    pub(crate) fn is_visible(&self, xid: Xid) -> bool {
        xid < self.known && !self.running.contains_key(&xid)
    }

    /// Transactions that are not over.
    pub(crate) fn running(&self) -> BTreeSet<Xid> {
        self.running.keys().copied().collect()
    }

    /// Commits that wait.
    pub(crate) fn waiting(&self) -> Vec<Xid> {
        let waits = |transaction: &Transaction| matches!(transaction.stage, Stage::Waits(_));
        let waiting = self.running.iter().filter(|(_, running)| waits(running));
        waiting.map(|(xid, _)| *xid).collect()
    }

    // --- The standby ---

    /// Whether commits wait for the keeper on this connection.
    pub(crate) fn waits_for(&self, stream: u64) -> bool {
        self.names == Standby::Keeper && self.stream == Some(stream)
    }

    /// A keeper's connections are closed.
    pub(crate) fn end_sessions(&mut self, life: u64) {
        self.stream = self.stream.filter(|stream| *stream != life);
    }

    /// Sets the names if they are one of these.
    pub(crate) fn set_names(&mut self, names: Standby, from: &[Standby]) -> bool {
        let may = self.names == names || from.contains(&self.names);
        if may {
            self.names = names;
        }
        may
    }

    /// Commits see the names as they are set. These go on now.
    pub(crate) fn reload(&mut self) -> Vec<Xid> {
        self.effective = self.names;
        match self.effective {
            Standby::Nobody => self.release(Position::MAX),
            Standby::Keeper if self.stream.is_some() => self.release(self.slot.unwrap_or(0)),
            Standby::Keeper | Standby::Gone => Vec::new(),
        }
    }

    /// The keeper has everything up to there. These commits go on now.
    pub(crate) fn acknowledge(&mut self, stream: u64, position: Position) -> Vec<Xid> {
        if self.stream != Some(stream) {
            return Vec::new();
        }
        if let Some(slot) = &mut self.slot {
            *slot = position.max(*slot);
        }
        match self.effective {
            Standby::Keeper => self.release(position),
            Standby::Nobody | Standby::Gone => Vec::new(),
        }
    }

    /// The record that ends there.
    pub(crate) fn record(&self, end: Position) -> Option<&Record> {
        self.log.get(end.checked_sub(1)?)
    }

    /// Makes the slot, as far as the log is now.
    pub(crate) fn make_slot(&mut self) -> Position {
        let end = self.log.len();
        *self.slot.get_or_insert(end)
    }

    fn release(&mut self, position: Position) -> Vec<Xid> {
        let mut released = Vec::new();
        for (xid, transaction) in &mut self.running {
            if matches!(transaction.stage, Stage::Waits(end) if end <= position) {
                transaction.stage = Stage::Released;
                released.push(*xid);
            }
        }
        released
    }

    // --- Crashes ---

    /// A backend has crashed: all sessions end.
    pub(crate) fn crash(&mut self) {
        self.is_up = false;
        self.stream = None;
    }

    /// It is back. What is in its log is visible. These names are set.
    pub(crate) fn recover(&mut self, names: Standby) {
        let is_logged = |transaction: &Transaction| transaction.stage != Stage::Open;
        let running = std::mem::take(&mut self.running);
        for (xid, transaction) in running.into_iter().filter(|(_, one)| is_logged(one)) {
            self.running.insert(xid, transaction);
            self.show(xid);
        }
        self.known = self.next;
        self.is_up = true;
        self.life += 1;
        self.names = names;
        self.effective = names;
    }
}
