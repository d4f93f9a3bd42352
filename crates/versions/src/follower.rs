//! A follower: a copy of a keeper's table on another host (rule W7).

use crate::broadcast::{Step, ToFollower};
use crate::cells::Writable;
use crate::planted::{Bug, is_planted};
use crate::writer::{Store, Writer};

/// What a follower sends to its keeper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToKeeper {
    /// Everything up to a step is stored.
    Stored(Step),
    /// Do you still wait for me?
    Asks(u64),
}

/// A follower and its table. It has a generation of its own.
#[derive(Debug)]
pub struct Follower<C> {
    writer: Writer<C>,
    questions: u64,
    /// The last question, and when it was asked, in milliseconds of this host's clock.
    asked: Option<(u64, u64)>,
    /// A planted bug: acknowledged, and not stored yet.
    unstored: Option<Store>,
}

impl<C: Writable> Follower<C> {
    /// The one writer of this table.
    pub fn new(writer: Writer<C>) -> Self {
        Follower {
            writer,
            questions: 0,
            asked: None,
            unstored: None,
        }
    }

    /// Asks the keeper whether it still waits for this follower. An answer that comes later than the next question is none.
    pub fn ask(&mut self, now_ms: u64) -> ToKeeper {
        self.questions += 1;
        self.asked = Some((self.questions, now_ms));
        ToKeeper::Asks(self.questions)
    }

    /// Handles a message of the keeper. It is stored when this returns. If a generation begins, it has this number.
    pub fn handle(
        &mut self,
        message: ToFollower,
        generation: u64,
        now_ms: u64,
    ) -> Option<ToKeeper> {
        if let Some(store) = self.unstored.take() {
            self.writer.store(&store);
        }
        match message {
            ToFollower::Begin(step, sequence, open) => {
                // The answer to a question of before says nothing of this generation.
                self.asked = None;
                self.writer.restart_at(generation, sequence, &open);
                Some(ToKeeper::Stored(step))
            }
            ToFollower::Store(step, store) => {
                match is_planted(Bug::AcknowledgedUnstored) {
                    true => self.unstored = Some(store),
                    false => self.writer.store(&store),
                }
                Some(ToKeeper::Stored(step))
            }
            ToFollower::Waits(question, age_ms) => {
                self.beat(question, age_ms, now_ms);
                None
            }
        }
    }

    /// The keeper's beat was so old when it answered. That was after the question: so this beat is no younger than the keeper's.
    fn beat(&mut self, question: u64, age_ms: u64, now_ms: u64) {
        let Some((_, asked_ms)) = self.asked.filter(|(asked, _)| *asked == question) else {
            return;
        };
        let from_ms = match is_planted(Bug::LeaseFromAnswer) {
            true => now_ms,
            false => asked_ms,
        };
        self.writer.beat(from_ms.saturating_sub(age_ms));
    }
}
