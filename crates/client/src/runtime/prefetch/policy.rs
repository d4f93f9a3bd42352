//! Prefetching: when a program has to wait for a page, the member requests others with it.
//!
//! There are three guesses which pages those are:
//!
//! - A site sends a hint: what its members waited for next after the same page. That comes first.
//! - A value that was read refers to other objects, if its type shows that.
//! - Objects that are made one after the other lie side by side, and are often wanted one after the other. So pages are
//!   chosen by their numbers, the following ones first.
//!
//! Each guess has credit of its own, which sets how many pages it may request. A guess that helps grows to many pages
//! at a time. A guess that does not help shrinks to a few pages for each wait, then to less than one. So the waits,
//! which happen anyhow, bound the waste. And no more is under way than the link carries without delaying a page that a
//! thread waits for.
//!
//! A page that the site has, or that a neighbour gets, too, costs little. So neighbours that go through the same pages
//! share what they fetch from afar. A page that the program names is no guess, and is only counted.

use super::account::{Account, Reason};
use super::counts::PrefetchCounts;
use super::flow::Flow;
use super::open_pages::OpenPages;
use crate::lock::lock;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use thorp_model::limits::FETCH_RETRY_MS;
use thorp_model::{HomeId, PageId, PageNo, Place, SegmentId};

/// Which pages to fetch ahead.
#[derive(Debug)]
pub(crate) struct PrefetchPolicy {
    /// How many at one time; zero turns prefetching off.
    pages_max: usize,
    /// Prefetched pages of which it is not known whether they are read.
    open: OpenPages,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where in each segment the program waited last.
    runs: HashMap<(HomeId, SegmentId), Run>,
    /// Pages from hints that are not requested yet: the credit or the link was used up.
    hints: VecDeque<Place>,
    /// Prefetched and not known to be read, the oldest first.
    waiting: VecDeque<(Place, Reason)>,
    /// The same.
    is_waiting: HashSet<Place>,
    /// Those of them that had not arrived at the last look.
    under_way: Vec<UnderWay>,
    /// The last wait.
    spot: Option<Spot>,
    waits: u64,
    accounts: Accounts,
    counts: PrefetchCounts,
    flow: Flow,
}

#[derive(Debug, Default)]
struct Accounts {
    hinted: Account,
    referred: Account,
    near: Account,
    /// Its credit is never looked at.
    named: Account,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    place: Place,
    reason: Reason,
    since: Instant,
    /// Whether a neighbour gets it, too.
    is_shared: bool,
}

/// A page that was waited for, and the pages around it.
#[derive(Clone, Copy, Debug)]
struct Spot {
    place: Place,
    /// The first page that holds nothing.
    end: PageNo,
    goes_on: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    last: PageNo,
    /// The program knows of pages up to here.
    highest: PageNo,
}

impl PrefetchPolicy {
    pub(crate) fn new(pages_max: usize) -> Self {
        PrefetchPolicy {
            pages_max,
            open: OpenPages::new(),
            state: Mutex::default(),
        }
    }

