//! Answers that were right as of their evidence, within a budget of bytes.

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thorp_versions::{Evidence, Passed, Place};

/// About how many bytes an answer has, for the cache's first size.
const ANSWER_BYTES: u64 = 8 << 10;

/// What takes room in the cache.
pub trait Weight {
    /// How many bytes it has, about.
    fn bytes(&self) -> u64;
}

/// An answer and what it rests on.
#[derive(Debug)]
pub(super) struct Stored<A> {
    pub(super) answer: Arc<A>,
    pub(super) evidence: Evidence,
    pub(super) dependencies: Vec<Place>,
    passed: Mutex<Passed>,
    hits: AtomicU64,
}

impl<A> Stored<A> {
    /// An answer whose check has passed (rule W4).
    pub(super) fn new(
        answer: Arc<A>,
        (evidence, dependencies): (Evidence, Vec<Place>),
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
pub(super) struct Entries<K: Hash + Eq, A>(Cache<K, Arc<Stored<A>>, Bytes>);

#[derive(Clone, Debug)]
struct Bytes;

impl<K: Weight, A: Weight> Weighter<K, Arc<Stored<A>>> for Bytes {
    fn weight(&self, name: &K, stored: &Arc<Stored<A>>) -> u64 {
        stored.bytes(name)
    }
}

impl<K: Hash + Eq + Weight, A: Weight> Entries<K, A> {
    /// An empty cache that holds so many bytes.
    pub(super) fn holding(bytes: u64) -> Self {
        let about = usize::try_from(bytes / ANSWER_BYTES).unwrap_or(usize::MAX);
        Entries(Cache::with_weighter(about.max(16), bytes, Bytes))
    }

    pub(super) fn get(&self, name: &K) -> Option<Arc<Stored<A>>> {
        self.0.get(name)
    }

    pub(super) fn insert(&self, name: K, stored: Stored<A>) {
        self.0.insert(name, Arc::new(stored));
    }

    /// Drops an entry, if it still is this one. Whether it was.
    pub(super) fn drop_this(&self, name: &K, stored: &Arc<Stored<A>>) -> bool {
        let dropped = self.0.remove_if(name, |now| Arc::ptr_eq(now, stored));
        dropped.is_some()
    }

    /// All entries, as they are now and in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (K, Arc<Stored<A>>)>
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

impl<K: Hash + Eq, A> fmt::Debug for Entries<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entries")
    }
}
