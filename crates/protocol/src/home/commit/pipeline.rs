//! What becomes of a commit request: judged, then accepted, parked or refused.

use crate::home::commit::effects::Effects;
use crate::home::commit::parking::Parked;
use crate::home::commit::validate::{NotNow, Whose};
use crate::home::log::queue::{OnDurable, Reached};
use crate::home::log::space_estimate;
use crate::home::outcomes::Known;
use crate::home::two_phase::votes::Vote;
use crate::home::{Home, Outbox, outcomes};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::limits::{BUSY_RETRY_MS, COMMIT_BYTES_MAX, DEPENDS_ON_MAX};
use thorp_model::planted::Bug;
use thorp_model::records::LogRecord;
use thorp_model::{
    CommitId, CommitRequest, EdgeId, InvalidCommit, Note, Now, ObjectId, Op, Outcome, PageChange,
    PageId, Part, Position, Purpose, Refusal, SegmentId, Stamp, Table, planted, records,
};

impl Home {
    pub(in crate::home) fn commit(
        &mut self,
        now: Now,
        edge: EdgeId,
        request: CommitRequest,
        outbox: &mut Outbox,
    ) {
        let parked = self.parking.of(edge);
        let admission = self.log.admission();
        if admission.has_all_commits(edge, parked, &self.children, outbox) {
            outbox.note(Note::RefusedBusy);
            return self.tell(edge, request.id, &Outcome::Refused(busy()), outbox);
        }
        let parked = Parked {
            edge,
            request,
            needs: BTreeSet::new(),
            missing: BTreeSet::new(),
        };
        self.try_commit(now, parked, outbox);
    }

    pub(in crate::home) fn try_commit(&mut self, now: Now, parked: Parked, outbox: &mut Outbox) {
        let Parked { edge, request, .. } = &parked;
        let edge = *edge;
        let whose = Whose {
            id: request.id,
            registration: request.registration,
        };
        if self.voted_before(edge, whose.id, outbox) {
            return;
        }
        match self.outcomes.known(whose.registration, whose.id) {
            Known::Ended(_) if planted::is(Bug::OutcomeForgotten) => {}
            Known::Ended(outcome) => {
                outbox.note(Note::OutcomeRemembered);
                return self.log.tell_ended(edge, whose.id, outcome);
            }
            Known::BelowWindow => {
                outbox.note(Note::BelowWindow);
                return self.tell(edge, whose.id, &outcomes::forgotten(), outbox);
            }
            Known::New => self.staging.touch(whose.registration, now),
        }
        let judged = self.judge(request, outbox).and_then(|effects| {
            if !request.with.is_empty() {
                self.make_space(now, &request.part, &effects, outbox)?;
            }
            Ok(effects)
        });
        if judged.is_ok() {
            self.log.clock.move_up(now.wall, request.after);
        }
        match judged {
            Ok(_) if !request.with.is_empty() => self.vote(now, edge, parked.request, outbox),
            Ok(effects) if request.part.writes.is_empty() => {
                debug_assert!(effects.changes.is_empty());
                let after = self.after_named(request);
                self.read_only(now, edge, whose.id, after, outbox);
            }
            Ok(effects) => self.accept(now, effects, Some((edge, whose)), None, outbox),
            Err(NotNow::Needs(pages)) => self.park(parked, pages, outbox),
            Err(NotNow::Refused(refusal)) => {
                if !request.with.is_empty() {
                    outbox.note(Note::VotedNo);
                }
                self.refuse(edge, request, refusal, outbox);
            }
        }
    }

    /// Makes room for what is about to be voted for, at a position of this home's own. Where that would be too much at once
    /// it is voted for without: what has to be moved then is moved when it is carried out.
    fn make_space(
        &mut self,
        now: Now,
        part: &Part,
        voted: &Effects,
        outbox: &mut Outbox,
    ) -> Result<(), NotNow> {
        let space = match self.space_for(part, outbox) {
            Err(NotNow::Refused(Refusal::Invalid { .. })) => return Ok(()),
            space => space?,
        };
        if !space.changes.is_empty() && self.fits([&space, voted]) {
            self.accept(now, space, None, None, outbox);
        }
        Ok(())
    }

