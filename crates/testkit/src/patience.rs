//! Waiting for what comes true by itself.

use std::thread;
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes longer, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
///
/// # Panics
///
/// It is not so within [`PATIENCE`].
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it did not come to be: {what}");
        thread::sleep(PAUSE);
    }
}

/// Between two looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);
