//! How much may be under way beside what is waited for.

use std::time::Duration;

/// What the link carries without holding up what is waited for.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) pages_max: usize,
    /// What a page takes that comes all the way, if nothing holds it up.
    way: Option<Duration>,
}

impl Flow {
    /// Whether a page that took so long came from nearby: its site, or a neighbour, had it.
    pub(super) fn is_nearby(&self, after: Duration) -> bool {
        self.way.is_some_and(|way| after < way / 4)
    }

    /// More, while what is waited for comes as quickly as ever; half, if it comes late.
    pub(super) fn came(&mut self, after: Duration) {
        let way = *self.way.get_or_insert(after);
        // No queue grows so much at once: all before came from nearby.
        let is_farther = after > way * FARTHER;
        // What a site has, or is just fetching for a neighbour, comes sooner, and tells little of the way.
        self.way = Some(match after.checked_sub(way) {
            Some(_) if is_farther => after,
            Some(longer) => way + longer / 8,
            None => way - (way - after) / 256,
        });
        if is_farther || after <= way * 5 / 4 {
            self.pages_max = (self.pages_max + 8).min(UNDER_WAY_MAX);
        } else if after > way * 2 {
            self.pages_max = (self.pages_max / 2).max(UNDER_WAY_MIN);
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            pages_max: 4 * UNDER_WAY_MIN,
            way: None,
        }
    }
}

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
}
