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
    /// Do you still wait for me? It was asked then, in milliseconds of the follower's clock.
    Asks(u64),
}

/// A follower and its table. It has a generation of its own.
#[derive(Debug)]
pub struct Follower<C> {
    writer: Writer<C>,
    /// A planted bug: acknowledged, and not stored yet.
    unstored: Option<Store>,
}

impl<C: Writable> Follower<C> {
    /// The one writer of this table.
    pub fn new(writer: Writer<C>) -> Self {
        Follower {
            writer,
            unstored: None,
        }
    }

    /// Asks the keeper whether it still waits for this follower.
    pub fn ask(&self, now_ms: u64) -> ToKeeper {
        ToKeeper::Asks(now_ms)
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
            ToFollower::Waits(asked_ms, age_ms) => {
                // The keeper's beat was so old when it answered, and that was after the question: this beat is no younger than the
                // keeper's.
                let from_ms = match is_planted(Bug::LeaseFromAnswer) {
                    true => now_ms,
                    false => asked_ms,
                };
                self.writer.beat(from_ms.saturating_sub(age_ms));
                None
            }
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::cells::Memory;
    use crate::limits::BEAT_MS_MAX;
    use crate::place::Place;
    use crate::reader::{Denied, Reader};
    use std::sync::Arc;

    fn followed() -> (Follower<Arc<Memory>>, Reader<Arc<Memory>>) {
        let table = Arc::new(Memory::new());
        let mut follower = Follower::new(Writer::new(Arc::clone(&table)));
        let begin = ToFollower::Begin(Step(1), 50, vec![Place::of("open")]);
        assert_eq!(
            follower.handle(begin, 7, 0),
            Some(ToKeeper::Stored(Step(1)))
        );
        (follower, Reader::new(table))
    }

    #[test]
    fn a_lease_counts_from_the_question() {
        let (mut follower, reader) = followed();
        let evidence = reader.evidence();
        let denied = |now_ms| reader.check(evidence, &[], now_ms).map(|_| ());
        assert_eq!(denied(10_000), Err(Denied::NoBeat));
        assert_eq!(follower.ask(10_000), ToKeeper::Asks(10_000));
        follower.handle(ToFollower::Waits(10_000, 300), 8, 15_000);
        assert_eq!(denied(9_700 + BEAT_MS_MAX), Ok(()));
        assert_eq!(denied(9_701 + BEAT_MS_MAX), Err(Denied::NoBeat));
    }

    #[test]
    fn a_copy_begins_with_what_is_open() {
        let (mut follower, reader) = followed();
        follower.handle(ToFollower::Waits(10_000, 0), 8, 10_000);
        let evidence = reader.evidence();
        assert_eq!((evidence.generation, evidence.sequence), (7, 50));
        let open = Place::of("open");
        let checked = reader.check(evidence, &[open], 10_000);
        assert_eq!(checked, Err(Denied::Open(open)));
        assert!(reader.check(evidence, &[Place::of("a")], 10_000).is_ok());
    }

    #[test]
    fn a_sequence_that_goes_back_is_no_evidence_of_later() {
        let (mut follower, reader) = followed();
        // The keeper has another table now.
        follower.handle(ToFollower::Begin(Step(2), 3, Vec::new()), 8, 0);
        assert_eq!(reader.evidence().sequence, 3);
    }
}
