//! The memory of a table: its own, or a mapped file.

use crate::limits::CELLS;
use crate::sync::AtomicU64;

/// [`CELLS`] words of 64 bits that a keeper writes and others read.
pub trait Cells {
    /// All of them: the header, then the words.
    fn cells(&self) -> &[AtomicU64];
}

/// Cells that may be stored to. [`Writer`](crate::Writer) needs such.
pub trait Writable: Cells {}

impl<C: Writable + ?Sized> Writable for std::sync::Arc<C> {}

impl<C: Cells + ?Sized> Cells for std::sync::Arc<C> {
    fn cells(&self) -> &[AtomicU64] {
        (**self).cells()
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
    fn cells(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Writable for Memory {}
