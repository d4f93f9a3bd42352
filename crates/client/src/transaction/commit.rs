//! How a transaction ends: the driver of [`thorp_session::Commit`].

use super::Transaction;
use super::answer_basis::AnswerBasis;
use super::large::Staged;
use crate::runtime::{Completion, Ending, block_on};
use crate::{Committed, Error, ErrorKind, Result};
use std::time::{Duration, Instant};
use thorp_model::limits::WATERMARK_WAIT_MS;
use thorp_model::snapshot::Lagging;
use thorp_model::{CallRequest, HomeId};
use thorp_net::driver::now;
use thorp_session::{Commit, Step, Wait, World};

impl Transaction {
    /// Commits. A transaction that only read needs no message and does not wait, if its session is not strict and the
    /// promises of its homes fit together. Else the member asks the homes, which costs a round trip. A transaction that
    /// wrote waits until it is durable at every home that it touched.
    ///
    /// # Errors
    ///
    /// As [every call of a transaction](crate::Transaction#errors), and:
    ///
    /// - [`Conflict`](crate::ErrorKind::Conflict): others changed what it read.
    /// - [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the outcome did not come in time.
    /// - [`Gone`](crate::ErrorKind::Gone): an object that it wrote is not there.
    /// - [`NotFound`](crate::ErrorKind::NotFound): a segment was removed.
    /// - [`TooLarge`](crate::ErrorKind::TooLarge): it changes more than one commit may.
    /// - [`Full`](crate::ErrorKind::Full) and [`NoRight`](crate::ErrorKind::NoRight).
    pub fn commit(mut self) -> Result<Committed> {
        self.finish_blocking()
    }

    /// As [`Transaction::commit`]. If the future is dropped, the commit goes on.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`].
    pub async fn commit_async(mut self) -> Result<Committed> {
        self.finish().await
    }

    /// As [`Transaction::commit`], with what an answer to others rests on that shows what the transaction has read. Its session has to be
    /// [strict](crate::Session::strict), otherwise there is no evidence.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`].
    pub fn commit_for_answer(mut self) -> Result<(Committed, AnswerBasis)> {
        let basis = AnswerBasis::of(&mut self);
        Ok((self.finish_blocking()?, basis))
    }

    /// As [`Transaction::commit_for_answer`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`].
    pub async fn commit_for_answer_async(mut self) -> Result<(Committed, AnswerBasis)> {
        let basis = AnswerBasis::of(&mut self);
        Ok((self.finish().await?, basis))
    }

    /// As [`Transaction::commit_for_answer`], for a transaction that may run again. The basis is taken first: then its homes confirm it.
    pub(crate) fn finish_for_answer_blocking(&mut self) -> Result<AnswerBasis> {
        let basis = AnswerBasis::of(self);
        self.finish_blocking().map(|_| basis)
    }

    pub(crate) async fn finish_for_answer(&mut self) -> Result<AnswerBasis> {
        let basis = AnswerBasis::of(self);
        self.finish().await.map(|_| basis)
    }

    /// As [`Transaction::commit`], for a transaction that may run again. A commit without a message needs no future.
    pub(crate) fn finish_blocking(&mut self) -> Result<Committed> {
        let mut commit = Commit::new();
        match self.finish_locally(&mut commit) {
            Ok(step) => block_on(self.finish_at_homes(commit, step)),
            Err(result) => result,
        }
    }

    pub(crate) async fn finish(&mut self) -> Result<Committed> {
        let mut commit = Commit::new();
        match self.finish_locally(&mut commit) {
            Ok(step) => self.finish_at_homes(commit, step).await,
            Err(result) => result,
        }
    }

    /// Ends without a message, if it may (rule 5): then its result is the error. Else gives what has to be waited for.
    fn finish_locally(&mut self, commit: &mut Commit) -> Result<Step, Result<Committed>> {
        let result = match self.step(commit) {
            Ok(Step::Committed(committed)) => Ok(self.committed(committed)),
            Ok(step) => return Ok(step),
            Err(error) => Err(error),
        };
        self.end(match &result {
            Ok(_) => Ending::Free,
            Err(error) => ending_of(error),
        });
        Err(result)
    }

