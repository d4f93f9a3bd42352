//! Fetching ahead: when a program has to wait for a page, its neighbours in the segment are asked for with it.
//!
//! Objects that are made one after the other lie side by side, and who wants one often wants the next: so pages are taken
//! by their numbers, those that follow first. How many is a matter of credit. Every wait earns some, every page that was
//! fetched ahead and then read earns more, and every page fetched ahead costs one: what helps grows to many pages at a time,
//! and what does not is a few pages for each wait, then less than one. So waste is bounded by the waits that there were
//! anyhow. And no more is under way than the link carries without holding up what is waited for.

use super::lock;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use thorp_core::ids::{HomeId, PageId, PageNo, Place, SegmentId};
use thorp_core::limits::FETCH_RETRY_MS;

/// Which pages to fetch ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// At one time; zero fetches none ahead.
    pages_max: usize,
    state: Mutex<State>,
}

/// What became of pages that were fetched ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fate {
    /// Asked for.
    pub(crate) asked: u64,
    /// Read afterwards.
    pub(crate) used: u64,
    /// Not read while that many others were fetched ahead, and given up on.
    pub(crate) wasted: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Where in each segment the program was.
    runs: HashMap<(HomeId, SegmentId), Run>,
    /// Fetched ahead and not seen to be read, the oldest first.
    waiting: VecDeque<Place>,
    /// The same.
    is_waiting: HashSet<Place>,
    /// Those of them that had not come when it was last looked.
    under_way: Vec<(Place, Instant)>,
    waits: u64,
    /// In quarters of a page.
    credit: usize,
    fate: Fate,
    /// The same, with less weight for what is long ago.
    recent: Fate,
    link: Flow,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    last: PageNo,
    /// The program knows of pages up to here.
    highest: PageNo,
}

/// How much may be under way beside what is waited for.
#[derive(Debug)]
struct Flow {
    pages_max: usize,
    quickest: Duration,
}

impl Ahead {
    pub(crate) fn new(pages_max: usize) -> Self {
        Ahead {
            pages_max,
            state: Mutex::default(),
        }
    }

    /// A program waits for a page. Tells which to fetch with it, the most wanted first. `extent` is the first page of the
    /// segment that holds nothing, if that is known; `is_read` tells what its transaction has read, `is_here` what is cached.
    pub(crate) fn missed(
        &self,
        place: Place,
        extent: Option<PageNo>,
        is_read: impl Fn(Place) -> bool,
        is_here: impl Fn(Place) -> bool,
    ) -> Vec<Place> {
        if self.pages_max == 0 || place.page.page.is_overflow() {
            return Vec::new();
        }
        let state = &mut *lock(&self.state);
        state.waits += 1;
        if state.waits.is_multiple_of(SETTLED_EVERY) {
            state.settle(is_read);
        }
        state.credit = (state.credit + state.earned()).min(CREDIT_MAX);
        // What was refused, or has come and gone again, is not waited for for ever.
        let is_young = |since: &Instant| since.elapsed() < UNDER_WAY_FOR;
        state
            .under_way
            .retain(|(place, since)| is_young(since) && !is_here(*place));
        state.come_and_gone(place);
        let free = state.link.pages_max.saturating_sub(state.under_way.len());
        let most = (state.credit / PAGE).min(self.pages_max).min(free);
        let chosen = state.choose(place, extent, most, is_here);
        state.credit -= chosen.len() * PAGE;
        state.asked(&chosen);
        chosen
    }

    /// The page came, after so long. One that had been asked for before tells nothing of the link.
    pub(crate) fn came(&self, place: Place, after: Duration) {
        if self.pages_max > 0 {
            let state = &mut *lock(&self.state);
            if !state.is_waiting.contains(&place) {
                state.link.came(after);
            }
        }
    }

    /// A transaction that had to wait has ended: what has it read?
    pub(crate) fn ended(&self, is_read: impl Fn(Place) -> bool) {
        if self.pages_max > 0 {
            lock(&self.state).settle(is_read);
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.pages_max > 0
    }

    pub(crate) fn fate(&self) -> Fate {
        lock(&self.state).fate
    }
}

impl State {
    /// What a wait earns: a few pages at first, and later as it was worth.
    fn earned(&self) -> usize {
        let Fate { used, wasted, .. } = self.recent;
        let known = used + wasted;
        match used * 100 / known.max(1) {
            _ if known < KNOWN_MIN => 4 * PAGE,
            50.. => 8 * PAGE,
            25.. => 4 * PAGE,
            10.. => PAGE,
            _ => PAGE / 4,
        }
    }