    pub(in crate::home) fn judge(
        &mut self,
        request: &CommitRequest,
        outbox: &mut Outbox,
    ) -> Result<Effects, NotNow> {
        if self.log.is_busy() {
            return Err(NotNow::Refused(busy()));
        }
        let part = &request.part;
        if part.home != self.config.home {
            return Err(InvalidCommit::Malformed.into());
        }
        if request.bytes() > COMMIT_BYTES_MAX || request.depends_on.len() > DEPENDS_ON_MAX {
            return Err(InvalidCommit::TooLarge.into());
        }
        // A vote is logged, too, and so is how it ends, also where nothing is written.
        let is_logged = !part.writes.is_empty() || !request.with.is_empty();
        if !self.log.has_space() && is_logged {
            return Err(NotNow::Refused(Refusal::Full));
        }
        if self.mob_is_full() && !part.writes.is_empty() {
            return Err(NotNow::Refused(busy()));
        }
        let named = self.check_depends_on(request)?;
        self.check_participants(request)?;
        self.check_locks(part)?;
        self.check_named_values(request)?;
        self.validate(part, &named, outbox)?;
        let effects = self.effects(part, request.registration, Effects::default(), outbox)?;
        if !part.writes.is_empty() && !self.fits([&effects]) {
            return Err(NotNow::Refused(Refusal::Full));
        }
        Ok(effects)
    }

    /// Rules 4 and 14: what it builds on must be committed, and is its evidence for the objects
    /// that were changed by it last. What is voted for, and not told yet, is in doubt here. One that waits for pages was sent
    /// before: so long this one waits, too.
    fn check_depends_on(&self, request: &CommitRequest) -> Result<Vec<Position>, NotNow> {
        let is_known = |id: &&CommitId| {
            !planted::is(Bug::BuiltOnAnything) || self.outcomes.committed(**id).is_some()
        };
        let named = request.depends_on.iter().filter(is_known).map(|id| {
            if let Some(pages) = self.parking.missing_of(*id) {
                return Err(NotNow::Needs(pages));
            }
            if self.votes.get(*id).is_some_and(Vote::holds_locks) {
                return Err(NotNow::Refused(Refusal::InDoubt));
            }
            let committed = self.outcomes.committed(*id);
            let position = committed.map(|(position, _)| position);
            position.ok_or(NotNow::Refused(Refusal::BuiltOnRefused))
        });
        named.collect()
    }

    /// What a request stands above: also the commits that it names. Who has read their values before they were answered did
    /// not know their stamps (rule 5).
    fn after_named(&self, request: &CommitRequest) -> Stamp {
        if planted::is(Bug::EarlyStampNotKnown) {
            return request.after;
        }
        let named = request.depends_on.iter();
        let named = named.filter_map(|id| self.outcomes.committed(*id));
        named
            .map(|(_, stamp)| stamp)
            .fold(request.after, Stamp::max)
    }

    /// Whether the store has room for accepted commits, by what is known.
    fn fits<const N: usize>(&self, accepted: [&Effects; N]) -> bool {
        let changes = || accepted.iter().flat_map(|effects| effects.changes.values());
        let slots: usize = changes().map(PageChange::slot_count).sum();
        let values: usize = changes().map(PageChange::bytes).sum();
        let ops = accepted
            .iter()
            .map(|effects| space_estimate::bytes_of(&effects.ops));
        let bytes = values + slots * CHANGE_FRAME_BYTES + ops.sum::<usize>();
        // The log records and outcomes, too.
        let ops = accepted.iter().map(|effects| effects.ops.len() + 2);
        self.log.fits(bytes, ops.sum())
    }

