//! What becomes of a commit request: judged, then accepted, parked or refused.

use crate::home::audit::Occasion;
use crate::home::commit::Whose;
use crate::home::commit::apply::Applier;
use crate::home::commit::dependencies::Dependencies;
use crate::home::commit::effects::Effects;
use crate::home::commit::parking::{Parked, Parking};
use crate::home::commit::refusal::NotNow;
use crate::home::lists;
use crate::home::log::queue::OnDurable;
use crate::home::log::room::{Bill, Demand};
use crate::home::log::{Log, space_estimate};
use crate::home::outcomes::{self, Known};
use crate::home::rights::Denied;
use crate::home::saved::{Saving, Turn};
use crate::home::tables::{Entry, Tables};
use crate::home::two_phase::other_homes::OtherHomes;
use crate::home::two_phase::votes::{State, Vote};
use crate::home::usage::PageCount;
use crate::home::{HomeConfig, Outbox};
use alloc::vec::Vec;
use thorp_model::limits::{COMMIT_BYTES_MAX, DEPENDS_ON_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, CommitRequest, Down, EdgeId, InvalidCommit, Lack, NameId, Note, Now, Outcome,
    PageChange, PageId, Part, Principal, Purpose, Refusal, Registration, Stamp, WriteOp, planted,
};

/// The way of a commit request through the home.
///
/// Every request leaves it with one end: accepted, voted for, parked, or answered. What an answer
/// rests on is ahead of it in the log.
#[derive(Debug)]
pub(in crate::home) struct Pipeline<'a> {
    pub(in crate::home) config: &'a HomeConfig,
    pub(in crate::home) log: &'a mut Log,
    pub(in crate::home) tables: &'a mut Tables,
    pub(in crate::home) parking: &'a mut Parking,
    pub(in crate::home) other_homes: &'a OtherHomes,
}

