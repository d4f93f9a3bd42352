//! How a commit ended, also if its answer did not come in time.

use std::time::{Duration, Instant};
use thorp_client::{CommitId, Error, ErrorKind, Member, Outcome as Ended, Result, Stamp};

/// An outcome that is not known by then is recorded as unknown.
const ASKING_TIME_MAX: Duration = Duration::from_secs(90);

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
