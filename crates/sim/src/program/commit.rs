//! How a session's transaction asks to commit, and what it learns of that.

use super::session::{Context, Phase, Session, Waiting, Wish};
use super::transaction::{Positions, Transaction};
use super::value::Known;
use crate::failure::Checked;
use crate::history::{Asked, Written};
use std::collections::VecDeque;
use std::rc::Rc;
use thorp_cache::Cache;
use thorp_model::limits::WATERMARK_WAIT_MS;
use thorp_model::snapshot::Lagging;
use thorp_model::{
    CallRequest, CommitId, HomeId, InvalidCommit, MemberId, NewValue, ObjectId, Outcome, Overflow,
    PageNo, PageWrites, Part, Position, Refusal, SegmentId, Stamp, WriteOp,
};
use thorp_protocol::Request;
use thorp_session::{CommitCall, Committed, Ended, Step, Stop, Wait};

impl Session {
    /// Takes a transaction on to its end, as the client does.
    pub fn commit(
        &mut self,
        mut transaction: Box<Transaction>,
        cache: &Cache,
        context: &Context<'_>,
    ) -> Checked<Wish> {
        let world = thorp_session::World {
            cache,
            now: context.mono,
            own: context.history,
        };
        loop {
            let step = transaction.commit.step(&mut transaction.core, &world);
            return Ok(match step {
                Err(Stop::HomeSilent { .. } | Stop::ReadsTooOld { .. }) => {
                    Wish::Ended(transaction, "no news")
                }
                Err(_) => Wish::Ended(transaction, "doomed"),
                Ok(Step::Committed(Committed::Locally { position, stamp })) => {
                    match evidence(&mut transaction, cache, position) {
                        Ok(evidence) => {
                            Wish::Read(transaction, evidence, stamp.unwrap_or_default())
                        }
                        Err(_) => Wish::Ended(transaction, "doomed"),
                    }
                }
                Ok(Step::Committed(Committed::Validated)) => Wish::Validated(transaction),
                Ok(Step::Wait(Wait::OwnOutcome)) => self.wait_for_own(transaction),
                Ok(Step::Wait(Wait::Promises(lagging))) => self.ask_promise(transaction, lagging),
                Ok(Step::Wait(Wait::Pause(ms))) => {
                    self.phase = Phase::Running(transaction);
                    Wish::Rest(u64::from(ms) * 1_000)
                }
                // A stream may end just then: what is sent is lost, or waits.
                Ok(Step::Wait(Wait::Reach(homes)))
                    if !homes.iter().all(|home| context.live.contains(home))
                        && self.prng.percent(REACH_PERCENT) =>
                {
                    self.phase = Phase::Running(transaction);
                    Wish::Rest(2_000 + self.prng.below(20_000))
                }
                Ok(Step::Send(call)) => self.ask_to_commit(transaction, call, context),
                Ok(Step::Validate(calls)) => {
                    self.ask_to_validate(transaction, calls.into(), context.member)
                }
                // It did nothing. What homes have committed ends with their outcome.
                Ok(Step::Committed(_)) => Wish::Ended(transaction, "nothing done"),
                // Errands have staged large values before.
                Ok(Step::Stage(homes)) => {
                    for home in homes {
                        let staged = transaction.staged_at(home);
                        transaction.commit.staged(home, staged);
                    }
                    continue;
                }
                Ok(Step::Wait(Wait::Reach(_))) => continue,
            });
        }
    }

    /// The homes that lag are asked to promise more, each once. After them it is validated, if they do not (rule 5).
    pub(super) fn ask_promise(
        &mut self,
        transaction: Box<Transaction>,
        mut lagging: Lagging,
    ) -> Wish {
        let Some(home) = lagging.homes.pop() else {
            self.phase = Phase::Running(transaction);
            return Wish::Rest(0);
        };
        let at_least = lagging.stamp;
        self.phase = Phase::Promising(transaction, lagging);
        let request = CallRequest::Watermark { at_least };
        Wish::Request(Request::Call { home, request }, Some(WATERMARK_WAIT_MS))
    }

    /// What it has read is its program's own, and not answered yet: it looks again a little later.
    pub fn wait_for_own(&mut self, transaction: Box<Transaction>) -> Wish {
        self.phase = Phase::Running(transaction);
        Wish::Rest(2_000 + self.prng.below(20_000))
    }

