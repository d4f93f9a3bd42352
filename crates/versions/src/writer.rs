//! The keeper's side of a table: in which order it stores (rules W1, W7 and W8).

use crate::cells::Writable;
use crate::limits::{BEAT, FIRST_WORD, GENERATION, SEQUENCE, STORES, WORDS};
use crate::place::Place;
use crate::planted::{Bug, is_planted};
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
        if is_planted(Bug::SequenceBeforeWords) {
            self.set(SEQUENCE, store.sequence);
            self.count();
            return self.set_words(&store.words);
        }
        self.set_words(&store.words);
        self.set(SEQUENCE, store.sequence);
        self.count();
    }

    /// The table may have missed an update: no older entry is valid any more (rule W8). There is no beat until the source says that it
    /// waits. Returns the sequence with which the new generation begins, above all of before. Updates of these places are open.
    pub fn restart(&mut self, generation: u64, open: &[Place]) -> u64 {
        if is_planted(Bug::GenerationKept) && self.get(GENERATION) != 0 {
            return self.forget_beat();
        }
        if is_planted(Bug::TableRepeats) {
            return self.repeat();
        }
        let sequence = self.get(SEQUENCE).saturating_add(1);
        self.restart_at(generation, sequence, open);
        sequence
    }

    /// As [`restart`](Writer::restart), with a sequence of the caller's: a follower has that of its keeper.
    pub fn restart_at(&mut self, generation: u64, sequence: u64, open: &[Place]) {
        self.set(BEAT, 0);
        // A follower's sequence may go back. No evidence of this generation has a sequence of the last one.
        self.set(SEQUENCE, sequence.min(self.get(SEQUENCE)));
        self.set(GENERATION, generation);
        let words = FIRST_WORD..FIRST_WORD + WORDS;
        self.cells.reset(words, Word::even(sequence).bits());
        let odd = |place: &Place| (*place, Word::odd(sequence));
        self.set_words(&open.iter().map(odd).collect::<Vec<_>>());
        self.set(SEQUENCE, sequence);
        self.count();
    }

    /// The source has said that it waits for this keeper. It was asked then, in milliseconds of a clock that counts suspended time.
    pub fn beat(&mut self, asked_ms: u64) {
        self.set(BEAT, asked_ms);
    }

    /// A word as it is stored.
    pub(crate) fn word(&self, place: Place) -> Word {
        Word::of_bits(self.get(FIRST_WORD + place.index()))
    }

    /// A planted bug: the generation goes on.
    fn forget_beat(&mut self) -> u64 {
        self.set(BEAT, 0);
        self.get(SEQUENCE)
    }

    /// A planted bug: the generation and its numbers begin anew.
    fn repeat(&mut self) -> u64 {
        let generation = self.get(GENERATION).max(1);
        self.restart_at(generation, 1, &[]);
        1
    }

    fn set_words(&mut self, words: &[(Place, Word)]) {
        for (place, word) in words {
            self.set(FIRST_WORD + place.index(), word.bits());
        }
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