    async fn finish_at_homes(&mut self, commit: Commit, step: Step) -> Result<Committed> {
        let since = Instant::now();
        let mut effort = Effort::default();
        let due = self.session.commit_due();
        let result = self.drive(commit, step, due, &mut effort).await;
        if effort.homes_work || result.is_ok() {
            self.shared.counters.waited_for_commit(since);
        }
        self.end(match &result {
            Ok(_) if effort.is_free() => Ending::Free,
            Ok(_) => Ending::Committed,
            Err(error) => ending_of(error),
        });
        result
    }

    /// Carries out the steps of the commit, until it has ended.
    async fn drive(
        &mut self,
        mut commit: Commit,
        mut step: Step,
        mut due: Instant,
        effort: &mut Effort,
    ) -> Result<Committed> {
        let mut staged = Vec::new();
        loop {
            effort.add(&step);
            match step {
                Step::Committed(committed) => return Ok(self.committed(committed)),
                Step::Send(call) => commit.ended(self.send(call, &staged, due).await?),
                Step::Validate(calls) => self.validate(&mut commit, calls, due).await?,
                Step::Stage(homes) => {
                    staged = self.stage(&mut commit, &homes).await?;
                    due = self.session.commit_due();
                }
                Step::Wait(wait) => self.wait_for(wait, due).await?,
            }
            step = self.step(&mut commit)?;
        }
    }

    /// What has to be done next for a commit.
    pub(super) fn step(&mut self, commit: &mut Commit) -> Result<Step> {
        if self.shared.session.has_any_gone_back() {
            let mut homes = self.inner.homes().iter();
            homes.try_for_each(|home| self.check_went_back(*home))?;
        }
        let world = World {
            cache: &self.shared.cache,
            now: now().mono,
            own: &*self.shared,
        };
        let step = commit.step(&mut self.inner, &world);
        let step = step.map_err(|stop| self.stopped(stop))?;
        // What a closed member read may be old by any measure.
        let is_local = matches!(
            step,
            Step::Committed(thorp_session::Committed::Locally { .. })
        );
        if is_local && !self.inner.homes().is_empty() && self.shared.requests.is_closed() {
            return Err(Error::closed());
        }
        Ok(step)
    }

    /// Waits for what a commit waits for.
    pub(super) async fn wait_for(&mut self, wait: Wait, due: Instant) -> Result<()> {
        match wait {
            Wait::OwnOutcome => self.await_own(due).await,
            Wait::Promises(lagging) => self.ask_promises(lagging, due).await,
            Wait::Reach(homes) => self.reach(&homes, due).await,
            Wait::Pause(ms) => self.wait_while_busy(ms, due).await,
        }
    }

    /// The result for the program.
    pub(super) fn committed(&self, committed: thorp_session::Committed) -> Committed {
        use thorp_session::Committed::{AtHomes, Locally, Nothing, Validated};
        match committed {
            Nothing | Validated => nothing(),
            Locally { position, stamp } => {
                if let Some(stamp) = stamp.filter(|stamp| *stamp > self.inner.floor()) {
                    self.shared.session.raise_floor(stamp);
                }
                Committed {
                    position,
                    ..nothing()
                }
            }
            AtHomes {
                id,
                position,
                stamp,
            } => Committed {
                id: Some(id),
                position,
                stamp: Some(stamp).filter(|_| !self.inner.writes().is_empty()),
            },
        }
    }

    /// Waits until the outcome of one of this program's commits is known.
    async fn await_own(&mut self, due: Instant) -> Result<()> {
        let mut outcomes = self.shared.requests.pending.outcomes();
        outcomes.mark_unchanged();
        // It may be known already.
        if !self.inner.rests_on_open(&*self.shared) {
            return Ok(());
        }
        if self.shared.requests.is_closed() {
            return Err(Error::closed());
        }
        match self.shared.requests.changed(&mut outcomes, due).await? {
            true => Ok(()),
            false => Err(Error::unreachable(
                "what it has read of this member's own was not answered in time",
            )),
        }
    }

