//! The tables that commits read and change: each keeps its own invariant, and all take the same step.

use crate::home::Outbox;
use crate::home::audit::{Audit, Occasion};
use crate::home::commit::Whose;
use crate::home::commit::apply::Applier;
use crate::home::commit::changes::Changes;
use crate::home::commit::effects::Effects;
use crate::home::commit::refusal::note_of;
use crate::home::commit::validate::Validator;
use crate::home::lists::{self, lists_in};
use crate::home::log::Log;
use crate::home::log::queue::{OnDurable, Reached};
use crate::home::log::room::{Bill, Demand};
use crate::home::outcomes::Outcomes;
use crate::home::pages::store::Pages;
use crate::home::rights::Rights;
use crate::home::saved::{Saved, Saving};
use crate::home::segment_locks::SegmentLocks;
use crate::home::segments::Segments;
use crate::home::staging::{Staging, is_not_named_yet};
use crate::home::two_phase::joints::Joints;
use crate::home::two_phase::locks::Locks;
use crate::home::two_phase::receipts::OtherReceipts;
use crate::home::two_phase::votes::Votes;
use crate::home::usage::{Numbers, Usage};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::records::{JointRecord, LogRecord, NextRecord};
use thorp_model::{
    AuditEvent, CommitId, CommitRequest, Down, EdgeId, NameId, Note, Now, ObjectId, Op, Outcome,
    PageChange, PageId, PageNo, PageSlots, Part, PartDigest, Position, Principal, Purpose, Refusal,
    Registration, SegmentId, Share, SlotChange, Stamp, Table, planted, records,
};

/// Everything at a home that an accepted commit changes.
///
/// The tables are as of the accepted tip of the log. An id ends in them once: it is accepted with
/// its log record, or refused.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) changes: Changes,
    pub(super) pages: Pages,
    pub(super) segments: Segments,
    pub(super) rights: Rights,
    pub(super) audit: Audit,
    pub(super) staging: Staging,
    pub(super) outcomes: Outcomes,
    pub(super) votes: Votes,
    /// Transactions over several homes that have committed (rule R9).
    pub(super) joints: Joints,
    /// What other homes have proved (rule R9).
    pub(super) receipts: OtherReceipts,
    /// What each name has used (rule R7).
    pub(super) usage: Usage,
    /// How far each log is (rule C7).
    pub(super) saved: Saved,
    /// Locks that sessions hold (rule C5).
    pub(super) segment_locks: SegmentLocks,
    /// Numbers that are never given twice.
    pub(super) next: NextRecord,
}

/// What takes the next position of the log.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its stamp: the home's own, or that of all homes that take part.
    pub(super) stamp: Stamp,
    pub(super) effects: Effects,
    /// The commit, and the child that hears of its end; none for the home's own doing.
    pub(super) whose: Option<(Option<EdgeId>, Whose)>,
    /// The part that is executed: the reply names it (rule R2).
    pub(super) executed: Option<PartDigest>,
    /// A segment that is removed.
    pub(super) removed: Option<SegmentId>,
    /// The child whose edge brought the commit: what changes rights is recorded with it (rule R8).
    pub(super) carrier: Option<NameId>,
    /// The update that it is, if a log sent it: its number is stored in the same batch (rule C7).
    pub(super) saving: Option<Saving>,
}

/// What the record of a refusal takes of the room that a full store keeps back.
const REFUSAL: Demand = Demand {
    brought: 256,
    lasting: 128,
};

impl Entry {
    /// The home's own doing.
    pub(super) fn own(stamp: Stamp, effects: Effects) -> Self {
        Entry {
            stamp,
            effects,
            whose: None,
            executed: None,
            removed: None,
            carrier: None,
            saving: None,
        }
    }
}

impl Tables {
    // --- Views ---

