//! What is durable, and what is told of it (rule 1).

use super::{Home, Pending, Then};
use crate::change::PageChange;
use crate::children::{News, Values};
use crate::door::Out;
use crate::ids::{CommitId, EdgeId, Now, Position, SegmentId, Stamp};
use crate::message::{CallError, CallId, Down, FetchRefusal, Outcome, Response, SegmentInfo};
use crate::note::Note;
use crate::planted::{self, Bug};
use crate::storage::{Batch, Mark, Op};
use alloc::vec::Vec;
use core::mem::size_of;

/// What an entry of the table of what is to be told is charged, in bytes.
const PENDING_ENTRY_BYTES: usize = 512;

impl Home {
    /// Appends a batch; the clock's reservation rides on it when it is due.
    pub(super) fn append(&mut self, now: Now, mut ops: Vec<Op>, then: Then, out: &mut Out) {
        if self.clock.wants_reserve(now.wall) {
            out.note(Note::ClockReserved);
            ops.push(self.clock.reserve(now.wall, self.mark.following()));
        }
        self.append_ops(ops, then, out);
    }

    pub(super) fn append_ops(&mut self, ops: Vec<Op>, then: Then, out: &mut Out) {
        let batch_bytes = self.put_batch(ops, out);
        let bytes = batch_bytes + PENDING_ENTRY_BYTES + self.kept_for(&then);
        self.pending_bytes += bytes;
        self.under_way.begin(&then);
        self.pending.push_back(Pending {
            mark: self.mark,
            bytes,
            then,
        });
        if planted::is(Bug::ToldBeforeDurable) {
            self.flush(out);
        }
    }

    /// Appends the home's own work, one batch of each kind at a time. Nothing that is told rests on
    /// it: it may wait for room in the store for as long as that takes.
    pub(super) fn append_own_work(&mut self, ops: Vec<Op>, out: &mut Out) {
        self.put_batch(ops, out);
    }

    fn put_batch(&mut self, ops: Vec<Op>, out: &mut Out) -> usize {
        self.mark = self.mark.following();
        let batch = Batch {
            mark: self.mark,
            ops,
        };
        let bytes = batch.bytes();
        self.left.spend(&batch);
        out.append(batch);
        bytes
    }

    /// Tells something when all that was appended so far is durable, but for the home's own work.
    pub(super) fn after_all(&mut self, then: Then, out: &mut Out) {
        let bytes = PENDING_ENTRY_BYTES + self.kept_for(&then);
        let mark = self.pending.back().map_or(self.durable_mark, |p| p.mark);
        self.under_way.begin(&then);
        self.pending.push_back(Pending { mark, bytes, then });
        self.pending_bytes += bytes;
        self.flush(out);
    }

    /// Bytes that stay in memory until something is told, beside its batch.
    fn kept_for(&self, then: &Then) -> usize {
        match then {
            Then::Reach { changes, .. } => {
                let pages = changes.iter().map(|change| change.page);
                pages.map(|page| self.pages.tip_bytes(page)).sum()
            }
            Then::Answer(_, _, Ok(Response::Segments { segments, .. })) => {
                let bytes = |info: &SegmentInfo| size_of::<SegmentInfo>() + info.path.len();
                segments.iter().map(bytes).sum()
            }
            _ => 0,
        }
    }

    /// Whether more waits to be durable than may: all else is told to come again.
    pub(super) fn is_busy(&self) -> bool {
        self.pending_bytes > self.config.pending_bytes_max
    }

    pub(super) fn made_durable(&mut self, mark: Mark, out: &mut Out) {
        self.durable_mark = self.durable_mark.max(mark);
        self.clock.durable(self.durable_mark);
        self.flush(out);
        self.end_install(out);
    }

    pub(super) fn flush(&mut self, out: &mut Out) {
        while let Some(first) = self.pending.front() {
            if first.mark > self.durable_mark && !planted::is(Bug::ToldBeforeDurable) {
                break;
            }
            if let Some(pending) = self.pending.pop_front() {
                self.pending_bytes -= pending.bytes;
                self.under_way.end(&pending.then);
                self.then(pending.then, out);
            }
        }
    }

    pub(super) fn then(&mut self, then: Then, out: &mut Out) {
        match then {
            Then::Reach {
                position,
                stamp,
                changes,
                origin,
                removed,
            } => self.reach(position, stamp, &changes, origin, removed, out),
            Then::Vote(edge, commit, stamp) => self.tell_vote(edge, commit, stamp, out),
            Then::Tell(edge, id, outcome) => self.tell(edge, id, &outcome, out),
            Then::Answer(edge, call, result) => self.answer(edge, call, result, out),
            Then::Watermark(edge, call) => self.tell_watermark(edge, call, out),
            Then::NoPage(page, waiter) => {
                let child = self.children.in_epoch(waiter.edge, waiter.epoch, out);
                if child.is_some() {
                    self.refuse_fetch(page, waiter, FetchRefusal::NoSuchSegment, out);
                }
            }
            Then::Nothing => {}
        }
    }

    /// A position is durable: every child is told what concerns it, with values only where it asked for them.
    pub(super) fn reach(
        &mut self,
        position: Position,
        stamp: Stamp,
        changes: &[PageChange],
        origin: Option<(EdgeId, CommitId)>,
        removed: Option<SegmentId>,
        out: &mut Out,
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
        self.children.deliver(news, out);
    }

    pub(super) fn tell(&self, edge: EdgeId, commit: CommitId, outcome: &Outcome, out: &mut Out) {
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

    fn tell_vote(&self, edge: EdgeId, commit: CommitId, stamp: Stamp, out: &mut Out) {
        let home = self.config.home;
        out.down(
            edge,
            Down::Voted {
                home,
                commit,
                stamp,
            },
        );
    }

    /// The promise itself comes as a heartbeat, for all that are below.
    fn tell_watermark(&self, edge: EdgeId, call: CallId, out: &mut Out) {
        let (home, position, watermark) = (self.config.home, self.durable, self.promised());
        out.down(
            edge,
            Down::Heartbeat {
                home,
                position,
                watermark,
            },
        );
        self.answer(edge, call, Ok(Response::Watermark(watermark)), out);
    }

    pub(super) fn answer(
        &self,
        edge: EdgeId,
        call: CallId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        let home = self.config.home;
        out.down(edge, Down::Answer { home, call, result });
    }
}

impl Mark {
    fn following(self) -> Mark {
        Mark(self.0 + 1)
    }
}
