//! Which pages those below waited for one after the other, and so which are likely next (rule 9).
//! As much of it as is known: all of it may be lost, and none of it promises anything.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::limits::{
    HINT_PAGES_FIRST, HINT_PAGES_MAX, HINTS_UNHEEDED_MAX, SUCCESSOR_COUNT_MAX, SUCCESSOR_MS_MAX,
    SUCCESSORS_LOOKED_MAX, SUCCESSORS_OF_A_PAGE_MAX, UNASKED_MAX,
};
use thorp_model::{EdgeId, Millis, PageId};

/// What followed what, and where each child is.
#[derive(Debug)]
pub(in crate::redirector) struct Successors {
    pages: BTreeMap<PageId, Vec<Successor>>,
    pages_max: usize,
    /// Where it was looked last for what may be forgotten.
    hand: Option<PageId>,
    walks: BTreeMap<EdgeId, Walk>,
    unasked: Unasked,
}

/// A page that a child waited for after another one.
#[derive(Clone, Copy, Debug)]
struct Successor {
    page: PageId,
    /// One more each time, one less each time that it was told and another one came.
    count: u8,
}

/// Where a child is in its sequence of waits.
#[derive(Debug)]
struct Walk {
    last: PageId,
    at: Millis,
    /// What was likely next, in the order in which it was found; also what the child had.
    likely: Vec<PageId>,
    /// How many pages it is told: twice as many after each time that they led to what it waited
    /// for next, half after each time that they did not.
    trust: usize,
    /// Hints since it last asked for anything that it does not wait for.
    unheeded: u8,
}

/// Pages that were asked for above before anybody below did, and that nobody below has asked for since: the oldest first.
#[derive(Debug, Default)]
struct Unasked {
    oldest_first: VecDeque<PageId>,
    pages: BTreeSet<PageId>,
    /// Those that were asked for so and have not come, whoever has asked for them since.
    under_way: BTreeSet<PageId>,
}

/// What is likely to be wanted after a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::redirector) struct Next {
    /// The most likely first; only what its child has not.
    pub(in crate::redirector) pages: Vec<PageId>,
    /// Whether the child has shown that it listens.
    pub(in crate::redirector) is_told: bool,
}

impl Successors {
    pub(in crate::redirector) fn new(pages_max: usize) -> Self {
        Successors {
            pages: BTreeMap::new(),
            pages_max,
            hand: None,
            walks: BTreeMap::new(),
            unasked: Unasked::default(),
        }
    }

    /// A child waits for a page. Tells what it is likely to want next; `has` tells what it has, and `asks_above` whether
    /// anything comes of it where the child does not listen.
    pub(in crate::redirector) fn waited(
        &mut self,
        child: EdgeId,
        page: PageId,
        now: Millis,
        asks_above: bool,
        has: impl Fn(PageId) -> bool,
    ) -> Next {
        let before = self.walks.remove(&child);
        // The same page again is the same wait.
        if self.pages_max == 0 || before.as_ref().is_some_and(|walk| walk.last == page) {
            self.walks.extend(before.map(|walk| (child, walk)));
            return Next::default();
        }
        let (trust, unheeded) = match &before {
            Some(walk) => (self.learn(walk, page, now), walk.unheeded),
            None => (HINT_PAGES_FIRST, 0),
        };
        let mut walk = Walk {
            last: page,
            at: now,
            likely: Vec::new(),
            trust,
            unheeded,
        };
        let mut pages = Vec::new();
        if asks_above || walk.listens() {
            // Without trust it is only seen whether one would have been right.
            (walk.likely, pages) = self.likely(page, trust.max(1), has);
            pages.truncate(trust);
        }
        let is_told = !pages.is_empty() && walk.listens();
        walk.unheeded += u8::from(is_told);
        self.walks.insert(child, walk);
        Next { pages, is_told }
    }

    /// Those who wait for a page, or have waited for it last, and listen: they are told what another one says of it.
    pub(in crate::redirector) fn children_at(&mut self, page: PageId) -> Vec<EdgeId> {
        let there = self.walks.iter_mut();
        let there = there.filter(|(_, walk)| walk.last == page && walk.listens());
        there
            .map(|(child, walk)| {
                walk.unheeded += 1;
                *child
            })
            .collect()
    }

    /// A child asks for a page that it does not wait for.
    pub(in crate::redirector) fn heeded(&mut self, child: EdgeId) {
        if let Some(walk) = self.walks.get_mut(&child) {
            walk.unheeded = 0;
        }
    }