    pub(in crate::home) fn park(
        &mut self,
        mut parked: Parked,
        pages: Vec<PageId>,
        outbox: &mut Outbox,
    ) {
        let (edge, id) = (parked.edge, parked.request.id);
        parked.needs.extend(&pages);
        parked.missing.extend(&pages);
        if !self.parking.park(parked) {
            outbox.note(Note::RefusedBusy);
            return self.tell(edge, id, &Outcome::Refused(busy()), outbox);
        }
        outbox.note(Note::CommitParked);
        for page in pages {
            self.load(page, outbox);
        }
    }

    /// A strict transaction that wrote nothing is told when everything it was
    /// validated against is durable; it stands after all of that. What will change what it
    /// read has a stamp above the clock: so it stands at the stamp that it wanted, if the clock
    /// could be moved past that (rule 5), and stays so when the home starts again (rule 12).
    pub(in crate::home) fn read_only(
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

    /// Puts effects at the next position of the log, under this home's own stamp.
    pub(in crate::home) fn accept(
        &mut self,
        now: Now,
        effects: Effects,
        whose: Option<(EdgeId, Whose)>,
        removed: Option<SegmentId>,
        outbox: &mut Outbox,
    ) {
        let stamp = self.log.clock.stamp(now.wall);
        let whose = whose.map(|(edge, whose)| (Some(edge), whose));
        self.accept_at(now, stamp, effects, whose, removed, outbox);
    }

    /// Puts effects at the next position of the log: log record, outcome and
    /// object changes are one batch (foundation 6).
    pub(in crate::home) fn accept_at(
        &mut self,
        now: Now,
        stamp: Stamp,
        effects: Effects,
        whose: Option<(Option<EdgeId>, Whose)>,
        removed: Option<SegmentId>,
        outbox: &mut Outbox,
    ) {
        let position = self.log.accept(stamp);
        let changes: Vec<PageChange> = effects.changes.into_values().collect();
        let mut ops = effects.ops;
        let at = (position, stamp);
        self.note_changes(&changes, &effects.moved, at, &mut ops, outbox);
        if let Some((_, whose)) = whose {
            outbox.note(Note::CommitAccepted);
            for token in effects.staged {
                self.staging.remove(whose.registration, token);
            }
            let outcome = Outcome::Committed { position, stamp };
            self.outcomes
                .record(whose.registration, whose.id, outcome.clone(), &mut ops);
            ops.extend(self.votes.end(whose.id, outcome, now.mono));
        }
        let record = LogRecord {
            position,
            stamp,
            commit: whose.map(|(_, whose)| whose.id),
            changes,
        };
        ops.push(records::put(
            Table::Log,
            records::log_key(position),
            &record,
        ));
        // The removal of a segment has to be possible in a full store.
        let purpose = match record.commit.is_none() && record.changes.is_empty() {
            true => Purpose::Housekeeping,
            false => Purpose::NewData,
        };
        let pages = record.changes.iter().map(|change| change.page);
        let image_bytes = pages.map(|page| self.pages.tip_bytes(page)).sum();
        let then = OnDurable::Reach(Reached {
            position,
            stamp,
            changes: record.changes,
            origin: whose.and_then(|(edge, whose)| Some((edge?, whose.id))),
            removed,
            image_bytes,
        });
        self.log.append(now, (purpose, ops), then, outbox);
    }

    /// What was only moved is as it was: whoever has read it is right, and its last change may be one that no name of this
    /// commit excuses (rules 4 and 6).
    fn note_changes(
        &mut self,
        changes: &[PageChange],
        moved: &BTreeSet<ObjectId>,
        (position, stamp): (Position, Stamp),
        ops: &mut Vec<Op>,
        outbox: &mut Outbox,
    ) {
        let mut floor_rose = false;
        for change in changes {
            match &change.slots {
                thorp_model::PageSlots::Whole => {
                    floor_rose |= self.changes.note_page(change.page, position);
                }
                thorp_model::PageSlots::Some(slots) => {
                    for (slot, slot_change) in slots {
                        let object = ObjectId {
                            page: change.page,
                            slot: *slot,
                        };
                        if !moved.contains(&object) || planted::is(Bug::MovedIsChanged) {
                            floor_rose |= self.changes.note(object, position);
                        }
                        self.follow_extent(object, slot_change, ops);
                    }
                }
            }
            self.pages.accept(change.clone(), position, stamp);
        }
        if floor_rose {
            outbox.note(Note::FloorRose);
        }
    }

    /// Keeps a segment's record in step with its extent object.
    pub(in crate::home) fn follow_extent(
        &mut self,
        object: thorp_model::ObjectId,
        change: &thorp_model::SlotChange,
        ops: &mut Vec<Op>,
    ) {
        let is_extent = object.page.page.0 == 0 && object.slot.0 == 0;
        let thorp_model::SlotChange::Value { bytes, .. } = change else {
            return;
        };
        if is_extent && let Ok(bytes) = bytes.bytes().try_into() {
            let extent = thorp_model::PageNo(u32::from_le_bytes(bytes));
            self.segments.raise_extent(object.page.segment, extent);
            ops.extend(self.segments.put(object.page.segment));
        }
    }

    pub(in crate::home) fn refuse(
        &mut self,
        edge: EdgeId,
        request: &CommitRequest,
        refusal: Refusal,
        outbox: &mut Outbox,
    ) {
        let whose = Whose {
            id: request.id,
            registration: request.registration,
        };
        let is_recorded = !refusal.leaves_id_usable() && self.log.has_space();
        let mut ops = Vec::new();
        if is_recorded {
            // The id has ended: nothing will ever name them again.
            self.drop_named(request, &mut ops);
        }
        self.refuse_id(edge, whose, refusal, ops, outbox);
    }

    /// Refuses an id, whether or not its request was ever seen here.
    pub(in crate::home) fn refuse_id(
        &mut self,
        edge: EdgeId,
        whose: Whose,
        refusal: Refusal,
        mut ops: Vec<Op>,
        outbox: &mut Outbox,
    ) {
        outbox.note(refusal_note(&refusal));
        if refusal.leaves_id_usable() {
            // Said before anything is recorded (rule 11).
            return self.tell(edge, whose.id, &Outcome::Refused(refusal), outbox);
        }
        if !self.log.has_space() {
            // What cannot be recorded cannot end the id.
            return self.tell(edge, whose.id, &Outcome::Refused(Refusal::Full), outbox);
        }
        let outcome = Outcome::Refused(refusal);
        self.outcomes
            .record(whose.registration, whose.id, outcome.clone(), &mut ops);
        self.log.append_ops(
            Purpose::Housekeeping,
            ops,
            OnDurable::Tell(edge, whose.id, outcome),
            outbox,
        );
    }
}

/// What a change takes in a log record beside its value, in bytes, about.
const CHANGE_FRAME_BYTES: usize = 16;

pub(in crate::home) fn busy() -> Refusal {
    Refusal::Busy {
        retry_after_ms: BUSY_RETRY_MS,
    }
}

fn refusal_note(refusal: &Refusal) -> Note {
    match refusal {
        Refusal::Conflict { .. } | Refusal::Elsewhere => Note::RefusedConflict,
        Refusal::InDoubt => Note::RefusedInDoubt,
        Refusal::Busy { .. } => Note::RefusedBusy,
        Refusal::Full => Note::RefusedFull,
        Refusal::BuiltOnRefused => Note::RefusedBuiltOn,
        Refusal::Unknown | Refusal::Forgotten => Note::RefusedUnknown,
        Refusal::NoRight | Refusal::Invalid { .. } => Note::RefusedInvalid,
    }
}
