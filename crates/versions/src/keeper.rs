//! Which updates are open, and what the keeper stores for each (rule W2). It does no I/O: what it wants is in the order of its actions.

use crate::limits::{KEYS_OF_UPDATE_MAX, OPEN_UPDATES_MAX};
use crate::place::Place;
use crate::planted::{Bug, is_planted};
use crate::word::Word;
use crate::writer::Store;
use std::collections::BTreeMap;

/// An update, as its source names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UpdateId(pub u64);

/// What happens to a keeper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The table begins a generation, with this sequence. No update is open.
    Restarted(u64),
    /// The table begins a generation, with this sequence. What is open stays open.
    Renewed(u64),
    /// An update is about to become visible. It changes the keys at these places; none: nobody can say which (rule W9).
    Begin(UpdateId, Option<Vec<Place>>),
    /// The update is visible, or it never will be. The source knows.
    End(UpdateId),
    /// The source has said that it waits for this keeper. It was asked then, in milliseconds.
    Waits(u64),
}

/// What a keeper wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Store this in the table, in the order of [`Writer::store`](crate::Writer::store).
    Store(Store),
    /// Tell the source that the update may become visible. What comes before is stored by then.
    Acknowledge(UpdateId),
    /// Too many updates are open: this one must not become visible, or the source counts as lost (rule W8).
    Refuse(UpdateId),
    /// Store the beat.
    Beat(u64),
}

/// The open updates of one source.
///
/// Invariant: a word is odd as long as an update of it is open. `counts` has, for each place, how many open updates change it.
#[derive(Debug, Default)]
pub struct Keeper {
    sequence: u64,
    open: BTreeMap<UpdateId, Vec<Place>>,
    counts: BTreeMap<Place, u64>,
}

impl Keeper {
    /// A keeper that knows of no update.
    pub fn new() -> Self {
        Keeper::default()
    }

    /// Handles one event.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Restarted(sequence) => {
                *self = Keeper {
                    sequence,
                    ..Keeper::default()
                };
                Vec::new()
            }
            Event::Renewed(sequence) => {
                self.sequence = sequence;
                Vec::new()
            }
            Event::Begin(id, keys) => self.begin(id, keys),
            Event::End(id) => self.end(id),
            Event::Waits(asked_ms) => Vec::from([Action::Beat(asked_ms)]),
        }
    }

    /// The source's sequence.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The places of all open updates.
    pub fn open_places(&self) -> Vec<Place> {
        self.counts.keys().copied().collect()
    }

    /// How many updates are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether an update of this place is open.
    pub fn is_open(&self, place: Place) -> bool {
        self.counts.contains_key(&place)
    }

    fn begin(&mut self, id: UpdateId, keys: Option<Vec<Place>>) -> Vec<Action> {
        if self.open.contains_key(&id) {
            return Vec::from([Action::Acknowledge(id)]);
        }
        if self.open.len() >= OPEN_UPDATES_MAX {
            return Vec::from([Action::Refuse(id)]);
        }
        let places = places(keys);
        for place in &places {
            *self.counts.entry(*place).or_default() += 1;
        }
        let store = self.store(&places);
        self.open.insert(id, places);
        Vec::from([store, Action::Acknowledge(id)])
    }

    fn end(&mut self, id: UpdateId) -> Vec<Action> {
        let Some(places) = self.open.remove(&id) else {
            return Vec::new();
        };
        for place in &places {
            let count = self.counts.get_mut(place);
            let left = count.map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == 0 || is_planted(Bug::FirstEndMakesEven) {
                self.counts.remove(place);
            }
        }
        Vec::from([self.store(&places)])
    }

    /// The words of these places as they are now, under the next number.
    fn store(&mut self, places: &[Place]) -> Action {
        self.sequence = self.sequence.saturating_add(1);
        let number = self.sequence;
        let is_odd = |place| self.is_open(place) && !is_planted(Bug::EvenAtBegin);
        let word = |place: &Place| match is_odd(*place) {
            true => (*place, Word::odd(number)),
            false => (*place, Word::even(number)),
        };
        Action::Store(Store {
            words: places.iter().map(word).collect(),
            sequence: number,
        })
    }
}

