//! How a transaction ends.

use super::Transaction;
use crate::link::{Ending, block_on};
use crate::{Committed, Error, ErrorKind, Result};
use thorp_core::ids::{HomeId, Position};
use thorp_net::driver::now;

impl Transaction {
    /// Commits. One that only read at one home asks nobody and does not wait (unless the session is strict); one that read at
    /// several has them say that all of it is still so, in one round trip; one that wrote waits until it is durable at every
    /// home that it touched.
    pub fn commit(mut self) -> Result<Committed> {
        self.finish_blocking()
    }

    /// As [`Transaction::commit`]. If the future is dropped, the commit goes on.
    pub async fn commit_async(mut self) -> Result<Committed> {
        self.finish().await
    }

    /// As [`Transaction::commit`], for who runs it again. What only read needs no future.
    pub(crate) fn finish_blocking(&mut self) -> Result<Committed> {
        if self.is_free() {
            return self.finish_free();
        }
        block_on(self.finish())
    }

    pub(crate) async fn finish(&mut self) -> Result<Committed> {
        if self.is_free() {
            return self.finish_free();
        }
        let result = self.commit_at_homes().await;
        self.end(match &result {
            Ok(_) => Ending::Committed,
            Err(error) => ending_of(error),
        });
        result
    }

    /// Whether no home has to be asked (rule 5).
    fn is_free(&self) -> bool {
        self.writes.is_empty() && (self.homes.all().is_empty() || self.is_known_here())
    }

    /// Whether it is known here that there is a moment at which all that was read was so. (Of several homes, too, stamps could
    /// tell it; they are asked as yet.)
    fn is_known_here(&self) -> bool {
        match self.homes.all() {
            [home] if !self.session.strict => self.is_settled(*home),
            _ => false,
        }
    }

    /// Whether nothing that belongs before what was read at a home is still on its way there (trap 19). In a village of one
    /// home nothing ever is. The promise is looked at before the evidence, so what it promised is in that.
    fn is_settled(&self, home: HomeId) -> bool {
        let link = &self.link;
        if self.session.optimistic_reads || link.homes.is_one() {
            return true;
        }
        let promised = link.cache.watermark(home);
        // Evidence that stands still hears of no promise.
        let is_frozen = self.reads.heard(&link.cache, home) != link.cache.heard(home);
        self.reads.stamp(home) <= promised && !is_frozen
    }

    fn finish_free(&mut self) -> Result<Committed> {
        let result = match self.homes.all().first() {
            Some(home) => self.validate_here(*home),
            None => Ok(nothing()),
        };
        self.end(match &result {
            Ok(_) => Ending::Free,
            Err(error) => ending_of(error),
        });
        result
    }

    /// Rule 5, for one home: what is not doomed was so at the evidence's position.
    fn validate_here(&mut self, home: HomeId) -> Result<Committed> {
        let position = self.evidence(home)?;
        self.check_staleness(home)?;
        Ok(Committed {
            position: Some(position),
            ..nothing()
        })
    }

    pub(super) fn evidence(&mut self, home: HomeId) -> Result<Position> {
        let evidence = self.reads.evidence(&self.link.cache, home);
        evidence.map_err(|doomed| self.doomed(doomed))
    }

    /// Decision 9: how stale a free read may be.
    fn check_staleness(&self, home: HomeId) -> Result<()> {
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

fn ending_of(error: &Error) -> Ending {
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