    fn ask_to_commit(
        &mut self,
        transaction: Box<Transaction>,
        call: CommitCall,
        context: &Context<'_>,
    ) -> Wish {
        let alone = call.parts.len() == 1;
        let wrong = alone && !context.healed && self.prng.per_mille(context.habits.wrong);
        let spoil = |part| if wrong { self.spoil(part) } else { part };
        let parts: Vec<Part> = call.parts.into_iter().map(spoil).collect();
        let drawn = self.draw_builds_on(context);
        // It is named at a home that is asked; over several homes only what is committed.
        let is_asked = parts.iter().any(|part| part.home == self.home);
        let drawn = drawn.filter(|(_, committed)| is_asked && (alone || *committed));
        let wrong = wrong || drawn.is_some_and(|(_, committed)| !committed);
        let drawn = drawn.map(|(id, _)| (self.home, id));
        let depends_on = call.depends_on.into_iter().chain(drawn).collect();
        let asked = Asked {
            asker: self.next_asker(),
            writes: transaction.after.clone(),
            member: context.member,
            parts,
            histories: call.histories,
            seen: transaction.seen.clone(),
            acknowledged: transaction.acknowledged.clone(),
            wrong,
            depends_on,
            after: call.after,
        };
        let early = alone && self.prng.percent(context.habits.early);
        let (asked, ask) = self.wait_for(asked, &transaction, None, early);
        let patience = self.patience(context).filter(|_| alone);
        Wish::Commit(transaction, asked, ask, patience)
    }

    /// The first of several homes is asked to validate what was read there, the others one after the other.
    fn ask_to_validate(
        &mut self,
        mut transaction: Box<Transaction>,
        mut calls: VecDeque<CommitCall>,
        member: MemberId,
    ) -> Wish {
        let Some(call) = calls.pop_front() else {
            self.phase = Phase::Running(transaction);
            return Wish::Rest(0);
        };
        transaction.placed = call.after;
        let at = |home: HomeId| call.parts.iter().any(|part| part.home == home);
        let mut seen = transaction.seen.clone();
        seen.retain(|(home, _), _| at(*home));
        let asked = Asked {
            asker: self.next_asker(),
            writes: Written::new(),
            member,
            parts: call.parts.clone(),
            histories: call.histories,
            seen,
            acknowledged: transaction.acknowledged.clone(),
            wrong: false,
            depends_on: call.depends_on,
            after: call.after,
        };
        let (asked, ask) = self.wait_for(asked, &transaction, Some(calls), false);
        Wish::Validate(transaction, asked, ask)
    }

    fn next_asker(&mut self) -> (u32, u64) {
        self.asker.1 += 1;
        self.asker
    }

    /// It waits for the outcome of this from now on.
    fn wait_for(
        &mut self,
        asked: Asked,
        transaction: &Transaction,
        validations: Option<VecDeque<CommitCall>>,
        early: bool,
    ) -> (Rc<Asked>, Request) {
        let ask = Request::Commit {
            parts: asked.parts.clone(),
            histories: asked.histories.clone(),
            depends_on: asked.depends_on.clone(),
            after: asked.after,
            early,
        };
        let asked = Rc::new(asked);
        let homes = transaction.homes.iter();
        let waiting = Waiting {
            asked: asked.clone(),
            floors: transaction.floors.clone(),
            learned: homes.map(|h| (*h, transaction.learned(*h))).collect(),
            transaction: None,
            validations,
        };
        self.phase = Phase::Committing(Box::new(waiting));
        (asked, ask)
    }

    /// The commit that it has waited for ended. A home that is busy is asked again after a while, as the client does, a few
    /// times (rule 11).
    pub(super) fn commit_ended(
        &mut self,
        mut waiting: Waiting,
        id: CommitId,
        outcome: &Outcome,
        rest: u64,
    ) -> Wish {
        let ended = self.ended(&waiting, id, outcome);
        if let (Some(ended), Some(mut transaction)) = (ended, waiting.transaction.take()) {
            transaction.commit.ended(ended);
            transaction.resends += u32::from(matches!(ended, Ended::Busy(_)));
            let calls = waiting.validations.unwrap_or_default();
            if let (Ended::Committed { position, .. }, [part]) = (ended, &waiting.asked.parts[..]) {
                let position = position.unwrap_or_default();
                transaction.validated.insert(part.home, position);
            }
            return self.ask_to_validate(transaction, calls, waiting.asked.member);
        }
        // What is over several homes may not have its place yet: it is named by who has read it.
        if waiting.asked.parts.len() == 1 && !waiting.is_validation() {
            self.earlier = Some((id, matches!(outcome, Outcome::Committed { .. })));
        }
        self.outcome(waiting.learned(self.home), outcome);
        match waiting.transaction {
            Some(transaction) if waiting.validations.is_some() => {
                Wish::Ended(transaction, "refused by a home that validates")
            }
            _ => Wish::Rest(rest),
        }
    }

