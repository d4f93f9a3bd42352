//! The home's log: positions and stamps, batches on their way to the disk, and how a home starts
//! from what it holds.

pub(in crate::home) mod queue;
pub(in crate::home) mod recovery;
pub(in crate::home) mod room;
pub(in crate::home) mod space_estimate;

use crate::home::admission::Admission;
use crate::home::clock::Clock;
use crate::home::history::{Judgement, OwnHistory};
use crate::home::log::queue::{DurabilityQueue, OnDurable};
use crate::home::log::room::{Bill, Demand, Room};
use crate::home::log::space_estimate::SpaceEstimate;
use crate::home::{HomeAction, Outbox};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    Batch, Claim, CommitId, EdgeId, HomeId, Incarnation, Lack, LifeEnd, LifeId, Mark, NameId, Note,
    Now, Op, Outcome, Position, Purpose, Receipt, SpaceBound, Stamp, planted,
};

/// The log, from its durable end to its accepted tip.
///
/// No position above `durable` was sent to a child, and `durable` never passes `tip`. Each
/// position between them has its stamp in `open`, so that no promise reaches it (rule 5).
#[derive(Debug)]
pub(in crate::home) struct Log {
    /// Gives stamps; its reservations are in the batches.
    pub(in crate::home) clock: Clock,
    queue: DurabilityQueue,
    admission: Admission,
    space: SpaceEstimate,
    room: Room,
    /// What the store lacks to take commits.
    lack: Option<Lack>,
    /// An installation of pages fits in the store.
    installs: bool,
    /// The last accepted position.
    tip: Position,
    /// The last position that was sent: all up to it are durable.
    durable: Position,
    /// The stamps of positions that were accepted and not sent. A member that lies may have given
    /// two of them one stamp.
    open: BTreeSet<(Stamp, Position)>,
    pending_bytes_max: usize,
    history: OwnHistory,
}

impl Log {
    /// A log that is durable up to its tip.
    pub(in crate::home) fn new(
        clock: Clock,
        history: OwnHistory,
        tip: Position,
        pending_bytes_max: usize,
    ) -> Self {
        Log {
            clock,
            queue: DurabilityQueue::default(),
            admission: Admission::default(),
            space: SpaceEstimate::default(),
            room: Room::default(),
            lack: None,
            installs: true,
            tip,
            durable: tip,
            open: BTreeSet::new(),
            pending_bytes_max,
            history,
        }
    }

    // --- How far it is ---

    /// Whose log it is.
    pub(in crate::home) fn home(&self) -> HomeId {
        self.clock.home()
    }

    /// The last accepted position.
    pub(in crate::home) fn tip(&self) -> Position {
        self.tip
    }

    /// The last position that was sent: all up to it are durable.
    pub(in crate::home) fn durable(&self) -> Position {
        self.durable
    }

    /// The mark of the last batch that was appended.
    pub(in crate::home) fn last_mark(&self) -> Mark {
        self.queue.last_mark()
    }

    /// The mark of the next batch.
    pub(in crate::home) fn next_mark(&self) -> Mark {
        self.queue.last_mark().next()
    }

    /// All batches up to this one are durable.
    pub(in crate::home) fn durable_mark(&self) -> Mark {
        self.queue.durable_mark()
    }

