//! The home: orders and validates commits, keeps the log, tells its children.
//!
//! What is *accepted* is ahead of what is *durable*: validation and new pages
//! follow the accepted tip, everything that is sent follows the durable end of
//! the log (rule 1).

mod calls;
mod changes;
mod clock;
mod commit;
mod install;
mod open;
mod outcomes;
mod pages;
pub mod records;
mod segments;

pub use open::HomeConfig;
pub use records::{decode_page, page_key};

use crate::change::PageChange;
use crate::children::{Children, News};
use crate::door::{Core, Direction, Input, LoadResult, Out};
use crate::ids::{
    Attempt, CommitId, EdgeId, Epoch, Millis, NodeKind, Now, PageId, Peer, Position, SegmentId,
    Stamp,
};
use crate::limits::{BUSY_RETRY_MS, COMMIT_BYTES_MAX, FETCHES_PER_CHILD_MAX, HEARTBEAT_MS};
use crate::message::{
    CallError, CallId, CommitRequest, Down, FetchAnswer, FetchRefusal, InvalidCommit, Message,
    Outcome, Refusal, Response, Up,
};
use crate::note::Note;
use crate::planted::{self, Bug};
use crate::storage::{Batch, Mark, Op, Table};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use changes::Changes;
use clock::Clock;
use commit::{Effects, NotNow, Whose};
use install::{Installing, Removing};
use outcomes::{Known, Outcomes};
use pages::Pages;
use records::{LogRecord, NextRecord};
use segments::{Segments, Staging};

/// The state machine of a home.
#[derive(Debug)]
pub struct Home {
    config: HomeConfig,
    clock: Clock,
    pages: Pages,
    changes: Changes,
    outcomes: Outcomes,
    segments: Segments,
    staging: Staging,
    children: Children,
    next: NextRecord,
    /// The last accepted position.
    tip: Position,
    /// The last position that was told: all up to it are durable.
    durable: Position,
    mark: Mark,
    durable_mark: Mark,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    parked: VecDeque<Parked>,
    waiting: BTreeMap<PageId, Vec<Waiter>>,
    installed: Position,
    installing: Option<Installing>,
    removing: Option<Removing>,
    room: bool,
    next_beat: Millis,
}

/// A commit that waits for pages from disk.
#[derive(Debug)]
struct Parked {
    edge: EdgeId,
    request: CommitRequest,
    /// All pages that it was found to need: they stay in memory until it is judged.
    needs: BTreeSet<PageId>,
}

/// A child that waits for a page from disk.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    edge: EdgeId,
    epoch: Epoch,
    attempt: Attempt,
}

/// What is told when a batch is durable, in the order of the batches.
#[derive(Debug)]
struct Pending {
    mark: Mark,
    bytes: usize,
    then: Then,
}

#[derive(Debug)]
enum Then {
    /// A position is reached.
    Reach {
        position: Position,
        stamp: Stamp,
        changes: Vec<PageChange>,
        origin: Option<(EdgeId, CommitId)>,
        /// A segment that was removed: its pages are invalidated as a whole.
        removed: Option<SegmentId>,
    },
    /// A commit's outcome is told again, or one without a place in the log.
    Tell(EdgeId, CommitId, Outcome),
    /// A call is answered.
    Answer(EdgeId, CallId, Result<Response, CallError>),
    /// Nothing is told.
    Nothing,
}

impl Core for Home {
    fn handle(&mut self, now: Now, input: Input, out: &mut Out) {
        match input {
            Input::Connected {
                edge,
                direction: Direction::Down,
                peer,
            } => self.connected(now, edge, &peer, out),
            Input::Connected { edge, .. } => out.close(edge, "a home has no parent"),
            Input::Disconnected { edge } => self.disconnected(edge),
            Input::Received {
                edge,
                message: Message::Up(message),
            } => self.received(now, edge, message, out),
            Input::Received { edge, .. } => self.cut_off(edge, "a child sent down", out),
            Input::Durable(mark) => self.made_durable(mark, out),
            Input::Loaded { page, result } => self.loaded(now, page, result, out),
            Input::Room(room) => self.room = room,
            Input::Tick | Input::Asked { .. } | Input::Evict(_) => {}
        }
        self.beat(now, out);
        self.housekeep(out);
    }

