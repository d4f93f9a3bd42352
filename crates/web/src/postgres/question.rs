//! *Do you still wait for me?* What becomes of the answer (rule W7).

use thorp_versions::{Bug, Event, is_planted};

/// A question to the database, and when it was asked. A beat is as old as its question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    asked_ms: u64,
}

impl Question {
    /// The question leaves now.
    pub fn ask(now_ms: u64) -> Self {
        Question { asked_ms: now_ms }
    }

    /// The database has answered. None: it does not wait, and the keeper's life ends.
    pub fn answered(self, waits: bool, now_ms: impl FnOnce() -> u64) -> Option<Event> {
        if is_planted(Bug::BeatWhenAnswered) {
            return waits.then(|| Event::Waits(now_ms()));
        }
        let goes_on = waits || is_planted(Bug::BeatWhenHeard);
        goes_on.then_some(Event::Waits(self.asked_ms))
    }

    /// The stream has brought something. That is no answer: the source may not wait any more (trap W25).
    pub fn heard(now_ms: impl FnOnce() -> u64) -> Option<Event> {
        is_planted(Bug::BeatWhenHeard).then(|| Event::Waits(now_ms()))
    }
}
