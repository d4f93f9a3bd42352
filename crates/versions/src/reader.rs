//! The proxy's side of a table: evidence, admission and hits (rules W3 to W5).

use crate::cells::Cells;
use crate::limits::{BEAT, BEAT_MS_MAX, FIRST_WORD, GENERATION, SEQUENCE, STORES};
use crate::place::Place;
use crate::planted::{Bug, is_planted};
use crate::word::Word;
use std::fmt;

/// As of when an answer was right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// The generation of the table.
    pub generation: u64,
    /// The source's sequence.
    pub sequence: u64,
}

/// Why an answer may not be served, or not be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// A dependency has changed since the evidence.
    Changed(Place),
    /// An update of a dependency is open.
    Open(Place),
    /// The sequence has not come as far as the evidence.
    Behind,
    /// The keeper may be lost (rule W7).
    NoBeat,
    /// The table may have missed something (rule W8).
    OtherGeneration,
}

impl Denied {
    /// The same reason in the table of this number.
    #[must_use]
    pub fn in_table(self, table: u16) -> Self {
        match self {
            Denied::Changed(place) => Denied::Changed(place.in_table(table)),
            Denied::Open(place) => Denied::Open(place.in_table(table)),
            other => other,
        }
    }

    /// Whether an entry can never be served again. Otherwise it stays.
    pub fn is_for_good(self) -> bool {
        matches!(self, Denied::Changed(_) | Denied::OtherGeneration)
    }
}

/// A passed check: the entry may be served as long as the keeper has stored nothing since.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passed {
    stores: u64,
}

impl Passed {
    /// Checks of one answer at several tables, as one. *Stores* only grows in a generation: the sum is the same only if each one is.
    #[must_use]
    pub fn and(self, other: Passed) -> Passed {
        Passed {
            stores: self.stores.wrapping_add(other.stores),
        }
    }
}

/// What a proxy asks a table, or several.
pub trait Versions {
    /// As of when an answer was right: of one table an [`Evidence`].
    type Evidence: Clone + PartialEq + fmt::Debug + Send + Sync + 'static;

    /// What the evidence of a fill is, if this is called before the first byte of the fill leaves (rule W3).
    fn evidence(&self) -> Self::Evidence;

    /// Whether no dependency has changed since the evidence (rules W4 and W5). For a hit, call it after the request has arrived, and read
    /// the clock after that, too. *Unknown* counts as a dependency, whether or not it is among them.
    ///
    /// # Errors
    ///
    /// The first reason that speaks against it.
    fn check(
        &self,
        evidence: &Self::Evidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied>;

    /// The short cut: the keeper has stored nothing since a check of this entry passed, so its words are as they were (rule W5).
    fn still(&self, passed: Passed, evidence: &Self::Evidence, now_ms: u64) -> bool;

    /// The number of a word now: the sequence at its last change. For people who want to know which update that was; no check rests on it.
    fn number(&self, place: Place) -> u64;

    /// The generation in an evidence of the table that a place is in. For the same people.
    fn generation(&self, evidence: &Self::Evidence, place: Place) -> u64;
}

impl<V: Versions + ?Sized> Versions for std::sync::Arc<V> {
    type Evidence = V::Evidence;

    fn evidence(&self) -> V::Evidence {
        (**self).evidence()
    }

    fn check(
        &self,
        evidence: &V::Evidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        (**self).check(evidence, dependencies, now_ms)
    }

    fn still(&self, passed: Passed, evidence: &V::Evidence, now_ms: u64) -> bool {
        (**self).still(passed, evidence, now_ms)
    }

    fn number(&self, place: Place) -> u64 {
        (**self).number(place)
    }

    fn generation(&self, evidence: &V::Evidence, place: Place) -> u64 {
        (**self).generation(evidence, place)
    }
}

/// Reads a table.
#[derive(Clone, Debug)]
pub struct Reader<C> {
    cells: C,
}

impl<C: Cells> Reader<C> {
    /// A reader of these cells.
    pub fn new(cells: C) -> Self {
        Reader { cells }
    }

    /// The cells that it reads.
    pub fn cells(&self) -> &C {
        &self.cells
    }

    /// What the evidence of a fill is, if this is called before the first byte of the fill leaves (rule W3).
    pub fn evidence(&self) -> Evidence {
        let generation = self.get(GENERATION);
        let sequence = self.get(SEQUENCE);
        Evidence {
            generation,
            sequence,
        }
    }

