//! What a site saves its members: BuddyCache, section 6.1.1, equations 1 to 5.
//!
//! A member that has nobody near gets each page from the home. At a site the first of the members that want a page gets it from
//! the home, the others from a neighbour. All times are one client's; the model knows no queues, so it holds as long as neither
//! site nor home is busy (section 6.1.1: *our model assumes the fetch and commit times are constant*).

mod break_even;
mod paper;

use crate::invalid::{Invalid, at_least, within};

pub use break_even::BreakEven;
pub use paper::paper;

/// What requests cost beyond the round trip to the home, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// A page from the home, of a member without a site: `t_fetch(Base)`.
    pub fetch_ms: f64,
    /// A page from the home through the site: `t_fetch(BC)`.
    pub fetch_by_site_ms: f64,
    /// A page from a neighbour; this one takes no round trip to the home: `t_redirect`.
    pub redirect_ms: f64,
    /// A commit of a member without a site: `t_commit(Base)`.
    pub commit_ms: f64,
    /// A commit through the site: `t_commit(BC)`.
    pub commit_by_site_ms: f64,
}

/// Members that want the same pages, and where they are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Site {
    /// Members at the site, `k`. With a fraction it is a mean.
    pub members: f64,
    /// Round trip between site and home.
    pub round_trip_ms: f64,
    /// What requests cost beside it.
    pub costs: Costs,
}

/// What each member does that begins with nothing cached, and only reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cold {
    /// Pages that it wants, `N`; each of the others wants the same.
    pub pages: f64,
    /// Pages that come with one round trip: 1 if they are fetched one by one, as in the paper; more if they are fetched ahead.
    pub pages_per_wait: f64,
    /// Transactions that it commits meanwhile, `l`.
    pub transactions: f64,
    /// Its own work in each of them, `t_compute`.
    pub compute_ms: f64,
}

/// What each reader does with everything cached, while somebody changes what it reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hot {
    /// Pages that a transaction finds invalidated, `miss_inv`.
    pub misses: f64,
    /// How many members of a site ask for a page between two of its changes, `r`: from 1 to all of them.
    pub sharing: f64,
    /// A transaction's own work, `t_compute`.
    pub compute_ms: f64,
}

/// The time for the same work without a site and with one, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    /// Each member by itself.
    pub alone_ms: f64,
    /// With the site.
    pub together_ms: f64,
}

impl Times {
    /// The part of the time that the site saves; below 0 if it costs.
    pub fn saved(&self) -> f64 {
        match self.alone_ms > 0.0 {
            true => 1.0 - self.together_ms / self.alone_ms,
            false => 0.0,
        }
    }
}

impl Site {
    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: fewer than one member, a negative time, or more than anybody has.
    pub fn check(&self) -> Result<(), Invalid> {
        within("members", self.members, (1.0, COUNT_MAX))?;
        within("round_trip_ms", self.round_trip_ms, TIME_MS)?;
        let costs = &self.costs;
        within("fetch_ms", costs.fetch_ms, TIME_MS)?;
        within("fetch_by_site_ms", costs.fetch_by_site_ms, TIME_MS)?;
        within("redirect_ms", costs.redirect_ms, TIME_MS)?;
        within("commit_ms", costs.commit_ms, TIME_MS)?;
        within("commit_by_site_ms", costs.commit_by_site_ms, TIME_MS)
    }

