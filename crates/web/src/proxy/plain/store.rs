//! Stored answers by name, within a budget of bytes, and which names have been changed.

use super::entry::Entry;
use crate::proxy::entries::Weight;
use crate::proxy::request::Name;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answers that one address has at a time. One more takes the place of the oldest.
const VARIANTS_MAX: usize = 16;

/// About how many bytes an address has, for the cache's first size.
const ADDRESS_BYTES: u64 = 8 << 10;

/// Counters of changes. Addresses that share one only keep each other from being stored for a moment.
const COUNTERS: usize = 1 << 16;

/// The answers of one address, the newest last.
#[derive(Clone, Default, Debug)]
struct Variants(Vec<Arc<Entry>>);

impl Variants {
    fn of(&self, request: &HeaderMap) -> Option<&Arc<Entry>> {
        self.0.iter().rev().find(|entry| entry.head.is_for(request))
    }

    /// With one more. An answer to an older question does not replace it.
    fn with(&self, entry: Arc<Entry>, request: &HeaderMap) -> Self {
        let is_better = |other: &&Arc<Entry>| {
            !other.head.is_for(request) || other.head.asked_ms > entry.head.asked_ms
        };
        let mut entries: Vec<Arc<Entry>> = self.0.iter().filter(is_better).cloned().collect();
        let later = entries.partition_point(|other| other.head.asked_ms <= entry.head.asked_ms);
        entries.insert(later, entry);
        let too_many = entries.len().saturating_sub(VARIANTS_MAX);
        entries.drain(..too_many);
        Variants(entries)
    }
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Name, Variants> for Bytes {
    fn weight(&self, name: &Name, variants: &Variants) -> u64 {
        let entries = variants.0.iter().map(|entry| entry.bytes());
        name.bytes() + 64 + entries.sum::<u64>()
    }
}

/// The state of an address when a question about it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unchanged(u64);

/// All stored answers.
#[derive(Debug)]
pub(super) struct Store {
    answers: Cache<Name, Variants, Bytes>,
    changes: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Store {
    /// An empty one that holds so many bytes.
    pub(super) fn holding(bytes: u64) -> Self {
        let about = usize::try_from(bytes / ADDRESS_BYTES).unwrap_or(usize::MAX);
        Store {
            answers: Cache::with_weighter(about.max(16), bytes, Bytes),
            changes: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    /// What is stored for a request, and whether anything is stored for its address.
    pub(super) fn get(&self, name: &Name, request: &HeaderMap) -> (Option<Arc<Entry>>, bool) {
        match self.answers.get(name) {
            Some(variants) => (variants.of(request).cloned(), true),
            None => (None, false),
        }
    }

    /// What has to be the same still when the answer to a question that leaves now is stored.
    pub(super) fn unchanged(&self, name: &Name) -> Unchanged {
        Unchanged(self.changes_of(name).load(Ordering::SeqCst))
    }

    /// Stores an answer, unless its address has been changed since the proxy asked.
    pub(super) fn insert(&self, name: &Name, entry: Entry, request: &HeaderMap, since: Unchanged) {
        if self.unchanged(name) != since {
            return;
        }
        let variants = self.answers.get(name).unwrap_or_default();
        self.answers
            .insert(name.clone(), variants.with(Arc::new(entry), request));
        // It may have been changed since the look above.
        if self.unchanged(name) != since {
            self.answers.remove(name);
        }
    }

    /// Somebody changes what is at an address: nothing of before is used, and no answer that is under way is stored.
    pub(super) fn invalidate(&self, name: &Name) {
        self.changes_of(name).fetch_add(1, Ordering::SeqCst);
        self.answers.remove(name);
    }

    /// What is stored at an address: the status of each answer, and its bytes.
    pub(super) fn at(&self, name: &Name) -> Vec<(StatusCode, u64)> {
        let variants = self.answers.get(name).unwrap_or_default();
        let entries = variants.0.iter();
        entries
            .map(|entry| (entry.head.status, entry.bytes()))
            .collect()
    }

    /// How many addresses have answers, and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.answers.len(), self.answers.weight())
    }

    /// How many bytes it may take.
    pub(super) fn budget(&self) -> u64 {
        self.answers.capacity()
    }

    /// Forgets all answers.
    pub(super) fn clear(&self) {
        self.answers.clear();
    }

    fn changes_of(&self, name: &Name) -> &AtomicU64 {
        let place = self.hasher.hash_one(name) % COUNTERS as u64;
        &self.changes[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Head, Times};
    use super::super::freshness::Now;
    use super::*;
    use bytes::Bytes;
    use hyper::header::HeaderValue;

    fn now(ms: u64) -> Now {
        Now {
            date: 1_000_000,
            ms,
        }
    }

    fn request(foo: &str) -> HeaderMap {
        let value = HeaderValue::from_str(foo).expect("a value");
        [("foo".parse().expect("a name"), value)]
            .into_iter()
            .collect()
    }

    fn entry(request: &HeaderMap, asked_ms: u64) -> Entry {
        let mut answer = HeaderMap::new();
        answer.insert("cache-control", HeaderValue::from_static("max-age=60"));
        answer.insert("vary", HeaderValue::from_static("foo"));
        let times = Times {
            asked: now(asked_ms),
            came: now(asked_ms),
        };
        let head = Head::of(request, StatusCode::OK, &answer, times).expect("it is stored");
        Entry::new(head, Bytes::new())
    }

    fn store(store: &Store, foo: &str, asked_ms: u64) {
        let name = Name::new("a", "/");
        let since = store.unchanged(&name);
        store.insert(&name, entry(&request(foo), asked_ms), &request(foo), since);
    }

    fn asked_ms(store: &Store, foo: &str) -> Option<u64> {
        let (found, _) = store.get(&Name::new("a", "/"), &request(foo));
        found.map(|entry| entry.head.asked_ms)
    }

    #[test]
    fn an_address_has_its_newest_answers() {
        let answers = Store::holding(1 << 20);
        store(&answers, "1", 10);
        store(&answers, "2", 20);
        store(&answers, "1", 5);
        assert_eq!(
            (asked_ms(&answers, "1"), asked_ms(&answers, "2")),
            (Some(10), Some(20))
        );
        store(&answers, "1", 30);
        assert_eq!(asked_ms(&answers, "1"), Some(30));
        assert_eq!(asked_ms(&answers, "3"), None);
        assert!(answers.get(&Name::new("a", "/"), &request("3")).1);
        for variant in 0..VARIANTS_MAX as u64 {
            store(&answers, &format!("more{variant}"), 40 + variant);
        }
        assert_eq!(
            (asked_ms(&answers, "1"), asked_ms(&answers, "more0")),
            (None, Some(40))
        );
    }

    #[test]
    fn nothing_from_before_a_change_is_stored_after_it() {
        let answers = Store::holding(1 << 20);
        let name = Name::new("a", "/");
        store(&answers, "1", 10);
        let since = answers.unchanged(&name);
        answers.invalidate(&name);
        assert_eq!(asked_ms(&answers, "1"), None);
        answers.insert(&name, entry(&request("1"), 20), &request("1"), since);
        assert_eq!(asked_ms(&answers, "1"), None);
        store(&answers, "1", 30);
        assert_eq!(asked_ms(&answers, "1"), Some(30));
    }
}