    /// Whether no dependency has changed since the evidence (rules W4 and W5). For a hit, call it after the request has arrived, and read
    /// the clock after that, too. *Unknown* counts as a dependency, whether or not it is among them.
    ///
    /// # Errors
    ///
    /// The first reason that speaks against it.
    pub fn check(
        &self,
        evidence: Evidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        self.check_these(evidence, dependencies.iter().copied(), now_ms)
    }

    /// As [`check`](Reader::check).
    ///
    /// # Errors
    ///
    /// As [`check`](Reader::check).
    pub fn check_these(
        &self,
        evidence: Evidence,
        dependencies: impl Iterator<Item = Place>,
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        let stores = self.stores();
        let words = self.check_words(evidence, dependencies);
        self.is_live(evidence.generation, now_ms)?;
        words.map(|()| Passed { stores })
    }

    /// What [`still`](Reader::still) compares. None: the table is another one, or its keeper may be lost.
    pub fn passed(&self, evidence: Evidence, now_ms: u64) -> Option<Passed> {
        let stores = self.stores();
        let is_live = self.is_live(evidence.generation, now_ms).is_ok();
        is_live.then_some(Passed { stores })
    }

    /// The short cut: the keeper has stored nothing since a check of this entry passed, so its words are as they were (rule W5).
    pub fn still(&self, passed: Passed, evidence: Evidence, now_ms: u64) -> bool {
        if is_planted(Bug::ShortCutWithoutBeat) {
            return self.stores() == passed.stores && self.get(GENERATION) == evidence.generation;
        }
        self.stores() == passed.stores && self.is_live(evidence.generation, now_ms).is_ok()
    }

    fn check_words(
        &self,
        evidence: Evidence,
        dependencies: impl Iterator<Item = Place>,
    ) -> Result<(), Denied> {
        if self.get(SEQUENCE) < evidence.sequence {
            return Err(Denied::Behind);
        }
        let unknown = std::iter::once(Place::UNKNOWN);
        let mut open = None;
        for place in unknown.chain(dependencies) {
            let word = self.word(place);
            if word.number() > evidence.sequence {
                return Err(Denied::Changed(place));
            }
            open = open.or(word.is_odd().then_some(place));
        }
        open.map_or(Ok(()), |place| Err(Denied::Open(place)))
    }

    /// The generation comes last: a restart during the check is noticed (trap W21).
    fn is_live(&self, generation: u64, now_ms: u64) -> Result<(), Denied> {
        let early = is_planted(Bug::GenerationFirst).then(|| self.get(GENERATION));
        let beat = self.get(BEAT);
        if early.unwrap_or_else(|| self.get(GENERATION)) != generation {
            return Err(Denied::OtherGeneration);
        }
        if is_planted(Bug::BeatNotLookedAt) {
            return Ok(());
        }
        let age = now_ms.saturating_sub(beat);
        if beat == 0 || age > BEAT_MS_MAX {
            return Err(Denied::NoBeat);
        }
        Ok(())
    }

    fn stores(&self) -> u64 {
        match is_planted(Bug::ShortCutBySequence) {
            true => self.get(SEQUENCE),
            false => self.get(STORES),
        }
    }

    fn word(&self, place: Place) -> Word {
        Word::of_bits(self.get(FIRST_WORD + place.index()))
    }

    fn get(&self, at: usize) -> u64 {
        self.cells.load(at)
    }
}

impl<C: Cells> Versions for Reader<C> {
    type Evidence = Evidence;

    fn evidence(&self) -> Evidence {
        Reader::evidence(self)
    }

    fn check(
        &self,
        evidence: &Evidence,
        dependencies: &[Place],
        now_ms: u64,
    ) -> Result<Passed, Denied> {
        Reader::check(self, *evidence, dependencies, now_ms)
    }

    fn still(&self, passed: Passed, evidence: &Evidence, now_ms: u64) -> bool {
        Reader::still(self, passed, *evidence, now_ms)
    }

    fn number(&self, place: Place) -> u64 {
        Word::of_bits(self.cells.glance(FIRST_WORD + place.index())).number()
    }

    fn generation(&self, evidence: &Evidence, _place: Place) -> u64 {
        evidence.generation
    }
}