    /// Equations 1 and 2: the time until a member that began with nothing has read all pages.
    ///
    /// Equation 2 is printed without the brackets that make it one; the text says which were meant: of the `k` members that
    /// want a page one gets it from the home.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn cold(&self, work: &Cold) -> Result<Times, Invalid> {
        self.check()?;
        work.check()?;
        Ok(self.cold_unchecked(work))
    }

    fn cold_unchecked(&self, work: &Cold) -> Times {
        let waits = work.pages / work.pages_per_wait;
        let home = |cost_ms: f64| waits * self.round_trip_ms + work.pages * cost_ms;
        let own =
            |commit_ms: f64| (work.compute_ms + commit_ms + self.round_trip_ms) * work.transactions;
        let first = 1.0 / self.members;
        let costs = &self.costs;
        let near = (1.0 - first) * work.pages * costs.redirect_ms;
        Times {
            alone_ms: home(costs.fetch_ms) + own(costs.commit_ms),
            together_ms: first * home(costs.fetch_by_site_ms) + near + own(costs.commit_by_site_ms),
        }
    }

    /// Equations 3 and 4: the time of a transaction of readers, of whom some share what they read, and the writer is elsewhere.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters; sharing beyond the members there are.
    pub fn writer_elsewhere(&self, work: &Hot) -> Result<Times, Invalid> {
        self.check()?;
        work.check(self.members)?;
        Ok(self.elsewhere_unchecked(work))
    }

    fn elsewhere_unchecked(&self, work: &Hot) -> Times {
        let first = 1.0 / work.sharing;
        let by_site = self.round_trip_ms + self.costs.fetch_by_site_ms;
        let page = first * by_site + (1.0 - first) * self.costs.redirect_ms;
        Times {
            together_ms: work.misses * page + self.transaction_at_site(work),
            alone_ms: self.stale_alone(work),
        }
    }

    /// Equations 3 and 5: the same with the writer at their site, whose new values they get as they are committed.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters; sharing beyond the members there are; nobody beside the writer.
    pub fn writer_here(&self, work: &Hot) -> Result<Times, Invalid> {
        self.check()?;
        within("members", self.members, (2.0, COUNT_MAX))?;
        work.check(self.members)?;
        Ok(self.here_unchecked(work))
    }

    fn here_unchecked(&self, work: &Hot) -> Times {
        Times {
            together_ms: self.transaction_at_site(work),
            alone_ms: self.stale_alone(work),
        }
    }

    /// Equation 3.
    fn stale_alone(&self, work: &Hot) -> f64 {
        let fetch = self.round_trip_ms + self.costs.fetch_ms;
        work.misses * fetch + work.compute_ms + self.round_trip_ms + self.costs.commit_ms
    }

    fn transaction_at_site(&self, work: &Hot) -> f64 {
        work.compute_ms + self.round_trip_ms + self.costs.commit_by_site_ms
    }
}

impl Cold {
    /// Refuses what cannot be.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: no page, fewer than one page a wait or more than there are, a negative count or time, or more than anybody
    /// has.
    pub fn check(&self) -> Result<(), Invalid> {
        within("pages", self.pages, (1.0, COUNT_MAX))?;
        within("pages_per_wait", self.pages_per_wait, (1.0, self.pages))?;
        within("transactions", self.transactions, (0.0, COUNT_MAX))?;
        within("compute_ms", self.compute_ms, TIME_MS)
    }
}

impl Hot {
    /// Refuses what cannot be at a site with so many members.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: a negative count or time, sharing by none or by more than there are.
    pub fn check(&self, members: f64) -> Result<(), Invalid> {
        within("misses", self.misses, (0.0, COUNT_MAX))?;
        within("compute_ms", self.compute_ms, TIME_MS)?;
        at_least("sharing", self.sharing, 1.0)?;
        if self.sharing <= members {
            return Ok(());
        }
        let why = format!(
            "cannot be above the {members} members of the site, and is {}",
            self.sharing
        );
        Err(Invalid::new("sharing", why))
    }
}

/// More members, pages or transactions nobody has.
pub const COUNT_MAX: f64 = 1e9;

/// From none to eleven days.
const TIME_MS: (f64, f64) = (0.0, 1e9);

/// What requests cost in Thorp, on the machine of docs/performance.md (`thorp-lab costs`, three members, medians).
pub const THORP: Costs = Costs {
    fetch_ms: 0.12,
    fetch_by_site_ms: 0.24,
    redirect_ms: 0.16,
    commit_ms: 0.38,
    commit_by_site_ms: 0.51,
};

/// What they cost in BuddyCache in 2004, tables 1 and 2, with a group of three; a page from a neighbour took from 1.8 to 5.5 ms,
/// of which this is the middle.
pub const BUDDY_CACHE: Costs = Costs {
    fetch_ms: 1.3,
    fetch_by_site_ms: 2.4,
    redirect_ms: 3.65,
    commit_ms: 2.5,
    commit_by_site_ms: 2.4,
};

#[cfg(test)]
mod tests;