impl Pipeline<'_> {
    /// Takes a request, for the first time or after its pages have come.
    pub(in crate::home) fn commit(&mut self, now: Now, parked: Parked, outbox: &mut Outbox) {
        let Parked { edge, request, .. } = &parked;
        let edge = *edge;
        let whose = Whose {
            id: request.id,
            registration: request.registration,
        };
        if let Some(saving) = parked.saving
            && !self.is_its_turn((edge, request), saving, outbox)
        {
            return;
        }
        if self.has_ended(now, edge, whose, outbox) {
            return;
        }
        let judged = self.judge(now, &parked, outbox).and_then(|effects| {
            if !request.with.is_empty() {
                self.make_space(now, request, &effects, outbox)?;
            }
            Ok(effects)
        });
        if judged.is_ok() {
            self.log
                .clock
                .see(now, request.after, request.id.member.name());
            self.log.clock.move_up(now.wall, request.after);
        }
        match judged {
            Ok(_) if !request.with.is_empty() => self.vote(now, edge, parked.request, outbox),
            Ok(effects) if request.part.writes.is_empty() => {
                debug_assert!(effects.changes.is_empty());
                let after = self.dependencies().stamp_above(request);
                self.read_only(now, edge, whose.id, after, outbox);
            }
            Ok(effects) => {
                let entry = Entry {
                    stamp: self.log.clock.stamp(now.wall),
                    effects,
                    whose: Some((Some(edge), whose)),
                    executed: request.part.digest(),
                    removed: None,
                    carrier: parked.carrier,
                    saving: parked.saving,
                };
                self.tables.accept(now, entry, self.log, outbox);
            }
            Err(NotNow::Needs(pages)) => self.park(parked, pages, outbox),
            Err(NotNow::Refused(Refusal::Locked { .. })) if planted::is(Bug::LockedWaits) => {}
            Err(NotNow::Refused(refusal)) => {
                if !request.with.is_empty() {
                    outbox.note(Note::VotedNo);
                }
                let saving = parked.saving;
                // A vote in doubt may end otherwise, and a lock ends: the update keeps its number.
                let refusal = match refusal {
                    Refusal::InDoubt | Refusal::Locked { .. } if saving.is_some() => {
                        Refusal::busy()
                    }
                    refusal => refusal,
                };
                let refused = (request, saving, refusal);
                self.tables.refuse(edge, refused, self.log, outbox);
            }
        }
    }

    /// Whether an update is the next one of its log. Any other one is answered here, and nothing is executed (rule C7).
    fn is_its_turn(
        &mut self,
        (edge, request): (EdgeId, &CommitRequest),
        saving: Saving,
        outbox: &mut Outbox,
    ) -> bool {
        let segment = saving.update.segment;
        let mut writes = request.part.writes.iter();
        let is_whole = request.part.reads.is_empty()
            && request.with.is_empty()
            && writes.all(|writes| writes.page.segment == segment);
        let id = request.id;
        let refusal = match self.tables.saved.judge(id.member.name(), saving) {
            _ if !is_whole => Refusal::Invalid {
                reason: InvalidCommit::Malformed,
            },
            // Its log has declared the number void (rule C7).
            Turn::Next if request.part.writes.is_empty() => {
                self.void((edge, id), saving, outbox);
                return false;
            }
            Turn::Next => return true,
            Turn::Saved => {
                outbox.note(Note::UpdateKnown);
                let outcome = Outcome::Committed {
                    position: self.log.tip(),
                    stamp: Stamp::default(),
                };
                self.log.after_all(OnDurable::Tell(edge, id, outcome));
                return false;
            }
            Turn::Refused(refusal) => refusal,
        };
        outbox.note(match refusal {
            Refusal::NotYet { .. } => Note::UpdateNotYet,
            _ => Note::UpdateKnown,
        });
        self.log
            .after_all(OnDurable::Tell(edge, id, Outcome::Refused(refusal)));
        false
    }

    /// Answers a request that comes again. False if its id is new.
    fn has_ended(&mut self, now: Now, edge: EdgeId, whose: Whose, outbox: &mut Outbox) -> bool {
        if let Some((state, stamp)) = self.tables.votes.came_again(whose.id, edge) {
            outbox.note(Note::OutcomeRemembered);
            match state {
                State::InDoubt => self.log.tell_vote(edge, whose.id, stamp),
                State::Decided(_) => {}
                State::Ended(outcome) => self.log.tell_ended(edge, whose.id, outcome),
            }
            return true;
        }
        match self.tables.outcomes.known(whose.registration, whose.id) {
            Known::Ended(_) if planted::is(Bug::OutcomeForgotten) => return false,
            Known::Ended(outcome) => {
                outbox.note(Note::OutcomeRemembered);
                self.log.tell_ended(edge, whose.id, outcome);
            }
            Known::Left | Known::BelowWindow => {
                outbox.note(Note::BelowWindow);
                self.tell(edge, whose.id, &outcomes::forgotten(), outbox);
            }
            Known::New => {
                self.tables.staging.touch(whose.registration, now);
                return false;
            }
        }
        true
    }

    /// A number of a log is over, and nothing was executed.
    fn void(&mut self, (edge, id): (EdgeId, CommitId), saving: Saving, outbox: &mut Outbox) {
        if !self.log.has_space() {
            let refused = Outcome::Refused(Refusal::Full(self.log.lack()));
            return self.tell(edge, id, &refused, outbox);
        }
        let op = self.tables.saved.take(saving, None);
        let outcome = Outcome::Committed {
            position: self.log.tip(),
            stamp: Stamp::default(),
        };
        let then = OnDurable::Tell(edge, id, outcome);
        let purpose = Purpose::Housekeeping;
        self.log.append_ops(purpose, Vec::from([op]), then, outbox);
    }

    fn dependencies(&self) -> Dependencies<'_> {
        Dependencies {
            outcomes: &self.tables.outcomes,
            votes: &self.tables.votes,
            parking: self.parking,
        }
    }

    fn applier<'a>(
        &'a mut self,
        registration: Registration,
        outbox: &'a mut Outbox,
    ) -> Applier<'a> {
        let effects = Effects::default();
        self.tables.applier(self.log, registration, effects, outbox)
    }

    /// Makes space for a part that the home is about to vote for, at a position of the home's own.
    /// Where that would be too much at once it votes without: it moves what it has to when the vote
    /// is carried out.
    fn make_space(
        &mut self,
        now: Now,
        request: &CommitRequest,
        voted: &Effects,
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        let applier = self.applier(request.registration, outbox);
        let space = match applier.space_for(&request.part) {
            Err(NotNow::Refused(Refusal::Invalid { .. })) => return Ok(()),
            space => space?,
        };
        if !space.changes.is_empty() && self.ask_space([&space, voted]).is_ok() {
            let entry = Entry::own(self.log.clock.stamp(now.wall), space);
            self.tables.accept(now, entry, self.log, outbox);
        }
        Ok(())
    }

    fn judge(&mut self, now: Now, parked: &Parked, outbox: &mut Outbox) -> Result<Effects, NotNow> {
        let Parked { who, request, .. } = parked;
        if self.log.is_busy() {
            return Err(NotNow::Refused(Refusal::busy()));
        }
        if parked.saving.is_some_and(|saving| !saving.is_proven) {
            return Err(InvalidCommit::NotProven.into());
        }
        let part = &request.part;
        if part.home != self.config.home {
            return Err(InvalidCommit::Malformed.into());
        }
        if request.bytes() > COMMIT_BYTES_MAX || request.depends_on.len() > DEPENDS_ON_MAX {
            return Err(InvalidCommit::TooLarge.into());
        }
        let of_several = !request.with.is_empty();
        if parked.needs.is_empty() || !planted::is(Bug::ParkedNotChecked) {
            self.check_rights((*who, parked.carrier), part, of_several)?;
        }
        let runs = |op: &WriteOp| matches!(op, WriteOp::Apply { .. });
        let mut ops = part.writes.iter().flat_map(|writes| &writes.slots);
        if of_several && ops.any(|(_, op)| runs(op)) {
            return Err(InvalidCommit::ProcedureOfSeveral.into());
        }
        // A vote is logged, too, and so is how it ends, also where nothing is written.
        let is_logged = !part.writes.is_empty() || !request.with.is_empty();
        let takes_room = !self.log.has_space() && lists::may_take_room(request);
        if !self.log.has_space() && is_logged && !takes_room {
            return Err(NotNow::Refused(Refusal::Full(self.log.lack())));
        }
        // What takes from the kept room is bounded by it. On a full store nothing may be installed before something is deleted.
        if self.tables.pages.mob_is_full() && !part.writes.is_empty() && !takes_room {
            return Err(NotNow::Refused(Refusal::busy()));
        }
        if parked.saving.is_none() || !planted::is(Bug::UpdatePastLock) {
            let locks = &mut self.tables.segment_locks;
            let judged = locks.judge((now.mono, request.id.member), part);
            judged.map_err(NotNow::Refused)?;
        }
        let named = self.dependencies().positions(request)?;
        let votes = &self.tables.votes;
        votes.check_participants(request, self.other_homes)?;
        votes.check_space(request, self.config.votes_bytes_max, now.mono)?;
        // A commit that conflicts with a vote in doubt never waits (trap 14).
        if votes.conflict(&self.tables.locks_of(part)) {
            return Err(NotNow::Refused(Refusal::InDoubt));
        }
        self.dependencies().check_values(request)?;
        let mut validator = self.tables.validator(self.log);
        // An update has read nothing, also where its operation looks at what is there (rule C6).
        let evidence = match parked.saving {
            Some(_) => validator.tip,
            None => part.evidence,
        };
        validator.validate(part, evidence, &named, outbox)?;
        let mut effects = self.applier(request.registration, outbox).effects(part)?;
        if of_several {
            self.ask_space_to_vote(request, &effects)?;
        } else if !part.writes.is_empty() {
            let author = parked.saving.and_then(|saving| saving.author);
            effects.bill = self.bill((request, author), &effects)?;
        }
        self.check_space(*who, &effects)?;
        Ok(effects)
    }

    /// Judges the space that a name has after a commit (rule R7). Operators have no share.
    fn check_space(&self, who: Principal, effects: &Effects) -> Result<(), NotNow> {
        let count = |of: fn(&PageCount) -> u32| -> u64 {
            let counts = effects.pages_of.values();
            counts.map(|count| u64::from(of(count))).sum()
        };
        let fresh = count(|count| count.begun - count.staged);
        let more = fresh.saturating_sub(count(|count| count.ended));
        let judged = self.tables.check_space(who, more, self.log);
        judged.map_err(|share| NotNow::Refused(Refusal::Share(share)))
    }

    /// Judges a part's rights. What it lacks is recorded (rule R8).
    fn check_rights(
        &mut self,
        (who, carrier): (Principal, Option<NameId>),
        part: &Part,
        several: bool,
    ) -> Result<(), NotNow> {
        let Tables {
            rights, segments, ..
        } = &*self.tables;
        let judged = rights.check_part(segments, who, part, several);
        judged.map_err(|Denied { why, wanted }| {
            if let Some((segment, right)) = wanted {
                let occasion = Occasion::denied(who.name, segment, right);
                self.tables.audit.note(occasion.brought_by(carrier), 1);
            }
            why
        })
    }

    /// What a commit takes of the room that a full store keeps back (rule R7): nothing while the store has space for it.
    /// What stays of a change is its outcome, and by how much lists grow, less what it removes.
    /// The author of an update pays, if that is not the log's own member.
    fn bill(
        &self,
        (request, author): (&CommitRequest, Option<NameId>),
        effects: &Effects,
    ) -> Result<Bill, NotNow> {
        let full = |lack| NotNow::Refused(Refusal::Full(lack));
        if self.log.has_space() {
            let asked = self.ask_space([effects]);
            return asked.map(|()| Bill::default()).map_err(full);
        }
        let lists = lists::list_bytes(request);
        let (bytes, ops) = weight([effects]);
        // The home stores a copy of each list.
        let copies = space_estimate::charge(2 * lists, 0);
        let grown = copies
            .saturating_add(OUTCOME_BYTES)
            .saturating_sub(effects.freed);
        let brought = space_estimate::charge(bytes + lists, ops + 1);
        let demand = Demand {
            brought,
            lasting: grown.min(brought),
        };
        let name = author.unwrap_or_else(|| request.id.member.name());
        let bill = self.log.bill(name, demand);
        bill.ok_or_else(|| full(self.log.lack()))
    }

    /// Whether the store has space for the record of a vote, and beside it for what the part brings.
    fn ask_space_to_vote(&self, request: &CommitRequest, effects: &Effects) -> Result<(), NotNow> {
        let (bytes, ops) = weight([effects]);
        let asked = self.log.ask_space(request.bytes() + bytes, ops + 1);
        asked.map_err(|lack| NotNow::Refused(Refusal::Full(lack)))
    }

    /// Whether the store has space for accepted commits, by what is known.
    fn ask_space<const N: usize>(&self, accepted: [&Effects; N]) -> Result<(), Lack> {
        let (bytes, ops) = weight(accepted);
        self.log.ask_space(bytes, ops)
    }

    fn park(&mut self, mut parked: Parked, pages: Vec<PageId>, outbox: &mut Outbox) {
        let (edge, id) = (parked.edge, parked.request.id);
        parked.needs.extend(&pages);
        parked.missing.extend(&pages);
        if !self.parking.park(parked) {
            outbox.note(Note::RefusedBusy);
            return self.tell(edge, id, &Outcome::Refused(Refusal::busy()), outbox);
        }
        outbox.note(Note::CommitParked);
        for page in pages {
            self.tables.pages.load(page, outbox);
        }
    }

    /// A strict transaction that wrote nothing is answered when everything that it was validated
    /// against is durable; it stands after all of that. A later commit that changes what it read
    /// has a stamp above the clock. So it stands at the stamp that it wanted, if the clock could be
    /// moved past that (rule 5), and stays so when the home starts again (rule 12).
    fn read_only(
        &mut self,
        now: Now,
        edge: EdgeId,
        id: CommitId,
        after: Stamp,
        outbox: &mut Outbox,
    ) {
        outbox.note(Note::ReadOnlyValidated);
        let forgets = planted::is(Bug::ReaderAboveCeiling);
        let reserves = self.log.reserves(now) && !forgets;
        let is_kept = reserves || self.log.clock.keeps(after) || forgets;
        let stamp = if self.log.clock.is_past(after) && is_kept {
            after
        } else {
            Stamp::default()
        };
        let outcome = Outcome::Committed {
            position: self.log.tip(),
            stamp,
        };
        let then = OnDurable::Tell(edge, id, outcome);
        if forgets {
            self.log.after_all(then);
        } else {
            self.log.after_reservation(now, then, outbox);
        }
    }

    /// The part may stand: it is locked, and the vote is sent once it is logged. Until then the vote may be lost, like a
    /// commit that is not logged. So its record is new data: it is as large as the part.
    fn vote(&mut self, now: Now, edge: EdgeId, request: CommitRequest, outbox: &mut Outbox) {
        outbox.note(Note::Voted);
        let id = request.id;
        let locks = self.tables.locks_of(&request.part);
        let stamp = self.log.clock.stamp(now.wall);
        let vote = Vote::new(request, stamp, locks, now.mono);
        let mut ops = self.tables.votes.vote(vote, edge);
        ops.extend(self.tables.receipts.save());
        let then = OnDurable::Vote(edge, id, stamp);
        self.log.append(now, (Purpose::NewData, ops), then, outbox);
    }

    fn tell(&self, edge: EdgeId, commit: CommitId, outcome: &Outcome, outbox: &mut Outbox) {
        outbox.down(
            edge,
            Down::outcome(self.config.home, commit, outcome.clone()),
        );
    }
}

/// What a change takes in a log record beside its value, in bytes, about.
const CHANGE_FRAME_BYTES: usize = 16;

/// What the outcome of a commit takes, in bytes, about.
const OUTCOME_BYTES: u64 = 128;

/// Bytes that accepted commits bring, and in how many operations.
fn weight<const N: usize>(accepted: [&Effects; N]) -> (usize, usize) {
    let changes = || accepted.iter().flat_map(|effects| effects.changes.values());
    let frames: usize = changes().map(|change| change.slot_count().max(1)).sum();
    let values: usize = changes().map(PageChange::bytes).sum();
    let ops = accepted
        .iter()
        .map(|effects| space_estimate::bytes_of(&effects.ops));
    let bytes = values + frames * CHANGE_FRAME_BYTES + ops.sum::<usize>();
    // The log records and outcomes, too.
    let ops = accepted.iter().map(|effects| effects.ops.len() + 2);
    (bytes, ops.sum())
}
