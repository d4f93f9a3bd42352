//! Transactions that are run again until they are committed.

use super::Member;
use crate::due::due_after;
use crate::runtime::block_on;
use crate::{AnswerBasis, Error, ErrorKind, Pending, Result, Session, Transaction};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use thorp_session::Pauses;

impl Member {
    /// Begins a transaction in a session of its own. [`Session::default`] is not what the member was joined with:
    /// [`Member::session`] is.
    pub fn begin(&self, session: Session) -> Transaction {
        Transaction::begin(Arc::clone(&self.runtime), session)
    }

    /// Runs a transaction, commits it, and runs it again when it conflicts with others. What `work` does besides, it
    /// may do several times. An error that `work` returns ends the transaction without effect.
    ///
    /// ```
    /// # use thorp_client::{Error, ErrorKind, JoinConfig, Member, Ref, Result};
    /// fn pay(member: &Member, from: &Ref<u64>, to: &Ref<u64>, sum: u64) -> Result<()> {
    ///     member.transact(|tx| {
    ///         let rest = tx.get(from)?.checked_sub(sum);
    ///         let rest = rest.ok_or_else(|| Error::aborted("not enough money"))?;
    ///         tx.put(from, &rest)?;
    ///         let sum = tx.get(to)? + sum;
    ///         tx.put(to, &sum)
    ///     })
    /// }
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let bank = member.open_or_create("thorp://alps/bank")?;
    /// # let make = |sum: u64| member.transact(|tx| tx.create_typed(&bank, &sum));
    /// # let (anna, bert) = (make(100)?, make(0)?);
    ///
    /// pay(&member, &anna, &bert, 70)?;
    /// let refused = pay(&member, &anna, &bert, 70).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Aborted);
    /// # assert_eq!(member.transact(|tx| tx.get(&bert))?, 70);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any error of `work`, and those of [`Transaction::commit`]. [`Conflict`](crate::ErrorKind::Conflict) and
    /// [`Busy`](crate::ErrorKind::Busy) come out only when the session's [attempts](Session::attempts_max) are used up; or if the
    /// commit has met somebody's lock for its whole [commit timeout](Session::commit_timeout).
    pub fn transact<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transact_with(self.session(), work)
    }

    /// As [`Member::transact`], in a session of its own.
    ///
    /// # Errors
    ///
    /// As [`Member::transact`].
    pub fn transact_with<T>(
        &self,
        session: Session,
        work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        self.run(session, work, Transaction::finish_blocking)
            .map(|(value, _)| value)
    }

    /// As [`Member::transact`]. In a task that may move between threads, write `async move |tx|`: the compiler does not
    /// see yet that a closure which borrows may move, too.
    ///
    /// ```
    /// # use thorp_client::{JoinConfig, Member, Ref, Result};
    /// async fn increment(member: Member, counter: Ref<u64>) -> Result<u64> {
    ///     let work = async move |tx: &mut thorp_client::Transaction| {
    ///         let count = tx.get_async(&counter).await? + 1;
    ///         tx.put(&counter, &count)?;
    ///         Ok(count)
    ///     };
    ///     member.transact_async(work).await
    /// }
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let counts = member.open_or_create("thorp://alps/counts")?;
    /// # let counter = member.transact(|tx| tx.create_typed(&counts, &0u64))?;
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    /// # runtime.block_on(async {
    ///
    /// let task = tokio::spawn(increment(member, counter));
    /// assert_eq!(task.await??, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Member::transact`].
    pub async fn transact_async<T>(
        &self,
        work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        self.transact_with_async(self.session(), work).await
    }

    /// As [`Member::transact_with`].
    ///
    /// # Errors
    ///
    /// As [`Member::transact`].
    pub async fn transact_with_async<T>(
        &self,
        session: Session,
        work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let finish = async |tx: &mut Transaction| tx.finish().await;
        let (value, _) = self.run_async(session, work, finish).await?;
        Ok(value)
    }

    /// As [`Member::transact`], for an answer to others: in a [strict](Session::strict) session, and with what the answer rests on.
    ///
    /// ```
    /// # use thorp_client::{JoinConfig, Member};
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let shop = member.open_or_create("thorp://alps/shop")?;
    /// # let price = member.transact(|tx| tx.create_typed(&shop, &7u64))?;
    /// let (price, basis) = member.answer(|tx| tx.get(&price))?;
    /// let fields = basis.fields().expect("it has only read");
    /// assert_eq!(fields[0].0, "Thorp-Evidence");
    /// assert!(fields[1].1.starts_with("alps "));
    /// # assert_eq!(price, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Member::transact`].
    pub fn answer<T>(
        &self,
        work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, AnswerBasis)> {
        let session = self.session().strict(true);
        self.run(session, work, Transaction::finish_for_answer_blocking)
    }

    /// As [`Member::answer`].
    ///
    /// # Errors
    ///
    /// As [`Member::transact`].
    pub async fn answer_async<T>(
        &self,
        work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, AnswerBasis)> {
        let session = self.session().strict(true);
        let finish = async |tx: &mut Transaction| tx.finish_for_answer().await;
        self.run_async(session, work, finish).await
    }

    /// As [`Member::transact`], without waiting for the outcome ([`Transaction::commit_early`]): it runs the
    /// transaction again until the commit is on its way. The returned [`Pending`] resolves to the outcome. If the
    /// commit is refused, the program must run the transaction again.
    ///
    /// # Errors
    ///
    /// As [`Member::transact`] until the commit is on its way. After that, [`Pending::wait`] gives the error.
    pub fn transact_early<T>(
        &self,
        work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, Pending)> {
        let finish = |tx: &mut Transaction| block_on(tx.finish_early());
        self.run(self.session(), work, finish)
    }

    /// As [`Member::transact_early`].
    ///
    /// # Errors
    ///
    /// As [`Member::transact_early`].
    pub async fn transact_early_async<T>(
        &self,
        work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, Pending)> {
        let finish = async |tx: &mut Transaction| tx.finish_early().await;
        self.run_async(self.session(), work, finish).await
    }

    /// Until it is finished, or must not be tried once more.
    fn run<T, F>(
        &self,
        session: Session,
        mut work: impl FnMut(&mut Transaction) -> Result<T>,
        finish: impl Fn(&mut Transaction) -> Result<F>,
    ) -> Result<(T, F)> {
        let mut tx = self.begin(session);
        let mut pauses = Pauses::new(session.backoff_max);
        loop {
            let result = match work(&mut tx) {
                Ok(value) => finish(&mut tx).map(|finished| (value, finished)),
                Err(error) => Err(error),
            };
            match result {
                Ok(done) => return Ok(done),
                Err(error) => block_on(self.again(&mut tx, error, &mut pauses))?,
            }
        }
    }

    /// The same.
    async fn run_async<T, F>(
        &self,
        session: Session,
        mut work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
        finish: impl AsyncFn(&mut Transaction) -> Result<F>,
    ) -> Result<(T, F)> {
        let mut tx = self.begin(session);
        let mut pauses = Pauses::new(session.backoff_max);
        loop {
            let result = match work(&mut tx).await {
                Ok(value) => finish(&mut tx).await.map(|finished| (value, finished)),
                Err(error) => Err(error),
            };
            match result {
                Ok(done) => return Ok(done),
                Err(error) => self.again(&mut tx, error, &mut pauses).await?,
            }
        }
    }

    /// Makes a failed transaction ready for another attempt, or gives the error back.
    async fn again(&self, tx: &mut Transaction, error: Error, pauses: &mut Pauses) -> Result<()> {
        // What a program concluded from what is no longer so, it may conclude differently now.
        let is_hopeful = error.is_retryable() || is_conclusion(&error) && tx.is_doomed();
        if !is_hopeful || tx.has_waited() || pauses.taken() + 1 >= tx.session().attempts_max {
            return Err(error);
        }
        let session = tx.session();
        let pause = pause_after(&error, pauses, session.backoff_max);
        let next = due_after(pause);
        if session.due(pause) < next {
            return Err(error);
        }
        tx.restart();
        self.shared().requests.sleep_until(next).await
    }
}