    /// What comes after a page, learnt from what came; tells how far the child is trusted from now on.
    fn learn(&mut self, walk: &Walk, page: PageId, now: Millis) -> usize {
        if now.since(walk.at) > SUCCESSOR_MS_MAX {
            return walk.trust;
        }
        let leads = |from: &&PageId| self.follows(**from, page);
        // What was told and fetched ahead was not waited for: this wait comes after the last of it.
        let led = walk.likely.iter().rev().find(leads).copied();
        let is_right =
            led.is_some() || walk.likely.contains(&page) || self.follows(walk.last, page);
        self.followed(led.unwrap_or(walk.last), page);
        if led.is_none() {
            self.discredit(walk, page, is_right);
        }
        match (walk.likely.is_empty(), is_right) {
            (true, _) => walk.trust,
            (_, true) => (2 * walk.trust).clamp(1, HINT_PAGES_MAX),
            (_, false) => walk.trust / 2,
        }
    }

    fn follows(&self, from: PageId, page: PageId) -> bool {
        let successors = self.pages.get(&from);
        successors
            .is_some_and(|successors| successors.iter().any(|successor| successor.page == page))
    }

    fn followed(&mut self, from: PageId, page: PageId) {
        if !self.pages.contains_key(&from) {
            if !self.has_space() {
                return;
            }
            self.pages.insert(from, Vec::new());
        }
        let Some(successors) = self.pages.get_mut(&from) else {
            return;
        };
        if let Some(known) = successors
            .iter_mut()
            .find(|successor| successor.page == page)
        {
            known.count = (known.count + 1).min(SUCCESSOR_COUNT_MAX);
        } else if successors.len() < SUCCESSORS_OF_A_PAGE_MAX {
            successors.push(Successor {
                page,
                count: COUNT_FIRST,
            });
        } else {
            // The least known gives way, bit by bit.
            let least = successors
                .iter_mut()
                .min_by_key(|successor| successor.count);
            if let Some(least) = least {
                least.count -= 1;
                if least.count == 0 {
                    *least = Successor {
                        page,
                        count: COUNT_FIRST,
                    };
                }
            }
        }
    }

    /// Others were likely to follow, and did not: they count less, unless the one that did was only as likely.
    fn discredit(&mut self, walk: &Walk, came: PageId, is_right: bool) {
        let Some(successors) = self.pages.get_mut(&walk.last) else {
            return;
        };
        let known = successors.iter().find(|successor| successor.page == came);
        let most = match known {
            Some(known) if is_right => known.count / 2,
            _ => SUCCESSOR_COUNT_MAX,
        };
        for successor in successors
            .iter_mut()
            .filter(|successor| successor.page != came)
        {
            if successor.count <= most && walk.likely.contains(&successor.page) {
                successor.count -= 1;
            }
        }
        successors.retain(|successor| successor.count > 0);
    }

    /// What follows a page, and what follows that, the likeliest first: all that was looked at, and of it so many pages
    /// that the child has not.
    fn likely(
        &self,
        page: PageId,
        most: usize,
        has: impl Fn(PageId) -> bool,
    ) -> (Vec<PageId>, Vec<PageId>) {
        let (mut looked, mut wanted) = (Vec::new(), Vec::new());
        let mut open = alloc::vec![(CERTAIN, page)];
        while let Some(best) = likeliest(&open) {
            let (chance, from) = open.swap_remove(best);
            if from != page {
                if looked.contains(&from) {
                    continue;
                }
                looked.push(from);
                if !has(from) {
                    wanted.push(from);
                }
                if wanted.len() >= most || looked.len() >= SUCCESSORS_LOOKED_MAX {
                    break;
                }
            }
            let successors = self.pages.get(&from).map_or(&[][..], Vec::as_slice);
            let all: u32 = successors
                .iter()
                .map(|successor| u32::from(successor.count))
                .sum();
            let next = successors
                .iter()
                .map(|successor| (chance * u32::from(successor.count) / all, successor.page));
            open.extend(next.filter(|(chance, next)| *chance >= UNLIKELY && *next != page));
        }
        (looked, wanted)
    }

    // --- What was asked for above ---

    /// A page was asked for above, and by nobody below. One that was so long ago is given up on: true if it was wasted.
    pub(in crate::redirector) fn asked_ahead(&mut self, page: PageId) -> bool {
        self.unasked.under_way.insert(page);
        if self.unasked.pages.insert(page) {
            self.unasked.oldest_first.push_back(page);
        }
        let is_full = self.unasked.oldest_first.len() > UNASKED_MAX;
        let oldest = match is_full {
            true => self.unasked.oldest_first.pop_front(),
            false => None,
        };
        oldest.is_some_and(|oldest| self.unasked.pages.remove(&oldest))
    }

