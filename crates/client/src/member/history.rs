//! The history of a home, for operators (rule R9).

use super::Member;
use crate::{Error, ErrorKind, Result};
use thorp_model::{CallRequest, CallResponse, HomeId, Incarnation, KnownHistory};

/// What a home knows of its own history.
pub(super) async fn known(member: &Member, home: HomeId) -> Result<KnownHistory> {
    match call(member, home, CallRequest::History).await? {
        CallResponse::History(history) => Ok(history),
        _ => Err(other_answer()),
    }
}

/// Opens a closed home that is in an incarnation. The home begins its next life; the member calls again there.
pub(super) async fn confirm(
    member: &Member,
    home: HomeId,
    seen: Incarnation,
    apart: bool,
) -> Result<Incarnation> {
    match call(member, home, CallRequest::Confirm { seen, apart }).await? {
        CallResponse::Opened(incarnation) => Ok(incarnation),
        _ => Err(other_answer()),
    }
}

async fn call(member: &Member, home: HomeId, request: CallRequest) -> Result<CallResponse> {
    let due = member.session.fetch_due();
    let called = member.shared().requests.call(home, request, due).await;
    called.map_err(|error| match error.kind() {
        ErrorKind::NoRight => Error::new(
            ErrorKind::NoRight,
            "the history of a home is for operators that have joined at the home itself, and not by way of a site",
        ),
        _ => error,
    })
}

fn other_answer() -> Error {
    Error::invalid("the home answered something else")
}
