//! A commit on its way: to one home, or to several (rules 6, 10 and 11).

use super::commit::nothing;
use super::large::Staged;
use super::{ObjectAt, Transaction};
use crate::link::{Link, Told, committed};
use crate::{Committed, Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::limits::STAGED_PER_MEMBER_MAX;
use thorp_model::{CommitId, HomeId, Outcome, PageWrites, Part, Refusal, Stamp};
use thorp_protocol::Response;

impl Transaction {
    pub(super) async fn commit_at_homes(&mut self) -> Result<Committed> {
        let since = Instant::now();
        let due = since + self.session.commit_timeout;
        let homes = self.participants();
        // What is known to be hopeless is not sent.
        for home in &homes {
            self.evidence(*home)?;
        }
        if homes.is_empty() {
            return Ok(nothing());
        }
        // Nobody could know at one home what becomes of it at another (rule 14).
        if homes.len() > 1 || self.may_stand() {
            self.wait_for_own(due).await?;
        }
        if self.may_stand()
            && let Some(committed) = self.stand_when_promised(due).await?
        {
            self.link.counters.waited_for_commit(since);
            return Ok(committed);
        }
        // While nothing was sent, it is certain that nothing happened: better than an unknown outcome.
        for home in &homes {
            self.link.reach(*home, due).await?;
        }
        let result = match homes.len() {
            2.. if self.writes.is_empty() => self.validate_at(&homes, due).await,
            _ => self.send(&homes, due).await,
        };
        self.link.counters.waited_for_commit(since);
        result
    }

    /// The homes where anything was read or written.
    pub(super) fn participants(&self) -> Vec<HomeId> {
        let read: Vec<HomeId> = self.reads.homes().collect();
        let takes_part = |home: &HomeId| read.contains(home) || self.writes.are_at(*home);
        let homes = self.homes.all().iter().copied();
        homes.filter(takes_part).collect()
    }

    /// Asks each home whether what was read there is still so, and to move its clock past the highest stamp that was read. If
    /// all could, the transaction stands there: what changes what it read has a higher stamp. Else the homes vote: what each of
    /// them has said is so at one moment, but that moment need not fit into the order of stamps, in which others stand.
    async fn validate_at(&mut self, homes: &[HomeId], due: Instant) -> Result<Committed> {
        let (depends_on, after) = self.seen();
        let (mut left, mut fits) = (homes.to_vec(), true);
        while !left.is_empty() {
            let mut asked = Vec::new();
            for home in left.drain(..) {
                let part = self.part(home, Vec::new())?;
                let seen = (depends_on.clone(), after);
                let wait = self.link.ask_commit(vec![part], Vec::new(), seen, due)?;
                asked.push((home, wait));
            }
            let mut pause = Duration::ZERO;
            for (home, wait) in asked {
                match self.answered(wait.await).map_err(only_read)? {
                    Answered::Committed(committed) => fits &= committed.stamp == Some(after),
                    Answered::Busy(asked) => {
                        left.push(home);
                        pause = pause.max(asked);
                    }
                }
            }
            if !left.is_empty() {
                self.wait_while_busy(pause, due).await?;
            }
        }
        match fits {
            true => Ok(nothing()),
            false => self.send(homes, due).await.map_err(only_read),
        }
    }

    /// Sends the commit, and again while a home is busy: it says so before anything is recorded (rule 11).
    async fn send(&mut self, homes: &[HomeId], due: Instant) -> Result<Committed> {
        let staged = self.stage(homes, due).await?;
        let writes = homes.iter().zip(&staged);
        let writes = writes.map(|(home, staged)| self.writes.page_writes(*home, &staged.values));
        let writes: Vec<Vec<PageWrites>> = writes.collect();
        loop {
            let parts = homes.iter().zip(&writes);
            let parts = parts.map(|(home, writes)| self.part(*home, writes.clone()));
            let parts = parts.collect::<Result<Vec<Part>>>()?;
            let tokens = staged.iter().map(|staged| Arc::clone(&staged.tokens));
            let tokens = tokens.collect();
            // Whoever drops the future does not stop the commit: its slots and values stay its own.
            self.in_doubt = true;
            let told = match self.link.ask_commit(parts, tokens, self.seen(), due) {
                Ok(wait) => self.answered(wait.await),
                Err(error) => Err(error),
            };
            self.in_doubt = false;
            let pause = match told {
                Ok(Answered::Committed(committed)) => {
                    let stamp = committed.stamp.filter(|_| !self.writes.is_empty());
                    return Ok(Committed { stamp, ..committed });
                }
                Ok(Answered::Busy(pause)) => pause,
                Err(error) => match error.kind() {
                    ErrorKind::Busy { retry_after } => retry_after,
                    _ => return Err(error),
                },
            };
            self.wait_while_busy(pause, due).await?;
        }
    }

    pub(super) fn part(&mut self, home: HomeId, writes: Vec<PageWrites>) -> Result<Part> {
        Ok(Part {
            home,
            evidence: self.evidence(home)?,
            reads: self.reads.reads(home).collect(),
            writes,
        })
    }

    /// What its request names: own commits whose values it read before they were delivered (rule 4), and the highest stamp
    /// that it saw, or that its program did before (rule 5).
    pub(super) fn seen(&self) -> (Vec<(HomeId, CommitId)>, Stamp) {
        let stamps = self.reads.homes().map(|home| self.reads.stamp(home));
        let after = stamps.fold(self.floor, Stamp::max);
        (self.reads.built_on().to_vec(), after)
    }

    pub(super) async fn wait_while_busy(&self, pause: Duration, due: Instant) -> Result<()> {
        if Instant::now() + pause > due {
            return Err(Error::busy(pause));
        }
        self.link.pause(pause, due).await
    }

    /// What an answer means; an error says whose it is, if there are several homes.
    fn answered(&self, told: Told) -> Result<Answered> {
        let by = match &told {
            Told::Response(Response::Outcome(_, _, by), _) => *by,
            _ => None,
        };
        let several = self.homes.all().len() > 1;
        answered(&self.link, told).map_err(|error| {
            let name = by.filter(|_| several);
            let name = name.and_then(|home| self.link.homes.name(home));
            match name {
                Some(name) => error.of_home(&name),
                None => error,
            }
        })
    }

    /// Sends what is large ahead of the commit, to each home its own.
    async fn stage(&mut self, homes: &[HomeId], due: Instant) -> Result<Vec<Staged>> {
        let mut all = Vec::new();
        for home in homes {
            all.push(self.stage_at(*home, due).await?);
        }
        Ok(all)
    }

    async fn stage_at(&mut self, home: HomeId, due: Instant) -> Result<Staged> {
        let mut staged = Staged::none(&self.link, home);
        let large = self.writes.large(home);
        if large.is_empty() {
            return Ok(staged);
        }
        if large.len() > STAGED_PER_MEMBER_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "a transaction writes at most {STAGED_PER_MEMBER_MAX} large objects of a home"
                ),
            ));
        }
        let since = Instant::now();
        staged.register(due).await?;
        for object in large {
            let own = self.writes.get(ObjectAt { home, object });
            if let Some(bytes) = own.and_then(|own| own.bytes()) {
                staged.stage(object, bytes, due).await?;
            }
        }
        self.link.counters.waited_for_room(since);
        Ok(staged)
    }
}

