//! Commits whose program goes on before their outcome is known (rule 14).

use super::Transaction;
use super::commit::ending_of;
use super::pending::Pending;
use super::send::{answered, busy};
use crate::runtime::{EarlyCommit, Ending, RequestFuture, block_on};
use crate::{CommitId, Committed, Error, Result};
use std::sync::Arc;
use std::time::Instant;
use thorp_model::HomeId;
use thorp_session::{Commit, CommitCall, Ended, Step};
use tokio::sync::oneshot;

/// What came of a commit that was sent.
enum Shown {
    /// Its program goes on.
    Ahead(Pending),
    /// To be sent again after a while.
    Busy(u32),
}

impl Transaction {
    /// Commits without waiting for the outcome. What the transaction wrote is on its way to its home, and this member's
    /// transactions see it from now on. [`Pending`] resolves to the outcome. So a chain of transactions, each of which
    /// builds on the one before, costs no round trip for each of them.
    ///
    /// No other member sees any of it before it is committed. If it is refused, its values go here as well. Every
    /// transaction that has read them, or has written over them, is refused too, or ends with a
    /// [`Conflict`](crate::ErrorKind::Conflict). A transaction that only read, and has seen the values, waits for the
    /// outcome when it commits. Transactions that have neither read nor written any of it stand, also if they were made
    /// later. A program that relies on all of a chain waits for each of its [`Pending`]s. A reference to an object that
    /// the commit created never names another object.
    ///
    /// In two cases its values go from here until the outcome comes. Either the cache evicts a page that it has read,
    /// or the connection to its home is lost and a new one begins. Then transactions that have read the values end with
    /// a conflict. A transaction that writes there again waits here for the outcome.
    ///
    /// In some cases it waits as [`Transaction::commit`] does, and the [`Pending`] knows the outcome:
    ///
    /// - the transaction takes in several homes, or its home is out of reach;
    /// - it writes objects that do not fit into a page, or to pages that are not cached here;
    /// - it creates the first object of a page.
    ///
    /// It also waits while [`EARLY_PER_HOME_MAX`](crate::EARLY_PER_HOME_MAX) early commits of this member have no
    /// outcome from their home.
    ///
    /// ```
    /// # use thorp_client::{JoinConfig, Member, Session};
    /// # let village = thorp_testing::Village::new();
    /// # let home = village.home("alps");
    /// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
    /// # let member = Member::join(joining)?;
    /// # let counts = member.open_or_create("thorp://alps/counts")?;
    /// # let counter = member.transact(|tx| tx.create_typed(&counts, &0u64))?;
    /// let mut pending = Vec::new();
    /// for _ in 0..100 {
    ///     let mut tx = member.begin(Session::new());
    ///     let count = tx.get(&counter)?;
    ///     tx.put(&counter, &(count + 1))?;
    ///     pending.push(tx.commit_early()?);
    /// }
    /// for commit in pending {
    ///     commit.wait()?;
    /// }
    /// # assert_eq!(member.transact(|tx| tx.get(&counter))?, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`]. Once it is on its way, [`Pending::wait`] gives the error.
    pub fn commit_early(mut self) -> Result<Pending> {
        block_on(self.finish_early())
    }

    /// As [`Transaction::commit_early`]. If the future is dropped, a commit that was sent goes on.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit_early`].
    pub async fn commit_early_async(mut self) -> Result<Pending> {
        self.finish_early().await
    }

    pub(crate) async fn finish_early(&mut self) -> Result<Pending> {
        let Some(home) = self.home_to_send_early() else {
            return self.finish().await.map(Pending::ended);
        };
        let result = self.send_early(home).await;
        self.end(match &result {
            // Its slots stay taken, however it ends: its program has been given references to them.
            Ok(pending) if pending.is_ahead() => Ending::Early,
            Ok(_) => Ending::Committed,
            Err(error) => ending_of(error),
        });
        result
    }

    /// Its only home, if it may go there early. A large value travels ahead of its commit and costs a round trip
    /// anyhow.
    fn home_to_send_early(&self) -> Option<HomeId> {
        let homes = self.inner.participants();
        let [home] = homes[..] else {
            return None;
        };
        let writes = self.inner.writes();
        let has_large = !writes.large(home).is_empty() || self.streams.count(home) > 0;
        let may_go = !writes.is_empty() && !has_large;
        may_go.then_some(home)
    }

    /// Carries out the steps of the commit, until it is shown or has ended.
    async fn send_early(&mut self, home: HomeId) -> Result<Pending> {
        let due = self.session.commit_due();
        let mut commit = Commit::new();
        loop {
            match self.step(&mut commit)? {
                Step::Committed(committed) => return Ok(Pending::ended(self.committed(committed))),
                Step::Send(call) => match self.send_call_early(home, call, due).await? {
                    Shown::Ahead(pending) => return Ok(pending),
                    Shown::Busy(pause_ms) => commit.ended(Ended::Busy(pause_ms)),
                },
                Step::Wait(wait) => self.wait_for(wait, due).await?,
                Step::Validate(calls) => self.validate(&mut commit, calls, due).await?,
                // It writes nothing that is large.
                Step::Stage(_) => {}
            }
        }
    }

    async fn send_call_early(
        &mut self,
        home: HomeId,
        call: CommitCall,
        due: Instant,
    ) -> Result<Shown> {
        let place = self
            .shared
            .early_places
            .take(home, &self.shared.requests, due)
            .await?;
        let (early, shown) = EarlyCommit::new(place);
        // Dropping the future does not stop the commit.
        self.in_doubt = true;
        let came = match self.shared.requests.commit_early(call, early, due) {
            Ok(wait) => self.shown(wait, shown).await,
            Err(error) => Err(error),
        };
        self.in_doubt = false;
        came.or_else(|error| match busy(error, &mut None)? {
            Ended::Busy(pause_ms) => Ok(Shown::Busy(pause_ms)),
            Ended::Committed { .. } => Err(Error::invalid("a busy member committed")),
        })
    }

    async fn shown(
        &self,
        mut wait: RequestFuture,
        mut shown: oneshot::Receiver<CommitId>,
    ) -> Result<Shown> {
        tokio::select! {
            biased;
            // First: if the commit was refused after it was shown, the `Pending` gives the refusal.
            Ok(id) = &mut shown => Ok(Shown::Ahead(Pending::ahead(Arc::clone(&self.runtime), id, wait))),
            completion = &mut wait => Ok(match answered(&self.shared, completion)? {
                Ended::Committed { id, position, stamp } => Shown::Ahead(Pending::ended(Committed {
                    id: Some(id),
                    position,
                    stamp: Some(stamp),
                })),
                Ended::Busy(pause_ms) => Shown::Busy(pause_ms),
            }),
        }
    }
}