    /// An answer for a page came from above. True if it was asked for ahead.
    pub(in crate::redirector) fn came(&mut self, page: PageId) -> bool {
        self.unasked.under_way.remove(&page)
    }

    /// Somebody below asks for a page, or it is nobody's any more. True if nobody had asked for it since it was asked for ahead.
    pub(in crate::redirector) fn no_more_unasked(&mut self, page: PageId) -> bool {
        let was_unasked = self.unasked.pages.remove(&page);
        if was_unasked {
            self.unasked.oldest_first.retain(|other| *other != page);
        }
        was_unasked
    }

    /// This node's memory had no room for a page. True if nobody had asked for it: then there is no room for so much, whoever
    /// it was meant for.
    pub(in crate::redirector) fn dropped(&mut self, page: PageId) -> bool {
        let was_unasked = self.no_more_unasked(page);
        if was_unasked {
            for walk in self.walks.values_mut() {
                walk.trust /= 2;
            }
        }
        was_unasked
    }

    /// Pages on their way that were asked for so.
    pub(in crate::redirector) fn under_way(&self) -> usize {
        self.unasked.under_way.len()
    }

    // --- Ends ---

    pub(in crate::redirector) fn child_went(&mut self, child: EdgeId) {
        self.walks.remove(&child);
    }

    /// The stream has ended. What follows what is as it was.
    pub(in crate::redirector) fn stream_ended(&mut self) {
        self.walks.clear();
        self.unasked = Unasked::default();
    }

    /// Pages of which something is known.
    pub(in crate::redirector) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Pages that were asked for ahead of those below.
    pub(in crate::redirector) fn unasked(&self) -> usize {
        self.unasked.oldest_first.len()
    }

    /// Room for one page more. Who comes round takes one from what is known of each page, and forgets what is known no more.
    fn has_space(&mut self) -> bool {
        if self.pages.len() < self.pages_max {
            return true;
        }
        for _ in 0..LOOKED_AT {
            let from = self.hand.map_or(Bound::Unbounded, Bound::Excluded);
            let mut after = self.pages.range_mut((from, Bound::Unbounded));
            let Some((page, successors)) = after.next() else {
                self.hand = None;
                continue;
            };
            let page = *page;
            self.hand = Some(page);
            for successor in successors.iter_mut() {
                successor.count -= 1;
            }
            successors.retain(|successor| successor.count > 0);
            if successors.is_empty() {
                self.pages.remove(&page);
                return true;
            }
        }
        false
    }
}

impl Walk {
    /// Whether it may be that its child fetches what it is told.
    fn listens(&self) -> bool {
        self.unheeded < HINTS_UNHEEDED_MAX
    }
}

fn likeliest(open: &[(u32, PageId)]) -> Option<usize> {
    let mut best = None;
    for (place, (chance, _)) in open.iter().enumerate() {
        // Of equal ones the first that was found.
        if best.is_none_or(|(most, _)| *chance > most) {
            best = Some((*chance, place));
        }
    }
    best.map(|(_, place)| place)
}