    fn deadline(&self) -> Option<Millis> {
        Some(self.next_beat)
    }
}

impl Home {
    /// How far the log is durable and told.
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// The validation floor (rule 6).
    pub fn floor(&self) -> Position {
        self.changes.floor()
    }

    /// Whether a child is entered for a page (rule 2).
    pub fn holds(&self, edge: EdgeId, page: PageId) -> bool {
        self.children.holds(edge, page)
    }

    /// How far each child has acknowledged, for people.
    pub fn children(&self) -> Vec<(EdgeId, Position)> {
        let edges = self.children.edges();
        edges
            .filter_map(|edge| Some((edge, self.children.get(edge)?.acked)))
            .collect()
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        alloc::vec![
            ("children", self.children.len()),
            ("directory", self.children.directory.len()),
            ("pages", self.pages.len()),
            ("image_bytes", self.pages.image_bytes()),
            ("mob_bytes", self.pages.mob_bytes()),
            ("changes", self.changes.len()),
            ("registrations", self.outcomes.len()),
            ("segments", self.segments.len()),
            ("staged", self.staging.len()),
            ("pending", self.pending.len()),
            ("pending_bytes", self.pending_bytes),
            ("parked", self.parked.len()),
            ("waiting", self.waiting.values().map(Vec::len).sum()),
        ]
    }

    fn connected(&mut self, now: Now, edge: EdgeId, peer: &Peer, out: &mut Out) {
        if peer.kind == NodeKind::Home {
            out.close(edge, "a home is no child of a home");
            return;
        }
        let at = (self.durable, self.watermark(now));
        let name = self.config.name.clone();
        if !self.children.begin(edge, peer.node, at, &name, out) {
            out.close(edge, "too many children");
        }
    }

    fn disconnected(&mut self, edge: EdgeId) {
        self.children.end(edge);
        self.parked.retain(|parked| parked.edge != edge);
        self.waiting.retain(|_, waiters| {
            waiters.retain(|waiter| waiter.edge != edge);
            !waiters.is_empty()
        });
    }

    fn cut_off(&mut self, edge: EdgeId, why: &'static str, out: &mut Out) {
        out.note(Note::ChildCutOff);
        out.close(edge, why);
    }

    fn received(&mut self, now: Now, edge: EdgeId, message: Up, out: &mut Out) {
        match message {
            Up::Fetch {
                epoch,
                page,
                attempt,
                ..
            } => {
                let waiter = Waiter {
                    edge,
                    epoch,
                    attempt,
                };
                self.fetch(page, waiter, out);
            }
            Up::Evict {
                epoch, page, entry, ..
            } => {
                if self.children.in_epoch(edge, epoch, out).is_some() {
                    self.children.evict(edge, page, entry, out);
                }
            }
            Up::Ack {
                epoch, position, ..
            } => {
                if self.children.in_epoch(edge, epoch, out).is_some() {
                    self.acknowledged(edge, position, out);
                }
            }
            Up::Watch {
                epoch, segment, on, ..
            } => {
                let known = self.children.in_epoch(edge, epoch, out).is_some();
                if known && !self.children.watch(edge, segment, on) {
                    self.cut_off(edge, "it watches too many segments", out);
                }
            }
            Up::Commit(request) => self.commit(now, edge, request, out),
            Up::Call { call, request, .. } => self.call(now, edge, call, request, out),
            // Nobody redirects to or from a home.
            Up::Peer(_) => {}
        }
    }

