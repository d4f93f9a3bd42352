//! How a transaction ends.

use super::Transaction;
use super::stand::Standing;
use crate::link::{Ending, block_on};
use crate::{Committed, Error, ErrorKind, Result};
use thorp_model::{HomeId, Position};
use thorp_net::driver::now;

impl Transaction {
    /// Commits. One that only read asks nobody and does not wait (unless the session is strict), if what its homes promised
    /// fits together; else it asks them, for a round trip. One that wrote waits until it is durable at every home that it
    /// touched.
    pub fn commit(mut self) -> Result<Committed> {
        self.finish_blocking()
    }

    /// As [`Transaction::commit`]. If the future is dropped, the commit goes on.
    pub async fn commit_async(mut self) -> Result<Committed> {
        self.finish().await
    }

    /// As [`Transaction::commit`], for who runs it again. What asks nobody needs no future.
    pub(crate) fn finish_blocking(&mut self) -> Result<Committed> {
        match self.finish_free() {
            Some(result) => result,
            None => block_on(self.finish_at_homes()),
        }
    }

    pub(crate) async fn finish(&mut self) -> Result<Committed> {
        match self.finish_free() {
            Some(result) => result,
            None => self.finish_at_homes().await,
        }
    }

    async fn finish_at_homes(&mut self) -> Result<Committed> {
        let result = self.commit_at_homes().await;
        self.end(match &result {
            Ok(_) => Ending::Committed,
            Err(error) => ending_of(error),
        });
        result
    }

    /// Ends without a message, if it may (rule 5). None: homes have to be asked.
    fn finish_free(&mut self) -> Option<Result<Committed>> {
        if !self.may_stand() || self.rests_on_open() {
            return None;
        }
        self.stand_above_own();
        let result = match self.stand() {
            Ok(Standing::At(committed)) => Ok(committed),
            Ok(Standing::Lags(_)) => return None,
            Err(error) => Err(error),
        };
        self.end(match &result {
            Ok(_) => Ending::Free,
            Err(error) => ending_of(error),
        });
        Some(result)
    }

    pub(super) fn evidence(&mut self, home: HomeId) -> Result<Position> {
        let evidence = self.reads.evidence(&self.link.cache, home);
        evidence.map_err(|doomed| self.doomed(doomed))
    }

    /// Foundation 9: how stale a free read may be.
    pub(super) fn check_staleness(&self, home: HomeId) -> Result<()> {
        if self.link.is_closed() {
            return Err(Error::closed());
        }
        if self.session.optimistic_reads {
            return Ok(());
        }
        let (now, longest) = (now().mono, self.session.max_staleness.as_millis());
        let silent = |heard: Option<_>| now.since(heard.unwrap_or_default());
        let read = silent(self.reads.heard(&self.link.cache, home));
        if u128::from(read) <= longest {
            return Ok(());
        }
        let home_silent = silent(self.link.cache.heard(home));
        if u128::from(home_silent) <= longest {
            // The home is there: what was read is old because the cache could not keep it (rule 2).
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("what was read {read} ms ago is no longer followed: run it again"),
            ));
        }
        let name = self.link.homes.name(home).unwrap_or_default();
        Err(Error::unreachable(format!(
            "home {name} was not heard of for {home_silent} ms: what was read may be older than the session allows"
        )))
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
pub(super) fn nothing() -> Committed {
    Committed {
        id: None,
        position: None,
        stamp: None,
    }
}