/// Pages looked at for one that may be forgotten.
const LOOKED_AT: usize = 8;
/// What has followed once: it may fail to do so once.
const COUNT_FIRST: u8 = 2;
/// Chances are counted in parts of this.
const CERTAIN: u32 = 1 << 16;
/// What follows with less is not looked at.
const UNLIKELY: u32 = CERTAIN / 8;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: EdgeId = EdgeId(1);
    const SECOND: EdgeId = EdgeId(2);
    const NOW: Millis = Millis(0);

    fn page(number: u32) -> PageId {
        PageId::new(1, number)
    }

    /// Numbers in no order, each once.
    fn scattered(count: u32) -> Vec<PageId> {
        let prime = 7919;
        (0..count).map(|n| page(1 + n * prime % count)).collect()
    }

    /// A child that fetches what it is told, and waits for what it has not: how often, and how many it has fetched in vain.
    fn walks(successors: &mut Successors, child: EdgeId, order: &[PageId]) -> (usize, usize) {
        let mut has: BTreeSet<PageId> = BTreeSet::new();
        let (mut waits, mut ahead) = (0, BTreeSet::new());
        for page in order {
            if has.insert(*page) {
                waits += 1;
                let next = successors.waited(child, *page, NOW, true, |other| has.contains(&other));
                assert!(next.pages.len() <= HINT_PAGES_MAX);
                if next.is_told {
                    successors.heeded(child);
                    ahead.extend(next.pages.iter().copied());
                    has.extend(next.pages);
                }
            }
            ahead.remove(page);
        }
        (waits, ahead.len())
    }

    #[test]
    fn who_goes_the_way_of_a_neighbour_waits_seldom() {
        let mut successors = Successors::new(1000);
        let order = scattered(500);
        assert_eq!(walks(&mut successors, FIRST, &order), (500, 0));
        let (waits, wasted) = walks(&mut successors, SECOND, &order);
        assert!(waits < 500 / 12 && wasted == 0, "{waits} {wasted}");
        // Waits that were saved do not change what follows what.
        for child in 3..10 {
            assert_eq!(
                walks(&mut successors, EdgeId(child), &order),
                (waits, wasted)
            );
        }
    }

    #[test]
    fn who_goes_anywhere_is_told_little() {
        let mut successors = Successors::new(100_000);
        let mut random = 1_u64;
        let mut anywhere = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            page(1 + (random >> 33) as u32 % 2000)
        };
        let mut told = 0;
        for _ in 0..50_000 {
            let next = successors.waited(FIRST, anywhere(), NOW, true, |_| false);
            told += next.pages.len();
            if next.is_told {
                successors.heeded(FIRST);
            }
        }
        assert!(told < 50_000 / 20, "{told}");
    }

    #[test]
    fn what_is_followed_by_something_else_is_forgotten() {
        let mut successors = Successors::new(100);
        for (child, after) in [(1, 2), (2, 2), (3, 3), (4, 3), (5, 3), (6, 3)] {
            for number in [1, after] {
                successors.waited(EdgeId(child), page(number), NOW, true, |_| false);
            }
        }
        let next = successors.waited(EdgeId(7), page(1), NOW, true, |_| false);
        assert_eq!(next.pages, [page(3)]);
    }

    #[test]
    fn what_comes_long_after_is_no_successor() {
        let mut successors = Successors::new(100);
        successors.waited(FIRST, page(1), NOW, true, |_| false);
        let later = NOW.plus(SUCCESSOR_MS_MAX + 1);
        successors.waited(FIRST, page(2), later, true, |_| false);
        successors.waited(FIRST, page(2), later, true, |_| false);
        assert_eq!(successors.len(), 0);
        successors.waited(FIRST, page(3), later, true, |_| false);
        assert_eq!(successors.len(), 1);
    }

    #[test]
    fn who_does_not_listen_is_not_told_for_ever() {
        let mut successors = Successors::new(1000);
        let order = scattered(500);
        walks(&mut successors, FIRST, &order);
        let mut told = 0;
        for page in &order {
            let next = successors.waited(SECOND, *page, NOW, true, |_| false);
            told += u32::from(next.is_told);
            assert!(!next.pages.is_empty() || *page == order[499]);
        }
        assert_eq!(told, u32::from(HINTS_UNHEEDED_MAX));
        let nothing = successors.waited(SECOND, order[1], NOW, false, |_| false);
        assert_eq!(nothing, Next::default());
        successors.heeded(SECOND);
        assert!(
            successors
                .waited(SECOND, order[0], NOW, true, |_| false)
                .is_told
        );
    }

    #[test]
    fn all_that_is_known_is_bounded() {
        let mut successors = Successors::new(100);
        for number in 0..10_000_u32 {
            let page = page(number.wrapping_mul(2_654_435_761) >> 12);
            successors.waited(FIRST, page, NOW, true, |_| false);
            successors.asked_ahead(page);
        }
        assert!(successors.len() <= 100 && successors.unasked() == UNASKED_MAX);
        for successors in successors.pages.values() {
            assert!(successors.len() <= SUCCESSORS_OF_A_PAGE_MAX);
        }
        let mut none = Successors::new(0);
        walks(&mut none, FIRST, &scattered(100));
        assert_eq!((none.len(), none.walks.len()), (0, 0));
    }

    #[test]
    fn where_there_is_no_space_less_is_told() {
        let mut successors = Successors::new(1000);
        let order = scattered(100);
        walks(&mut successors, FIRST, &order);
        assert_eq!(
            successors
                .waited(SECOND, order[0], NOW, true, |_| false)
                .pages
                .len(),
            HINT_PAGES_FIRST
        );
        for page in &order[1..9] {
            assert!(!successors.asked_ahead(*page));
            assert!(successors.dropped(*page));
        }
        let next = successors.waited(SECOND, order[1], NOW, true, |_| false);
        assert!(next.pages.len() <= 1, "{next:?}");
    }
}
