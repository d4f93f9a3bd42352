//! What became of pages after they were invalidated: whether those below asked for them again
//! (rule 8). So each page is invalidated only, or fetched again at once, as its past shows.

use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound;
use thorp_model::PageId;
use thorp_model::limits::{REFETCHES_MAX, WANTED_AGAIN_MAX, WANTED_AGAIN_MIN};

/// The past of the pages that are invalidated, as much of it as is known: all of it may be lost.
#[derive(Debug)]
pub(in crate::redirector) struct History {
    pages: BTreeMap<PageId, Past>,
    pages_max: usize,
    /// Where it was looked last for what may be forgotten.
    hand: Option<PageId>,
    /// Pages that nobody has asked for, on their way.
    under_way: BTreeSet<PageId>,
}

#[derive(Clone, Copy, Debug)]
struct Past {
    /// One more for each invalidation after which it was asked for, half for each refetch in vain.
    wanted: u8,
    last: Last,
}

/// What happened last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    /// Those below have asked for it.
    Asked,
    /// It was invalidated.
    Invalidated,
    /// It was asked for above before anybody below did.
    Refetched,
}

/// What came of a refetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::redirector) enum Fate {
    /// Somebody below asked for the page.
    Used,
    /// Nobody did before it changed again, or went.
    Wasted,
}

impl History {
    pub(in crate::redirector) fn new(pages_max: usize) -> Self {
        History {
            pages: BTreeMap::new(),
            pages_max,
            hand: None,
            under_way: BTreeSet::new(),
        }
    }

    /// A page that is not on its way, and is held below, has new holes.
    pub(in crate::redirector) fn invalidated(&mut self, page: PageId) -> Option<Fate> {
        if let Some(past) = self.pages.get_mut(&page) {
            return past.lost();
        }
        if self.has_space() {
            let past = Past {
                wanted: 0,
                last: Last::Invalidated,
            };
            self.pages.insert(page, past);
        }
        None
    }

    /// Whether an invalidated page is to be asked for above at once.
    pub(in crate::redirector) fn wants(&self, page: PageId) -> bool {
        let past = self.pages.get(&page);
        let is_hot = past.is_some_and(|past| past.wanted >= WANTED_AGAIN_MIN);
        is_hot && self.under_way.len() < REFETCHES_MAX
    }

    /// Of how many of a page's next changes the values are wanted: what comes with them is asked for by
    /// nobody, and so nothing is learnt of it; the more often it was wanted, the longer that may be.
    pub(in crate::redirector) fn updates(&self, page: PageId) -> u8 {
        match self.pages.get(&page) {
            Some(past) if past.wanted >= WANTED_AGAIN_MIN => 1 << past.wanted,
            _ => 0,
        }
    }

    /// It was asked for above, and by nobody below.
    pub(in crate::redirector) fn refetched(&mut self, page: PageId) {
        if let Some(past) = self.pages.get_mut(&page) {
            past.last = Last::Refetched;
            self.under_way.insert(page);
        }
    }

    /// An answer for a page came from above. A refetch that brought no complete image changed nothing.
    pub(in crate::redirector) fn came(&mut self, page: PageId, is_complete: bool) {
        let was_under_way = self.under_way.remove(&page);
        if let Some(past) = self.pages.get_mut(&page)
            && was_under_way
            && !is_complete
            && past.last == Last::Refetched
        {
            past.last = Last::Invalidated;
        }
    }

    /// Somebody below asks for a page.
    pub(in crate::redirector) fn asked(&mut self, page: PageId) -> Option<Fate> {
        let past = self.pages.get_mut(&page)?;
        let before = core::mem::replace(&mut past.last, Last::Asked);
        if before != Last::Asked {
            past.wanted = (past.wanted + 1).min(WANTED_AGAIN_MAX);
        }
        (before == Last::Refetched).then_some(Fate::Used)
    }

    /// This node's memory had no room for an image.
    pub(in crate::redirector) fn dropped(&mut self, page: PageId) -> Option<Fate> {
        let past = self.pages.get_mut(&page)?;
        match past.last {
            Last::Refetched => past.lost(),
            Last::Asked | Last::Invalidated => None,
        }
    }

    /// Nobody below holds the page any more.
    pub(in crate::redirector) fn forget(&mut self, page: PageId) -> Option<Fate> {
        self.under_way.remove(&page);
        self.pages.remove(&page)?.lost()
    }

    /// The stream has ended. What is on its way belongs to no history any more.
    pub(in crate::redirector) fn clear(&mut self) {
        *self = History::new(self.pages_max);
    }