    /// How many entries wait for the disk, and their bytes.
    pub(in crate::home) fn pending(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.bytes())
    }

    /// Who waits for what in the queue.
    pub(in crate::home) fn admission(&self) -> &Admission {
        &self.admission
    }

    // --- Limits ---

    /// Whether more waits to be durable than may: the home refuses all else as busy.
    pub(in crate::home) fn is_busy(&self) -> bool {
        self.queue.bytes() > self.pending_bytes_max
    }

    /// Whether the store has space for commits.
    pub(in crate::home) fn has_space(&self) -> bool {
        self.lack.is_none()
    }

    /// What the store lacks: as it said itself, or else as the next commit finds it.
    pub(in crate::home) fn lack(&self) -> Lack {
        self.lack.unwrap_or_else(|| self.space.lack(0, 1))
    }

    /// The store has space for commits again, or lacks some.
    pub(in crate::home) fn set_lack(&mut self, lack: Option<Lack>) {
        self.lack = lack;
        if lack.is_none() {
            self.room.clear();
        }
    }

    /// The store's report of its space. One that is late is of no use: a newer one follows.
    pub(in crate::home) fn report_space(
        &mut self,
        left: (u64, u64, SpaceBound),
        installs: bool,
        as_of: Mark,
    ) {
        self.installs = installs;
        if as_of >= self.queue.durable_mark() {
            self.space.report(left, as_of);
        }
    }

    /// Bytes that the store could take yet; none if nobody knows.
    pub(in crate::home) fn free(&self) -> Option<u64> {
        self.space.free()
    }

    /// Whether so many bytes in so many operations fit into the store, by what is known.
    ///
    /// # Errors
    ///
    /// What it lacks.
    pub(in crate::home) fn ask_space(&self, bytes: usize, ops: usize) -> Result<(), Lack> {
        match self.space.fits(bytes, ops) {
            true => Ok(()),
            false => Err(self.space.lack(bytes, ops)),
        }
    }

    /// The same where so many bytes are taken already, by what is still to come.
    ///
    /// # Errors
    ///
    /// What it lacks.
    pub(in crate::home) fn ask_space_beside(
        &self,
        coming: u64,
        (bytes, ops): (usize, usize),
    ) -> Result<(), Lack> {
        let lack = self.space.lack_beside(coming, (bytes, ops));
        lack.map_or(Ok(()), Err)
    }

    // --- History (rule R9) ---

    /// The incarnation of this home.
    pub(in crate::home) fn incarnation(&self) -> Incarnation {
        self.history.incarnation()
    }

    /// The life that runs, and where the one before has ended.
    pub(in crate::home) fn life(&self) -> (LifeId, LifeEnd) {
        self.history.life()
    }

    /// How far a life has come in this history.
    pub(in crate::home) fn end_of(&self, life: LifeId) -> Option<LifeEnd> {
        self.history.end_of(life, &self.end(self.clock.ceiling()))
    }

    /// The receipt of how far the log is durable; `voted` is the lowest stamp in doubt.
    pub(in crate::home) fn receipt(&mut self, voted: Option<Stamp>) -> Receipt {
        let now = self.end(self.promised(voted).clock);
        self.history.receipt(now)
    }

    /// Judges what a node rests on. A stamp that this home has promised itself moves its clock, however far it is.
    pub(in crate::home) fn judge(&mut self, claim: &Claim) -> Judgement {
        let judgement = self.history.judge(claim, &self.end(self.clock.ceiling()));
        if judgement != Judgement::Unproven {
            self.clock.observe(Stamp {
                clock: claim.receipt.point.clock,
                home: self.home(),
            });
        }
        judgement
    }

    fn end(&self, ceiling: u64) -> LifeEnd {
        LifeEnd {
            mark: self.queue.saved_mark(),
            position: self.durable,
            ceiling,
        }
    }

    // --- The room that is kept back (rule R7) ---

    /// What a name has to pay for so much: nothing while the store has space. None: it has its share of the room, or the
    /// room is used up.
    pub(in crate::home) fn bill(&self, name: NameId, demand: Demand) -> Option<Bill> {
        if self.has_space() {
            return Some(Bill::default());
        }
        let bill = Bill::of(name, demand);
        self.affords(&bill).then_some(bill)
    }

    /// Whether a bill can be paid.
    pub(in crate::home) fn affords(&self, bill: &Bill) -> bool {
        self.room.affords(bill, self.space.room_left())
    }

    /// Pays a bill for the next batch, which has a position or none. Returns what the batch is for.
    pub(in crate::home) fn pay(
        &mut self,
        bill: &Bill,
        at: Option<Position>,
        purpose: Purpose,
        outbox: &mut Outbox,
    ) -> Purpose {
        if bill.is_empty() {
            return purpose;
        }
        outbox.note(Note::RoomTaken);
        self.room.take(bill, at);
        Purpose::Kept
    }

    /// Something was removed. On a full store what can be installed makes space.
    pub(in crate::home) fn removed(&mut self) {
        if !self.has_space() {
            self.room.use_up();
        }
    }

    /// Whether pages may be installed: a full store may have no room for that, and for what has to go on.
    pub(in crate::home) fn may_install(&self) -> bool {
        self.has_space() || self.installs || planted::is(Bug::InstalledWithoutRoom)
    }

    /// Whether pages are installed however little is modified: the store is full, and something can be freed.
    pub(in crate::home) fn wants_space(&self) -> bool {
        !self.has_space() && self.room.is_used()
    }

    /// Everything up to a position is installed.
    pub(in crate::home) fn installed(&mut self, position: Position) {
        self.room.installed(position);
    }

    // --- Positions and promises ---

    /// Accepts the next position, under a stamp.
    pub(in crate::home) fn accept(&mut self, stamp: Stamp) -> Position {
        self.tip = self.tip.next();
        self.open.insert((stamp, self.tip));
        self.tip
    }

    /// A position is durable, and is being sent.
    pub(in crate::home) fn reach(&mut self, position: Position, stamp: Stamp) {
        self.durable = position;
        self.open.remove(&(stamp, position));
    }

    /// What may be promised without moving the clock; `voted` is the lowest stamp in doubt.
    pub(in crate::home) fn promised(&self, voted: Option<Stamp>) -> Stamp {
        let open = self.open.first().map(|(stamp, _)| *stamp);
        self.clock.watermark(open.into_iter().chain(voted).min())
    }

    /// What may be promised now.
    pub(in crate::home) fn watermark(&mut self, now: Now, voted: Option<Stamp>) -> Stamp {
        self.clock.pass(now.wall);
        self.promised(voted)
    }

    /// Whether the clock has to reserve, and the store has space for that.
    pub(in crate::home) fn reserves(&self, now: Now) -> bool {
        self.has_space() && self.clock.wants_reserve(now.wall)
    }

    // --- Batches ---

    /// Appends a batch; the clock's reservation rides on it when it is due.
    pub(in crate::home) fn append(
        &mut self,
        now: Now,
        (purpose, mut ops): (Purpose, Vec<Op>),
        then: OnDurable,
        outbox: &mut Outbox,
    ) {
        if self.clock.wants_reserve(now.wall) {
            outbox.note(Note::ClockReserved);
            let mark = self.next_mark();
            ops.push(self.clock.reserve(now.wall, mark));
        }
        self.append_ops(purpose, ops, then, outbox);
    }

    /// Appends a batch that leaves the clock alone.
    pub(in crate::home) fn append_ops(
        &mut self,
        purpose: Purpose,
        ops: Vec<Op>,
        then: OnDurable,
        outbox: &mut Outbox,
    ) {
        let bytes = self.put_batch(purpose, ops, false, outbox);
        self.admission.begin(&then);
        self.queue.push(bytes, then);
    }

    /// Appends the home's own work, one batch of each kind at a time. Nothing that is sent rests on
    /// it: it may wait for space in the store for as long as that takes. Whoever made the batch has
    /// noted the mark that it gets.
    pub(in crate::home) fn append_own_work(
        &mut self,
        mark: Mark,
        ops: Vec<Op>,
        outbox: &mut Outbox,
    ) {
        debug_assert_eq!(self.next_mark(), mark, "another batch came between");
        self.put_batch(Purpose::Housekeeping, ops, true, outbox);
    }

    fn put_batch(
        &mut self,
        purpose: Purpose,
        ops: Vec<Op>,
        is_own_work: bool,
        outbox: &mut Outbox,
    ) -> usize {
        let only_removes = !ops.iter().any(Op::is_put);
        let batch = Batch {
            mark: self.queue.take_mark(!only_removes),
            purpose: if only_removes {
                Purpose::Removal
            } else {
                purpose
            },
            ops,
        };
        let bytes = batch.bytes();
        self.space.spend(&batch, is_own_work);
        outbox.act(HomeAction::Append(batch));
        bytes
    }

    // --- What becomes due ---

    /// Sends something when all that was appended so far is durable, but for the home's own work.
    pub(in crate::home) fn after_all(&mut self, then: OnDurable) {
        self.admission.begin(&then);
        self.queue.push_behind(then);
    }

    /// The same, but behind a reservation of the clock if one has to be made.
    pub(in crate::home) fn after_reservation(
        &mut self,
        now: Now,
        then: OnDurable,
        outbox: &mut Outbox,
    ) {
        if self.reserves(now) {
            self.append(now, (Purpose::Housekeeping, Vec::new()), then, outbox);
        } else {
            self.after_all(then);
        }
    }

    /// Sends how a commit ended to a child that decides on it, or sends it again: once, however
    /// often that comes before the disk is so far. So no queue fills with it (rule 15): outcomes
    /// remembered are bounded.
    pub(in crate::home) fn tell_ended(&mut self, edge: EdgeId, commit: CommitId, outcome: Outcome) {
        if !self.admission.tells(edge, commit) {
            self.after_all(OnDurable::TellAgain(edge, commit, outcome));
        }
    }

    /// Sends a vote again, unless it is on its way.
    pub(in crate::home) fn tell_vote(&mut self, edge: EdgeId, commit: CommitId, stamp: Stamp) {
        if !self.admission.tells_vote(edge, commit) {
            self.after_all(OnDurable::Vote(edge, commit, stamp));
        }
    }

    /// All batches up to this one are durable. What is due now comes out of [`pop`](Self::pop).
    pub(in crate::home) fn made_durable(&mut self, mark: Mark) {
        self.queue.made_durable(mark);
        self.clock.durable(self.queue.durable_mark());
    }

    /// Takes out what is due next.
    pub(in crate::home) fn pop(&mut self) -> Option<OnDurable> {
        let due = if planted::is(Bug::ToldBeforeDurable) {
            self.queue.pop_early()
        } else {
            self.queue.pop()
        }?;
        self.admission.end(&due);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::history::HomeHistory;
    use thorp_model::{CallId, MemberId, Millis, ReceiptKey};

    fn now() -> Now {
        let (mono, wall) = (Millis(1), Millis(100_000));
        Now { mono, wall }
    }

    fn log() -> Log {
        let history = HomeHistory::first(0, ReceiptKey::new([0; 32]));
        let history = OwnHistory::new(HomeId(1), history, 1, (Position(0), 0));
        let mut log = Log::new(Clock::new(HomeId(1), 0), history, Position(0), 1_000);
        let nothing = OnDurable::Nothing;
        log.append(
            now(),
            (Purpose::Housekeeping, Vec::new()),
            nothing,
            &mut Outbox::new(),
        );
        log.made_durable(log.last_mark());
        while log.pop().is_some() {}
        log
    }

    #[test]
    fn no_promise_reaches_what_was_accepted_and_not_sent() {
        let mut log = log();
        let stamp = log.clock.stamp(now().wall);
        let position = log.accept(stamp);
        assert_eq!((log.tip(), log.durable()), (position, Position(0)));
        assert!(log.watermark(now(), None) < stamp);
        log.reach(position, stamp);
        assert!(log.watermark(now(), None) >= stamp);
        assert!(log.promised(Some(stamp)) < stamp, "a vote holds it, too");
    }

    #[test]
    fn an_outcome_is_sent_once_however_often_it_is_asked_for() {
        let mut log = log();
        let (edge, member) = (EdgeId(1), MemberId(1));
        let call = CallId { member, number: 1 };
        let then = OnDurable::Watermark(edge, call);
        log.append_ops(Purpose::NewData, Vec::new(), then, &mut Outbox::new());
        let (position, stamp) = (Position(1), Stamp::default());
        for _ in 0..2 {
            let commit = CommitId {
                member,
                sequence: 1,
            };
            log.tell_ended(edge, commit, Outcome::Committed { position, stamp });
        }
        assert!(log.pop().is_none(), "the disk is not so far");
        log.made_durable(log.last_mark());
        assert_eq!(core::iter::from_fn(|| log.pop()).count(), 2);
    }
}