    /// Looks which of the pages that were fetched ahead have been read.
    fn settle(&mut self, is_read: impl Fn(Place) -> bool) {
        let before = self.waiting.len();
        self.waiting.retain(|place| !is_read(*place));
        let (waiting, is_waiting) = (&self.waiting, &mut self.is_waiting);
        if waiting.len() < before {
            is_waiting.clear();
            is_waiting.extend(waiting);
        }
        let used = before - self.waiting.len();
        self.fate.used += used as u64;
        self.recent.used += used as u64;
        self.credit = (self.credit + used * 2 * PAGE).min(CREDIT_MAX);
    }

    /// A page that is waited for although it was fetched ahead, and is not on its way any more, was given up before it was
    /// read: there is no room for so many.
    fn come_and_gone(&mut self, place: Place) {
        let is_under_way = self.under_way.iter().any(|(other, _)| *other == place);
        if !is_under_way && self.is_waiting.remove(&place) {
            self.waiting.retain(|other| *other != place);
            self.fate.wasted += 1;
            self.recent.wasted += 1;
        }
    }

    fn asked(&mut self, chosen: &[Place]) {
        self.fate.asked += chosen.len() as u64;
        self.waiting.extend(chosen);
        self.is_waiting.extend(chosen);
        let now = Instant::now();
        self.under_way
            .extend(chosen.iter().map(|place| (*place, now)));
        let given_up = self.waiting.len().saturating_sub(WAITING_MAX);
        for place in self.waiting.drain(..given_up) {
            self.is_waiting.remove(&place);
        }
        self.fate.wasted += given_up as u64;
        self.recent.wasted += given_up as u64;
        if self.recent.used + self.recent.wasted > RECENT_MAX {
            self.recent.used /= 2;
            self.recent.wasted /= 2;
        }
    }

    /// The nearest pages that are not here, those that follow before those that precede.
    fn choose(
        &mut self,
        place: Place,
        extent: Option<PageNo>,
        most: usize,
        is_here: impl Fn(Place) -> bool,
    ) -> Vec<Place> {
        let page = place.page.page;
        let key = (place.home, place.page.segment);
        if self.runs.len() >= RUNS_MAX && !self.runs.contains_key(&key) {
            self.runs.clear();
        }
        let known = self.runs.get(&key).copied();
        let goes_on = known.is_some_and(|run| page > run.last && page.0 - run.last.0 <= GAP);
        let highest = known.map_or(page, |run| run.highest.max(page));
        let run = Run {
            last: page,
            highest,
        };
        self.runs.insert(key, run);
        let end = extent.unwrap_or(highest.next());
        let candidates = near(page, end, goes_on).take(4 * most);
        let candidates = candidates.map(|page| Place {
            page: PageId { page, ..place.page },
            ..place
        });
        let wanted =
            candidates.filter(|place| !self.is_waiting.contains(place) && !is_here(*place));
        wanted.take(most).collect()
    }
}

/// The pages around one that may hold objects: those that follow and those that precede, two to one; or first all that
/// follow, for who goes through the segment in its order.
fn near(page: PageNo, end: PageNo, goes_on: bool) -> impl Iterator<Item = PageNo> {
    let mut after = (page.0.saturating_add(1)..end.0).map(PageNo);
    let mut before = (1..page.0.min(end.0)).rev().map(PageNo);
    let mut turn = 0;
    std::iter::from_fn(move || {
        turn = (turn + 1) % 3;
        match turn == 0 && !goes_on {
            true => before.next().or_else(|| after.next()),
            false => after.next().or_else(|| before.next()),
        }
    })
}

impl Flow {
    /// More, while what is waited for comes as quickly as ever; half, if it comes late.
    fn came(&mut self, after: Duration) {
        // It may have become a longer way.
        self.quickest = match after.checked_sub(self.quickest) {
            Some(longer) => self.quickest + longer / 16,
            None => after,
        };
        if after <= self.quickest * 5 / 4 {
            self.pages_max = (self.pages_max + 8).min(UNDER_WAY_MAX);
        } else if after > self.quickest * 2 {
            self.pages_max = (self.pages_max / 2).max(UNDER_WAY_MIN);
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            pages_max: 4 * UNDER_WAY_MIN,
            quickest: Duration::MAX,
        }
    }
}

/// Credit is counted in quarters.
const PAGE: usize = 4;
/// Nobody saves up for more.
const CREDIT_MAX: usize = 256 * PAGE;
/// Pages whose use is still open.
const WAITING_MAX: usize = 512;
/// Waits between two looks at it: they are many, and each look takes a few microseconds.
const SETTLED_EVERY: u64 = 4;
/// Before so many pages were used or wasted nothing is concluded from them.
const KNOWN_MIN: u64 = 64;
/// So many count as recent.
const RECENT_MAX: u64 = 4096;
/// Segments in which it is known where the program was.
const RUNS_MAX: usize = 1024;
/// Pages that may be left out by who goes through a segment in its order.
const GAP: u32 = 4;
/// Pages fetched ahead that may be under way.
const UNDER_WAY_MIN: usize = 8;
const UNDER_WAY_MAX: usize = 64;
/// As long as until a page is asked for again.
const UNDER_WAY_FOR: Duration = Duration::from_millis(FETCH_RETRY_MS);

#[cfg(test)]
mod tests {
    use super::*;

