use super::{Evictor, Order};

/// W-TinyLFU: a small window (a hundredth) through which all pages come; behind it a segmented LRU, into which a page gets
/// only if it was asked for more often, lately, than the one that would have to go for it (Einziger, Friedman and Manes,
/// 2017).
///
/// Pages have dense numbers here, so that how often each was asked for is counted exactly; the sketch by which it is
/// otherwise estimated would only add its errors. Counts go up to 15 and are halved each time that ten times as many
/// requests were made as pages fit.
#[derive(Clone, Debug)]
pub(super) struct WTinyLfu {
    capacity: usize,
    window_capacity: usize,
    protected_capacity: usize,
    window: Order,
    probation: Order,
    protected: Order,
    counts: Counts,
}

impl WTinyLfu {
    /// What is noted of each page, beside the rows.
    pub(super) const PAGE_BYTES: usize = size_of::<(u8, u32)>();

    /// A memory of so many pages, of those numbered below `footprint`.
    pub(super) fn new(capacity: usize, footprint: usize) -> Self {
        let window_capacity = (capacity / 100).max(1);
        WTinyLfu {
            capacity,
            window_capacity,
            protected_capacity: (capacity - window_capacity) * 4 / 5,
            window: Order::new(footprint),
            probation: Order::new(footprint),
            protected: Order::new(footprint),
            counts: Counts::new(capacity, footprint),
        }
    }

    /// Pages that are asked for on probation are protected; what is pushed out of there is on probation again.
    fn protect(&mut self, page: u32) {
        self.probation.remove(page);
        self.protected.push(page);
        if self.protected.len() > self.protected_capacity
            && let Some(oldest) = self.protected.pop_oldest()
        {
            self.probation.push(oldest);
        }
    }

    /// One of the page that leaves the window and the one that would have to go for it; the latter, if both are the same to us.
    fn decide(&mut self, candidate: u32) -> Option<u32> {
        let victim = self.probation.oldest().or(self.protected.oldest());
        let Some(victim) =
            victim.filter(|&victim| self.counts.of(candidate) > self.counts.of(victim))
        else {
            return Some(candidate);
        };
        if !self.probation.remove(victim) {
            self.protected.remove(victim);
        }
        self.probation.push(candidate);
        Some(victim)
    }
}

impl Evictor for WTinyLfu {
    fn touch(&mut self, page: u32) -> bool {
        self.counts.add(page);
        if self.window.holds(page) {
            self.window.renew(page);
        } else if self.probation.holds(page) {
            self.protect(page);
        } else if self.protected.holds(page) {
            self.protected.renew(page);
        } else {
            return false;
        }
        true
    }

    fn admit(&mut self, page: u32) -> Option<u32> {
        self.window.push(page);
        if self.window.len() <= self.window_capacity {
            return None;
        }
        let candidate = self.window.pop_oldest()?;
        if self.len() < self.capacity {
            self.probation.push(candidate);
            return None;
        }
        self.decide(candidate)
    }

    fn evict(&mut self) -> Option<u32> {
        if self.window.len() >= self.window_capacity {
            let candidate = self.window.pop_oldest()?;
            return self.decide(candidate);
        }
        let main = self.probation.pop_oldest();
        main.or_else(|| self.protected.pop_oldest())
            .or_else(|| self.window.pop_oldest())
    }

    fn remove(&mut self, page: u32) -> bool {
        self.window.remove(page) || self.probation.remove(page) || self.protected.remove(page)
    }

    fn holds(&self, page: u32) -> bool {
        self.window.holds(page) || self.probation.holds(page) || self.protected.holds(page)
    }

    fn len(&self) -> usize {
        self.window.len() + self.probation.len() + self.protected.len()
    }
}

/// How often each page was asked for, lately.
#[derive(Clone, Debug)]
struct Counts {
    /// The count of each page when it last was asked for, and the era that was: halving all counts is a new era, and each
    /// page catches up when it is looked at.
    counts: Vec<(u8, u32)>,
    era: u32,
    requests: usize,
    era_requests: usize,
}

impl Counts {
    fn new(capacity: usize, footprint: usize) -> Self {
        let era_requests = capacity.saturating_mul(10).max(1);
        Counts {
            counts: vec![(0, 0); footprint],
            era: 0,
            requests: 0,
            era_requests,
        }
    }

    fn of(&self, page: u32) -> u8 {
        let (count, era) = self.counts[page as usize];
        count.checked_shr(self.era - era).unwrap_or(0)
    }

    fn add(&mut self, page: u32) {
        let count = self.of(page).saturating_add(1).min(15);
        self.counts[page as usize] = (count, self.era);
        self.requests += 1;
        if self.requests == self.era_requests {
            self.requests = 0;
            self.era += 1;
        }
    }
}
