//! How a session's transaction asks to commit, and what it learns of that.

use super::session::{Context, Known, Phase, Session, Waiting, Wish};
use super::transaction::Transaction;
use crate::failure::Checked;
use crate::history::Asked;
use std::rc::Rc;
use thorp_cache::Cache;
use thorp_model::limits::WATERMARK_WAIT_MS;
use thorp_model::snapshot::Lagging;
use thorp_model::{
    CallRequest, CommitId, HomeId, InvalidCommit, NewValue, ObjectId, Outcome, Overflow, PageNo,
    PageWrites, Part, Position, Refusal, SegmentId, Stamp, WriteOp,
};
use thorp_protocol::Request;
use thorp_session::{CommitCall, Committed, Step, Stop, Wait};

impl Session {
    /// Takes a transaction on to its end, as the client does.
    pub fn commit(
        &mut self,
        mut transaction: Box<Transaction>,
        cache: &Cache,
        context: &Context<'_>,
    ) -> Checked<Wish> {
        // Its thread may have heard of a late outcome since it began.
        transaction.core.raise_floor(self.stamp_floor);
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
                    let position = position.unwrap_or_default();
                    Wish::Read(transaction, position, stamp.unwrap_or_default())
                }
                Ok(Step::Wait(Wait::OwnOutcome)) => self.wait_for_own(transaction),
                Ok(Step::Wait(Wait::Promises(lagging))) => self.ask_promise(transaction, &lagging),
                // The stream may end just then: what is sent is lost, or waits.
                Ok(Step::Wait(Wait::Reach(_)))
                    if !context.is_live && self.prng.percent(REACH_PERCENT) =>
                {
                    self.phase = Phase::Running(transaction);
                    Wish::Rest(2_000 + self.prng.below(20_000))
                }
                Ok(Step::Send(call)) => self.ask_to_commit(transaction, call, context),
                // It did nothing; what is busy or validated at several homes is no step of a single one.
                Ok(Step::Committed(_)) => Wish::Ended(transaction, "nothing done"),
                Ok(Step::Wait(_) | Step::Stage(_) | Step::Validate(_)) => continue,
            });
        }
    }

    /// Its home is asked to promise more, once; then it is validated there (rule 5).
    fn ask_promise(&mut self, transaction: Box<Transaction>, lagging: &Lagging) -> Wish {
        self.phase = Phase::Promising(transaction);
        let at_least = lagging.stamp;
        let request = CallRequest::Watermark { at_least };
        let home = lagging.homes[0];
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
        let after = call.after;
        let wrong = !context.healed && self.prng.per_mille(context.habits.wrong);
        let spoil = |part| if wrong { self.spoil(part) } else { part };
        let parts: Vec<Part> = call.parts.into_iter().map(spoil).collect();
        let drawn = self.draw_builds_on(context);
        let wrong = wrong || drawn.iter().any(|(_, committed)| !committed);
        let drawn = drawn.into_iter().map(|(id, _)| (self.home, id));
        let depends_on: Vec<(HomeId, CommitId)> =
            call.depends_on.into_iter().chain(drawn).collect();
        self.asker.1 += 1;
        let asked = Rc::new(Asked {
            asker: self.asker,
            writes: transaction.written(),
            member: context.member,
            parts,
            seen: transaction.seen.clone(),
            acknowledged: transaction.acknowledged.clone(),
            wrong,
            depends_on: depends_on.clone(),
            after,
        });
        let ask = Request::Commit {
            parts: asked.parts.clone(),
            depends_on,
            after,
            early: self.prng.percent(context.habits.early),
        };
        let waiting = Waiting {
            asked: asked.clone(),
            floor: self.floor,
            learned: transaction.learned(),
            transaction: None,
        };
        self.phase = Phase::Committing(Box::new(waiting));
        let patience = self.patience(context);
        Wish::Commit(transaction, asked, ask, patience)
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
    pub fn outcome(&mut self, waiting: &Waiting, outcome: &Outcome) {
        match outcome {
            Outcome::Committed { position, stamp } => {
                self.stamp_floor = self.stamp_floor.max(*stamp);
                self.floor = self.floor.max(*position);
                self.progress += 1;
                self.learn(&waiting.learned);
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

    /// A read-only transaction has committed without a message.
    pub fn read_only_done(&mut self, transaction: &Transaction, evidence: Position, stamp: Stamp) {
        self.stamp_floor = self.stamp_floor.max(stamp);
        self.floor = self.floor.max(evidence);
        self.progress += 1;
        self.learn(&transaction.learned());
    }

    pub(super) fn learn(&mut self, learned: &[(ObjectId, Known)]) {
        self.known.extend(learned.iter().copied());
        while self.known.len() > 40 {
            self.known.pop_first();
        }
    }
}

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