    /// Judges reads at the accepted tip.
    pub(super) fn validator(&mut self, log: &Log) -> Validator<'_> {
        Validator {
            pages: &mut self.pages,
            changes: &self.changes,
            segments: &self.segments,
            staging: &self.staging,
            tip: log.tip(),
        }
    }

    /// Works out what a part does, beginning with these effects.
    pub(super) fn applier<'a>(
        &'a mut self,
        log: &Log,
        registration: Registration,
        effects: Effects,
        outbox: &'a mut Outbox,
    ) -> Applier<'a> {
        Applier {
            pages: &mut self.pages,
            segments: &mut self.segments,
            staging: &self.staging,
            votes: &self.votes,
            registration,
            incarnation: log.incarnation(),
            durable: log.durable_mark(),
            effects,
            outbox,
        }
    }

    /// What a part locks, or would lock.
    pub(super) fn locks_of(&self, part: &Part) -> Locks {
        Locks::of(part, self.segments.raised_by(part))
    }

    /// Whether no commit has named an overflow page yet, or nobody was given the page.
    pub(super) fn is_not_named_yet(&self, page: PageId) -> bool {
        is_not_named_yet(&self.segments, &self.staging, page)
    }

    /// Judges whether a name may have so many pages more (rule R7). Operators have no share.
    pub(super) fn check_space(&self, who: Principal, more: u64, log: &Log) -> Result<(), Share> {
        if who.is_operator {
            return Ok(());
        }
        let coming = self.staging.coming_bytes();
        let free = log.free().map(|free| free.saturating_sub(coming));
        let staged = self.staging.pages_of(who.name);
        self.usage.check_space(who.name, (staged, more), free)
    }

    /// Judges whether a name may have so many more page numbers of a segment (rule R7).
    pub(super) fn check_numbers(
        &self,
        (name, segment): (NameId, SegmentId),
        (numbers, count): (Numbers, u32),
    ) -> Result<(), Share> {
        let record = self.segments.get(segment);
        let left = record.map_or(0, |record| numbers.left(record.granted, record.overflow));
        self.usage
            .check_numbers((name, segment), numbers, (count, left))
    }

    /// The operation that stores the numbers that are never given twice.
    pub(super) fn put_next(&self) -> Op {
        records::put(Table::Meta, records::NEXT_KEY.to_vec(), &self.next)
    }

    // --- How an id ends ---

    /// Puts effects at the next position of the log: log record, outcome and object changes are one
    /// batch (foundation 6).
    pub(super) fn accept(
        &mut self,
        now: Now,
        entry: Entry,
        log: &mut Log,
        outbox: &mut Outbox,
    ) -> Position {
        let Entry {
            stamp,
            effects,
            whose,
            executed,
            removed,
            carrier,
            saving,
        } = entry;
        let position = log.accept(stamp);
        let run = effects.run;
        let changes: Vec<PageChange> = effects.changes.into_values().collect();
        let mut ops = effects.ops;
        let at = (position, stamp);
        self.note_changes(&changes, &effects.moved, at, &mut ops, outbox);
        if let Some((_, whose)) = whose {
            outbox.note(Note::CommitAccepted);
            let author = saving.and_then(|saving| saving.author);
            let name = author.unwrap_or_else(|| whose.id.member.name());
            self.audit_lists(&changes, name, carrier);
            for token in effects.staged {
                self.staging.remove(whose.registration, token);
            }
            let outcome = Outcome::Committed { position, stamp };
            self.outcomes
                .record(whose.registration, whose.id, outcome.clone(), &mut ops);
            self.outcomes.shed(whose.registration, log.free(), &mut ops);
            self.remember_joint(whose.id, stamp, &mut ops);
            ops.extend(self.votes.end(whose.id, outcome, now.mono));
        }
        if let Some(saving) = saving {
            outbox.note(Note::UpdateSaved);
            ops.push(self.saved.take(saving, None));
        }
        let name = whose.map(|(_, whose)| whose.id.member.name());
        let name = saving.and_then(|saving| saving.author).or(name);
        for (segment, count) in effects.pages_of {
            ops.extend(self.usage.change_pages(name, segment, count));
        }
        let record = LogRecord {
            position,
            stamp,
            commit: whose.map(|(_, whose)| whose.id),
            changes,
        };
        let key = records::log_key(position);
        ops.push(records::put(Table::Log, key, &record));
        // The removal of a segment has to be possible in a full store.
        let purpose = if removed.is_some() {
            Purpose::Housekeeping
        } else {
            Purpose::NewData
        };
        let purpose = log.pay(&effects.bill, Some(position), purpose, outbox);
        if removed.is_some() {
            log.removed();
        }
        let lists = lists_in(&record.changes);
        let readers = self.rights.readers_after(&lists, removed);
        let pages = record.changes.iter().map(|change| change.page);
        let image_bytes = pages.map(|page| self.pages.tip_bytes(page)).sum();
        let then = OnDurable::Reach(Reached {
            position,
            stamp,
            changes: record.changes,
            commit: whose.as_ref().map(|(_, whose)| whose.id),
            origin: whose.and_then(|(edge, whose)| Some((edge?, whose.id))),
            update: saving.map(|saving| saving.update),
            executed,
            run,
            readers,
            removed,
            image_bytes,
        });
        log.append(now, (purpose, ops), then, outbox);
        position
    }

    /// A part of a transaction over several homes commits: that is remembered with its homes (rule R9).
    fn remember_joint(&mut self, commit: CommitId, stamp: Stamp, ops: &mut Vec<Op>) {
        if let Some(vote) = self.votes.get(commit) {
            let homes = vote.request.with.iter().map(|with| with.home);
            let homes = homes.collect();
            self.joints
                .remember(commit, JointRecord { stamp, homes }, ops);
            ops.extend(self.receipts.save());
        }
    }

    /// An object that was only moved is as it was. So a transaction that read it is right, and no list
    /// of dependencies may excuse the object's last change (rules 4 and 6).
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
                PageSlots::Whole => {
                    floor_rose |= self.changes.note_page(change.page, position);
                }
                PageSlots::Some(slots) => {
                    for (slot, slot_change) in slots {
                        let object = ObjectId {
                            page: change.page,
                            slot: *slot,
                        };
                        if !moved.contains(&object) || planted::is(Bug::MovedIsChanged) {
                            floor_rose |= self.changes.note(object, position);
                        }
                        self.follow_extent(object, slot_change, ops);
                        ops.extend(self.rights.follow(&self.segments, object, slot_change));
                    }
                }
            }
            ops.extend(self.segments.wrote(change.page));
            self.pages.accept(change.clone(), position, stamp);
        }
        if floor_rose {
            outbox.note(Note::FloorRose);
        }
    }

    /// A commit changed rights lists: that is recorded (rule R8).
    fn audit_lists(&mut self, changes: &[PageChange], who: NameId, carrier: Option<NameId>) {
        for segment in lists_in(changes) {
            let occasion = Occasion {
                segment,
                ..Occasion::of(who, AuditEvent::RightsChanged)
            };
            self.audit.note(occasion.brought_by(carrier), 1);
        }
    }

    /// Keeps a segment's record in step with its extent object.
    fn follow_extent(&mut self, object: ObjectId, change: &SlotChange, ops: &mut Vec<Op>) {
        let is_extent = object.page.page.0 == 0 && object.slot.0 == 0;
        let SlotChange::Value { bytes, .. } = change else {
            return;
        };
        if is_extent && let Ok(bytes) = bytes.bytes().try_into() {
            let extent = PageNo(u32::from_le_bytes(bytes));
            self.segments.raise_extent(object.page.segment, extent);
            ops.extend(self.segments.put(object.page.segment));
        }
    }

    /// Refuses a request. If that ends its id, the staged values that it names go, and an update takes its number.
    pub(super) fn refuse(
        &mut self,
        edge: EdgeId,
        (request, saving, refusal): (&CommitRequest, Option<Saving>, Refusal),
        log: &mut Log,
        outbox: &mut Outbox,
    ) {
        let whose = Whose {
            id: request.id,
            registration: request.registration,
        };
        let bill = if log.has_space() || lists::may_take_room(request) {
            log.bill(request.id.member.name(), REFUSAL)
        } else {
            None
        };
        let mut ops = Vec::new();
        if !refusal.leaves_id_usable() && bill.is_some() {
            // No later request will name them. A vote in doubt may: it could never be carried out
            // without them.
            let votes = &self.votes;
            let is_taken = |of| votes.name_staged(whose.registration, of);
            self.staging.drop_named(request, is_taken, &mut ops);
            if let Some(saving) = saving {
                outbox.note(Note::UpdateRefused);
                ops.push(self.saved.take(saving, Some(refusal.clone())));
            }
        }
        let refused = (refusal, ops, saving);
        self.end_refused(edge, whose, refused, bill.as_ref(), log, outbox);
    }

    /// Refuses an id, whether or not its request was ever seen here.
    pub(super) fn refuse_id(
        &mut self,
        edge: EdgeId,
        whose: Whose,
        refusal: Refusal,
        log: &mut Log,
        outbox: &mut Outbox,
    ) {
        let bill = log.has_space().then(Bill::default);
        self.end_refused(
            edge,
            whose,
            (refusal, Vec::new(), None),
            bill.as_ref(),
            log,
            outbox,
        );
    }

    /// Ends an id, if somebody pays for the record of that.
    fn end_refused(
        &mut self,
        edge: EdgeId,
        whose: Whose,
        (refusal, mut ops, saving): (Refusal, Vec<Op>, Option<Saving>),
        bill: Option<&Bill>,
        log: &mut Log,
        outbox: &mut Outbox,
    ) {
        outbox.note(note_of(&refusal));
        let mut tell = |refusal| {
            let outcome = Outcome::Refused(refusal);
            outbox.down(edge, Down::outcome(log.home(), whose.id, outcome));
        };
        if refusal.leaves_id_usable() {
            // It goes out before anything is recorded (rule 11).
            return tell(refusal);
        }
        let Some(bill) = bill else {
            // What cannot be recorded cannot end the id.
            return tell(Refusal::Full(log.lack()));
        };
        let outcome = Outcome::Refused(refusal);
        self.outcomes
            .record(whose.registration, whose.id, outcome.clone(), &mut ops);
        self.outcomes.shed(whose.registration, log.free(), &mut ops);
        let then = match saving {
            None => OnDurable::Tell(edge, whose.id, outcome),
            Some(saving) => OnDurable::Reject(edge, whose.id, outcome, saving.update),
        };
        // Small, and a full store pays for it.
        let purpose = log.pay(bill, None, Purpose::Housekeeping, outbox);
        log.append_ops(purpose, ops, then, outbox);
    }
}
