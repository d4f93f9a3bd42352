//! When a wait ends.

use crate::limits::WAIT_MAX;
use std::time::{Duration, Instant};

/// The moment that is this long after now, or [`WAIT_MAX`] after now if that is sooner. A program chooses its
/// durations, and the clock does not reach so far as a duration does.
pub(crate) fn due_after(after: Duration) -> Instant {
    due_since(Instant::now(), after)
}

/// The same for a wait that began before.
pub(crate) fn due_since(begun: Instant, after: Duration) -> Instant {
    begun.checked_add(after.min(WAIT_MAX)).unwrap_or(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_is_too_long() {
        let before = Instant::now();
        assert!(due_after(Duration::ZERO) >= before);
        assert!(due_after(Duration::MAX) >= before + WAIT_MAX);
        for long in [WAIT_MAX, Duration::from_secs(u64::MAX), Duration::MAX] {
            assert_eq!(due_since(before, long), before + WAIT_MAX);
        }
    }
}
