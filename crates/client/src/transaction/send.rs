//! A commit on its way: to one home, or to several (rules 6, 10 and 11).

use super::large::Staged;
use super::{ObjectAt, Transaction};
use crate::runtime::{Completion, RequestKind, Shared};
use crate::{Committed, Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::limits::STAGED_PER_MEMBER_MAX;
use thorp_model::{HomeId, Outcome, Refusal};
use thorp_protocol::Response;
use thorp_session::{Commit, CommitCall, Ended};

/// What is left of a commit timeout for the answer to the last attempt, at most.
const ANSWER_TIME: Duration = Duration::from_millis(500);

impl Transaction {
    /// Has the member send a commit. A home that is busy says so before anything is recorded (rule 11).
    pub(super) async fn send(
        &mut self,
        call: CommitCall,
        staged: &[Staged],
        due: Instant,
    ) -> Result<Ended> {
        let only_reads = self.inner.writes().is_empty() && call.parts.len() > 1;
        let tokens = staged.iter().map(|staged| Arc::clone(&staged.tokens));
        let tokens = tokens.chain(self.streams.tokens()).collect();
        // Dropping the future does not stop the commit: its slots and values stay its own.
        self.in_doubt = true;
        let kind = match only_reads {
            true => RequestKind::Validation(None),
            false => RequestKind::Commit(None),
        };
        let requests = &self.shared.requests;
        let result = match requests.commit(kind, call, tokens, due) {
            Ok(wait) => self.answered(wait.await),
            Err(error) => Err(error),
        };
        self.in_doubt = false;
        let result = match result {
            Err(error) => busy(error, &mut self.was_busy),
            ended => ended,
        };
        result.map_err(|error| match only_reads {
            true => only_read(error),
            false => error,
        })
    }

    /// Asks each home whether what was read there is still so.
    pub(super) async fn validate(
        &mut self,
        commit: &mut Commit,
        calls: Vec<CommitCall>,
        due: Instant,
    ) -> Result<()> {
        let mut requests = Vec::new();
        for call in calls {
            let (kind, member) = (RequestKind::Validation(None), &self.shared.requests);
            requests.push(member.commit(kind, call, Vec::new(), due)?);
        }
        for wait in requests {
            commit.ended(self.answered(wait.await).map_err(only_read)?);
        }
        Ok(())
    }

    /// Waits until the commit may be sent again. It gives up while there is time for an answer.
    pub(super) async fn wait_while_busy(&mut self, pause_ms: u32, due: Instant) -> Result<()> {
        let pause = Duration::from_millis(u64::from(pause_ms));
        // The answer to another attempt would come too late: it would leave the outcome unknown.
        let answer = ANSWER_TIME.min(self.session.commit_timeout / 8);
        if Instant::now() + pause + answer > due {
            let why = self.was_busy.take();
            self.has_waited = why.is_some();
            return Err(why.unwrap_or_else(|| Error::busy(pause)));
        }
        self.shared.requests.pause(pause, due).await
    }

    /// The end of a commit for the session. If there are several homes, an error names the home.
    fn answered(&self, completion: Completion) -> Result<Ended> {
        let by = match &completion {
            Completion::Response(Response::Outcome(_, _, by)) => *by,
            _ => None,
        };
        let several = self.inner.homes().len() > 1;
        answered(&self.shared, completion).map_err(|error| {
            let name = by.filter(|_| several);
            let name = name.and_then(|home| self.shared.homes.name(home));
            match name {
                Some(name) => error.of_home(&name),
                None => error,
            }
        })
    }

    /// Sends what is large ahead of the commit, to one home.
    pub(super) async fn stage_at(&mut self, home: HomeId) -> Result<Staged> {
        let mut staged = Staged::none(&self.shared.requests, home);
        let large = self.inner.writes().large(home);
        if large.is_empty() {
            return Ok(staged);
        }
        check_staged(self.streams.count(home) + large.len())?;
        let session = self.session;
        let since = Instant::now();
        staged.register(session.commit_due()).await?;
        for object in large {
            let own = self.inner.writes().get(ObjectAt { home, object });
            if let Some(bytes) = own.and_then(|own| own.bytes()) {
                let segment = object.page.segment;
                let value = staged.stage(segment, bytes, session).await?;
                staged
                    .values
                    .extend(value.map(|overflow| (object, overflow)));
            }
        }
        self.shared.counters.waited_for_room(since);
        Ok(staged)
    }
}

/// Whether a transaction may write so many large objects of a home.
pub(super) fn check_staged(count: usize) -> Result<()> {
    if count > STAGED_PER_MEMBER_MAX {
        let words =
            format!("a transaction writes at most {STAGED_PER_MEMBER_MAX} large objects of a home");
        return Err(Error::new(ErrorKind::TooLarge, words));
    }
    Ok(())
}

/// The result of a commit that is not sent again.
pub(super) fn ended(shared: &Shared, completion: Completion) -> Result<Committed> {
    match answered(shared, completion)? {
        Ended::Committed {
            id,
            position,
            stamp,
        } => Ok(Committed {
            id: Some(id),
            position,
            stamp: Some(stamp),
        }),
        Ended::Busy(pause_ms) => Err(Error::busy(Duration::from_millis(u64::from(pause_ms)))),
    }
}

/// The end of a commit for the session.
pub(super) fn answered(shared: &Shared, completion: Completion) -> Result<Ended> {
    let (id, outcome, by) = completion.committed()?;
    match outcome {
        Outcome::Committed { position, stamp } => {
            shared.session.raise_floor(stamp);
            Ok(Ended::Committed {
                id,
                position: by.map(|_| position),
                stamp,
            })
        }
        Outcome::Refused(Refusal::Busy { retry_after_ms }) => Ok(Ended::Busy(retry_after_ms)),
        Outcome::Refused(refusal) => {
            if let (Refusal::WentBack, Some(home)) = (&refusal, by) {
                // The program learns it by this.
                shared.session.take_went_back(home);
            }
            Err(shared.refused(by, refusal))
        }
    }
}

/// The member itself may be busy, too, or others hold a lock: then the commit is to be sent again. Why is kept for the program.
pub(super) fn busy(error: Error, why: &mut Option<Error>) -> Result<Ended> {
    match error.kind() {
        ErrorKind::Busy { retry_after } => {
            let ms = retry_after.as_micros().div_ceil(1_000);
            *why = Some(error);
            Ok(Ended::Busy(u32::try_from(ms).unwrap_or(u32::MAX)))
        }
        _ => Err(error),
    }
}

/// A home did not answer in time. That shows nothing about what was read, and nothing was written.
fn only_read(error: Error) -> Error {
    match error.kind() {
        ErrorKind::OutcomeUnknown(_) => {
            Error::unreachable("a home did not say in time whether what was read there is still so")
        }
        _ => error,
    }
}
