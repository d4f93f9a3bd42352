//! Waiting for what comes true by itself.

use std::thread;
use std::time::{Duration, Instant};

/// No process takes longer to start, to answer or to end, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What comes true by itself does so within this time. Timers of half a minute mend lost messages:
/// `thorp_model::limits::UNSETTLED_MS`, and the time after which a socket gives up. What only they mend fails its test.
pub const SOON: Duration = Duration::from_secs(20);

/// Waits until something is so.
///
/// # Panics
///
/// It is not so within [`SOON`].
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to be: {what}");
        thread::sleep(PAUSE);
    }
}

/// Between two looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::limits::UNSETTLED_MS;

    #[test]
    fn a_test_gives_up_before_a_timer_mends_what_is_wrong() {
        assert!(SOON < Duration::from_millis(UNSETTLED_MS));
    }
}
