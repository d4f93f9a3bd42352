//! How a transaction ends.

use super::Transaction;
use super::large::Staged;
use crate::link::{Ending, block_on};
use crate::{Committed, Error, ErrorKind, Result};
use std::time::Instant;
use thorp_core::ids::{HomeId, Position};
use thorp_core::limits::STAGED_PER_MEMBER_MAX;
use thorp_core::message::{Outcome, Part, Refusal};
use thorp_net::driver::now;

impl Transaction {
    /// Commits. One that only read asks nobody and does not wait (unless the session is strict); one that wrote waits
    /// until it is durable at the home.
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
        let result = match self.home {
            Some(home) => self.commit_at(home).await,
            None => Ok(nothing()),
        };
        self.end(match &result {
            Ok(_) => Ending::Committed,
            Err(error) => ending_of(error),
        });
        result
    }

    /// Whether no home has to be asked.
    fn is_free(&self) -> bool {
        self.writes.is_empty() && (!self.session.strict || self.home.is_none())
    }

    fn finish_free(&mut self) -> Result<Committed> {
        let result = match self.home {
            Some(home) => self.validate_here(home),
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

    fn evidence(&mut self, home: HomeId) -> Result<Position> {
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

    async fn commit_at(&mut self, home: HomeId) -> Result<Committed> {
        let since = Instant::now();
        let due = since + self.session.commit_timeout;
        // What is known to be hopeless is not sent.
        self.evidence(home)?;
        // While nothing was sent, it is certain that nothing happened: better than an unknown outcome.
        self.link.reach(home, due).await?;
        let staged = self.stage(home, due).await?;
        let result = self.send(home, &staged, due).await;
        self.link.counters.waited_for_commit(since);
        result
    }

    async fn stage(&mut self, home: HomeId, due: Instant) -> Result<Staged> {
        let mut staged = Staged::none(&self.link, home);
        let large = self.writes.large();
        if large.is_empty() {
            return Ok(staged);
        }
        if large.len() > STAGED_PER_MEMBER_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a transaction writes at most {STAGED_PER_MEMBER_MAX} large objects"),
            ));
        }
        let since = Instant::now();
        staged.register(due).await?;
        for object in large {
            if let Some(bytes) = self.writes.get(object).and_then(|own| own.bytes()) {
                staged.stage(object, bytes, due).await?;
            }
        }
        self.link.counters.waited_for_room(since);
        Ok(staged)
    }

    /// Sends the commit, and again while the home is busy: it says so before anything is recorded (rule 11).
    async fn send(&mut self, home: HomeId, staged: &Staged, due: Instant) -> Result<Committed> {
        let writes = self.writes.page_writes(&staged.values);
        loop {
            let part = Part {
                home,
                evidence: self.evidence(home)?,
                reads: self.reads.reads(home).collect(),
                writes: writes.clone(),
            };
            // Whoever drops the future does not stop the commit: its slots and values stay its own.
            self.in_doubt = true;
            let answer = self.link.commit(vec![part], &staged.tokens, due).await;
            self.in_doubt = false;
            let pause = match answer {
                Ok((id, Outcome::Committed { position, stamp })) => {
                    let wrote = !writes.is_empty();
                    return Ok(Committed {
                        id: Some(id),
                        position: Some(position),
                        stamp: wrote.then_some(stamp),
                    });
                }
                Ok((_, Outcome::Refused(Refusal::Busy { retry_after_ms }))) => {
                    std::time::Duration::from_millis(u64::from(retry_after_ms))
                }
                Ok((_, Outcome::Refused(refusal))) => return Err(refusal.into()),
                Err(error) => match error.kind() {
                    ErrorKind::Busy { retry_after } => retry_after,
                    _ => return Err(error),
                },
            };
            if Instant::now() + pause > due {
                return Err(Error::busy(pause));
            }
            self.link.pause(pause, due).await?;
        }
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

fn nothing() -> Committed {
    Committed {
        id: None,
        position: None,
        stamp: None,
    }
}
