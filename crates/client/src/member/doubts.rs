//! Votes in doubt at a home, for operators (rule R7).

use super::Member;
use crate::{CommitId, Error, ErrorKind, Outcome, Result};
use thorp_model::{CallRequest, CallResponse, Doubt, HomeId, Ruling};

/// All votes in doubt at a home, the oldest first.
pub(super) async fn list(member: &Member, home: HomeId) -> Result<Vec<Doubt>> {
    let mut all: Vec<Doubt> = Vec::new();
    loop {
        let after = all.last().map(|doubt| (doubt.stamp, doubt.commit));
        match call(member, home, CallRequest::Doubts { after }).await? {
            CallResponse::Doubts { doubts, more } => {
                let is_over = !more || doubts.is_empty();
                all.extend(doubts);
                if is_over {
                    return Ok(all);
                }
            }
            _ => return Err(other_answer()),
        }
    }
}

/// Ends a vote in doubt. How it ended at that home.
pub(super) async fn settle(
    member: &Member,
    home: HomeId,
    commit: CommitId,
    ruling: Ruling,
) -> Result<Outcome> {
    match call(member, home, CallRequest::Settle { commit, ruling }).await? {
        CallResponse::Settled(outcome) => Ok(super::outcome_of(
            member.shared(),
            commit,
            outcome,
            Some(home),
        )),
        _ => Err(other_answer()),
    }
}

pub(super) async fn call(
    member: &Member,
    home: HomeId,
    request: CallRequest,
) -> Result<CallResponse> {
    let due = member.session.fetch_due();
    let called = member.shared().requests.call(home, request, due).await;
    called.map_err(|error| match error.kind() {
        ErrorKind::NoRight => Error::new(
            ErrorKind::NoRight,
            "votes in doubt are for operators that have joined at the home itself, and not by way of a site",
        ),
        _ => error,
    })
}

pub(super) fn other_answer() -> Error {
    Error::invalid("the home answered something else")
}