    fn place(page: u32) -> Place {
        Place {
            home: HomeId(1),
            page: PageId::new(1, page),
        }
    }

    /// A program that reads pages, and waits when one is not here: how often, and how many were fetched ahead.
    fn waits(pages_max: usize, extent: u32, pages: impl Iterator<Item = u32>) -> (usize, Fate) {
        let ahead = Ahead::new(pages_max);
        let (mut here, mut read) = (HashSet::new(), HashSet::new());
        let mut waits = 0;
        for page in pages.map(place) {
            if !here.contains(&page) {
                waits += 1;
                let (is_read, is_here) = (|p| read.contains(&p), |p| here.contains(&p));
                let chosen = ahead.missed(page, Some(PageNo(extent)), is_read, is_here);
                assert!(!chosen.contains(&page) && chosen.len() <= pages_max);
                here.insert(page);
                here.extend(chosen);
                ahead.came(page, Duration::from_millis(40));
            }
            read.insert(page);
        }
        ahead.ended(|p| read.contains(&p));
        (waits, ahead.fate())
    }

    /// The same numbers each time, in no order.
    fn scattered(count: u64, below: u64) -> impl Iterator<Item = u32> {
        (0..count)
            .map(move |n| 1 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as u32 % below as u32)
    }

    #[test]
    fn who_goes_through_a_segment_waits_seldom() {
        let (waits, fate) = waits(64, 2001, 1..=2000);
        assert!(waits < 2000 / 20, "{waits}");
        assert!(fate.used > 1800 && fate.asked - fate.used <= 64, "{fate:?}");
    }

    #[test]
    fn who_wants_all_of_it_in_any_order_waits_seldom_too() {
        let (waits, fate) = waits(64, 501, scattered(20_000, 500));
        assert!(waits < 500 / 5, "{waits}");
        assert!(fate.used > 400, "{fate:?}");
    }

    #[test]
    fn who_wants_a_page_here_and_there_is_not_flooded() {
        let (waits, fate) = waits(64, 10_000_001, scattered(6_000, 10_000_000));
        assert!(waits > 5_900);
        // Less than one for each wait in the long run.
        assert!(fate.asked < waits as u64 / 2, "{fate:?}");
        assert_eq!(fate.used + fate.wasted + WAITING_MAX as u64, fate.asked);
    }

    #[test]
    fn none_is_fetched_ahead_if_none_may_be() {
        let (waits, fate) = waits(0, 101, 1..=100);
        assert_eq!((waits, fate), (100, Fate::default()));
    }

    /// None of it stays: each page is gone before it is read.
    #[test]
    fn a_cache_that_is_too_small_is_not_flooded() {
        let ahead = Ahead::new(64);
        for round in 0..20 {
            for page in 1..=200 {
                let extent = Some(PageNo(201));
                ahead.missed(place(page), extent, |_| false, |_| round % 2 == 1);
            }
        }
        let fate = ahead.fate();
        assert!(fate.wasted > 100 && fate.asked < 20 * 200 / 4, "{fate:?}");
    }

    #[test]
    fn what_is_waited_for_is_not_held_up() {
        let mut flow = Flow::default();
        for _ in 0..100 {
            flow.came(Duration::from_millis(40));
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MAX);
        for _ in 0..10 {
            flow.came(Duration::from_millis(400));
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MIN);
        // What has become a longer way is the way.
        for _ in 0..100 {
            flow.came(Duration::from_millis(400));
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MAX);
    }

    #[test]
    fn large_objects_and_what_precedes_all_objects_are_left_out() {
        let overflow = Place {
            page: PageId {
                page: PageNo::OVERFLOW_FIRST,
                ..place(1).page
            },
            ..place(1)
        };
        let ahead = Ahead::new(64);
        let missed = |place, extent| ahead.missed(place, extent, |_| false, |_| false);
        assert_eq!(missed(overflow, None), []);
        // Nobody knows of any other page.
        assert_eq!(missed(place(3), None), [place(2), place(1)]);
        assert_eq!(missed(place(1), None), [place(3)]);
        let chosen = missed(place(3), Some(PageNo(6)));
        assert_eq!(chosen, [place(4), place(5)]);
    }
}