    fn acknowledged(&mut self, edge: EdgeId, position: Position, out: &mut Out) {
        self.children.ack(edge, position);
        if let Some(acknowledged) = self.children.acknowledged()
            && self.changes.trim(acknowledged)
        {
            out.note(Note::TrimmedToAcknowledged);
        }
    }

    // --- Pages ---

    fn fetch(&mut self, page: PageId, waiter: Waiter, out: &mut Out) {
        if self
            .children
            .in_epoch(waiter.edge, waiter.epoch, out)
            .is_none()
        {
            return;
        }
        if self.segments.get(page.segment).is_none() || self.is_not_named_yet(page) {
            self.refuse_fetch(page, waiter, FetchRefusal::NoSuchSegment, out);
        } else if self.pages.is_loaded(page) {
            self.answer_fetch(page, waiter, out);
        } else if self.pages.is_damaged(page) {
            self.refuse_fetch(page, waiter, FetchRefusal::Damaged, out);
        } else if self.waiting_of(waiter.edge) >= FETCHES_PER_CHILD_MAX
            && !planted::is(Bug::ChildNotLimited)
        {
            out.note(Note::ChildLimited);
            self.refuse_fetch(page, waiter, FetchRefusal::Busy, out);
        } else {
            self.waiting.entry(page).or_default().push(waiter);
            self.load(page, out);
        }
    }

    /// Overflow pages are staged beside the stream (decision 3): an image taken
    /// before a commit names them would never be told of it.
    fn is_not_named_yet(&self, page: PageId) -> bool {
        page.page.is_overflow() && (!self.segments.has_given(page) || self.staging.has(page))
    }

    fn waiting_of(&self, edge: EdgeId) -> usize {
        let waiters = self.waiting.values().flatten();
        waiters.filter(|waiter| waiter.edge == edge).count()
    }

    fn load(&mut self, page: PageId, out: &mut Out) {
        if self.pages.begin_load(page) {
            out.load(page);
        }
    }

    fn loaded(&mut self, now: Now, page: PageId, result: LoadResult, out: &mut Out) {
        match result {
            LoadResult::Found(image) => {
                if !self.pages.loaded(page, image, self.durable) {
                    out.load(page);
                    return;
                }
            }
            LoadResult::Damaged => self.pages.load_failed(page),
        }
        out.note(Note::PageLoaded);
        for waiter in self.waiting.remove(&page).unwrap_or_default() {
            self.fetch(page, waiter, out);
        }
        for parked in core::mem::take(&mut self.parked) {
            self.try_commit(now, parked, out);
        }
    }

    /// Enters the child, then takes the image (rule 2): it is as of the durable
    /// end, to which this child's stream has been told.
    fn answer_fetch(&mut self, page: PageId, waiter: Waiter, out: &mut Out) {
        let entry = self.children.enter(waiter.edge, page, true);
        let Some(image) = self.pages.durable(page) else {
            return;
        };
        self.tell_fetch(page, waiter, entry, FetchAnswer::Image(image), out);
    }

    fn refuse_fetch(&mut self, page: PageId, waiter: Waiter, why: FetchRefusal, out: &mut Out) {
        let entry = crate::ids::EntryNo(0);
        self.tell_fetch(page, waiter, entry, FetchAnswer::Refused(why), out);
    }

    fn tell_fetch(
        &self,
        page: PageId,
        waiter: Waiter,
        entry: crate::ids::EntryNo,
        answer: FetchAnswer,
        out: &mut Out,
    ) {
        out.down(
            waiter.edge,
            Down::Image {
                home: self.config.home,
                page,
                attempt: waiter.attempt,
                entry,
                position: self.durable,
                answer,
            },
        );
    }

    // --- Commits ---

    fn commit(&mut self, now: Now, edge: EdgeId, request: CommitRequest, out: &mut Out) {
        let parked = Parked {
            edge,
            request,
            needs: BTreeSet::new(),
        };
        self.try_commit(now, parked, out);
    }

