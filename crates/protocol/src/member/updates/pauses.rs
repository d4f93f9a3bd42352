//! When what a home did not take is sent again (rule C7).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{HomeId, Millis, SegmentId};

/// Homes, and single segments, to which nothing is sent for a while: what one segment waits for holds up no other.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<(HomeId, Option<SegmentId>), Millis>);

impl Pauses {
    /// Nothing is sent until then: of a segment, or of all.
    pub(super) fn pause(&mut self, home: HomeId, segment: Option<SegmentId>, until: Millis) {
        self.0.insert((home, segment), until);
    }

    /// Whether nothing is sent to a home.
    pub(super) fn has_home(&self, home: HomeId, now: Millis) -> bool {
        self.has(home, None, now)
    }

    /// Whether nothing of a segment is sent.
    pub(super) fn has_segment(&self, home: HomeId, segment: SegmentId, now: Millis) -> bool {
        self.has(home, Some(segment), now)
    }

    fn has(&self, home: HomeId, segment: Option<SegmentId>, now: Millis) -> bool {
        self.0
            .get(&(home, segment))
            .is_some_and(|until| *until > now)
    }

    /// Everything may be sent to a home.
    pub(super) fn end(&mut self, home: HomeId) {
        self.0.retain(|(of, _), _| *of != home);
    }

    /// The homes to which something may be sent again since now.
    pub(super) fn take_due(&mut self, now: Millis) -> Vec<HomeId> {
        let due = self.0.extract_if(.., |_, until| *until <= now);
        let mut homes: Vec<HomeId> = due.map(|((home, _), _)| home).collect();
        homes.dedup();
        homes
    }

    /// When the next one is over.
    pub(super) fn next(&self) -> Option<Millis> {
        self.0.values().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_waits_holds_up_no_other() {
        let (home, one, two) = (HomeId(1), SegmentId(1), SegmentId(2));
        let mut pauses = Pauses::default();
        pauses.pause(home, Some(one), Millis(50));
        assert!(pauses.has_segment(home, one, Millis(49)));
        assert!(!pauses.has_segment(home, two, Millis(49)) && !pauses.has_home(home, Millis(49)));
        assert_eq!(pauses.next(), Some(Millis(50)));
        assert_eq!(pauses.take_due(Millis(50)), [home]);
        pauses.pause(home, None, Millis(90));
        pauses.pause(home, Some(two), Millis(90));
        assert!(pauses.has_home(home, Millis(60)));
        pauses.end(home);
        assert_eq!(pauses.next(), None);
    }
}
