//! The memory of a table: its own, or a mapped file.

use crate::limits::CELLS;
use crate::sync::{AtomicU64, Ordering};
use std::ops::Range;
use std::sync::Arc;

/// Words of 64 bits that a keeper writes and others read: the header, then the words. The simulator has cells of its own, which let
/// others go on between two loads.
pub trait Cells {
    /// Loads a cell, and acquires: what was stored before it is seen from then on. A table has 0 behind its end.
    fn load(&self, at: usize) -> u64;

    /// The same for people: no check rests on it, so nobody has to go on before it in the simulator.
    fn glance(&self, at: usize) -> u64 {
        self.load(at)
    }
}

/// Cells that may be stored to. [`Writer`](crate::Writer) needs such.
pub trait Writable: Cells {
    /// Stores to a cell, and releases. Behind the end of a table, nothing is stored.
    fn store(&self, at: usize, bits: u64);

    /// Stores the same to all cells of a range, in their order.
    fn reset(&self, cells: Range<usize>, bits: u64) {
        cells.for_each(|at| self.store(at, bits));
    }
}

impl<C: Cells + ?Sized> Cells for Arc<C> {
    fn load(&self, at: usize) -> u64 {
        (**self).load(at)
    }

    fn glance(&self, at: usize) -> u64 {
        (**self).glance(at)
    }
}

impl<C: Writable + ?Sized> Writable for Arc<C> {
    fn store(&self, at: usize, bits: u64) {
        (**self).store(at, bits);
    }

    fn reset(&self, cells: Range<usize>, bits: u64) {
        (**self).reset(cells, bits);
    }
}

/// Memory of one process, for tests and for a proxy with a keeper of its own.
#[derive(Debug)]
pub struct Memory(Box<[AtomicU64]>);

impl Memory {
    /// A table that nobody has written.
    pub fn new() -> Self {
        Memory((0..CELLS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl Cells for Memory {
    fn load(&self, at: usize) -> u64 {
        load(&self.0, at)
    }
}

impl Writable for Memory {
    fn store(&self, at: usize, bits: u64) {
        store(&self.0, at, bits);
    }
}

pub(crate) fn load(cells: &[AtomicU64], at: usize) -> u64 {
    let cell = cells.get(at);
    cell.map_or(0, |cell| cell.load(Ordering::Acquire))
}

pub(crate) fn store(cells: &[AtomicU64], at: usize, bits: u64) {
    if let Some(cell) = cells.get(at) {
        cell.store(bits, Ordering::Release);
    }
}
