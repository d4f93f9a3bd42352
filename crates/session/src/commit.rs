//! A transaction on its way to its end (rules 5, 6, 10 and 14).

use crate::own_commits::OwnCommits;
use crate::serialization_point::Placement;
use crate::stop::Stop;
use crate::transaction::Transaction;
use std::collections::HashMap;
use thorp_cache::{Cache, Doomed};
use thorp_model::planted::{self, Bug};
use thorp_model::snapshot::Lagging;
use thorp_model::{CommitId, HomeId, Millis, ObjectId, Overflow, Part, Position, Stamp};

/// What a commit looks at.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The member's page cache.
    pub cache: &'a Cache,
    /// The monotone clock of the process.
    pub now: Millis,
    /// This program's own commits.
    pub own: &'a dyn OwnCommits,
}

/// What has to be done next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// It is committed: done.
    Committed(Committed),
    /// Wait for this.
    Wait(Wait),
    /// Stage the large values of these homes, and say where they are ([`Commit::staged`]).
    Stage(Vec<HomeId>),
    /// Have the member send this commit, and say how it ended ([`Commit::ended`]).
    Send(CommitCall),
    /// The same for each of these, which one home validates each.
    Validate(Vec<CommitCall>),
}

/// What a commit waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Until one of this program's commits is answered: it has read what one of them wrote (rule 14).
    OwnOutcome,
    /// Until these homes have answered whether they promise this stamp; ask them. But not long.
    Promises(Lagging),
    /// Until the streams of these homes are live: while nothing is sent, it is certain that nothing happened.
    Reach(Vec<HomeId>),
    /// So many milliseconds: a home is busy.
    Pause(u32),
}

/// A commit as the member is asked for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitCall {
    /// What it did at each home; not empty.
    pub parts: Vec<Part>,
    /// In which history of its home each part was read (rule R9).
    pub histories: Vec<u64>,
    /// The commits that it depends on (rules 4 and 14).
    pub depends_on: Vec<(HomeId, CommitId)>,
    /// The highest stamp that it saw, or that its program did before (rule 5).
    pub after: Stamp,
}

/// How a transaction is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Committed {
    /// It did nothing at any home.
    Nothing,
    /// It only read, and no home was asked.
    Locally {
        /// The position of its evidence, if it is of one home.
        position: Option<Position>,
        /// Its serialization point; none if its session reads on while a home is silent.
        stamp: Option<Stamp>,
    },
    /// It only read, and each home said that what was read there is still so.
    Validated,
    /// At its homes.
    AtHomes {
        /// The id of the commit.
        id: CommitId,
        /// Its position, if it is of one home.
        position: Option<Position>,
        /// The stamp of the commit, the same at all its homes.
        stamp: Stamp,
    },
}

/// What a home answered to a commit that it did not refuse for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It is committed.
    Committed {
        /// The id of the commit.
        id: CommitId,
        /// Its position, if it is of one home.
        position: Option<Position>,
        /// The stamp under which the home committed it.
        stamp: Stamp,
    },
    /// The home is busy: send it again after so many milliseconds.
    Busy(u32),
}

/// A transaction's commit: a state machine that its driver steps.
#[derive(Debug)]
pub struct Commit {
    stage: Stage,
    homes: Vec<HomeId>,
    staged: HashMap<HomeId, HashMap<ObjectId, Overflow>>,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was looked at.
    Begun,
    /// It cannot commit without waiting.
    AwaitingOwn,
    /// It may commit without a message, when homes have promised enough.
    Placing { asked: bool },
    /// Homes have to be asked.
    Reaching,
    /// Its large values are on their way ahead.
    Staging,
    /// It is to be sent.
    Sending,
    /// It is sent.
    Sent(Option<Ended>),
    /// Each home validates what was read there.
    Validating(Validation),
}

/// What homes said so far of a transaction over several that only read.
#[derive(Debug)]
struct Validation {
    /// To be asked, or asked again.
    left: Vec<HomeId>,
    /// Asked, in this order.
    asked: Vec<HomeId>,
    /// All homes that answered could move their clock past `after`.
    fits: bool,
    after: Stamp,
    depends_on: Vec<(HomeId, CommitId)>,
    pause_ms: u32,
}

impl Default for Commit {
    fn default() -> Self {
        Commit::new()
    }
}

impl Commit {
    /// A commit of which nothing is done yet.
    pub fn new() -> Self {
        Commit {
            stage: Stage::Begun,
            homes: Vec::new(),
            staged: HashMap::new(),
        }
    }

    /// Whether it was stepped already.
    pub fn is_begun(&self) -> bool {
        !matches!(self.stage, Stage::Begun)
    }

