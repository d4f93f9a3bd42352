//! How the updates of a visit leave: as commits, or into the log (rules C6 and C12).

use super::Visit;
use crate::runtime::{HeldLock, block_on};
use crate::{Error, ErrorKind, Result, Transaction};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::Failures;

impl Visit {
    /// Gives out the updates so far: one commit for each home. Those of a home that does not take them stay, and the next
    /// publication tries them again. If a home refuses them for good (`Invalid`, `NoRight`), drop the visit and open another.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`]. The outcome may be unknown: then the updates are given up here, as they may have happened.
    pub fn publish(&mut self) -> Result<()> {
        block_on(self.publish_async())
    }

    /// As [`Visit::publish`].
    ///
    /// # Errors
    ///
    /// As [`Visit::publish`].
    pub async fn publish_async(&mut self) -> Result<()> {
        if self.consistency.is_atomic() && self.own.homes().len() > 1 {
            return Err(Error::invalid(
                "an atomic group is of one home, and these updates are of several: use a transaction",
            ));
        }
        if self.is_tentative() {
            return self.keep().await;
        }
        for home in self.own.homes() {
            // They are not here while they are on their way: a future that is dropped leaves none to be sent again.
            self.check_locks()?;
            let leaving = Arc::new(self.own.take(home));
            // If the future is dropped, what was made may be there.
            leaving.keep_slots();
            let lock = self.locks.iter().find(|lock| lock.home() == home);
            let fence = lock.map(HeldLock::fence);
            let again = Arc::clone(&leaving);
            let redo = async move |tx: &mut Transaction| {
                fence
                    .into_iter()
                    .for_each(|fence| tx.run_under(home, fence));
                again.redo(tx).await
            };
            let published = self.member.transact_with_async(self.session, redo).await;
            let leaving = leaving.entries();
            match may_have_happened(&published) {
                false => {
                    leaving.hold_slots();
                    self.own.put_back(leaving);
                }
                true => self.published.append(leaving),
            }
            published?;
        }
        Ok(())
    }

    /// Gives out the updates, and ends the visit.
    ///
    /// # Errors
    ///
    /// As [`Visit::publish`].
    pub fn close(self) -> Result<()> {
        block_on(self.close_async())
    }

    /// As [`Visit::close`].
    ///
    /// # Errors
    ///
    /// As [`Visit::publish`].
    pub async fn close_async(mut self) -> Result<()> {
        self.publish_async().await?;
        self.check_locks()?;
        let due = self.due();
        for lock in core::mem::take(&mut self.locks) {
            lock.give_back(due).await?;
        }
        Ok(())
    }

    /// The log takes the updates, one for each segment. They are durable then, and shown; their homes get them when these can
    /// be reached (rule C6).
    async fn keep(&mut self) -> Result<()> {
        if !self.member.shared().under().is_empty() {
            // Its home would not know under which lock it was made.
            return Err(Error::invalid(
                "a log keeps no updates under a lock: write with failures=pessimistic, or outside of the lock",
            ));
        }
        let segments = self.own.segments();
        if self.consistency.is_atomic() && segments.len() > 1 {
            return Err(Error::invalid(
                "an atomic group that a log keeps is of one segment, and these updates are of several: use a transaction",
            ));
        }
        let patience = match self.consistency.failures() {
            Failures::Optimistic {
                cutoff: Some(cutoff),
            } => cutoff,
            _ => LEASE_PATIENCE,
        };
        for segment in segments {
            let writes = self.own.writes(segment)?;
            let leaving = self.own.take_of(segment);
            let requests = Arc::clone(&self.member.shared().requests);
            let due = self
                .session
                .due(KEEP_TIMEOUT)
                .max(Instant::now() + KEEP_TIMEOUT);
            match requests.update((segment.0, writes), patience, due).await {
                Ok(is_leased) => {
                    self.published.append(leaving);
                    if !is_leased {
                        self.left_out.insert(segment.0);
                    }
                }
                Err(error) => {
                    if !matches!(error.kind(), ErrorKind::OutcomeLost) {
                        self.own.put_back(leaving);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Whether updates have left, or may have.
fn may_have_happened(published: &Result<()>) -> bool {
    match published {
        Ok(()) => true,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::OutcomeUnknown(_) | ErrorKind::OutcomeLost
        ),
    }
}

/// How long an update waits for a lease, if its program has not said: with one, whoever reads with a hard bound finds it.
const LEASE_PATIENCE: Duration = Duration::from_secs(1);

/// How long a log may take.
const KEEP_TIMEOUT: Duration = Duration::from_secs(30);