    /// What its transaction hears of it, if that goes on then.
    fn ended(&self, waiting: &Waiting, id: CommitId, outcome: &Outcome) -> Option<Ended> {
        match outcome {
            Outcome::Committed { position, stamp } if waiting.is_validation() => {
                Some(Ended::Committed {
                    id,
                    position: Some(*position),
                    stamp: *stamp,
                })
            }
            Outcome::Refused(Refusal::Busy { retry_after_ms }) => {
                let transaction = waiting.transaction.as_ref()?;
                let again = !waiting.asked.wrong && transaction.resends < RESENDS_MAX;
                again.then_some(Ended::Busy(*retry_after_ms))
            }
            _ => None,
        }
    }

    /// Now and then a transaction names an earlier one, that was committed or refused.
    fn draw_builds_on(&mut self, context: &Context<'_>) -> Option<(CommitId, bool)> {
        let earlier = self.earlier.filter(|_| !context.healed);
        earlier.filter(|_| self.prng.percent(4))
    }

    /// Makes a request that no right program would make.
    fn spoil(&mut self, mut part: Part) -> Part {
        match self.prng.below(5) {
            0 => part.evidence = Position(part.evidence.0 + 1_000_000),
            1 => {
                let again = part.writes.clone();
                part.writes.extend(again);
            }
            2 => part
                .writes
                .iter_mut()
                .for_each(|writes| writes.page.segment = SegmentId(9_999)),
            3 => part
                .writes
                .iter_mut()
                .for_each(|writes| writes.page.page.0 |= PageNo::OVERFLOW_FIRST.0),
            _ => part.writes.iter_mut().for_each(name_unstaged),
        }
        if part.writes.is_empty() {
            part.evidence = Position(part.evidence.0 + 1_000_000);
        }
        part
    }

    /// How one of its commits ended.
    pub fn outcome(&mut self, learned: &[(ObjectId, Known)], outcome: &Outcome) {
        match outcome {
            Outcome::Committed { position, stamp } => {
                self.stamp_floor = self.stamp_floor.max(*stamp);
                self.floor = self.floor.max(*position);
                self.progress += 1;
                self.learn(learned);
            }
            Outcome::Refused(Refusal::Conflict { object }) => {
                self.known.remove(object);
            }
            Outcome::Refused(Refusal::Invalid { reason }) => match reason {
                InvalidCommit::NoSuchSegment => self.leave_passing(),
                InvalidCommit::Generation { object, .. } | InvalidCommit::Patch { object } => {
                    self.known.remove(object);
                }
                InvalidCommit::NotStaged => self.registration = None,
                _ => {}
            },
            Outcome::Refused(_) => {}
        }
    }

    /// A transaction that only read has committed, as of these positions.
    pub fn read_only_done(
        &mut self,
        transaction: &Transaction,
        evidence: &Positions,
        stamp: Stamp,
    ) {
        self.stamp_floor = self.stamp_floor.max(stamp);
        let position = evidence.get(&self.home).copied();
        self.floor = self.floor.max(position.unwrap_or_default());
        self.progress += 1;
        self.learn(&transaction.learned(self.home));
    }

    pub(super) fn learn(&mut self, learned: &[(ObjectId, Known)]) {
        self.known.extend(learned.iter().copied());
        while self.known.len() > 40 {
            self.known.pop_first();
        }
    }
}

/// The positions of what was read, as the client reports them: of a transaction at one home with its commit.
fn evidence(
    transaction: &mut Transaction,
    cache: &Cache,
    reported: Option<Position>,
) -> Result<Positions, Stop> {
    let mut evidence = transaction.evidence(cache)?;
    if let Some(reported) = reported {
        evidence
            .values_mut()
            .for_each(|position| *position = reported);
    }
    Ok(evidence)
}

/// How often a commit is sent again to a home that is busy.
const RESENDS_MAX: u32 = 3;

/// Of a hundred transactions that are to be sent while a stream is not live, those that wait for it.
const REACH_PERCENT: u64 = 50;

/// Writes values that nobody has staged.
fn name_unstaged(writes: &mut PageWrites) {
    let value = NewValue::Staged(Overflow {
        bytes: 10_000,
        first: PageNo(PageNo::OVERFLOW_FIRST.0 + 1_000_000),
        pages: 2,
    });
    for (_, op) in &mut writes.slots {
        let value = value.clone();
        let generation = op.generation();
        *op = match op {
            WriteOp::Create { .. } => WriteOp::Create { generation, value },
            _ => WriteOp::Write { generation, value },
        };
    }
}