    /// Has the homes that lag promise more, and waits for that, but not long.
    async fn ask_promises(&mut self, lagging: Lagging, due: Instant) -> Result<()> {
        let due = due.min(Instant::now() + WATERMARK_WAIT);
        let at_least = lagging.stamp;
        let requests = lagging.homes.into_iter().map(|home| {
            let request = CallRequest::Watermark { at_least };
            self.shared.requests.begin_call(home, request, due)
        });
        // If a request is not taken, the homes validate the transaction.
        let Ok(requests) = requests.collect::<Result<Vec<_>>>() else {
            return Ok(());
        };
        for wait in requests {
            // The promise came before the response, like every promise.
            if let Completion::Closed = wait.await {
                return Err(Error::closed());
            }
        }
        Ok(())
    }

    /// Waits until homes are there. While nothing was sent, it is certain that nothing happened: better than an unknown
    /// outcome.
    async fn reach(&self, homes: &[HomeId], due: Instant) -> Result<()> {
        for home in homes {
            self.shared.reach(*home, due).await?;
        }
        Ok(())
    }

    /// Sends what is large ahead of the commit, to each home its own.
    async fn stage(&mut self, commit: &mut Commit, homes: &[HomeId]) -> Result<Vec<Staged>> {
        let mut staged = Vec::new();
        for home in homes {
            let at_home = self.stage_at(*home).await?;
            commit.staged(*home, at_home.values.clone());
            staged.push(at_home);
        }
        Ok(staged)
    }
}

/// What a commit takes. It adds up over its steps and never shrinks.
#[derive(Default)]
struct Effort {
    /// Homes have something to do for it.
    homes_work: bool,
    /// Homes are asked to promise more.
    asks_promises: bool,
}

impl Effort {
    fn add(&mut self, step: &Step) {
        match step {
            Step::Stage(_) | Step::Send(_) | Step::Validate(_) => self.homes_work = true,
            Step::Wait(Wait::Promises(_)) => self.asks_promises = true,
            // The outcome of another commit comes anyhow, and so does the stream of a home.
            Step::Wait(_) | Step::Committed(_) => {}
        }
    }

    /// Whether no message was sent for the commit, although it may have waited.
    fn is_free(&self) -> bool {
        !self.homes_work && !self.asks_promises
    }
}

/// Whether a failed commit certainly had no effect.
fn is_certain(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::OutcomeUnknown(_) | ErrorKind::OutcomeLost | ErrorKind::Closed
    )
}

pub(super) fn ending_of(error: &Error) -> Ending {
    match error.kind() {
        ErrorKind::Conflict => Ending::Conflict,
        _ if !is_certain(error) => Ending::Unknown,
        _ => Ending::Aborted,
    }
}

/// The end of what touched no home.
fn nothing() -> Committed {
    Committed {
        id: None,
        position: None,
        stamp: None,
    }
}

const WATERMARK_WAIT: Duration = Duration::from_millis(WATERMARK_WAIT_MS);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Stamp;

    fn effort(steps: &[Step]) -> Effort {
        let mut effort = Effort::default();
        steps.iter().for_each(|step| effort.add(step));
        effort
    }

    #[test]
    fn a_commit_that_only_waited_is_free() {
        let home = HomeId(1);
        let waits = [
            Step::Wait(Wait::OwnOutcome),
            Step::Wait(Wait::Reach(vec![home])),
        ];
        assert!(effort(&waits).is_free());
        let lagging = Lagging {
            stamp: Stamp::default(),
            homes: vec![home],
        };
        let asks = effort(&[Step::Wait(Wait::Promises(lagging))]);
        assert!(!asks.is_free() && !asks.homes_work);
        let validates = effort(&[Step::Validate(Vec::new()), Step::Wait(Wait::Pause(1))]);
        assert!(!validates.is_free() && validates.homes_work);
    }
}