    /// A thread waits for a page. Gives the pages to request with it, the most wanted first. `extent` is the first page
    /// of the segment that holds nothing, if that is known. `is_read` knows what the transaction has read, and
    /// `is_here` what is cached.
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
        state.accounts.hinted.waited();
        state.accounts.referred.waited();
        state.accounts.near.waited();
        let capacity = state.capacity(&is_here).min(self.pages_max);
        state.come_and_gone(place);
        state.hints.retain(|hinted| *hinted != place);
        let mut chosen = state.likely(capacity, &is_here);
        state.requested(&chosen, Reason::Hinted);
        let most = state.accounts.near.pages().min(capacity - chosen.len());
        let near = state.near(place, extent, most, is_here);
        state.requested(&near, Reason::Near);
        chosen.extend(near);
        self.open.set(state.is_waiting.iter().copied());
        chosen
    }

    /// The site sent a hint, the likeliest page first. Gives the pages to request now.
    pub(crate) fn hinted(&self, likely: &[Place], is_here: impl Fn(Place) -> bool) -> Vec<Place> {
        if self.pages_max == 0 {
            return Vec::new();
        }
        let state = &mut *lock(&self.state);
        state.hints.retain(|place| !likely.contains(place));
        for place in likely.iter().rev() {
            state.hints.push_front(*place);
        }
        state.hints.truncate(HINTS_KEPT_MAX);
        let capacity = state.capacity(&is_here).min(self.pages_max);
        let chosen = state.likely(capacity, is_here);
        state.requested(&chosen, Reason::Hinted);
        self.open.add(chosen.iter().copied());
        chosen
    }

    /// A value refers to these pages, and was not cached before. Gives the pages to request now.
    pub(crate) fn referred(
        &self,
        places: impl Iterator<Item = Place>,
        is_here: impl Fn(Place) -> bool,
    ) -> Vec<Place> {
        if self.pages_max == 0 {
            return Vec::new();
        }
        let state = &mut *lock(&self.state);
        let capacity = state.capacity(&is_here).min(self.pages_max);
        let most = state.accounts.referred.pages().min(capacity);
        let mut chosen = Vec::new();
        for place in places {
            let is_asked = state.is_waiting.contains(&place) || chosen.contains(&place);
            if chosen.len() < most && !is_asked && !is_here(place) {
                chosen.push(place);
            }
        }
        state.requested(&chosen, Reason::Referred);
        self.open.add(chosen.iter().copied());
        chosen
    }

    /// Whether a page was prefetched, and is not known to have been read.
    pub(crate) fn is_open(&self, place: Place) -> bool {
        self.open.may_have(place) && lock(&self.state).is_waiting.contains(&place)
    }

    /// A prefetched page has arrived. If it came from nearby, because the site had it, most of its price is given back.
    /// Gives the pages to request for that.
    pub(crate) fn arrived(&self, place: Place, is_here: impl Fn(Place) -> bool) -> Vec<Place> {
        if self.pages_max == 0 {
            return Vec::new();
        }
        let state = &mut *lock(&self.state);
        let of_it = |asked: &UnderWay| asked.place == place;
        let Some(at) = state.under_way.iter().position(of_it) else {
            return Vec::new();
        };
        let asked = state.under_way.swap_remove(at);
        if asked.is_shared || !state.flow.is_nearby(asked.since.elapsed()) {
            return Vec::new();
        }
        self.shared(state, asked.reason, is_here)
    }

    /// A prefetched page was on its way already, for a neighbour: most of its price is given back. Gives the pages to
    /// request for that.
    pub(crate) fn joined(&self, place: Place, is_here: impl Fn(Place) -> bool) -> Vec<Place> {
        if self.pages_max == 0 {
            return Vec::new();
        }
        let state = &mut *lock(&self.state);
        let of_it = |asked: &&mut UnderWay| asked.place == place && !asked.is_shared;
        let Some(asked) = state.under_way.iter_mut().find(of_it) else {
            return Vec::new();
        };
        asked.is_shared = true;
        let reason = asked.reason;
        self.shared(state, reason, is_here)
    }

    /// A requested page costs little. Gives the pages to request for the rest of its price, by the same guess: from
    /// hints, or near the page that was waited for last.
    fn shared(
        &self,
        state: &mut State,
        reason: Reason,
        is_here: impl Fn(Place) -> bool,
    ) -> Vec<Place> {
        state.accounts.of(reason).shared();
        if state.accounts.of(reason).pages() == 0 {
            return Vec::new();
        }
        let capacity = state.capacity(&is_here).min(self.pages_max);
        let chosen = match reason {
            Reason::Hinted => state.likely(capacity, is_here),
            Reason::Near => state.further(state.accounts.near.pages().min(capacity), is_here),
            // Those are requested when values are read, or when the program names them.
            Reason::Referred | Reason::Named => Vec::new(),
        };
        state.requested(&chosen, reason);
        self.open.add(chosen.iter().copied());
        chosen
    }

    /// The program has named a page that it will read. The page is requested now.
    pub(crate) fn named(&self, place: Place) {
        if self.pages_max > 0 {
            let state = &mut *lock(&self.state);
            if !state.is_waiting.contains(&place) {
                state.requested(&[place], Reason::Named);
                self.open.add(std::iter::once(place));
            }
        }
    }

    /// A page arrived after this time. One that was prefetched shows nothing about the link.
    pub(crate) fn came(&self, place: Place, after: Duration) {
        if self.pages_max > 0 {
            let state = &mut *lock(&self.state);
            if !state.is_waiting.contains(&place) {
                state.flow.came(after);
            }
        }
    }

    /// A transaction has ended. If it has read many pages, it is checked for each open page whether it has read that.
    pub(crate) fn ended(&self, read: impl Iterator<Item = Place>, is_read: impl Fn(Place) -> bool) {
        if self.open.is_empty() {
            return;
        }
        let mut looked = 0;
        let read = read.take(WAITING_MAX).inspect(|_| looked += 1);
        let found: Vec<Place> = read.filter(|place| self.open.may_have(*place)).collect();
        let has_more = looked == WAITING_MAX;
        if found.is_empty() && !has_more {
            return;
        }
        let state = &mut *lock(&self.state);
        let before = state.is_waiting.len();
        for place in &found {
            state.is_waiting.remove(place);
        }
        match has_more {
            true => state.settle(is_read),
            false if state.is_waiting.len() < before => state.found(),
            false => return,
        }
        self.open.set(state.is_waiting.iter().copied());
    }

    pub(crate) fn is_on(&self) -> bool {
        self.pages_max > 0
    }

    pub(crate) fn counts(&self) -> PrefetchCounts {
        lock(&self.state).counts
    }
}

impl Accounts {
    fn of(&mut self, reason: Reason) -> &mut Account {
        match reason {
            Reason::Hinted => &mut self.hinted,
            Reason::Referred => &mut self.referred,
            Reason::Near => &mut self.near,
            Reason::Named => &mut self.named,
        }
    }
}

