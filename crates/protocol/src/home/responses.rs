//! The messages with which a home responds to one child.

use thorp_model::{
    CallError, CallId, CallResponse, CommitId, Down, HomeId, Outcome, Stamp, message,
};

/// How a commit ended.
pub(super) fn outcome(home: HomeId, commit: CommitId, outcome: &Outcome) -> Down {
    match outcome {
        Outcome::Committed { position, stamp } => Down::Committed(message::Committed {
            home,
            commit,
            position: *position,
            stamp: *stamp,
        }),
        Outcome::Refused(refusal) => Down::Refused(message::Refused {
            home,
            commit,
            refusal: refusal.clone(),
        }),
    }
}

/// This home's vote (rule 10).
pub(super) fn vote(home: HomeId, commit: CommitId, stamp: Stamp) -> Down {
    Down::Voted(message::Voted {
        home,
        commit,
        stamp,
    })
}

/// The result of a call.
pub(super) fn call_result(
    home: HomeId,
    call: CallId,
    result: Result<CallResponse, CallError>,
) -> Down {
    Down::CallResult(message::CallResult { home, call, result })
}
