//! The bytes of bodies in memory, and their limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A body of at most so many bytes is stored also while there is no room: each running fill has one of them at most.
pub(crate) const SHORT_BYTES: usize = 64 << 10;

/// Bodies that are being built, and those that are on their way to clients though the cache has dropped them, have at most so many bytes
/// together. While they have more, answers pass through, not stored.
pub(super) const BUILDING_BYTES_MAX: u64 = 128 << 20;

/// The bytes of all bodies in memory, with those in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Bodies>);

#[derive(Debug)]
struct Bodies {
    bytes: AtomicU64,
    /// How many those may have that are not in the cache.
    others_max: u64,
    /// How many the cache may have.
    cached_max: AtomicU64,
}

/// That of answers.
impl Default for Budget {
    fn default() -> Self {
        Budget::of(BUILDING_BYTES_MAX)
    }
}

impl Budget {
    /// So many bytes, and no cache.
    pub(crate) fn of(bytes_max: u64) -> Self {
        Budget(Arc::new(Bodies {
            bytes: AtomicU64::new(0),
            others_max: bytes_max,
            cached_max: AtomicU64::new(0),
        }))
    }

    /// The cache may have so many bytes from now on.
    pub(crate) fn allow(&self, cached_max: u64) {
        self.0.cached_max.store(cached_max, Ordering::Relaxed);
    }

    /// A part of it, with nothing in it yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            bytes: AtomicU64::new(0),
        }
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        let cached_max = self.0.cached_max.load(Ordering::Relaxed);
        bytes <= self.0.others_max.saturating_add(cached_max)
    }
}

/// The part of it that one body has. It comes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    bytes: AtomicU64,
}

impl Share {
    /// Takes more. False: there is no more.
    pub(crate) fn grow(&self, bytes: u64) -> bool {
        let before = self.budget.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.has_room_for(before + bytes)
    }

    /// Another part of the same budget, with nothing in it yet.
    pub(crate) fn another(&self) -> Share {
        self.budget.share()
    }

    /// What it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether all bodies together have room still.
    pub(crate) fn has_room(&self) -> bool {
        let bytes = self.budget.0.bytes.load(Ordering::Relaxed);
        self.budget.has_room_for(bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let bytes = &self.budget.0.bytes;
        bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_back() {
        let budget = Budget::default();
        let first = budget.share();
        assert!(first.grow(BUILDING_BYTES_MAX - 1));
        let second = budget.share();
        assert!(second.grow(1) && !second.grow(1));
        drop(second);
        drop(first);
        assert_eq!(budget.0.bytes.load(Ordering::Relaxed), 0);
    }
}
