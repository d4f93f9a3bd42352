//! What there is on the machine of a follower.

use crate::cells::{Memory, Seen, Who};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use thorp_versions::Follower;

/// The connection to a follower.
pub(crate) const DOWN: u64 = 2;

/// Where a follower runs. Its table outlives its process.
pub(crate) struct FollowerHost {
    pub(crate) number: usize,
    pub(crate) memory: Rc<Memory>,
    pub(crate) process: RefCell<Option<Process>>,
    pub(crate) connections: Cell<u64>,
}

pub(crate) struct Process {
    pub(crate) is_alive: Rc<Cell<bool>>,
    /// None while it is at work.
    pub(crate) follower: Option<Follower<Seen>>,
    pub(crate) connection: u64,
    pub(crate) unanswered: u32,
}

impl FollowerHost {
    pub(crate) fn new(number: usize) -> Self {
        FollowerHost {
            number,
            memory: Memory::new(),
            process: RefCell::new(None),
            connections: Cell::new(0),
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn who(&self) -> Who {
        Who::Follower(self.number)
    }

    pub(crate) fn change<T>(
        &self,
        connection: u64,
        change: impl FnOnce(&mut Process) -> T,
    ) -> Option<T> {
        let mut process = self.process.borrow_mut();
        let process = process.as_mut();
        let process = process.filter(|process| process.connection == connection)?;
        Some(change(process))
    }
}