/// The pause before the next attempt: none is longer than `longest`, however long a busy home wants its members to
/// wait.
fn pause_after(error: &Error, pauses: &mut Pauses, longest: Duration) -> Duration {
    let asked = match error.kind() {
        ErrorKind::Busy { retry_after } => retry_after.min(longest),
        _ => Duration::ZERO,
    };
    pauses.next(asked, random()).min(longest)
}

/// A number from the system's randomness, by which std seeds its hashers.
fn random() -> u32 {
    RandomState::new().hash_one(0) as u32
}

/// Whether a program may have concluded this from what it read.
fn is_conclusion(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Aborted
            | ErrorKind::Gone
            | ErrorKind::NotFound
            | ErrorKind::Invalid
            | ErrorKind::BadName
            | ErrorKind::DataDamaged
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::Refusal;

    #[test]
    fn no_busy_home_makes_a_pause_longer_than_the_session_allows() {
        let longest = Duration::from_millis(250);
        let mut pauses = Pauses::new(longest);
        for (retry_after_ms, least_ms) in [(50, 50), (250, 250), (u32::MAX, 250)] {
            let busy = Error::from(Refusal::Busy { retry_after_ms });
            let pause = pause_after(&busy, &mut pauses, longest);
            assert!(pause >= Duration::from_millis(least_ms) && pause <= longest);
        }
        let conflict = Error::new(ErrorKind::Conflict, "changed");
        assert!(pause_after(&conflict, &mut pauses, Duration::ZERO).is_zero());
    }
}
