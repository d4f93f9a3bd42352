//! The clock of beats: it also counts the time in which the machine sleeps (rule W7).

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine started. Never 0: that is no beat.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let millis = u64::try_from(now.tv_nsec / 1_000_000).unwrap_or_default();
    (seconds * 1_000 + millis).max(1)
}
