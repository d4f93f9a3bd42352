//! The cells of a simulated table: the world may go on before each load and store.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::{Rc, Weak};
use thorp_versions::{Cells, Writable};

/// No word lies among the first cells.
const HEADER: usize = 40;

/// Who loads or stores.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Who {
    Keeper,
    Watchdog(usize),
    Follower(usize),
    Proxy(usize),
    /// The database, and whatever never hangs.
    Nobody,
}

/// A world that may go on before somebody loads or stores.
pub(crate) trait Passes {
    fn pass(self: Rc<Self>, who: Who);
}

/// The memory of a table. Cells that nobody has touched are all the same.
#[derive(Debug)]
pub(crate) struct Memory {
    cells: RefCell<BTreeMap<usize, u64>>,
    others: Cell<u64>,
}

impl Memory {
    pub(crate) fn new() -> Rc<Self> {
        // The header is there from the beginning.
        let header = (0..HEADER).map(|at| (at, 0));
        Rc::new(Memory {
            cells: RefCell::new(header.collect()),
            others: Cell::new(0),
        })
    }

    fn get(&self, at: usize) -> u64 {
        let mut cells = self.cells.borrow_mut();
        *cells.entry(at).or_insert(self.others.get())
    }

    fn set(&self, at: usize, bits: u64) {
        self.cells.borrow_mut().insert(at, bits);
    }

    fn touched(&self, range: Range<usize>) -> Vec<usize> {
        let cells = self.cells.borrow();
        cells.range(range).map(|(at, _)| *at).collect()
    }
}

/// A table as one process sees it.
#[derive(Clone)]
pub(crate) struct Seen {
    memory: Rc<Memory>,
    world: Weak<dyn Passes>,
    who: Who,
    /// A process that is dead stores nothing more.
    is_alive: Rc<Cell<bool>>,
}

impl Seen {
    pub(crate) fn new<P: Passes + 'static>(
        memory: &Rc<Memory>,
        world: &Rc<P>,
        who: Who,
        is_alive: &Rc<Cell<bool>>,
    ) -> Self {
        let world: Weak<P> = Rc::downgrade(world);
        Seen {
            memory: Rc::clone(memory),
            world,
            who,
            is_alive: Rc::clone(is_alive),
        }
    }

    fn pass(&self) {
        if let Some(world) = self.world.upgrade() {
            world.pass(self.who);
        }
    }
}

impl Cells for Seen {
    fn load(&self, at: usize) -> u64 {
        self.pass();
        self.memory.get(at)
    }

    fn glance(&self, at: usize) -> u64 {
        self.memory.get(at)
    }
}

impl Writable for Seen {
    fn store(&self, at: usize, bits: u64) {
        self.pass();
        if self.is_alive.get() {
            self.memory.set(at, bits);
        }
    }

    fn reset(&self, cells: Range<usize>, bits: u64) {
        for at in self.memory.touched(cells) {
            self.store(at, bits);
        }
        if self.is_alive.get() {
            self.memory.others.set(bits);
        }
    }
}
