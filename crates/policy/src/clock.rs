//! CLOCK: second chance for pages in a ring of seats.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A ring of seats, one for each cached page, and a hand that moves over them.
///
/// The cache keeps a mark with each page: a transaction has read the page since the hand last passed. The hand takes the
/// mark of a page that has one, and takes a page that has none.
///
/// Invariant: a seat is free or has one page, and `free` lists exactly the free seats. So a page keeps its seat until it
/// leaves. The page that comes next gets the seat that was left last.
#[derive(Clone, Debug)]
pub struct Clock<K> {
    seats: Vec<Option<K>>,
    free: Vec<u32>,
    hand: usize,
}

/// Where a page sits, from [`Clock::sit`] until [`Clock::leave`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seat(u32);

/// What the cache finds when the hand comes to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Candidate {
    /// The page is not in the cache. The hand passes it.
    Absent,
    /// The page must stay now, marked or not. Its mark stays, too.
    Pinned {
        /// What its eviction would free.
        bytes: usize,
    },
    /// The page had a mark, which the cache has taken away. The page stays until the hand comes again.
    Used,
    /// The page had no mark. It goes.
    Idle {
        /// What its eviction frees.
        bytes: usize,
    },
}

/// Which pages are to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Victims<K> {
    /// These, in the order in which the hand came to them.
    pub pages: Vec<K>,
    /// Bytes of pinned pages that the hand passed in its first round, before it had found enough.
    pub spared_bytes: usize,
}

impl<K> Default for Clock<K> {
    fn default() -> Self {
        Clock {
            seats: Vec::new(),
            free: Vec::new(),
            hand: 0,
        }
    }
}

impl<K: Copy> Clock<K> {
    /// Gives a seat to a page that has none.
    pub fn sit(&mut self, page: K) -> Seat {
        if let Some(seat) = self.free.pop() {
            self.seats[seat as usize] = Some(page);
            return Seat(seat);
        }
        self.seats.push(Some(page));
        Seat((self.seats.len() - 1) as u32)
    }

    /// Frees the seat of a page that leaves the cache.
    pub fn leave(&mut self, seat: Seat) {
        debug_assert!(self.seats[seat.0 as usize].is_some(), "the seat is free");
        self.seats[seat.0 as usize] = None;
        self.free.push(seat.0);
    }

    /// Pages that have a seat.
    pub fn seated(&self) -> usize {
        self.seats.len() - self.free.len()
    }

