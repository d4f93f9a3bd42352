//! What a keeper does until it may beat, and in which order (rule W7). It does no I/O, so the simulator runs it, too.

use thorp_versions::{BEAT_MS_MAX, Bug, is_planted};

/// What the keeper does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Connect the stream of changes, and put its name among those for which commits wait.
    Name,
    /// Ask whether commits wait for it.
    AskWhetherWaitedFor,
    /// Commit a message of its own.
    Emit,
    /// Take the stream up to its message. What was committed before is in the table then.
    TakeUp,
    /// Ask whether the commit of its message waits.
    AskWhetherItWaits,
    /// Acknowledge its message, and wait until that commit is over: before, a snapshot does not know all that is open (trap W29).
    Acknowledge,
    /// Ask for the number of the next transaction.
    AskNextNumber,
    /// Ask for the number of the oldest transaction that is open.
    AskOldest,
    /// Begin a generation in which what is open stays open. Fills of before have read what nobody has decoded.
    Renew,
    /// It is live: it beats.
    Beat,
}

/// What came of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// It is done.
    Done,
    /// The answer of the database.
    Waits(bool),
    /// The number that it has said.
    Number(u64),
}

/// A keeper on its way to its first beat: name, probe, old transactions, and what they have committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoingLive {
    task: Task,
    /// The first transaction that began after commits were seen waiting.
    first_new: Option<u64>,
}

impl GoingLive {
    /// The beginning: the slot is there.
    pub fn new() -> Self {
        GoingLive {
            task: Task::Name,
            first_new: None,
        }
    }

    /// What the keeper does next.
    pub fn task(&self) -> Task {
        self.task
    }

    /// The first transaction that began after commits were seen waiting, once the database has said its number. Older ones have to end.
    pub fn first_new(&self) -> Option<u64> {
        self.first_new
    }

    /// A task has come to this. If the next one is a task of before, the keeper handles what comes for a while first.
    pub fn found(&mut self, found: Found) {
        self.task = match (self.task, found) {
            (Task::Name, _) => Task::AskWhetherWaitedFor,
            (Task::AskWhetherWaitedFor, Found::Waits(true)) => after_name(),
            (Task::Emit, _) => Task::TakeUp,
            // The first message is a probe (trap W26).
            (Task::TakeUp, _) if self.first_new.is_none() => Task::AskWhetherItWaits,
            (Task::TakeUp, _) => Task::Acknowledge,
            (Task::AskWhetherItWaits, Found::Waits(true)) => Task::Acknowledge,
            (Task::AskWhetherItWaits, _) => Task::Emit,
            (Task::Acknowledge, _) if self.first_new.is_none() => Task::AskNextNumber,
            (Task::Acknowledge, _) => Task::Beat,
            (Task::AskNextNumber, Found::Number(next)) => {
                self.first_new = Some(next);
                after_next_number()
            }
            (Task::AskOldest, Found::Number(oldest)) if Some(oldest) >= self.first_new => {
                after_oldest()
            }
            (Task::Renew, _) => Task::Emit,
            (task, _) => task,
        };
    }
}

impl Default for GoingLive {
    fn default() -> Self {
        GoingLive::new()
    }
}

fn after_name() -> Task {
    match is_planted(Bug::ProbeSkipped) {
        true => Task::AskNextNumber,
        false => Task::Emit,
    }
}

/// What was open when commits began to wait has to end first (trap W29).
fn after_next_number() -> Task {
    match is_planted(Bug::OldOnesNotAwaited) {
        true => after_oldest(),
        false => Task::AskOldest,
    }
}

/// A slot that is new decodes nothing of before (trap W37).
fn after_oldest() -> Task {
    match is_planted(Bug::NotRenewed) {
        true => Task::Emit,
        false => Task::Renew,
    }
}

/// How long a keeper that stops has not beaten when it takes its name out: no reader has a young beat then. In milliseconds.
pub fn leaves_after_ms() -> u64 {
    match is_planted(Bug::LeftAtOnce) {
        true => 0,
        false => BEAT_MS_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_beats_when_all_that_was_open_has_ended_and_is_decoded() {
        let mut going = GoingLive::new();
        let way = [
            (Task::Name, Found::Done),
            (Task::AskWhetherWaitedFor, Found::Waits(false)),
            (Task::AskWhetherWaitedFor, Found::Waits(true)),
            (Task::Emit, Found::Done),
            (Task::TakeUp, Found::Done),
            (Task::AskWhetherItWaits, Found::Waits(false)),
            (Task::Emit, Found::Done),
            (Task::TakeUp, Found::Done),
            (Task::AskWhetherItWaits, Found::Waits(true)),
            (Task::Acknowledge, Found::Done),
            (Task::AskNextNumber, Found::Number(9)),
            (Task::AskOldest, Found::Number(8)),
            (Task::AskOldest, Found::Number(9)),
            (Task::Renew, Found::Done),
            (Task::Emit, Found::Done),
            (Task::TakeUp, Found::Done),
            (Task::Acknowledge, Found::Done),
        ];
        for (task, found) in way {
            assert_eq!(going.task(), task);
            going.found(found);
        }
        assert_eq!(going.task(), Task::Beat);
    }
}