/// How a commit ended that was not to be asked for again.
pub(crate) fn ended(link: &Link, told: Told) -> Result<Committed> {
    match answered(link, told)? {
        Answered::Committed(committed) => Ok(committed),
        Answered::Busy(pause) => Err(Error::busy(pause)),
    }
}

/// What an answer means.
pub(super) fn answered(link: &Link, told: Told) -> Result<Answered> {
    let (id, outcome, by) = committed(told)?;
    match outcome {
        Outcome::Committed { position, stamp } => {
            link.raise_floor(stamp);
            Ok(Answered::Committed(Committed {
                id: Some(id),
                position: by.map(|_| position),
                stamp: Some(stamp),
            }))
        }
        Outcome::Refused(Refusal::Busy { retry_after_ms }) => {
            let pause = Duration::from_millis(u64::from(retry_after_ms));
            Ok(Answered::Busy(pause))
        }
        Outcome::Refused(refusal) => Err(refusal.into()),
    }
}

/// A home's answer to a commit.
pub(super) enum Answered {
    Committed(Committed),
    /// To be sent again after a while.
    Busy(Duration),
}

/// What a home did not answer in time says nothing about the rest, and nothing was written.
fn only_read(error: Error) -> Error {
    match error.kind() {
        ErrorKind::OutcomeUnknown(_) => {
            Error::unreachable("a home did not say in time whether what was read there is still so")
        }
        _ => error,
    }
}
