//! The table of a Thorp home, which numbers its own changes: its sequence is the position of its log (rules W1, W2 and W8).

use crate::cells::Writable;
use crate::limits::KEYS_OF_UPDATE_MAX;
use crate::place::Place;
use crate::planted::{Bug, is_planted};
use crate::word::Word;
use crate::writer::{Store, Writer};
use std::collections::BTreeMap;

/// What a home writes into its table. `I` names a vote.
///
/// Invariant: a word is odd as long as a vote for a change of it is open. `counts` has, for each place, how many open votes change it.
/// Each call has stored everything when it returns.
#[derive(Debug)]
pub struct HomeLedger<C, I> {
    writer: Writer<C>,
    sequence: u64,
    open: BTreeMap<I, Vec<Place>>,
    counts: BTreeMap<Place, u64>,
}

impl<C: Writable, I: Ord> HomeLedger<C, I> {
    /// The ledger of this table. It has no generation yet.
    pub fn new(writer: Writer<C>) -> Self {
        HomeLedger {
            writer,
            sequence: 0,
            open: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// The home begins a life at this position, with these votes open. No older entry is valid any more, and all words have the number
    /// of the position: an answer of before it is not kept (trap W10).
    pub fn begin(
        &mut self,
        generation: u64,
        position: u64,
        votes: impl IntoIterator<Item = (I, Option<Vec<Place>>)>,
    ) {
        self.sequence = position;
        self.open.clear();
        self.counts.clear();
        for (vote, keys) in votes {
            self.count(vote, places(keys));
        }
        if is_planted(Bug::TableRepeats) {
            // The words begin anew, under their old generation.
            return self.writer.restart_at(1, 0, &[]);
        }
        self.renew(generation);
    }

    /// Something has changed that has no key or no position: no older entry is valid any more, in a new generation (rule W8). What is open
    /// stays so. There is no beat until the next one.
    pub fn renew(&mut self, generation: u64) {
        let open: Vec<Place> = self.counts.keys().copied().collect();
        self.writer.restart_at(generation, self.sequence, &open);
    }

    /// The home votes for a change of these keys; none: nobody can say which (rule W9). Each vote counts once. The words keep their
    /// numbers: a vote has none of its own (trap W23). What changes nothing is no vote here.
    pub fn vote(&mut self, vote: I, keys: Option<Vec<Place>>) {
        let places = places(keys);
        let is_known = places.is_empty() || self.open.contains_key(&vote);
        if is_known || is_planted(Bug::VoteLeavesEven) {
            return;
        }
        self.count(vote, places.clone());
        let words = places.into_iter().map(|place| {
            let number = self.writer.word(place).number();
            (place, Word::odd(number))
        });
        self.store(words.collect());
    }

    /// A vote has ended, with a change that [`HomeLedger::change`] has stored or without one.
    pub fn end(&mut self, vote: &I) {
        let Some(places) = self.open.remove(vote) else {
            return;
        };
        for place in &places {
            if let Some(count) = self.counts.get_mut(place) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.counts.remove(place);
                }
            }
        }
        let words = places.into_iter().map(|place| {
            let number = self.writer.word(place).number();
            (place, self.word(place, number))
        });
        self.store(words.collect());
    }

    /// The position of the home's log at which these keys change; none: nobody can say which. The mark of each word stays as it is.
    pub fn change(&mut self, position: u64, keys: Option<Vec<Place>>) {
        self.sequence = self.sequence.max(position);
        let number = self.sequence;
        let words = places(keys).into_iter();
        let words = words.map(|place| (place, self.word(place, number)));
        self.store(words.collect());
    }

    /// The home is there, in milliseconds of a clock that counts suspended time (rule W7). 0: it ends, and there are no hits any more.
    pub fn beat(&mut self, now_ms: u64) {
        self.writer.beat(now_ms);
    }

    /// How many votes are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    fn count(&mut self, vote: I, places: Vec<Place>) {
        for place in &places {
            *self.counts.entry(*place).or_default() += 1;
        }
        self.open.insert(vote, places);
    }

    fn word(&self, place: Place, number: u64) -> Word {
        match self.counts.contains_key(&place) {
            true => Word::odd(number),
            false => Word::even(number),
        }
    }

    fn store(&mut self, words: Vec<(Place, Word)>) {
        let sequence = self.sequence;
        self.writer.store(&Store { words, sequence });
    }
}

