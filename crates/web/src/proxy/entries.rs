//! Answers that were right as of their evidence, within a budget of bytes.

use super::answer::Answer;
use super::request::Name;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::{Arc, Mutex, PoisonError};
use thorp_versions::{Evidence, Passed, Place};

/// About how many bytes an answer has, for the cache's first size.
const ANSWER_BYTES: u64 = 8 << 10;

/// An answer and what it rests on.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) answer: Arc<Answer>,
    pub(crate) evidence: Evidence,
    pub(crate) dependencies: Vec<Place>,
    passed: Mutex<Passed>,
}

impl Stored {
    /// An answer whose check has passed (rule W4).
    pub(crate) fn new(
        answer: Arc<Answer>,
        (evidence, dependencies): (Evidence, Vec<Place>),
        passed: Passed,
    ) -> Self {
        Stored {
            answer,
            evidence,
            dependencies,
            passed: Mutex::new(passed),
        }
    }

    /// The last check that it has passed.
    pub(crate) fn passed(&self) -> Passed {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has passed another one.
    pub(crate) fn passes(&self, passed: Passed) {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    }
}

/// The entries.
#[derive(Debug)]
pub(crate) struct Entries(Cache<Name, Arc<Stored>, Bytes>);

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Name, Arc<Stored>> for Bytes {
    fn weight(&self, name: &Name, stored: &Arc<Stored>) -> u64 {
        let places = stored.dependencies.len() as u64 * 8;
        stored.answer.bytes() + name.bytes() + places
    }
}

impl Entries {
    /// An empty cache that holds so many bytes.
    pub(crate) fn holding(bytes: u64) -> Self {
        let about = usize::try_from(bytes / ANSWER_BYTES).unwrap_or(usize::MAX);
        Entries(Cache::with_weighter(about.max(16), bytes, Bytes))
    }

    pub(crate) fn get(&self, name: &Name) -> Option<Arc<Stored>> {
        self.0.get(name)
    }

    pub(crate) fn insert(&self, name: Name, stored: Stored) {
        self.0.insert(name, Arc::new(stored));
    }

    /// Drops an entry, if it still is this one.
    pub(crate) fn drop_this(&self, name: &Name, stored: &Arc<Stored>) {
        self.0.remove_if(name, |now| Arc::ptr_eq(now, stored));
    }
}
