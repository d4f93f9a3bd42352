//! What prefetching for one reason has been worth, and so how many pages it may request.

use super::counts::PrefetchCounts;

/// Why a page is fetched before anybody waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// The site sent a hint.
    Hinted,
    /// A value that was read refers to it.
    Referred,
    /// It lies near one that is waited for.
    Near,
    /// The program has named it.
    Named,
}

/// Credit for prefetching. Every wait earns some, and every prefetched page that is read earns more. Every prefetched
/// page costs one page of credit, or less if a neighbour gets it, too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// In sixteenths of a page.
    credit: usize,
    /// What became of its pages, with less weight for what is long ago.
    recent: PrefetchCounts,
}

/// How often its pages are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// It is not known yet.
    Beginner,
    /// One of two at least.
    Good,
    /// One of four at least.
    Fair,
    /// One of ten at least.
    Poor,
    /// Less often.
    Bad,
}

impl Account {
    /// A thread waits for a page. That earns a few pages at first, and later as much as the guess is worth.
    pub(super) fn waited(&mut self) {
        let earned = match self.standing() {
            Standing::Good => 8 * PAGE,
            Standing::Beginner | Standing::Fair => 4 * PAGE,
            Standing::Poor => PAGE,
            Standing::Bad => PAGE / 4,
        };
        self.credit = (self.credit + earned).min(CREDIT_MAX);
    }

    fn standing(&self) -> Standing {
        let PrefetchCounts { used, wasted, .. } = self.recent;
        let known = used + wasted;
        match used * 100 / known.max(1) {
            _ if known < KNOWN_MIN => Standing::Beginner,
            50.. => Standing::Good,
            25.. => Standing::Fair,
            10.. => Standing::Poor,
            _ => Standing::Bad,
        }
    }

    /// How many pages may be requested now.
    pub(super) fn pages(&self) -> usize {
        self.credit / PAGE
    }

    pub(super) fn requested(&mut self, pages: usize) {
        self.credit = self.credit.saturating_sub(pages * PAGE);
    }

    /// A requested page came from nearby, or a neighbour gets it, too. Most of its price is given back, less where
    /// pages are seldom read.
    pub(super) fn shared(&mut self) {
        let price = match self.standing() {
            Standing::Beginner | Standing::Good | Standing::Fair => PAGE / 16,
            Standing::Poor | Standing::Bad => PAGE / 4,
        };
        self.credit = (self.credit + PAGE - price).min(CREDIT_MAX);
    }

    pub(super) fn used(&mut self, pages: usize) {
        self.recent.used += pages as u64;
        self.credit = (self.credit + pages * 2 * PAGE).min(CREDIT_MAX);
        self.fade();
    }

    pub(super) fn wasted(&mut self, pages: usize) {
        self.recent.wasted += pages as u64;
        self.fade();
    }

    fn fade(&mut self) {
        if self.recent.used + self.recent.wasted > RECENT_MAX {
            self.recent.used /= 2;
            self.recent.wasted /= 2;
        }
    }
}

/// Credit is counted in sixteenths.
const PAGE: usize = 16;
/// Credit does not grow above this.
const CREDIT_MAX: usize = 256 * PAGE;
/// Until this many pages were used or wasted, nothing is concluded from them.
const KNOWN_MIN: u64 = 64;
/// So many count as recent.
const RECENT_MAX: u64 = 4096;