    /// Pages of which something is known.
    pub(in crate::redirector) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Pages that nobody below has asked for, on their way.
    pub(in crate::redirector) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Room for one page more. Who comes round and finds a page that was not asked for again
    /// lately forgets it; what was wanted more often stays for more rounds.
    fn has_space(&mut self) -> bool {
        if self.pages.len() < self.pages_max {
            return true;
        }
        for _ in 0..LOOKED_AT {
            let from = self.hand.map_or(Bound::Unbounded, Bound::Excluded);
            let mut after = self.pages.range_mut((from, Bound::Unbounded));
            let Some((page, past)) = after.next() else {
                self.hand = None;
                continue;
            };
            let page = *page;
            self.hand = Some(page);
            if past.last == Last::Refetched {
                continue;
            }
            if past.wanted == 0 {
                self.pages.remove(&page);
                return true;
            }
            past.wanted -= 1;
        }
        false
    }
}

impl Past {
    /// What is here of it is worth nothing now.
    fn lost(&mut self) -> Option<Fate> {
        if core::mem::replace(&mut self.last, Last::Invalidated) != Last::Refetched {
            return None;
        }
        self.wanted /= 2;
        Some(Fate::Wasted)
    }
}

/// Pages looked at for one that may be forgotten.
const LOOKED_AT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32) -> PageId {
        PageId::new(1, number)
    }

    /// Invalidated, refetched if it is wanted, and asked for or not: whether it was refetched.
    fn round(history: &mut History, page: PageId, is_asked: bool) -> (bool, Option<Fate>) {
        let before = history.invalidated(page);
        let is_wanted = history.wants(page);
        if is_wanted {
            history.refetched(page);
            history.came(page, true);
        }
        let after = if is_asked { history.asked(page) } else { None };
        (is_wanted, before.or(after))
    }

    #[test]
    fn what_is_asked_for_again_and_again_is_refetched_until_nobody_asks() {
        let mut history = History::new(10);
        for _ in 0..WANTED_AGAIN_MIN {
            assert_eq!(round(&mut history, page(1), true), (false, None));
        }
        for _ in 0..20 {
            let used = (true, Some(Fate::Used));
            assert_eq!(round(&mut history, page(1), true), used);
        }
        assert_eq!(round(&mut history, page(1), false), (true, None));
        let mut wasted = 0;
        while let (true, fate) = round(&mut history, page(1), false) {
            assert_eq!(fate, Some(Fate::Wasted));
            wasted += 1;
        }
        assert!((1..=2).contains(&wasted), "{wasted}");
        assert!(!round(&mut history, page(1), true).0);
    }

    /// Whatever is asked for when: each one in vain was paid for by one that was not.
    #[test]
    fn no_more_is_wasted_than_was_asked_for() {
        for rhythm in 2..20_u32 {
            let mut history = History::new(10);
            let (mut asked, mut wasted) = (0, 0);
            for turn in 0..1000_u32 {
                let is_asked = turn.is_multiple_of(rhythm) || turn % rhythm == 1;
                let (_, fate) = round(&mut history, page(1), is_asked);
                asked += u32::from(is_asked);
                wasted += u32::from(fate == Some(Fate::Wasted));
            }
            assert!(wasted <= asked, "{rhythm}: {wasted} of {asked}");
        }
    }

    #[test]
    fn what_is_known_and_what_is_under_way_are_bounded() {
        let many = 2 * REFETCHES_MAX as u32;
        let mut history = History::new(many as usize);
        for _ in 0..WANTED_AGAIN_MIN {
            for number in 1..=many {
                round(&mut history, page(number), true);
            }
        }
        for number in 1..=many {
            history.invalidated(page(number));
            if history.wants(page(number)) {
                history.refetched(page(number));
            }
        }
        assert_eq!(history.under_way(), REFETCHES_MAX);
        for number in 1..=10 * many {
            history.invalidated(page(1000 + number));
        }
        assert_eq!(history.len(), many as usize);
        // What is under way is not forgotten, so that it is known what came of it.
        assert_eq!(history.asked(page(1)), Some(Fate::Used));
        history.clear();
        assert_eq!((history.len(), history.under_way()), (0, 0));
        let mut none = History::new(0);
        assert_eq!(round(&mut none, page(1), true), (false, None));
        assert_eq!(none.len(), 0);
    }

    #[test]
    fn a_refetch_that_brings_nothing_is_neither_used_nor_wasted() {
        let mut history = History::new(10);
        for _ in 0..WANTED_AGAIN_MIN {
            round(&mut history, page(1), true);
        }
        history.invalidated(page(1));
        history.refetched(page(1));
        history.came(page(1), false);
        assert_eq!(history.invalidated(page(1)), None);
        assert!(history.wants(page(1)));
        assert_eq!(history.asked(page(1)), None);
    }
}