    fn try_commit(&mut self, now: Now, parked: Parked, out: &mut Out) {
        let Parked { edge, request, .. } = &parked;
        let edge = *edge;
        let whose = Whose {
            id: request.id,
            registration: request.registration,
        };
        match self.outcomes.known(whose.registration, whose.id) {
            Known::Ended(_) if planted::is(Bug::OutcomeForgotten) => {}
            Known::Ended(outcome) => {
                out.note(Note::OutcomeRemembered);
                return self.after_all(Then::Tell(edge, whose.id, outcome), out);
            }
            Known::BelowWindow => {
                out.note(Note::BelowWindow);
                return self.tell(edge, whose.id, &outcomes::unknown(), out);
            }
            Known::New => {}
        }
        match self.judge(request, out) {
            Ok(effects) if request.parts.iter().all(|part| part.writes.is_empty()) => {
                debug_assert!(effects.changes.is_empty());
                self.read_only(edge, whose.id, out);
            }
            Ok(effects) => self.accept(now, effects, Some((edge, whose)), None, out),
            Err(NotNow::Needs(pages)) => self.park(parked, pages, out),
            Err(NotNow::Refused(refusal)) => self.refuse(edge, whose, refusal, out),
        }
    }

    fn judge(&mut self, request: &CommitRequest, out: &mut Out) -> Result<Effects, NotNow> {
        let [part] = &request.parts[..] else {
            return Err(InvalidCommit::SeveralHomes.into());
        };
        if part.home != self.config.home {
            return Err(InvalidCommit::Malformed.into());
        }
        if request.bytes() > COMMIT_BYTES_MAX {
            return Err(InvalidCommit::TooLarge.into());
        }
        if self.pending_bytes > self.config.pending_bytes_max {
            return Err(NotNow::Refused(busy()));
        }
        if !self.room && !part.writes.is_empty() {
            return Err(NotNow::Refused(Refusal::Full));
        }
        // Rule 14: what it builds on must be committed.
        if request
            .builds_on
            .iter()
            .any(|id| !self.outcomes.is_committed(*id))
        {
            return Err(NotNow::Refused(Refusal::BuiltOnRefused));
        }
        self.validate(part, out)?;
        self.effects(part, request.registration, out)
    }

    fn park(&mut self, mut parked: Parked, pages: Vec<PageId>, out: &mut Out) {
        let id = parked.request.id;
        if self.parked.len() >= self.config.parked_max {
            out.note(Note::RefusedBusy);
            return self.tell(parked.edge, id, &Outcome::Refused(busy()), out);
        }
        out.note(Note::CommitParked);
        parked.needs.extend(&pages);
        self.parked.push_back(parked);
        for page in pages {
            self.load(page, out);
        }
    }

    /// A strict transaction that wrote nothing is told when everything it was
    /// validated against is durable; it stands after all of that.
    fn read_only(&mut self, edge: EdgeId, id: CommitId, out: &mut Out) {
        out.note(Note::ReadOnlyValidated);
        let outcome = Outcome::Committed {
            position: self.tip,
            stamp: Stamp::default(),
        };
        self.after_all(Then::Tell(edge, id, outcome), out);
    }