    /// Goes on as far as it can.
    ///
    /// # Errors
    ///
    /// [`Stop`]: the transaction is not committed and has no effect.
    ///
    /// # Panics
    ///
    /// After [`Step::Send`], if the driver has not called [`Commit::ended`].
    pub fn step<R>(&mut self, tx: &mut Transaction<R>, world: &World<'_>) -> Result<Step, Stop> {
        loop {
            let step = match &mut self.stage {
                Stage::Begun => self.begin(tx, world)?,
                Stage::AwaitingOwn => self.await_own(tx, world)?,
                Stage::Placing { asked } => {
                    let asked = *asked;
                    self.place(tx, world, asked)?
                }
                Stage::Reaching => Some(self.reach(tx)),
                Stage::Staging => self.stage_values(tx),
                Stage::Sending => Some(self.send(tx, world)?),
                Stage::Sent(ended) => {
                    let ended = ended.take();
                    Some(self.sent(ended))
                }
                Stage::Validating(_) => self.validate(tx, world)?,
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    /// Where the large values of a home are: the answer to [`Step::Stage`].
    pub fn staged(&mut self, home: HomeId, values: HashMap<ObjectId, Overflow>) {
        self.staged.insert(home, values);
    }

    /// How it ended: the answer to [`Step::Send`], or to the next of [`Step::Validate`]. What a home refuses for good ends the
    /// transaction, and its driver says so to the program.
    pub fn ended(&mut self, ended: Ended) {
        match &mut self.stage {
            Stage::Sent(answer) => *answer = Some(ended),
            Stage::Validating(validation) => validation.ended(ended),
            _ => {}
        }
    }

    fn begin<R>(
        &mut self,
        tx: &mut Transaction<R>,
        world: &World<'_>,
    ) -> Result<Option<Step>, Stop> {
        if tx.can_commit_locally() && !tx.rests_on_open(world.own) {
            tx.place_above_own(world.own);
            if let Ok(committed) = placed(tx, world)? {
                return Ok(Some(Step::Committed(committed)));
            }
        }
        self.homes = tx.participants();
        // What is known to be hopeless is not sent.
        for home in &self.homes {
            tx.evidence(world.cache, *home)?;
        }
        if self.homes.is_empty() {
            return Ok(Some(Step::Committed(Committed::Nothing)));
        }
        self.stage = Stage::AwaitingOwn;
        Ok(None)
    }

    /// Nobody could know at one home what becomes of it at another (rule 14). What only read is placed above what it read.
    fn await_own<R>(
        &mut self,
        tx: &mut Transaction<R>,
        world: &World<'_>,
    ) -> Result<Option<Step>, Stop> {
        let is_local = tx.can_commit_locally();
        if is_local || self.homes.len() > 1 {
            if tx.rests_on_open(world.own) {
                return Ok(Some(Step::Wait(Wait::OwnOutcome)));
            }
            tx.place_above_own(world.own);
        }
        self.stage = match is_local {
            true => Stage::Placing { asked: false },
            false => Stage::Reaching,
        };
        Ok(None)
    }

    /// Has the homes that lag promise more, once: then they validate it.
    fn place<R>(
        &mut self,
        tx: &mut Transaction<R>,
        world: &World<'_>,
        asked: bool,
    ) -> Result<Option<Step>, Stop> {
        let lagging = match placed(tx, world)? {
            Ok(committed) => return Ok(Some(Step::Committed(committed))),
            Err(lagging) => lagging,
        };
        // No promise reaches evidence that stands still.
        let is_frozen = lagging.homes.iter().any(|home| tx.reads().is_frozen(*home));
        if !asked && !is_frozen {
            self.stage = Stage::Placing { asked: true };
            return Ok(Some(Step::Wait(Wait::Promises(lagging))));
        }
        if planted::is(Bug::SessionPromiseAssumed) {
            let position = tx.place(world.cache)?.0;
            let stamp = Some(lagging.stamp);
            let committed = Committed::Locally { position, stamp };
            return Ok(Some(Step::Committed(committed)));
        }
        // What has read on behind a change is placed there or nowhere.
        if let Some(changed) = tx.reads().behind() {
            return Err(Stop::Doomed(Doomed::Changed(changed)));
        }
        self.stage = Stage::Reaching;
        Ok(None)
    }

    fn reach<R>(&mut self, tx: &Transaction<R>) -> Step {
        self.stage = match self.homes.len() {
            2.. if tx.writes().is_empty() => Stage::Validating(Validation {
                left: self.homes.clone(),
                asked: Vec::new(),
                fits: true,
                after: tx.after(),
                depends_on: tx.depends_on().to_vec(),
                pause_ms: 0,
            }),
            _ => Stage::Staging,
        };
        Step::Wait(Wait::Reach(self.homes.clone()))
    }

    fn stage_values<R>(&mut self, tx: &Transaction<R>) -> Option<Step> {
        let homes = self.homes.iter().copied();
        let with_large = homes.filter(|home| !tx.writes().large(*home).is_empty());
        let with_large: Vec<HomeId> = with_large.collect();
        self.stage = Stage::Sending;
        (!with_large.is_empty()).then_some(Step::Stage(with_large))
    }

    fn send<R>(&mut self, tx: &mut Transaction<R>, world: &World<'_>) -> Result<Step, Stop> {
        let none = HashMap::new();
        let (mut parts, mut histories) = (Vec::new(), Vec::new());
        for home in &self.homes {
            let staged = self.staged.get(home).unwrap_or(&none);
            let writes = tx.page_writes(*home, staged);
            histories.push(tx.history(world.cache, *home));
            parts.push(tx.part(world.cache, *home, writes)?);
        }
        self.stage = Stage::Sent(None);
        Ok(Step::Send(CommitCall {
            parts,
            histories,
            depends_on: tx.depends_on().to_vec(),
            after: tx.after(),
        }))
    }

    fn sent(&mut self, ended: Option<Ended>) -> Step {
        match ended {
            Some(Ended::Committed {
                id,
                position,
                stamp,
            }) => Step::Committed(Committed::AtHomes {
                id,
                position,
                stamp,
            }),
            Some(Ended::Busy(pause_ms)) => {
                self.stage = Stage::Sending;
                Step::Wait(Wait::Pause(pause_ms))
            }
            // Sent once more, it would be a second commit.
            None => unreachable!("a driver says how a commit ended before it steps on"),
        }
    }

    /// Asks each home whether what was read there is still so, and to move its clock past the highest stamp that was read. If
    /// all could, the transaction is placed there: what changes what it read has a higher stamp. Else the homes vote: what each
    /// of them has said is so at one moment, but that moment need not fit into the order of stamps, in which others are placed.
    fn validate<R>(
        &mut self,
        tx: &mut Transaction<R>,
        world: &World<'_>,
    ) -> Result<Option<Step>, Stop> {
        let Stage::Validating(validation) = &mut self.stage else {
            return Ok(None);
        };
        // What was not answered is asked again.
        validation.left.append(&mut validation.asked);
        if validation.pause_ms > 0 {
            return Ok(Some(Step::Wait(Wait::Pause(std::mem::take(
                &mut validation.pause_ms,
            )))));
        }
        if validation.left.is_empty() && validation.fits {
            return Ok(Some(Step::Committed(Committed::Validated)));
        }
        if validation.left.is_empty() {
            self.stage = Stage::Staging;
            return Ok(None);
        }
        validation.asked = std::mem::take(&mut validation.left);
        let mut calls = Vec::new();
        for home in &validation.asked {
            calls.push(CommitCall {
                histories: vec![tx.history(world.cache, *home)],
                parts: vec![tx.part(world.cache, *home, Vec::new())?],
                depends_on: validation.depends_on.clone(),
                after: validation.after,
            });
        }
        Ok(Some(Step::Validate(calls)))
    }
}

impl Validation {
    /// The next home answered.
    fn ended(&mut self, ended: Ended) {
        if self.asked.is_empty() {
            return;
        }
        let home = self.asked.remove(0);
        match ended {
            Ended::Committed { stamp, .. } => {
                self.fits &= stamp == self.after || planted::is(Bug::SessionFitAssumed);
            }
            Ended::Busy(pause_ms) => {
                self.left.push(home);
                // A home that asks for no time is asked again after the least there is.
                self.pause_ms = self.pause_ms.max(pause_ms.max(1));
            }
        }
    }
}

/// Commits what only read, if there is a stamp for it, as far as that is known here.
fn placed<R>(
    tx: &mut Transaction<R>,
    world: &World<'_>,
) -> Result<Result<Committed, Lagging>, Stop> {
    let (position, placement) = tx.place(world.cache)?;
    let stamp = match placement {
        Placement::At(stamp) => Some(stamp),
        // At one home it goes on with what is there, whatever else is on its way.
        Placement::Lags(_) if tx.terms().optimistic && position.is_some() => None,
        Placement::Lags(lagging) => return Ok(Err(lagging)),
    };
    tx.check_staleness(world.cache, world.now)?;
    Ok(Ok(Committed::Locally { position, stamp }))
}

#[cfg(test)]
mod tests;