impl State {
    /// Finds out which of the prefetched pages have been read.
    fn settle(&mut self, is_read: impl Fn(Place) -> bool) {
        self.is_waiting.retain(|place| !is_read(*place));
        self.found();
    }

    /// Those that are not open any more were read.
    fn found(&mut self) {
        let (is_waiting, accounts, counts) =
            (&self.is_waiting, &mut self.accounts, &mut self.counts);
        self.waiting.retain(|(place, reason)| {
            let is_open = is_waiting.contains(place);
            if !is_open {
                accounts.of(*reason).used(1);
                counts.used += 1;
            }
            is_open
        });
    }

    /// How many pages may be requested without delaying a page that a thread waits for.
    fn capacity(&mut self, is_here: impl Fn(Place) -> bool) -> usize {
        // A page that was refused, or has been evicted again, does not stay under way for ever.
        let is_young = |asked: &UnderWay| asked.since.elapsed() < UNDER_WAY_FOR;
        self.under_way
            .retain(|asked| is_young(asked) && !is_here(asked.place));
        self.flow.pages_max.saturating_sub(self.under_way.len())
    }

    /// A thread waits for a page that was prefetched and is not on its way any more. It was evicted before it was read,
    /// so the cache has no space for so many.
    fn come_and_gone(&mut self, place: Place) {
        let is_under_way = self.under_way.iter().any(|asked| asked.place == place);
        if is_under_way || !self.is_waiting.remove(&place) {
            return;
        }
        if let Some(at) = self.waiting.iter().position(|(other, _)| *other == place)
            && let Some((_, reason)) = self.waiting.remove(at)
        {
            self.wasted(reason);
        }
    }

    fn requested(&mut self, chosen: &[Place], reason: Reason) {
        self.counts.requested += chosen.len() as u64;
        if reason == Reason::Hinted {
            self.counts.hinted += chosen.len() as u64;
        }
        self.accounts.of(reason).requested(chosen.len());
        self.waiting
            .extend(chosen.iter().map(|place| (*place, reason)));
        self.is_waiting.extend(chosen);
        let since = Instant::now();
        self.under_way.extend(chosen.iter().map(|&place| UnderWay {
            place,
            reason,
            since,
            is_shared: false,
        }));
        let too_many = self.under_way.len().saturating_sub(WAITING_MAX);
        self.under_way.drain(..too_many);
        while self.waiting.len() > WAITING_MAX
            && let Some((place, reason)) = self.waiting.pop_front()
        {
            self.is_waiting.remove(&place);
            self.wasted(reason);
        }
    }

    fn wasted(&mut self, reason: Reason) {
        self.accounts.of(reason).wasted(1);
        self.counts.wasted += 1;
    }

    /// The likeliest pages of the hints that are not here.
    fn likely(&mut self, capacity: usize, is_here: impl Fn(Place) -> bool) -> Vec<Place> {
        let most = self.accounts.hinted.pages().min(capacity);
        let mut chosen = Vec::new();
        while chosen.len() < most
            && let Some(place) = self.hints.pop_front()
        {
            if !self.is_waiting.contains(&place) && !is_here(place) {
                chosen.push(place);
            }
        }
        chosen
    }

    /// The nearest pages that are not here, those that follow before those that precede.
    fn near(
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
        self.spot = Some(Spot {
            place,
            end,
            goes_on,
        });
        self.further(most, is_here)
    }

    /// The nearest pages that are not here and not requested, around the page that was waited for last.
    fn further(&self, most: usize, is_here: impl Fn(Place) -> bool) -> Vec<Place> {
        let Some(Spot {
            place,
            end,
            goes_on,
        }) = self.spot
        else {
            return Vec::new();
        };
        let candidates = around(place.page.page, end, goes_on).take(LOOKED_MAX.max(4 * most));
        let candidates = candidates.map(|page| Place {
            page: PageId { page, ..place.page },
            ..place
        });
        let wanted =
            candidates.filter(|place| !self.is_waiting.contains(place) && !is_here(*place));
        wanted.take(most).collect()
    }
}

/// The pages around one that may hold objects, two following ones for each preceding one. For a program that goes
/// through the segment in its order, all following pages come first.
fn around(page: PageNo, end: PageNo, goes_on: bool) -> impl Iterator<Item = PageNo> {
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

/// Pages from hints that are kept until they can be requested.
const HINTS_KEPT_MAX: usize = 64;
/// Pages whose use is still open.
const WAITING_MAX: usize = 512;
/// Pages around one that are looked at for those that are not here.
const LOOKED_MAX: usize = 128;
/// Waits between two looks at it: they are many, and each look takes a few microseconds.
const SETTLED_EVERY: u64 = 4;
/// Segments of which it is known where the program waited last.
const RUNS_MAX: usize = 1024;
/// Pages that a program may leave out, and still goes through a segment in its order.
const GAP: u32 = 4;
/// As long as until the member requests a page again.
const UNDER_WAY_FOR: Duration = Duration::from_millis(FETCH_RETRY_MS);

#[cfg(test)]
mod tests;
