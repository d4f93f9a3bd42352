//! When to look whether the certificates of peers are still good (rule R1).

use std::time::Duration;

use thorp_model::{Millis, Now};

/// The time of the next look at all edges: when the first certificate expires, and at least once in [`LOOK_EVERY`],
/// because a wall clock may be set.
#[derive(Debug, Default)]
pub(super) struct Lapses {
    /// On the monotone clock; none if there is no edge.
    next: Option<Millis>,
}

impl Lapses {
    /// There is an edge to a peer whose certificate is good until then, from the Unix epoch.
    pub(super) fn add(&mut self, now: Now, until: Duration) {
        let wall = Duration::from_millis(now.wall.0);
        // It is good for the whole of its last second.
        let left = (until + Duration::from_secs(1)).saturating_sub(wall);
        let left = u64::try_from(left.min(LOOK_EVERY).as_millis()).unwrap_or(u64::MAX);
        let at = now.mono.plus(left);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Whether it is time to look at all edges. Whoever does, adds each of them again.
    pub(super) fn is_due(&mut self, now: Now) -> bool {
        let is_due = self.next.is_some_and(|next| next <= now.mono);
        if is_due {
            self.next = None;
        }
        is_due
    }

    /// When it is time to look.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.next
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono: u64, wall: u64) -> Now {
        Now {
            mono: Millis(mono),
            wall: Millis(wall),
        }
    }

    #[test]
    fn the_next_look_is_when_the_first_certificate_expires() {
        let (mut lapses, start) = (Lapses::default(), at(1_000, 50_000));
        assert_eq!(lapses.deadline(), None);
        lapses.add(start, Duration::from_secs(70));
        lapses.add(start, Duration::from_secs(55));
        lapses.add(start, Duration::from_secs(60));
        assert_eq!(lapses.deadline(), Some(Millis(7_000)));
        assert!(!lapses.is_due(at(6_999, 55_999)) && lapses.is_due(at(7_000, 56_000)));
        assert_eq!(lapses.deadline(), None);
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_within_a_minute() {
        let mut lapses = Lapses::default();
        lapses.add(at(0, 0), Duration::from_secs(86_400));
        assert!(lapses.is_due(at(60_000, 90_000_000)));
        // One that has expired already is looked at at once.
        lapses.add(at(60_000, 90_000_000), Duration::from_secs(86_400));
        assert!(lapses.is_due(at(60_000, 90_000_000)));
    }
}
