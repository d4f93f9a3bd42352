//! Answers that were right as of their evidence, within a budget of bytes.

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thorp_versions::{Passed, Place};

/// About how many bytes an answer has, for the cache's first size.
const ANSWER_BYTES: u64 = 8 << 10;

/// What takes room in the cache.
pub trait Weight {
    /// How many bytes it has, about.
    fn bytes(&self) -> u64;

    /// The name of a key at a place, if it has that. For people: no check rests on it.
    fn key_at(&self, _place: Place) -> Option<&str> {
        None
    }
}

/// An answer and what it rests on.
#[derive(Debug)]
pub(super) struct Stored<A, E> {
    pub(super) answer: Arc<A>,
    pub(super) evidence: E,
    pub(super) dependencies: Vec<Place>,
    passed: Mutex<Passed>,
    hits: AtomicU64,
}

impl<A, E> Stored<A, E> {
    /// An answer whose check has passed (rule W4).
    pub(super) fn new(
        answer: Arc<A>,
        (evidence, dependencies): (E, Vec<Place>),
        passed: Passed,
    ) -> Self {
        Stored {
            answer,
            evidence,
            dependencies,
            passed: Mutex::new(passed),
            hits: AtomicU64::new(0),
        }
    }

    /// What it takes of the budget.
    pub(super) fn bytes<K: Weight>(&self, name: &K) -> u64
    where
        A: Weight,
    {
        let places = self.dependencies.len() as u64 * 8;
        self.answer.bytes() + name.bytes() + places
    }

    /// It was served once more.
    pub(super) fn is_served(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was served.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// The last check that it has passed.
    pub(super) fn passed(&self) -> Passed {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has passed another one.
    pub(super) fn passes(&self, passed: Passed) {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    }
}

/// The entries.
pub(super) struct Entries<K: Hash + Eq, A, E>(Cache<K, Arc<Stored<A, E>>, Bytes>);

#[derive(Clone, Debug)]
struct Bytes;

impl<K: Weight, A: Weight, E> Weighter<K, Arc<Stored<A, E>>> for Bytes {
    fn weight(&self, name: &K, stored: &Arc<Stored<A, E>>) -> u64 {
        stored.bytes(name)
    }
}

impl<K: Hash + Eq + Weight, A: Weight, E> Entries<K, A, E> {
    /// An empty cache that holds so many bytes.
    pub(super) fn holding(bytes: u64) -> Self {
        let about = usize::try_from(bytes / ANSWER_BYTES).unwrap_or(usize::MAX);
        Entries(Cache::with_weighter(about.max(16), bytes, Bytes))
    }

    pub(super) fn get(&self, name: &K) -> Option<Arc<Stored<A, E>>> {
        self.0.get(name)
    }

    pub(super) fn insert(&self, name: K, stored: Stored<A, E>) {
        self.0.insert(name, Arc::new(stored));
    }

    /// Drops an entry, if it still is this one. Whether it was.
    pub(super) fn drop_this(&self, name: &K, stored: &Arc<Stored<A, E>>) -> bool {
        let dropped = self.0.remove_if(name, |now| Arc::ptr_eq(now, stored));
        dropped.is_some()
    }

    /// All entries, as they are now and in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (K, Arc<Stored<A, E>>)>
    where
        K: Clone,
    {
        self.0.iter()
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        self.0.clear();
    }

    /// How many bytes they may take.
    pub(super) fn budget(&self) -> u64 {
        self.0.capacity()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// What they take of the budget.
    pub(super) fn bytes(&self) -> u64 {
        self.0.weight()
    }
}

impl<K: Hash + Eq, A, E> fmt::Debug for Entries<K, A, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entries")
    }
}
