//! How a request of the program ends.

use crate::limits::RETRY_PAUSE;
use crate::{Error, ErrorKind, Result};
use thorp_model::{CallError, CallResponse, CommitId, FetchRefusal, HomeId, Outcome};
use thorp_protocol::{Response, Source};

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The member responded.
    Response(Response),
    /// The member did not respond in time. A commit goes on under this id.
    TimedOut(Option<CommitId>),
    /// The member is closed.
    Closed,
}

/// How a fetch ended.
pub(crate) enum Fetched {
    /// The page is cached. Without a source it was cached when it was requested.
    Page(Option<Source>),
    /// Somebody on its way is busy: to be requested again after a pause.
    Busy,
}

impl Completion {
    /// How the fetch of a page ended.
    pub(crate) fn fetched(self) -> Result<Fetched> {
        match self {
            Completion::Response(Response::Fetched(source)) => Ok(Fetched::Page(source)),
            Completion::Response(Response::NotFetched(FetchRefusal::Busy) | Response::Busy) => {
                Ok(Fetched::Busy)
            }
            Completion::Response(Response::NotFetched(refusal)) => Err(refusal.into()),
            Completion::Response(..) => Err(Error::invalid("the member answered something else")),
            Completion::TimedOut(_) => Err(Error::unreachable("it did not come in time")),
            Completion::Closed => Err(Error::closed()),
        }
    }

    /// How a call ended. None: somebody is busy, and the call is to be sent again after a pause.
    pub(crate) fn called(self) -> Result<Option<CallResponse>> {
        match self {
            Completion::Response(Response::Called(Ok(response))) => Ok(Some(response)),
            Completion::Response(Response::Called(Err(CallError::Busy)) | Response::Busy) => {
                Ok(None)
            }
            Completion::Response(Response::Called(Err(error))) => Err(error.into()),
            Completion::Response(..) => Err(Error::invalid("the member answered something else")),
            Completion::TimedOut(_) => Err(Error::late()),
            Completion::Closed => Err(Error::closed()),
        }
    }

    /// How a commit ended, and at which home.
    pub(crate) fn committed(self) -> Result<(CommitId, Outcome, Option<HomeId>)> {
        match self {
            Completion::Response(Response::Outcome(id, outcome, by)) => Ok((id, outcome, by)),
            // The member has not taken the commit: it may be sent again, under a new id.
            Completion::Response(Response::Busy) => Err(Error::busy(RETRY_PAUSE)),
            // The commit may be under way: sent again, it could be committed twice.
            Completion::Response(..) => Err(Error::new(
                ErrorKind::OutcomeLost,
                "the member answered something else than how the commit ended: look before you run it again",
            )),
            Completion::TimedOut(Some(id)) => Err(Error::new(
                ErrorKind::OutcomeUnknown(id),
                format!(
                    "the outcome of commit {id} did not come in time: it may have happened, or may still happen"
                ),
            )),
            // A commit times out only after it was given its id.
            Completion::TimedOut(None) | Completion::Closed => Err(Error::closed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(response: Response) -> Option<ErrorKind> {
        let ended = Completion::Response(response).committed();
        ended.err().map(|error| error.kind())
    }

    #[test]
    fn only_a_member_that_is_busy_lets_a_commit_be_sent_again() {
        let retry_after = RETRY_PAUSE;
        assert_eq!(kind(Response::Busy), Some(ErrorKind::Busy { retry_after }));
        for other in [
            Response::Fetched(None),
            Response::NotFetched(FetchRefusal::Busy),
            Response::Called(Err(CallError::Busy)),
        ] {
            assert_eq!(kind(other), Some(ErrorKind::OutcomeLost));
        }
    }
}
