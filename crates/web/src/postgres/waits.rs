//! How long commits have waited for the keeper: from when the keeper has one until it acknowledges it.

use pgwire_replication::Lsn;
use std::collections::VecDeque;
use std::time::Duration;
use thorp_versions::OPEN_UPDATES_MAX;
use tokio::time::Instant;

/// The commits that are not acknowledged yet, the oldest first, and since when.
///
/// Invariant: at most as many as updates may be open. One more is not timed.
#[derive(Debug, Default)]
pub(super) struct Waits(VecDeque<(Lsn, Instant)>);

impl Waits {
    /// The keeper has a commit that ends here.
    pub(super) fn begin(&mut self, end: Lsn, now: Instant) {
        if self.0.len() < OPEN_UPDATES_MAX {
            self.0.push_back((end, now));
        }
    }

    /// All commits up to here are acknowledged: how long each of them has waited.
    pub(super) fn end(&mut self, position: Lsn, now: Instant) -> Vec<Duration> {
        let ended = self
            .0
            .iter()
            .take_while(|(end, _)| *end <= position)
            .count();
        let ended = self.0.drain(..ended);
        ended.map(|(_, since)| now - since).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_waits_until_a_position_behind_it_is_acknowledged() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut waits = Waits::default();
        waits.begin(Lsn::from_u64(5), at(0));
        waits.begin(Lsn::from_u64(7), at(2));
        assert!(waits.end(Lsn::from_u64(4), at(3)).is_empty());
        assert_eq!(
            waits.end(Lsn::from_u64(6), at(3)),
            [Duration::from_millis(3)]
        );
        assert_eq!(
            waits.end(Lsn::from_u64(9), at(4)),
            [Duration::from_millis(2)]
        );
        assert!(waits.end(Lsn::from_u64(9), at(5)).is_empty());
    }
}