    /// Puts effects at the next position of the log: log record, outcome and
    /// object changes are one batch (decision 6).
    fn accept(
        &mut self,
        now: Now,
        effects: Effects,
        whose: Option<(EdgeId, Whose)>,
        removed: Option<SegmentId>,
        out: &mut Out,
    ) {
        self.tip = self.tip.next();
        let (position, stamp) = (self.tip, self.clock.stamp(now.wall));
        let changes: Vec<PageChange> = effects.changes.into_values().collect();
        let mut ops = effects.ops;
        self.note_changes(&changes, position, stamp, &mut ops, out);
        if let Some((_, whose)) = whose {
            out.note(Note::CommitAccepted);
            for token in effects.staged {
                self.staging.remove(whose.registration, token);
            }
            let outcome = Outcome::Committed { position, stamp };
            self.outcomes
                .record(whose.registration, whose.id, outcome, &mut ops);
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
        let then = Then::Reach {
            position,
            stamp,
            changes: record.changes,
            origin: whose.map(|(edge, whose)| (edge, whose.id)),
            removed,
        };
        self.append(now, ops, then, out);
    }

    fn note_changes(
        &mut self,
        changes: &[PageChange],
        position: Position,
        stamp: Stamp,
        ops: &mut Vec<Op>,
        out: &mut Out,
    ) {
        let mut floor_rose = false;
        for change in changes {
            match &change.slots {
                crate::change::PageSlots::Whole => {
                    floor_rose |= self.changes.note_page(change.page, position);
                }
                crate::change::PageSlots::Some(slots) => {
                    for (slot, slot_change) in slots {
                        let object = crate::ids::ObjectId {
                            page: change.page,
                            slot: *slot,
                        };
                        floor_rose |= self.changes.note(object, position);
                        self.follow_extent(object, slot_change, ops);
                    }
                }
            }
            self.pages.accept(change.clone(), position, stamp);
        }
        if floor_rose {
            out.note(Note::FloorRose);
        }
    }

    /// Keeps a segment's record in step with its extent object.
    fn follow_extent(
        &mut self,
        object: crate::ids::ObjectId,
        change: &crate::change::SlotChange,
        ops: &mut Vec<Op>,
    ) {
        let is_extent = object.page.page.0 == 0 && object.slot.0 == 0;
        let crate::change::SlotChange::Value { bytes, .. } = change else {
            return;
        };
        if is_extent && let Ok(bytes) = bytes.bytes().try_into() {
            let extent = crate::ids::PageNo(u32::from_le_bytes(bytes));
            self.segments.raise_extent(object.page.segment, extent);
            ops.extend(self.segments.put(object.page.segment));
        }
    }

    fn refuse(&mut self, edge: EdgeId, whose: Whose, refusal: Refusal, out: &mut Out) {
        out.note(refusal_note(&refusal));
        let outcome = Outcome::Refused(refusal);
        if let Outcome::Refused(Refusal::Busy { .. } | Refusal::Full) = outcome {
            // Said before anything is recorded (rule 11).
            return self.tell(edge, whose.id, &outcome, out);
        }
        if !self.room {
            // What cannot be recorded cannot end the id.
            return self.tell(edge, whose.id, &Outcome::Refused(Refusal::Full), out);
        }
        let mut ops = Vec::new();
        self.outcomes
            .record(whose.registration, whose.id, outcome.clone(), &mut ops);
        self.append_ops(ops, Then::Tell(edge, whose.id, outcome), out);
    }

    // --- What is durable ---

    /// Appends a batch; the clock's reservation rides on it when it is due.
    fn append(&mut self, now: Now, mut ops: Vec<Op>, then: Then, out: &mut Out) {
        if self.clock.wants_reserve(now.wall) {
            out.note(Note::ClockReserved);
            ops.push(self.clock.reserve(now.wall, self.mark.following()));
        }
        self.append_ops(ops, then, out);
    }

    fn append_ops(&mut self, ops: Vec<Op>, then: Then, out: &mut Out) {
        self.mark = self.mark.following();
        let batch = Batch {
            mark: self.mark,
            ops,
        };
        let bytes = batch.bytes();
        out.append(batch);
        self.pending_bytes += bytes;
        self.pending.push_back(Pending {
            mark: self.mark,
            bytes,
            then,
        });
        if planted::is(Bug::ToldBeforeDurable) {
            self.flush(out);
        }
    }

    /// Tells something when all that was appended so far is durable.
    fn after_all(&mut self, then: Then, out: &mut Out) {
        self.pending.push_back(Pending {
            mark: self.mark,
            bytes: 0,
            then,
        });
        self.flush(out);
    }

    fn made_durable(&mut self, mark: Mark, out: &mut Out) {
        self.durable_mark = self.durable_mark.max(mark);
        self.clock.durable(self.durable_mark);
        self.flush(out);
        self.end_install(out);
    }

    fn flush(&mut self, out: &mut Out) {
        while let Some(first) = self.pending.front() {
            if first.mark > self.durable_mark && !planted::is(Bug::ToldBeforeDurable) {
                break;
            }
            if let Some(pending) = self.pending.pop_front() {
                self.pending_bytes -= pending.bytes;
                self.then(pending.then, out);
            }
        }
    }

    fn then(&mut self, then: Then, out: &mut Out) {
        match then {
            Then::Reach {
                position,
                stamp,
                changes,
                origin,
                removed,
            } => self.reach(position, stamp, &changes, origin, removed, out),
            Then::Tell(edge, id, outcome) => self.tell(edge, id, &outcome, out),
            Then::Answer(edge, call, result) => self.answer(edge, call, result, out),
            Then::Nothing => {}
        }
    }

    /// A position is durable: every child is told what concerns it, without values.
    fn reach(
        &mut self,
        position: Position,
        stamp: Stamp,
        changes: &[PageChange],
        origin: Option<(EdgeId, CommitId)>,
        removed: Option<SegmentId>,
        out: &mut Out,
    ) {
        self.durable = position;
        for change in changes {
            self.pages.made_durable(change.page, position);
        }
        let mut told: Vec<PageChange> = changes.iter().map(PageChange::without_values).collect();
        if let Some(segment) = removed {
            told.extend(self.whole_segment(segment));
        }
        let news = News {
            position,
            stamp,
            changes: told,
            origin,
        };
        self.children.deliver(news, out);
    }

    fn tell(&self, edge: EdgeId, commit: CommitId, outcome: &Outcome, out: &mut Out) {
        let home = self.config.home;
        out.down(
            edge,
            match outcome {
                Outcome::Committed { position, stamp } => Down::Told {
                    home,
                    commit,
                    position: *position,
                    stamp: *stamp,
                },
                Outcome::Refused(refusal) => Down::Refused {
                    home,
                    commit,
                    refusal: refusal.clone(),
                },
            },
        );
    }

    fn answer(
        &self,
        edge: EdgeId,
        call: CallId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        let home = self.config.home;
        out.down(edge, Down::Answer { home, call, result });
    }

    // --- Time ---

    fn watermark(&mut self, now: Now) -> Stamp {
        let open = self.pending.iter().find_map(|pending| match pending.then {
            Then::Reach { stamp, .. } => Some(stamp),
            _ => None,
        });
        self.clock.watermark(now.wall, open)
    }

    fn beat(&mut self, now: Now, out: &mut Out) {
        if now.mono < self.next_beat {
            return;
        }
        self.next_beat = now.mono.plus(HEARTBEAT_MS);
        if self.room && self.clock.wants_reserve(now.wall) {
            self.append(now, Vec::new(), Then::Nothing, out);
        }
        let watermark = self.watermark(now);
        self.children.heartbeat(self.durable, watermark, out);
    }
}

impl Mark {
    fn following(self) -> Mark {
        Mark(self.0 + 1)
    }
}

fn busy() -> Refusal {
    Refusal::Busy {
        retry_after_ms: BUSY_RETRY_MS,
    }
}

fn refusal_note(refusal: &Refusal) -> Note {
    match refusal {
        Refusal::Conflict { .. } | Refusal::InDoubt => Note::RefusedConflict,
        Refusal::Busy { .. } => Note::RefusedBusy,
        Refusal::Full => Note::RefusedFull,
        Refusal::BuiltOnRefused => Note::RefusedBuiltOn,
        Refusal::Unknown => Note::RefusedUnknown,
        Refusal::NoRight | Refusal::Invalid { .. } => Note::RefusedInvalid,
    }
}
