//! A process that keeps no rules: one that passes by, or one that stays.

use super::machine::Hostile;
use crate::byzantine::Byzantine;
use std::convert::Infallible;
use thorp_model::{Event, Millis, Now, Outbox, StateMachine};

/// The process.
pub enum Rogue {
    /// It does its worst when a stream begins, and is ended soon.
    Passing(Byzantine),
    /// It attacks again and again.
    Staying(Box<Hostile>),
}

impl StateMachine for Rogue {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, now: Now, event: Event<Infallible>, outbox: &mut Outbox<Infallible>) {
        match self {
            Rogue::Passing(rogue) => rogue.handle(now, event, outbox),
            Rogue::Staying(rogue) => rogue.handle(now, event, outbox),
        }
    }

    fn deadline(&self) -> Option<Millis> {
        match self {
            Rogue::Passing(rogue) => rogue.deadline(),
            Rogue::Staying(rogue) => rogue.deadline(),
        }
    }
}
