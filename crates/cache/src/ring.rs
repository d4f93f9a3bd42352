//! A bounded ring of records: one writer, any number of readers, no locks.

use crate::sync::{AtomicU64, Ordering, fence};
use std::array;

/// Records of `W` words. Each has an index for ever; the last few can be read.
pub(crate) struct Ring<const W: usize> {
    /// The index of the next record.
    head: AtomicU64,
    /// The same, for the writer alone. Not for speed: the model checker forgets
    /// that a reader's load may come after a store, if the storing thread
    /// itself loaded the cell in between.
    next: std::sync::atomic::AtomicU64,
    records: Box<[[AtomicU64; W]]>,
}

impl<const W: usize> Ring<W> {
    /// A ring that remembers at least the last `remembered` records.
    pub(crate) fn new(remembered: usize) -> Self {
        // One more, because the writer may be inside the oldest.
        let capacity = remembered.saturating_add(1).next_power_of_two();
        let record = |_| array::from_fn(|_| AtomicU64::new(0));
        Ring {
            head: AtomicU64::new(0),
            next: std::sync::atomic::AtomicU64::new(0),
            records: (0..capacity).map(record).collect(),
        }
    }

    /// The index of the next record. All records before it are there, or were.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Adds a record. Only the one writer calls this.
    pub(crate) fn push(&self, words: [u64; W]) {
        let index = self.pushed();
        // Whoever reads a word stored below sees `head` at `index` or later.
        fence(Ordering::Release);
        for (cell, word) in self.record(index).iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        self.next.store(index + 1, Ordering::Relaxed);
        self.head.store(index + 1, Ordering::Release);
    }

    /// As [`Ring::head`], for the writer.
    pub(crate) fn pushed(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// A record that the caller knows to be before a head it has loaded, or
    /// `None` if it was overwritten, perhaps while it was read.
    pub(crate) fn read(&self, index: u64) -> Option<[u64; W]> {
        let record = self.record(index);
        let words = array::from_fn(|at| record[at].load(Ordering::Relaxed));
        // If a word was of a later record, `head` now shows it: see `push`.
        fence(Ordering::Acquire);
        let head = self.head.load(Ordering::Relaxed);
        let age = head.wrapping_sub(index);
        (age < self.records.len() as u64).then_some(words)
    }

    fn record(&self, index: u64) -> &[AtomicU64; W] {
        // The capacity is a power of two.
        &self.records[index as usize & (self.records.len() - 1)]
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_overwritten_is_not_told() {
        let ring = Ring::<2>::new(3);
        for n in 0..10u64 {
            ring.push([n, n * n]);
        }
        assert_eq!(ring.head(), 10);
        for n in 0..7 {
            assert_eq!(ring.read(n), None);
        }
        for n in 7..10 {
            assert_eq!(ring.read(n), Some([n, n * n]));
        }
    }
}
