//! What is durable, and what is told of it (rule 1).

use crate::edge::downstream::{News, Values};
use crate::home::{Home, HomeAction, OnDurable, Outbox, Pending};
use alloc::vec::Vec;
use core::mem::size_of;
use thorp_model::planted::Bug;
use thorp_model::{
    Batch, CallError, CallId, CallResponse, CommitId, Down, EdgeId, FetchRefusal, Mark, Note, Now,
    Op, Outcome, PageChange, Position, Purpose, SegmentId, SegmentInfo, Stamp, message, planted,
};

/// What an entry of the table of what is to be told is charged, in bytes.
const PENDING_ENTRY_BYTES: usize = 512;

impl Home {
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
            ops.push(self.clock.reserve(now.wall, self.mark.next()));
        }
        self.append_ops(purpose, ops, then, outbox);
    }

    pub(in crate::home) fn append_ops(
        &mut self,
        purpose: Purpose,
        ops: Vec<Op>,
        then: OnDurable,
        outbox: &mut Outbox,
    ) {
        let batch_bytes = self.put_batch(purpose, ops, outbox);
        let bytes = batch_bytes + PENDING_ENTRY_BYTES + self.kept_for(&then);
        self.pending_bytes += bytes;
        self.admission.begin(&then);
        self.pending.push_back(Pending {
            mark: self.mark,
            bytes,
            then,
        });
        if planted::is(Bug::ToldBeforeDurable) {
            self.flush(outbox);
        }
    }

    /// Appends the home's own work, one batch of each kind at a time. Nothing that is told rests on
    /// it: it may wait for room in the store for as long as that takes.
    pub(in crate::home) fn append_own_work(&mut self, ops: Vec<Op>, outbox: &mut Outbox) {
        self.put_batch(Purpose::Housekeeping, ops, outbox);
    }

    fn put_batch(&mut self, purpose: Purpose, ops: Vec<Op>, outbox: &mut Outbox) -> usize {
        self.mark = self.mark.next();
        let only_removes = !ops.iter().any(Op::is_put);
        let batch = Batch {
            mark: self.mark,
            purpose: match only_removes {
                true => Purpose::Removal,
                false => purpose,
            },
            ops,
        };
        let bytes = batch.bytes();
        self.space.spend(&batch);
        outbox.act(HomeAction::Append(batch));
        bytes
    }

    /// Tells something when all that was appended so far is durable, but for the home's own work.
    pub(in crate::home) fn after_all(&mut self, then: OnDurable, outbox: &mut Outbox) {
        let bytes = PENDING_ENTRY_BYTES + self.kept_for(&then);
        let mark = self.pending.back().map_or(self.durable_mark, |p| p.mark);
        self.admission.begin(&then);
        self.pending.push_back(Pending { mark, bytes, then });
        self.pending_bytes += bytes;
        self.flush(outbox);
    }

    /// Bytes that stay in memory until something is told, beside its batch.
    fn kept_for(&self, then: &OnDurable) -> usize {
        match then {
            OnDurable::Reach { changes, .. } => {
                let pages = changes.iter().map(|change| change.page);
                pages.map(|page| self.pages.tip_bytes(page)).sum()
            }
            OnDurable::Answer(_, _, Ok(CallResponse::Segments { segments, .. })) => {
                let bytes = |info: &SegmentInfo| size_of::<SegmentInfo>() + info.path.len();
                segments.iter().map(bytes).sum()
            }
            _ => 0,
        }
    }

    /// Whether more waits to be durable than may: all else is told to come again.
    pub(in crate::home) fn is_busy(&self) -> bool {
        self.pending_bytes > self.config.pending_bytes_max
    }

    pub(in crate::home) fn made_durable(&mut self, mark: Mark, outbox: &mut Outbox) {
        self.durable_mark = self.durable_mark.max(mark);
        self.clock.durable(self.durable_mark);
        self.flush(outbox);
        self.end_install(outbox);
    }

    pub(in crate::home) fn flush(&mut self, outbox: &mut Outbox) {
        while let Some(first) = self.pending.front() {
            if first.mark > self.durable_mark && !planted::is(Bug::ToldBeforeDurable) {
                break;
            }
            if let Some(pending) = self.pending.pop_front() {
                self.pending_bytes -= pending.bytes;
                self.admission.end(&pending.then);
                self.then(pending.then, outbox);
            }
        }
    }

    pub(in crate::home) fn then(&mut self, then: OnDurable, outbox: &mut Outbox) {
        match then {
            OnDurable::Reach {
                position,
                stamp,
                changes,
                origin,
                removed,
            } => self.reach(position, stamp, &changes, origin, removed, outbox),
            OnDurable::Vote(edge, commit, stamp) => self.tell_vote(edge, commit, stamp, outbox),
            OnDurable::Tell(edge, id, outcome) => self.tell(edge, id, &outcome, outbox),
            OnDurable::Answer(edge, call, result) => self.answer(edge, call, result, outbox),
            OnDurable::Watermark(edge, call) => self.tell_watermark(edge, call, outbox),
            OnDurable::NoPage(page, waiter) => {
                let child = self.children.in_epoch(waiter.edge, waiter.epoch, outbox);
                if child.is_some() {
                    self.refuse_fetch(page, waiter, FetchRefusal::NoSuchSegment, outbox);
                }
            }
            OnDurable::Nothing => {}
        }
    }

    /// A position is durable: every child is told what concerns it, with values only where it asked for them.
    pub(in crate::home) fn reach(
        &mut self,
        position: Position,
        stamp: Stamp,
        changes: &[PageChange],
        origin: Option<(EdgeId, CommitId)>,
        removed: Option<SegmentId>,
        outbox: &mut Outbox,
    ) {
        self.durable = position;
        self.open.remove(&(stamp, position));
        for change in changes {
            self.pages.made_durable(change.page, position);
        }
        let mut told = changes.to_vec();
        if let Some(segment) = removed {
            told.extend(self.whole_segment(segment));
        }
        let news = News {
            position,
            stamp,
            watermark: self.promised(),
            changes: told,
            values: Values::ToWhoAsked,
            origin,
        };
        self.children.deliver(news, outbox);
    }

    pub(in crate::home) fn tell(
        &self,
        edge: EdgeId,
        commit: CommitId,
        outcome: &Outcome,
        outbox: &mut Outbox,
    ) {
        let home = self.config.home;
        outbox.down(
            edge,
            match outcome {
                Outcome::Committed { position, stamp } => Down::Committed(message::Committed {
                    home,
                    commit,
                    position: *position,
                    stamp: *stamp,
                }),
                Outcome::Refused(refusal) => Down::Refused(message::Refused {
                    home,
                    commit,
                    refusal: refusal.clone(),
                }),
            },
        );
    }

    fn tell_vote(&self, edge: EdgeId, commit: CommitId, stamp: Stamp, outbox: &mut Outbox) {
        let home = self.config.home;
        outbox.down(
            edge,
            Down::Voted(message::Voted {
                home,
                commit,
                stamp,
            }),
        );
    }

    /// The promise itself comes as a heartbeat, for all that are below.
    fn tell_watermark(&self, edge: EdgeId, call: CallId, outbox: &mut Outbox) {
        let (home, position, watermark) = (self.config.home, self.durable, self.promised());
        outbox.down(
            edge,
            Down::Heartbeat(message::Heartbeat {
                home,
                position,
                watermark,
            }),
        );
        self.answer(edge, call, Ok(CallResponse::Watermark(watermark)), outbox);
    }

    pub(in crate::home) fn answer(
        &self,
        edge: EdgeId,
        call: CallId,
        result: Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let home = self.config.home;
        outbox.down(
            edge,
            Down::CallResult(message::CallResult { home, call, result }),
        );
    }
}
