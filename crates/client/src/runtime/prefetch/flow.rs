//! How many prefetched pages may be under way.

use std::time::Duration;

/// How many prefetched pages the link carries without delaying a page that a thread waits for. That number grows while
/// such pages come in time, and halves when one is late.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) pages_max: usize,
    fetch_time: FetchTime,
}

/// How long a page takes that comes all the way, if nothing delays it: learnt from waits. At a site many waits are
/// shorter, for a page that the site has, or that is on its way to a neighbour.
#[derive(Debug, Default)]
struct FetchTime {
    takes: Option<Duration>,
    /// Waits of about that length, up to the number that matters.
    confirmed: usize,
    /// Waits since the last of them, and the longest of these.
    shorter: usize,
    longest: Duration,
}

/// What one wait shows.
#[derive(PartialEq, Eq, Debug)]
enum Wait {
    /// As usual, or the page came from nearby.
    InTime,
    /// Neither.
    Slow,
    /// Something delays pages.
    Late,
}

impl Flow {
    /// Whether a page that took this time came from nearby: its site, or a neighbour, had it.
    pub(super) fn is_nearby(&self, after: Duration) -> bool {
        self.fetch_time.is_nearby(after)
    }

    /// A page that a thread waited for came after this time.
    pub(super) fn came(&mut self, after: Duration) {
        match self.fetch_time.waited(after) {
            Wait::InTime => self.pages_max = (self.pages_max + 8).min(UNDER_WAY_MAX),
            Wait::Slow => {}
            Wait::Late => self.pages_max = (self.pages_max / 2).max(UNDER_WAY_MIN),
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            pages_max: 4 * UNDER_WAY_MIN,
            fetch_time: FetchTime::default(),
        }
    }
}

impl FetchTime {
    fn is_nearby(&self, after: Duration) -> bool {
        let is_far = |takes: &Duration| self.confirmed >= CONFIRMED && *takes >= FAR_MIN;
        self.takes
            .filter(is_far)
            .is_some_and(|takes| after < takes / 4)
    }

    fn waited(&mut self, after: Duration) -> Wait {
        let takes = *self.takes.get_or_insert(after);
        if after < takes / 2 {
            self.was_shorter(after);
            return Wait::InTime;
        }
        // No queue grows so much at once: all pages before came from nearby.
        if after > takes * FARTHER {
            self.begin(after);
            return Wait::InTime;
        }
        (self.shorter, self.longest) = (0, Duration::ZERO);
        self.confirmed = (self.confirmed + 1).min(CONFIRMED);
        // It may have become a longer way.
        let takes = match after.checked_sub(takes) {
            Some(longer) => takes + longer / 8,
            None => takes - (takes - after) / 32,
        };
        self.takes = Some(takes);
        match after {
            _ if after <= takes * 5 / 4 => Wait::InTime,
            _ if after > takes * 2 => Wait::Late,
            _ => Wait::Slow,
        }
    }

    /// Once does not count. If it never is longer, this is the way.
    fn was_shorter(&mut self, after: Duration) {
        self.shorter += 1;
        self.longest = self.longest.max(after);
        let most = match self.confirmed {
            CONFIRMED.. => SHORTER_MAX,
            _ => CONFIRMED,
        };
        if self.shorter >= most {
            self.begin(self.longest);
        }
    }

    fn begin(&mut self, takes: Duration) {
        *self = FetchTime {
            takes: Some(takes),
            ..FetchTime::default()
        };
    }
}

/// This many similar waits are no coincidence.
const CONFIRMED: usize = 4;
/// After this many shorter waits in a row, no page comes from farther away any more.
const SHORTER_MAX: usize = 16;
/// A page that takes less is not far, even if others are faster: there, processors make the difference.
const FAR_MIN: Duration = Duration::from_millis(10);
/// A wait that is this many times longer shows a longer way, not a queue.
const FARTHER: u32 = 16;
/// Bounds of the prefetched pages that may be under way.
const UNDER_WAY_MIN: usize = 8;
const UNDER_WAY_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

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

    /// At a site some pages are in its memory, and others are just on their way to a neighbour.
    #[test]
    fn what_comes_sooner_for_a_neighbours_sake_makes_the_rest_no_later() {
        let mut flow = Flow::default();
        for _ in 0..20 {
            flow.came(Duration::from_micros(200));
        }
        for wait in 0..200 {
            flow.came(Duration::from_millis(40));
            flow.came(Duration::from_millis(wait * 7 % 40));
            flow.came(Duration::from_micros(200));
            assert!(flow.pages_max >= 4 * UNDER_WAY_MIN);
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MAX);
    }

    #[test]
    fn nearby_is_what_comes_sooner_than_what_has_often_come_from_afar() {
        let (far, near) = (Duration::from_millis(40), Duration::from_micros(300));
        let mut flow = Flow::default();
        for _ in 0..CONFIRMED {
            assert!(!flow.is_nearby(near));
            flow.came(far);
            flow.came(near);
        }
        assert!(flow.is_nearby(near) && !flow.is_nearby(far / 2));
        // Nothing comes from afar any more: this is as far as it goes.
        for _ in 0..SHORTER_MAX {
            flow.came(near);
        }
        for _ in 0..CONFIRMED {
            flow.came(near);
        }
        assert!(!flow.is_nearby(near) && !flow.is_nearby(near / 5));
    }

    #[test]
    fn one_wait_that_was_held_up_makes_nothing_nearby() {
        let (hiccup, usual) = (Duration::from_millis(120), Duration::from_millis(20));
        let mut flow = Flow::default();
        for wait in 0..100 {
            flow.came(if wait % 30 == 0 { hiccup } else { usual });
            assert!(!flow.is_nearby(usual), "{wait}: {flow:?}");
            assert_eq!(flow.is_nearby(usual / 5), wait >= 8, "{wait}: {flow:?}");
        }
    }
}
