//! What a keeper has noted lately, for people: which update changed which keys, and how often each key has changed.

use crate::clock;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thorp_versions::Place;

/// Updates that the journal has. One more takes the place of the oldest.
pub(crate) const UPDATES_NAMED_MAX: usize = 1_024;

/// Keys of an update that are named. Of more, there is a count.
pub(crate) const KEYS_NAMED_MAX: usize = 8;

/// Keys of an update whose changes are counted. The keeper counts while a commit waits.
pub(crate) const KEYS_COUNTED_OF_UPDATE_MAX: usize = 64;

/// A longer key is cut.
pub(crate) const KEY_SHOWN_BYTES_MAX: usize = 120;

/// Keys whose changes are counted one by one. When there is one more, the rarer half is forgotten.
pub(crate) const KEYS_COUNTED_MAX: usize = 4_096;

/// Keys with counts that the journal shows: those that change most.
pub(crate) const KEYS_SHOWN_MAX: usize = 32;

/// What an update is at its source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Cause {
    /// A transaction of the database.
    Transaction {
        /// Its number, with the epoch.
        xid: u64,
        /// Where its commit ends in the log of the database.
        position: String,
    },
    /// An unsafe request, or a call of `/begin`.
    Request {
        /// The keeper's number of it, as `thorp web updates` shows it. 0: all that proxies of before may have open.
        request: u64,
    },
    /// A transaction at a Thorp home.
    Commit {
        /// The home.
        home: String,
        /// Its position in the log of the home, or that of a later one that changed a key of the same word.
        log_position: u64,
    },
}

impl Cause {
    /// The keeper's name of the update.
    fn id(&self) -> u64 {
        match self {
            Cause::Transaction { xid, .. } => *xid,
            Cause::Request { request } => *request,
            Cause::Commit { log_position, .. } => *log_position,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Transaction { xid, position } => write!(f, "transaction {xid} at {position}"),
            Cause::Request { request: 0 } => f.write_str("requests of before this keeper"),
            Cause::Request { request } => write!(f, "request {request}"),
            Cause::Commit { home, log_position } => {
                write!(f, "a commit at position {log_position} of home {home}")
            }
        }
    }
}

/// An update that a keeper has noted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Update {
    /// The generation of the table in which it began.
    pub generation: u64,
    /// The number of its words from its begin on.
    pub begin: u64,
    /// The number of its words from its end on. None: it is open.
    pub end: Option<u64>,
    /// What it is at its source.
    #[serde(flatten)]
    pub cause: Cause,
    /// The first of its keys. None: nobody can say what it changes, so it ends all answers (rule W9).
    pub keys: Option<Vec<String>>,
    /// How many keys it has beside those.
    pub more_keys: usize,
    /// When it was noted, in milliseconds since the machine started.
    pub at_ms: u64,
}

/// What a journal says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Noted {
    /// The last updates, the newest last.
    pub updates: VecDeque<Update>,
    /// The keys that change most, and how many updates have changed each.
    pub keys: Vec<(String, u64)>,
    /// How often any key has changed.
    pub all_keys: u64,
}

impl Noted {
    /// The update after which the word of a key had this number.
    pub fn of(&self, generation: u64, number: u64) -> Option<&Update> {
        let mut updates = self.updates.iter().rev();
        updates.find(|update| {
            update.generation == generation
                && (update.begin == number || update.end == Some(number))
        })
    }

    /// The keys that these updates name, by their places. Of two at one place it is the newer one.
    pub fn keys_by_place(&self) -> HashMap<Place, &str> {
        let keys = self.updates.iter().flat_map(|update| &update.keys);
        let keys = keys.flatten().map(String::as_str);
        keys.map(|key| (Place::of(key), key)).collect()
    }
}

/// The journal of a keeper. Clones are the same journal.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    updates: VecDeque<Update>,
    counts: Counts,
    /// How often something was noted.
    version: u64,
}

impl Journal {
    /// An update has begun. `keys` are its keys; None: nobody knows them.
    pub(crate) fn begun(
        &self,
        (generation, begin): (u64, u64),
        cause: Cause,
        keys: Option<&[String]>,
    ) {
        let mut inner = self.locked();
        inner.version += 1;
        let keys_all = keys.map_or(0, <[String]>::len);
        inner.counts.all += keys_all as u64;
        for key in keys.into_iter().flatten().take(KEYS_COUNTED_OF_UPDATE_MAX) {
            inner.counts.count(key);
        }
        if inner.updates.len() >= UPDATES_NAMED_MAX {
            inner.updates.pop_front();
        }
        let named = |keys: &[String]| {
            keys.iter()
                .take(KEYS_NAMED_MAX)
                .map(|key| cut(key))
                .collect()
        };
        inner.updates.push_back(Update {
            generation,
            begin,
            end: None,
            cause,
            keys: keys.map(named),
            more_keys: keys_all.saturating_sub(KEYS_NAMED_MAX),
            at_ms: clock::now_ms(),
        });
    }

    /// The update that its keeper calls so has ended under this number.
    pub(crate) fn ended(&self, id: u64, number: u64) {
        let mut inner = self.locked();
        inner.version += 1;
        let mut updates = inner.updates.iter_mut().rev();
        if let Some(update) = updates.find(|update| update.cause.id() == id && update.end.is_none())
        {
            update.end = Some(number);
        }
    }

