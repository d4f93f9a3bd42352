//! How much may be under way beside what is waited for.

use std::time::Duration;

/// What the link carries without holding up what is waited for.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) pages_max: usize,
    way: Way,
}

/// How long a page takes that comes all the way, if nothing holds it up: learnt from waits. At a site many are shorter, for a
/// page that it has, or that is on its way to a neighbour.
#[derive(Debug, Default)]
struct Way {
    takes: Option<Duration>,
    /// Waits that were about so long, as far as they matter.
    confirmed: usize,
    /// Waits since the last of them, and the longest of these.
    shorter: usize,
    longest: Duration,
}

/// What a wait says.
#[derive(PartialEq, Eq, Debug)]
enum Said {
    /// As ever, or for a page that had not so far to come.
    InTime,
    /// Neither.
    Slow,
    /// Something holds pages up.
    Late,
}

impl Flow {
    /// Whether a page that took so long came from nearby: its site, or a neighbour, had it.
    pub(super) fn is_nearby(&self, after: Duration) -> bool {
        self.way.is_nearby(after)
    }

    /// More, while what is waited for comes as quickly as ever; half, if it comes late.
    pub(super) fn came(&mut self, after: Duration) {
        match self.way.waited(after) {
            Said::InTime => self.pages_max = (self.pages_max + 8).min(UNDER_WAY_MAX),
            Said::Slow => {}
            Said::Late => self.pages_max = (self.pages_max / 2).max(UNDER_WAY_MIN),
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            pages_max: 4 * UNDER_WAY_MIN,
            way: Way::default(),
        }
    }
}

impl Way {
    fn is_nearby(&self, after: Duration) -> bool {
        let is_far = |takes: &Duration| self.confirmed >= CONFIRMED && *takes >= FAR_MIN;
        self.takes
            .filter(is_far)
            .is_some_and(|takes| after < takes / 4)
    }

    fn waited(&mut self, after: Duration) -> Said {
        let takes = *self.takes.get_or_insert(after);
        if after < takes / 2 {
            self.was_shorter(after);
            return Said::InTime;
        }
        // No queue grows so much at once: all before came from nearby.
        if after > takes * FARTHER {
            self.begin(after);
            return Said::InTime;
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
            _ if after <= takes * 5 / 4 => Said::InTime,
            _ if after > takes * 2 => Said::Late,
            _ => Said::Slow,
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
        *self = Way {
            takes: Some(takes),
            ..Way::default()
        };
    }
}

/// So many waits that are alike are no chance.
const CONFIRMED: usize = 4;
/// As many that are shorter come from nowhere else any more.
const SHORTER_MAX: usize = 16;
/// What takes less is not far, whatever comes sooner: there, processors make the difference.
const FAR_MIN: Duration = Duration::from_millis(10);
/// So many times as long is another way, not the same one with a queue.
const FARTHER: u32 = 16;
/// Pages fetched ahead that may be under way.
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