/// What a change concerns: its keys, and *everything*. With too many keys, or if nobody knows them, *unknown* and *everything*. Without any
/// key, nothing.
fn places(keys: Option<Vec<Place>>) -> Vec<Place> {
    let mut places = match keys.filter(|keys| keys.len() <= KEYS_OF_UPDATE_MAX) {
        Some(keys) if keys.is_empty() => return keys,
        Some(keys) => keys,
        None => Vec::from([Place::UNKNOWN]),
    };
    places.push(Place::EVERYTHING);
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::cells::Memory;
    use crate::reader::{Denied, Evidence, Reader};
    use std::sync::Arc;

    const GENERATION: u64 = 77;

    fn begun(position: u64) -> (HomeLedger<Arc<Memory>, u64>, Reader<Arc<Memory>>) {
        let table = Arc::new(Memory::new());
        let mut ledger = HomeLedger::new(Writer::new(Arc::clone(&table)));
        ledger.begin(GENERATION, position, []);
        ledger.beat(1_000);
        (ledger, Reader::new(table))
    }

    fn keys(names: &[&str]) -> Option<Vec<Place>> {
        Some(names.iter().map(|name| Place::of(name)).collect())
    }

    fn checked(reader: &Reader<Arc<Memory>>, sequence: u64, key: &str) -> Result<(), Denied> {
        let evidence = Evidence {
            generation: GENERATION,
            sequence,
        };
        reader.check(evidence, &[Place::of(key)], 1_000).map(drop)
    }

    #[test]
    fn an_answer_is_right_as_of_its_position_or_not_kept() {
        let (mut ledger, reader) = begun(5);
        assert_eq!(checked(&reader, 5, "a"), Ok(()));
        // What a home has reported before its last start says nothing of what came until then.
        assert_eq!(
            checked(&reader, 4, "a"),
            Err(Denied::Changed(Place::UNKNOWN))
        );
        ledger.change(6, keys(&["a"]));
        assert_eq!(
            checked(&reader, 5, "a"),
            Err(Denied::Changed(Place::of("a")))
        );
        assert_eq!(checked(&reader, 5, "b"), Ok(()));
        assert_eq!(checked(&reader, 6, "a"), Ok(()));
        assert_eq!(checked(&reader, 7, "b"), Err(Denied::Behind));
    }

    #[test]
    fn a_word_is_odd_from_the_first_vote_to_the_end_of_the_last() {
        let (mut ledger, reader) = begun(5);
        ledger.vote(1, keys(&["a"]));
        ledger.vote(1, keys(&["a"]));
        ledger.vote(2, keys(&["a"]));
        assert_eq!(checked(&reader, 5, "a"), Err(Denied::Open(Place::of("a"))));
        ledger.end(&1);
        ledger.end(&1);
        assert_eq!(checked(&reader, 5, "a"), Err(Denied::Open(Place::of("a"))));
        // It was not changed: what was kept before may be served again.
        ledger.end(&2);
        assert_eq!((checked(&reader, 5, "a"), ledger.open()), (Ok(()), 0));
    }

    #[test]
    fn a_change_leaves_the_mark_of_a_vote() {
        let (mut ledger, reader) = begun(5);
        ledger.vote(1, keys(&["a"]));
        ledger.change(6, keys(&["a"]));
        assert_eq!(checked(&reader, 6, "a"), Err(Denied::Open(Place::of("a"))));
        ledger.end(&1);
        assert_eq!(checked(&reader, 6, "a"), Ok(()));
    }

    #[test]
    fn a_vote_is_seen_by_the_short_cut_although_the_position_stays() {
        let (mut ledger, reader) = begun(5);
        let evidence = Evidence {
            generation: GENERATION,
            sequence: 5,
        };
        let passed = reader.check(evidence, &[Place::of("a")], 1_000);
        let passed = passed.expect("nothing has changed");
        assert!(reader.still(passed, evidence, 1_000));
        ledger.vote(1, keys(&["a"]));
        assert!(!reader.still(passed, evidence, 1_000), "trap W23");
    }

    #[test]
    fn a_life_begins_with_its_open_votes_and_no_entry_of_before() {
        let (mut ledger, reader) = begun(5);
        ledger.begin(78, 9, [(1, keys(&["a"]))]);
        ledger.beat(1_000);
        assert_eq!(checked(&reader, 9, "b"), Err(Denied::OtherGeneration));
        let evidence = Evidence {
            generation: 78,
            sequence: 9,
        };
        let place = Place::of("a");
        let check = |place| reader.check(evidence, &[place], 1_000).map(drop);
        assert_eq!(check(place), Err(Denied::Open(place)));
        assert_eq!(check(Place::of("b")), Ok(()));
        ledger.end(&1);
        assert_eq!(check(place), Ok(()));
    }

    #[test]
    fn a_home_that_ends_leaves_no_hits() {
        let (mut ledger, reader) = begun(5);
        ledger.beat(0);
        assert_eq!(checked(&reader, 5, "a"), Err(Denied::NoBeat));
    }

    #[test]
    fn too_many_keys_are_all() {
        let (mut ledger, reader) = begun(5);
        let many = (0..=KEYS_OF_UPDATE_MAX).map(|key| Place::of(&key.to_string()));
        ledger.change(6, Some(many.collect()));
        assert_eq!(
            checked(&reader, 5, "b"),
            Err(Denied::Changed(Place::UNKNOWN))
        );
    }
}