    /// What it says, if anything was noted since this version. The next version.
    pub(crate) fn since(&self, version: Option<u64>) -> Option<(u64, Noted)> {
        let inner = self.locked();
        let is_new = version != Some(inner.version);
        is_new.then(|| {
            let noted = Noted {
                updates: inner.updates.clone(),
                keys: inner.counts.top(),
                all_keys: inner.counts.all,
            };
            (inner.version, noted)
        })
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many updates have changed each key.
///
/// Invariant: it has at most [`KEYS_COUNTED_MAX`] keys. `all` counts also what it has forgotten, or never counted.
#[derive(Debug, Default)]
struct Counts {
    of: BTreeMap<String, u64>,
    all: u64,
}

impl Counts {
    fn count(&mut self, key: &str) {
        let key = cut(key);
        if let Some(count) = self.of.get_mut(&key) {
            *count += 1;
            return;
        }
        if self.of.len() >= KEYS_COUNTED_MAX {
            self.forget_half();
        }
        self.of.insert(key, 1);
    }

    /// Half of the keys at once, so that a new key costs little on the average.
    fn forget_half(&mut self) {
        let mut keys: Vec<(u64, String)> = std::mem::take(&mut self.of)
            .into_iter()
            .map(|(key, count)| (count, key))
            .collect();
        keys.sort_unstable_by(|one, other| other.cmp(one));
        keys.truncate(KEYS_COUNTED_MAX / 2);
        self.of = keys.into_iter().map(|(count, key)| (key, count)).collect();
    }

    fn top(&self) -> Vec<(String, u64)> {
        let mut keys: Vec<(&String, &u64)> = self.of.iter().collect();
        keys.sort_unstable_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
        keys.truncate(KEYS_SHOWN_MAX);
        keys.into_iter()
            .map(|(key, count)| (key.clone(), *count))
            .collect()
    }
}

/// A key as it is shown.
pub(crate) fn cut(key: &str) -> String {
    if key.len() <= KEY_SHOWN_BYTES_MAX {
        return key.to_owned();
    }
    let end = (0..=KEY_SHOWN_BYTES_MAX)
        .rev()
        .find(|at| key.is_char_boundary(*at));
    format!("{}…", &key[..end.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    fn transaction(xid: u64) -> Cause {
        let position = String::from("0/1");
        Cause::Transaction { xid, position }
    }

    fn noted(journal: &Journal) -> Noted {
        journal
            .since(None)
            .map(|(_, noted)| noted)
            .unwrap_or_default()
    }

    #[test]
    fn an_update_is_found_by_the_numbers_of_its_begin_and_of_its_end() {
        let journal = Journal::default();
        let known = journal.since(None).map(|(version, _)| version);
        assert_eq!(journal.since(known), None);
        journal.begun((1, 7), transaction(90), Some(&keys(&["a"])));
        journal.begun((1, 8), Cause::Request { request: 91 }, None);
        journal.ended(90, 9);
        let noted = noted(&journal);
        assert!(journal.since(known).is_some());
        let xid = |generation, number| noted.of(generation, number).map(|update| update.cause.id());
        assert_eq!(
            [7, 8, 9, 10].map(|number| xid(1, number)),
            [Some(90), Some(91), Some(90), None]
        );
        assert_eq!(xid(2, 7), None, "numbers of another generation");
        let keys = noted.keys_by_place();
        assert_eq!(keys.get(&Place::of("a")), Some(&"a"));
        assert_eq!(keys.get(&Place::of("b")), None);
        assert_eq!(noted.updates[1].keys, None);
    }

    #[test]
    fn a_journal_has_bounds_and_counts_all() {
        let journal = Journal::default();
        let often = keys(&["often"]);
        for number in 0..(KEYS_COUNTED_MAX as u64 + 5) {
            journal.begun((1, number), transaction(number), Some(&often));
            journal.begun(
                (1, number),
                transaction(number),
                Some(&keys(&[&number.to_string()])),
            );
        }
        let many: Vec<String> = (0..20).map(|key| format!("many:{key}")).collect();
        journal.begun((1, 0), transaction(0), Some(&many));
        let noted = noted(&journal);
        assert_eq!(noted.updates.len(), UPDATES_NAMED_MAX);
        assert_eq!(noted.keys.len(), KEYS_SHOWN_MAX);
        assert_eq!(
            noted.keys[0],
            (String::from("often"), KEYS_COUNTED_MAX as u64 + 5)
        );
        assert_eq!(noted.all_keys, 2 * (KEYS_COUNTED_MAX as u64 + 5) + 20);
        let last = noted.updates.back().expect("an update");
        assert_eq!(last.keys.as_ref().map(Vec::len), Some(KEYS_NAMED_MAX));
        assert_eq!(last.more_keys, 20 - KEYS_NAMED_MAX);
        assert!(journal.locked().counts.of.len() <= KEYS_COUNTED_MAX);
    }

    #[test]
    fn what_an_update_is_at_its_source_is_read_as_it_is_written() {
        for (cause, words) in [
            (transaction(7), "transaction 7 at 0/1"),
            (Cause::Request { request: 7 }, "request 7"),
            (
                Cause::Commit {
                    home: String::from("alps"),
                    log_position: 7,
                },
                "a commit at position 7 of home alps",
            ),
        ] {
            assert_eq!(cause.to_string(), words);
            let text = serde_json::to_string(&cause).expect("JSON");
            assert_eq!(serde_json::from_str::<Cause>(&text).expect("JSON"), cause);
        }
    }

    #[test]
    fn a_long_key_is_cut_between_two_letters() {
        let long = "ü".repeat(KEY_SHOWN_BYTES_MAX);
        let shown = cut(&long);
        assert!(shown.len() <= KEY_SHOWN_BYTES_MAX + "…".len() && shown.ends_with("ü…"));
    }
}
