//! The keeper's side of a table: in which order it stores (rules W1, W7 and W8).

use crate::cells::Writable;
use crate::limits::{BEAT, FIRST_WORD, GENERATION, SEQUENCE, STORES, WORDS};
use crate::place::Place;
use crate::word::Word;

/// What a keeper stores at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Store {
    /// The words that change.
    pub words: Vec<(Place, Word)>,
    /// The source's sequence from then on.
    pub sequence: u64,
}

/// Writes a table.
///
/// Invariant: there is one writer for a table. A reader that sees a sequence, or stores, or a generation sees all that was stored before.
#[derive(Debug)]
pub struct Writer<C> {
    cells: C,
}

impl<C: Writable> Writer<C> {
    /// The one writer of these cells.
    pub fn new(cells: C) -> Self {
        Writer { cells }
    }

    /// Stores words, then the sequence, then *stores* (rule W1). Only then may the keeper acknowledge.
    pub fn store(&mut self, store: &Store) {
        for (place, word) in &store.words {
            self.set(FIRST_WORD + place.index(), word.bits());
        }
        self.set(SEQUENCE, store.sequence);
        self.count();
    }

    /// The table may have missed an update: no older entry is valid any more (rule W8). There is no beat until the source says that it
    /// waits. Returns the sequence with which the new generation begins, above all of before.
    pub fn restart(&mut self, generation: u64) -> u64 {
        self.set(BEAT, 0);
        self.set(GENERATION, generation);
        let sequence = self.get(SEQUENCE).saturating_add(1);
        let words = FIRST_WORD..FIRST_WORD + WORDS;
        self.cells.reset(words, Word::even(sequence).bits());
        self.set(SEQUENCE, sequence);
        self.count();
        sequence
    }

    /// The source has said that it waits for this keeper. It was asked then, in milliseconds of a clock that counts suspended time.
    pub fn beat(&mut self, asked_ms: u64) {
        self.set(BEAT, asked_ms);
    }

    fn count(&mut self) {
        let stores = self.get(STORES).wrapping_add(1);
        self.set(STORES, stores);
    }

    fn get(&self, at: usize) -> u64 {
        self.cells.load(at)
    }

    fn set(&mut self, at: usize, bits: u64) {
        self.cells.store(at, bits);
    }
}