/// What an update changes: its keys, and *everything*. With too many keys, or with none that is known, *unknown* and *everything*.
fn places(keys: Option<Vec<Place>>) -> Vec<Place> {
    let named = keys.filter(|keys| keys.len() <= KEYS_OF_UPDATE_MAX);
    let is_named = named.is_some() || is_planted(Bug::UnknownForgotten);
    let mut places = named.unwrap_or_default();
    if !is_named || is_planted(Bug::EachChangeUnknown) {
        places.push(Place::UNKNOWN);
    }
    if !is_named || !is_planted(Bug::EverythingOnlyUnnamed) {
        places.push(Place::EVERYTHING);
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    fn begin(keeper: &mut Keeper, id: u64, keys: &[&str]) -> Vec<Action> {
        let keys = keys.iter().map(|key| Place::of(key)).collect();
        keeper.handle(Event::Begin(UpdateId(id), Some(keys)))
    }

    fn words(actions: &[Action]) -> &[(Place, Word)] {
        match actions.first() {
            Some(Action::Store(store)) => &store.words,
            _ => &[],
        }
    }

    #[test]
    fn the_words_are_stored_before_the_source_hears_of_it() {
        let mut keeper = Keeper::new();
        let actions = begin(&mut keeper, 7, &["a"]);
        assert!(matches!(
            actions[..],
            [Action::Store(_), Action::Acknowledge(UpdateId(7))]
        ));
        let expected = [Place::EVERYTHING, Place::of("a")].map(|place| (place, Word::odd(1)));
        assert_eq!(words(&actions), expected);
        let actions = keeper.handle(Event::End(UpdateId(7)));
        let expected = [Place::EVERYTHING, Place::of("a")].map(|place| (place, Word::even(2)));
        assert_eq!(words(&actions), expected);
    }

    #[test]
    fn a_word_is_odd_until_the_last_update_of_it_has_ended() {
        let mut keeper = Keeper::new();
        begin(&mut keeper, 1, &["a"]);
        begin(&mut keeper, 2, &["a"]);
        let actions = keeper.handle(Event::End(UpdateId(1)));
        assert!(words(&actions).iter().all(|(_, word)| word.is_odd()));
        let actions = keeper.handle(Event::End(UpdateId(2)));
        assert!(words(&actions).iter().all(|(_, word)| !word.is_odd()));
        assert_eq!(keeper.open(), 0);
    }

    #[test]
    fn each_id_counts_once() {
        let mut keeper = Keeper::new();
        begin(&mut keeper, 1, &["a"]);
        let again = begin(&mut keeper, 1, &["a"]);
        assert_eq!(again, [Action::Acknowledge(UpdateId(1))]);
        keeper.handle(Event::End(UpdateId(1)));
        assert!(!keeper.is_open(Place::of("a")));
        assert_eq!(keeper.handle(Event::End(UpdateId(1))), []);
    }

    #[test]
    fn what_no_rule_names_changes_unknown() {
        let mut keeper = Keeper::new();
        let actions = keeper.handle(Event::Begin(UpdateId(1), None));
        assert!(words(&actions).contains(&(Place::UNKNOWN, Word::odd(1))));
        let many: Vec<String> = (0..=KEYS_OF_UPDATE_MAX)
            .map(|key| key.to_string())
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let actions = begin(&mut keeper, 2, &many);
        assert!(words(&actions).contains(&(Place::UNKNOWN, Word::odd(2))));
        assert_eq!(words(&actions).len(), 2);
    }

    #[test]
    fn one_update_too_many_must_not_become_visible() {
        let mut keeper = Keeper::new();
        for id in 0..OPEN_UPDATES_MAX as u64 {
            begin(&mut keeper, id, &[]);
        }
        let one_more = UpdateId(OPEN_UPDATES_MAX as u64);
        assert_eq!(
            begin(&mut keeper, one_more.0, &[]),
            [Action::Refuse(one_more)]
        );
        keeper.handle(Event::End(UpdateId(0)));
        assert_eq!(begin(&mut keeper, one_more.0, &[]).len(), 2);
    }

    #[test]
    fn what_is_open_stays_open_when_a_generation_is_renewed() {
        let mut keeper = Keeper::new();
        begin(&mut keeper, 1, &["a"]);
        keeper.handle(Event::Renewed(9));
        assert!(keeper.is_open(Place::of("a")));
        let actions = keeper.handle(Event::End(UpdateId(1)));
        assert!(words(&actions).contains(&(Place::of("a"), Word::even(10))));
    }

    #[test]
    fn a_new_generation_knows_no_open_update() {
        let mut keeper = Keeper::new();
        begin(&mut keeper, 1, &["a"]);
        keeper.handle(Event::Restarted(9));
        assert_eq!((keeper.open(), keeper.is_open(Place::of("a"))), (0, false));
        let actions = begin(&mut keeper, 2, &["a"]);
        assert!(words(&actions).contains(&(Place::of("a"), Word::odd(10))));
    }
}
