//! The clock of this machine against that of a home.
//!
//! A home promises stamps with each heartbeat, and their time is that of its clock. Such a promise lags while a commit
//! is open. It runs ahead for some seconds after the home has started, because the home begins above all that it may
//! have promised before. So only a larger difference says something of the clocks.

use super::Check;
use std::time::{Duration, SystemTime};

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
/// A home promises as far ahead after its start, and a heartbeat more.
const SMALL: Duration = Duration::from_secs(15);
/// From there on, a home does not move its clock for others.
const LARGE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_difference_says_nothing_and_a_large_one_is_a_problem() {
        let now = SystemTime::now();
        let word = |ahead: i64| {
            let by = Duration::from_secs(ahead.unsigned_abs());
            let there = if ahead < 0 { now - by } else { now + by };
            check("alps", there, now).first_word()
        };
        assert_eq!((word(0), word(14), word(-14)), ("ok", "ok", "ok"));
        assert_eq!((word(30), word(-30)), ("warning", "warning"));
        assert_eq!((word(600), word(-600)), ("problem", "problem"));
    }
}
