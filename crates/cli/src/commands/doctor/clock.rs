//! The clock of this machine against that of a home.
//!
//! A home promises stamps with each heartbeat, and their time is that of its clock. Such a promise lags while a commit
//! is open. It runs ahead for some seconds after the home has started, because the home begins above all that it may
//! have promised before. So only a larger difference says something of the clocks.

use super::Check;
use std::time::{Duration, SystemTime};
use thorp_model::limits::{CLOCK_DRIFT_MS_MAX, CLOCK_RESERVE_MS, HEARTBEAT_MS};

/// Compares the time that a home has promised with the time here.
pub(super) fn check(home: &str, there: SystemTime, here: SystemTime) -> Check {
    let difference = between(there, here);
    let (signed, word) = match there >= here {
        true => (difference.as_secs_f64(), "ahead of"),
        false => (-difference.as_secs_f64(), "behind"),
    };
    let found = format!(
        "the clock of home {home} is {:.1} s {word} that of this machine",
        difference.as_secs_f64()
    );
    let check = if difference <= SMALL {
        Check::ok(CLOCK, found)
    } else if difference <= LARGE {
        Check::warning(CLOCK, found, SET)
    } else {
        Check::problem(CLOCK, found, SET)
    };
    let check = match difference > SMALL && there < here {
        true => check.or(format!(
            "if both clocks are right, a transaction in doubt may hold the promise back: `thorp doubt list {home}`"
        )),
        false => check,
    };
    check.with("ahead_ms", (signed * 1000.).round())
}

/// Whether the difference is so small that it says nothing.
pub(super) fn is_near(there: SystemTime, here: SystemTime) -> bool {
    between(there, here) <= SMALL
}

fn between(there: SystemTime, here: SystemTime) -> Duration {
    let ahead = there.duration_since(here);
    ahead.unwrap_or_else(|behind| behind.duration())
}

const CLOCK: &str = "clock";
const SET: &str = "look at the time of both machines, and let both take it from a server of time (NTP): certificates and stamps rely on it";
/// So far ahead a home reserves its clock, and begins there after a restart. What it promises may be a heartbeat old.
const SMALL: Duration = Duration::from_millis(CLOCK_RESERVE_MS + HEARTBEAT_MS);
/// From there on, a home does not move its clock for others.
const LARGE: Duration = Duration::from_millis(CLOCK_DRIFT_MS_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_difference_says_nothing_and_a_large_one_is_a_problem() {
        let now = SystemTime::now();
        let word = |by_ms: u64| {
            let by = Duration::from_millis(by_ms);
            let words = [now + by, now - by].map(|there| check("alps", there, now).first_word());
            assert_eq!(words[0], words[1]);
            words[0]
        };
        let reserved = CLOCK_RESERVE_MS + HEARTBEAT_MS;
        assert_eq!((word(0), word(reserved)), ("ok", "ok"));
        assert_eq!(word(reserved + 1), "warning");
        assert_eq!(word(CLOCK_DRIFT_MS_MAX), "warning");
        assert_eq!(word(CLOCK_DRIFT_MS_MAX + 1), "problem");
    }
}