    /// Moves the hand on until the victims free `bytes`, at most twice round. `inspect` looks at the page under the
    /// hand and takes its mark away, if it may go and has one.
    ///
    /// Victims keep their seats until [`Clock::leave`], but no victim is inspected again.
    pub fn choose(&mut self, bytes: usize, mut inspect: impl FnMut(K) -> Candidate) -> Victims<K> {
        let (mut pages, mut freed, mut spared_bytes) = (Vec::new(), 0, 0);
        let mut taken = BTreeSet::new();
        // After so many pages the hand is in its second round.
        let mut first_round = self.seated();
        for _ in 0..2 * self.seats.len() {
            if freed >= bytes {
                break;
            }
            let seat = self.hand;
            self.hand = (seat + 1) % self.seats.len();
            let Some(page) = self.seats[seat].filter(|_| !taken.contains(&seat)) else {
                continue;
            };
            let is_first = first_round > 0;
            first_round = first_round.saturating_sub(1);
            match inspect(page) {
                Candidate::Absent | Candidate::Used => {}
                Candidate::Pinned { bytes } => spared_bytes += if is_first { bytes } else { 0 },
                Candidate::Idle { bytes } => {
                    freed += bytes;
                    taken.insert(seat);
                    pages.push(page);
                }
            }
        }
        Victims {
            pages,
            spared_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec;

    /// A cache of pages of 10 bytes each.
    #[derive(Default)]
    struct Cache {
        clock: Clock<u32>,
        pages: BTreeMap<u32, Page>,
    }

    struct Page {
        seat: Seat,
        is_marked: bool,
        is_pinned: bool,
    }

    impl Cache {
        fn with(pages: impl IntoIterator<Item = u32>) -> Self {
            let mut cache = Cache::default();
            pages.into_iter().for_each(|page| cache.install(page));
            cache
        }

        fn install(&mut self, page: u32) {
            let seat = self.clock.sit(page);
            let page_of = Page {
                seat,
                is_marked: false,
                is_pinned: false,
            };
            self.pages.insert(page, page_of);
        }

        fn evict(&mut self, page: u32) {
            let page = self.pages.remove(&page).expect("it is cached");
            self.clock.leave(page.seat);
        }

        fn mark(&mut self, pages: &[u32]) {
            for page in pages {
                self.pages.get_mut(page).expect("it is cached").is_marked = true;
            }
        }

        fn pin(&mut self, page: u32, is_pinned: bool) {
            self.pages.get_mut(&page).expect("it is cached").is_pinned = is_pinned;
        }

        fn choose(&mut self, bytes: usize) -> Victims<u32> {
            let pages = &mut self.pages;
            self.clock.choose(bytes, |page| {
                let Some(page) = pages.get_mut(&page) else {
                    return Candidate::Absent;
                };
                if page.is_pinned {
                    Candidate::Pinned { bytes: 10 }
                } else if core::mem::take(&mut page.is_marked) {
                    Candidate::Used
                } else {
                    Candidate::Idle { bytes: 10 }
                }
            })
        }
    }

    #[test]
    fn a_page_that_was_used_gets_a_second_chance() {
        let mut cache = Cache::with(1..=4);
        cache.mark(&[1, 3]);
        assert_eq!(cache.choose(10).pages, [2]);
        // The hand goes on where it stopped. It has taken the mark of 1.
        assert_eq!(cache.choose(20).pages, [4, 1]);
    }

    #[test]
    fn if_all_pages_were_used_the_second_round_takes_them() {
        let mut cache = Cache::with(1..=3);
        cache.mark(&[1, 2, 3]);
        assert_eq!(cache.choose(15).pages, [1, 2]);
        assert!(!cache.pages[&3].is_marked);
    }

    #[test]
    fn the_hand_stops_when_there_is_enough() {
        let mut cache = Cache::with(1..=3);
        assert_eq!(cache.choose(0).pages, []);
        assert_eq!(cache.choose(1).pages, [1]);
        assert_eq!(cache.choose(10).pages, [2]);
        assert_eq!(cache.choose(1000).pages, [3, 1, 2]);
        assert_eq!(Cache::default().choose(10).pages, []);
    }

    #[test]
    fn a_pinned_page_stays_and_keeps_its_mark() {
        let mut cache = Cache::with(1..=3);
        cache.mark(&[1]);
        cache.pin(1, true);
        let chosen = cache.choose(30);
        assert_eq!(chosen.pages, [2, 3]);
        // Once, though the hand came twice.
        assert_eq!(chosen.spared_bytes, 10);
        assert!(cache.pages[&1].is_marked);
        cache.pin(1, false);
        assert_eq!(cache.choose(10).pages, [2]);
    }

    #[test]
    fn pages_behind_the_last_victim_are_not_spared() {
        let mut cache = Cache::with(1..=3);
        cache.pin(3, true);
        let chosen = cache.choose(20);
        assert_eq!((chosen.pages, chosen.spared_bytes), (vec![1, 2], 0));
    }

    #[test]
    fn the_hand_passes_a_page_that_is_not_cached_any_more() {
        let mut cache = Cache::with(1..=3);
        cache.pages.remove(&1);
        assert_eq!(cache.choose(30).pages, [2, 3]);
    }

    #[test]
    fn the_next_page_gets_the_seat_that_was_left_last() {
        let mut cache = Cache::with(1..=4);
        cache.evict(2);
        cache.evict(4);
        assert_eq!(cache.clock.seated(), 2);
        cache.install(5);
        cache.install(6);
        cache.install(7);
        assert_eq!(cache.clock.seated(), 5);
        assert_eq!(cache.choose(50).pages, [1, 6, 3, 5, 7]);
    }
}
