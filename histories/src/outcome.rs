//! How a commit ended, also if its answer did not come in time.

use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{CommitId, Error, ErrorKind, Member, Outcome as Ended, Result, Stamp};

/// An outcome that is not known by then is recorded as unknown.
const ASKING_TIME_MAX: Duration = Duration::from_secs(90);
const STARTING_TIME_MAX: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(50);

/// Asks for an outcome that did not come in time.
pub(crate) fn learn(member: &Member, error: Error) -> Result<Option<Stamp>> {
    let ErrorKind::OutcomeUnknown(id) = error.kind() else {
        return Err(error);
    };
    let end = Instant::now() + ASKING_TIME_MAX;
    loop {
        match asked(member, id) {
            Err(error) if is_unknown(&error) && Instant::now() < end => {}
            ended => return ended,
        }
    }
}

fn asked(member: &Member, id: CommitId) -> Result<Option<Stamp>> {
    match member.outcome(id)? {
        Ended::Committed(committed) => Ok(committed.stamp),
        Ended::Refused(error) => Err(error),
    }
}

/// Tries what a member needs at its start, also while a home is away.
pub(crate) fn patiently<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    let end = Instant::now() + STARTING_TIME_MAX;
    loop {
        match attempt() {
            Err(error) if is_certain(&error) && Instant::now() < end => thread::sleep(AGAIN),
            ended => return ended,
        }
    }
}

/// What this says has had no effect.
pub(crate) fn is_certain(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Conflict | ErrorKind::Busy { .. } | ErrorKind::HomeUnreachable
    )
}

fn is_unknown(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::OutcomeUnknown(_))
}
