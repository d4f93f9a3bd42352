//! When a member last asked what is answered in each segment (rule C3).

use crate::lock::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use thorp_model::planted::Bug;
use thorp_model::{HomeId, SegmentId, planted};
use thorp_net::driver::uptime;

/// The last pull of each segment. A pull says nothing of a segment that it does not name: its home has asked no writers there.
///
/// Invariant: a pull is there only while the stream goes on in which it was sent and answered. Another stream may be behind that
/// (rule C3), so what is read then may be older.
#[derive(Default)]
pub(crate) struct Pulls(Mutex<HashMap<HomeId, AtHome>>);

/// What is known of one home.
#[derive(Default)]
struct AtHome {
    streams: u64,
    last: HashMap<SegmentId, Pull>,
}

/// One pull.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pull {
    /// When, by the clock that goes on while the machine sleeps (trap C28).
    pub(crate) sent: Duration,
    pub(crate) answered: Duration,
    /// The stream in which it was sent, as [`Pulls::stream`] tells.
    pub(crate) stream: u64,
}

impl Pull {
    /// How old what is here may be.
    fn age(&self, now: Duration, since_sync: bool) -> Duration {
        let is_of_answer = since_sync || planted::is(Bug::AgeFromAnswer);
        let from = if is_of_answer {
            self.answered
        } else {
            self.sent
        };
        now.saturating_sub(from)
    }
}

impl Pulls {
    /// How many streams of a home have begun.
    pub(crate) fn stream(&self, home: HomeId) -> u64 {
        lock(&self.0).get(&home).map_or(0, |at| at.streams)
    }

    /// A home has answered for these segments. A pull of an earlier stream says nothing any more.
    pub(crate) fn note(&self, home: HomeId, segments: &[SegmentId], pull: Pull) {
        let mut pulls = lock(&self.0);
        let at = pulls.entry(home).or_default();
        if at.streams != pull.stream {
            return;
        }
        for segment in segments {
            let last = at.last.entry(*segment).or_insert(pull);
            // One that was sent later may be answered sooner.
            if last.sent < pull.sent {
                *last = pull;
            }
        }
    }

    /// Whether what is here of these segments is no older than this. Of time 0 nothing is.
    pub(crate) fn is_fresh(
        &self,
        (home, segments): (HomeId, &[SegmentId]),
        within: Duration,
        since_sync: bool,
    ) -> bool {
        let pulls = lock(&self.0);
        let Some(at) = pulls.get(&home) else {
            return false;
        };
        let now = uptime();
        segments.iter().all(|segment| {
            let last = at.last.get(segment);
            last.is_some_and(|pull| pull.age(now, since_sync) < within)
        })
    }

    /// A stream of a home begins. While there is none, what is here grows old and stays right.
    pub(crate) fn began(&self, home: HomeId) {
        let mut pulls = lock(&self.0);
        let at = pulls.entry(home).or_default();
        *at = AtHome {
            streams: at.streams + 1,
            last: HashMap::new(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: HomeId = HomeId(1);
    const HERE: [SegmentId; 1] = [SegmentId(1)];
    const LONG: Duration = Duration::from_secs(600);

    /// A planted bug is for the whole process: no two tests at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// Trap C2: with a bound of half a minute, an answer that was on its way for a minute is too old.
    #[test]
    fn an_age_that_counts_from_the_answer_is_too_low() {
        let _alone = lock(&ONE_AT_A_TIME);
        let answered = uptime();
        let slow = Pull {
            sent: answered.saturating_sub(Duration::from_secs(60)),
            answered,
            stream: 0,
        };
        let pulls = Pulls::default();
        pulls.note(HOME, &HERE, slow);
        let is_fresh = || pulls.is_fresh((HOME, &HERE), Duration::from_secs(30), false);
        assert!(!is_fresh());
        planted::plant(Some(Bug::AgeFromAnswer));
        let is_taken_for_fresh = is_fresh();
        planted::plant(None);
        assert!(is_taken_for_fresh, "the bug would be noticed");
    }

    #[test]
    fn age_counts_from_sending_until_the_stream_ends() {
        let _alone = lock(&ONE_AT_A_TIME);
        let pulls = Pulls::default();
        assert!(!pulls.is_fresh((HOME, &HERE), LONG, false));
        let now = uptime();
        let old = now.saturating_sub(Duration::from_secs(60));
        let slow = Pull {
            sent: old,
            answered: now,
            stream: 0,
        };
        pulls.note(HOME, &HERE, slow);
        let within = Duration::from_secs(30);
        assert!(!pulls.is_fresh((HOME, &HERE), within, false));
        assert!(
            pulls.is_fresh((HOME, &HERE), within, true),
            "as in the paper"
        );
        assert!(!pulls.is_fresh((HOME, &HERE), Duration::ZERO, false));
        let quick = Pull {
            sent: now,
            answered: now,
            stream: 0,
        };
        pulls.note(HOME, &HERE, quick);
        pulls.note(HOME, &HERE, slow);
        assert!(
            pulls.is_fresh((HOME, &HERE), within, false),
            "the later one counts"
        );
        let more = [SegmentId(1), SegmentId(2)];
        assert!(
            !pulls.is_fresh((HOME, &more), within, false),
            "nobody was asked there"
        );
        pulls.began(HOME);
        assert!(!pulls.is_fresh((HOME, &HERE), LONG, false));
        // Its answer is told after the next stream has begun.
        pulls.note(HOME, &HERE, quick);
        assert!(!pulls.is_fresh((HOME, &HERE), LONG, false));
        assert_eq!(pulls.stream(HOME), 1);
    }
}
