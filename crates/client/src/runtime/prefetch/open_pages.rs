//! Which pages may have been prefetched and not read: looked up at every read, without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thorp_model::Place;

/// A set that may hold a few pages too many: a filter of bits. While [`set`](Self::set) writes it anew, it may hold a
/// few too few.
pub(super) struct OpenPages {
    is_empty: AtomicBool,
    bits: [AtomicU64; WORDS],
}

impl OpenPages {
    pub(super) fn new() -> Self {
        OpenPages {
            is_empty: AtomicBool::new(true),
            bits: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is_empty.load(Ordering::Relaxed)
    }

    pub(super) fn may_have(&self, place: Place) -> bool {
        let (word, bit) = at(place);
        self.bits[word].load(Ordering::Relaxed) & bit != 0
    }

    pub(super) fn add(&self, places: impl Iterator<Item = Place>) {
        for place in places {
            let (word, bit) = at(place);
            self.bits[word].fetch_or(bit, Ordering::Relaxed);
            self.is_empty.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn set(&self, places: impl Iterator<Item = Place>) {
        self.is_empty.store(true, Ordering::Relaxed);
        for word in &self.bits {
            word.store(0, Ordering::Relaxed);
        }
        self.add(places);
    }
}

impl std::fmt::Debug for OpenPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenPages")
    }
}

fn at(place: Place) -> (usize, u64) {
    let page = u64::from(place.page.page.0) | u64::from(place.page.segment.0) << 32;
    let mixed = (page ^ u64::from(place.home.0) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (mixed >> 32) as usize;
    (number / 64 % WORDS, 1 << (number % 64))
}

/// Thirty bits for each page that is open.
const WORDS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{HomeId, PageId};

    #[test]
    fn hardly_any_is_taken_for_another() {
        let place = |page| Place {
            home: HomeId(1),
            page: PageId::new(1, page),
        };
        let open = OpenPages::new();
        open.set((0..512).map(place));
        assert!((0..512).all(|page| open.may_have(place(page))));
        let wrong = (512..10_512).filter(|page| open.may_have(place(*page)));
        assert!(wrong.count() < 1_000);
        open.set((600..601).map(place));
        assert!(!open.may_have(place(1)) && open.may_have(place(600)) && !open.is_empty());
        open.set(std::iter::empty());
        assert!(open.is_empty() && !open.may_have(place(600)));
    }
}
