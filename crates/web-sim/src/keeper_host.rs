//! What there is on the keeper's machine.

use crate::cells::{Memory, Seen};
use crate::database::{Position, Xid};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use thorp_versions::{Broadcast, Ledger, Step};
use thorp_web::{GoingLive, Numbers};

/// The keeper's machine: its table outlives its process.
pub(crate) struct KeeperHost {
    pub(crate) memory: Rc<Memory>,
    pub(crate) process: RefCell<Option<Process>>,
    pub(crate) lives: Cell<u64>,
}

/// One process.
pub(crate) struct Process {
    pub(crate) is_alive: Rc<Cell<bool>>,
    /// None while it is at work.
    pub(crate) ledger: Option<Ledger<Seen>>,
    /// Which of all lives between two losses of the database.
    pub(crate) life: u64,
    pub(crate) is_live: bool,
    /// Its stream is connected, as far as it knows.
    pub(crate) is_connected: bool,
    /// It stops, and beats no more.
    pub(crate) is_leaving: bool,
    pub(crate) going: GoingLive,
    pub(crate) numbers: Numbers,
    /// Its message that is not decoded yet, and its transaction.
    pub(crate) awaited: Option<(u64, Xid)>,
    /// Where its message ends.
    pub(crate) position: Option<Position>,
    pub(crate) delivered: Position,
    pub(crate) is_delivering: bool,
    /// Updates that no snapshot has shown yet.
    pub(crate) open: BTreeSet<Xid>,
    pub(crate) is_looking: bool,
    pub(crate) broadcast: Broadcast,
    /// The connections of its followers.
    pub(crate) links: BTreeMap<usize, u64>,
    /// What is to be acknowledged once all followers have a step, and for which life.
    pub(crate) pending: VecDeque<(Step, u64, Position)>,
}

impl KeeperHost {
    pub(crate) fn new() -> Self {
        KeeperHost {
            memory: Memory::new(),
            process: RefCell::new(None),
            lives: Cell::new(0),
        }
    }

    pub(crate) fn next_life(&self) -> u64 {
        self.lives.set(self.lives.get() + 1);
        self.lives.get()
    }

    /// The life that the process is in.
    pub(crate) fn life(&self) -> Option<u64> {
        self.process.borrow().as_ref().map(|process| process.life)
    }

    pub(crate) fn change<T>(&self, life: u64, change: impl FnOnce(&mut Process) -> T) -> Option<T> {
        let mut process = self.process.borrow_mut();
        let process = process.as_mut().filter(|process| process.life == life)?;
        Some(change(process))
    }

    /// The process, whichever life it is in.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Process) -> T) -> Option<T> {
        self.process.borrow_mut().as_mut().map(change)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.borrow().is_some()
    }

    pub(crate) fn is_leaving(&self) -> bool {
        let process = self.process.borrow();
        process.as_ref().is_some_and(|one| one.is_leaving)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.process
            .borrow()
            .as_ref()
            .is_some_and(|one| one.is_live)
    }
}
