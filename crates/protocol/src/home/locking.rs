//! Who waits for locks, and when each gets its own (rule C5).

use crate::edge::downstream::Children;
use crate::home::calls::{Caller, check_right};
use crate::home::lock_queue::{LockQueue, Waiting};
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::rights::is_operators_path;
use crate::home::tables::Tables;
use crate::home::writers::Writers;
use crate::home::{Outbox, responses};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::{LOCK_PATIENCE_MS_MAX, LOCK_SEGMENTS_MAX, LOCKS_MAX, LOCKS_OF_NAME_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallResponse, Fence, Incarnation, Lock, LockMode, MemberId, Millis, NameId,
    Note, Now, Op, Purpose, Right, SegmentId, planted,
};

/// How often it is looked whether a vote, or the lease of a writer, still stands against a lock, in milliseconds.
const LOOK_MS: u64 = 100;

type Called = Result<CallResponse, CallError>;

/// What a session asks for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) segments: Vec<SegmentId>,
    pub(super) mode: LockMode,
    pub(super) patience_ms: u32,
}

/// The segments for which sessions wait that come before, and how.
#[derive(Debug, Default)]
struct Before(BTreeMap<SegmentId, LockMode>);

impl Before {
    fn add(&mut self, waiting: &Waiting) {
        for segment in &waiting.segments {
            let mode = self.0.entry(*segment).or_insert(waiting.mode);
            // The mode that more stands against.
            if !mode.conflicts(LockMode::Read) {
                *mode = waiting.mode;
            }
        }
    }

    fn conflicts(&self, wanted: &Waiting) -> bool {
        let mut modes = wanted.segments.iter().filter_map(|of| self.0.get(of));
        modes.any(|mode| mode.conflicts(wanted.mode))
    }
}

/// Grants locks, gives them time, and ends them.
#[derive(Debug)]
pub(super) struct Locking<'a> {
    pub(super) queue: &'a mut LockQueue,
    pub(super) writers: &'a mut Writers,
    pub(super) children: &'a Children,
    pub(super) tables: &'a mut Tables,
    pub(super) log: &'a mut Log,
    pub(super) incarnation: Incarnation,
}

impl Locking<'_> {
    /// A session wants a lock. It is answered when its turn comes, or when it may wait no longer.
    pub(super) fn lock(
        &mut self,
        now: Now,
        (caller, carrier): (Caller, Option<NameId>),
        wanted: Wanted,
        outbox: &mut Outbox,
    ) {
        if let Some(fence) = self.tables.segment_locks.of_call(caller.call) {
            let lease_ms = self
                .tables
                .segment_locks
                .keep(fence, caller.call.member, now.mono);
            let again = lease_ms.map(|lease_ms| CallResponse::Locked { fence, lease_ms });
            return self.answer(caller, again);
        }
        if let Err(why) = self.check((caller, carrier), &wanted) {
            return self.answer(caller, Err(why));
        }
        self.queue
            .waiting
            .retain(|waiting| waiting.caller.call != caller.call);
        let patience_ms = wanted.patience_ms.min(LOCK_PATIENCE_MS_MAX);
        self.queue.push(Waiting {
            caller,
            carrier,
            mode: wanted.mode,
            segments: wanted.segments,
            due: now.mono.plus(u64::from(patience_ms)),
            round: 0,
        });
        self.finish(now, outbox);
    }

    fn check(&mut self, who: (Caller, Option<NameId>), wanted: &Wanted) -> Result<(), CallError> {
        let segments = &wanted.segments;
        let is_sorted = segments.is_sorted_by(|one, next| one < next);
        if segments.is_empty() || segments.len() > LOCK_SEGMENTS_MAX || !is_sorted {
            return Err(CallError::Invalid);
        }
        self.check_rights(who, segments)?;
        let is_list = |segment: &SegmentId| {
            let record = self.tables.segments.get(*segment);
            record.is_some_and(|record| is_operators_path(&record.path))
        };
        // Whoever held such a lock could keep others from taking a right away (rule R5).
        if segments.iter().any(is_list) {
            return Err(CallError::Invalid);
        }
        let (locks, name) = (&self.tables.segment_locks, who.0.who.name);
        let of_name = locks.of_name(name) + self.queue.of_name(name);
        let all = locks.len() + self.queue.len();
        match of_name < LOCKS_OF_NAME_MAX && all < LOCKS_MAX {
            true => Ok(()),
            false => Err(CallError::TooMany),
        }
    }

    fn check_rights(
        &mut self,
        (caller, carrier): (Caller, Option<NameId>),
        segments: &[SegmentId],
    ) -> Result<(), CallError> {
        segments.iter().try_for_each(|segment| {
            check_right(self.tables, (caller.who, carrier), *segment, Right::Write)
        })
    }

    /// A holder asks for more time.
    pub(super) fn keep(&mut self, now: Millis, caller: Caller, fence: Fence) {
        let member = caller.call.member;
        let kept = self.tables.segment_locks.keep(fence, member, now);
        let kept = kept.map(|lease_ms| CallResponse::Locked { fence, lease_ms });
        self.answer(caller, kept);
    }

    /// A session needs its lock no more.
    pub(super) fn unlock(&mut self, now: Now, caller: Caller, fence: Fence, outbox: &mut Outbox) {
        let locks = &mut self.tables.segment_locks;
        let member = caller.call.member;
        let ended = locks.end(fence, member);
        let is_forgotten = ended.is_none() && planted::is(Bug::EndedLockForgotten);
        let unlocked = match locks.was_ended(fence, member) && !is_forgotten {
            true => Ok(CallResponse::Unlocked),
            false => Err(CallError::LockLost),
        };
        self.answer(caller, unlocked);
        self.ended(ended.into_iter().collect(), outbox);
        self.finish(now, outbox);
    }

    fn ended(&mut self, ops: Vec<Op>, outbox: &mut Outbox) {
        if ops.is_empty() {
            return;
        }
        outbox.note(Note::LockEnded);
        let purpose = Purpose::Housekeeping;
        self.log
            .append_ops(purpose, ops, OnDurable::Nothing, outbox);
    }

    /// Grants the locks whose turn has come.
    pub(super) fn finish(&mut self, now: Now, outbox: &mut Outbox) {
        let is_due = self.queue.next.is_some_and(|next| next <= now.mono);
        let has_ended = self.tables.segment_locks.take_has_ended();
        let rights_changed = self.tables.segment_locks.take_rights_changed();
        let is_stirred = core::mem::take(&mut self.queue.is_stirred);
        if !is_stirred && !has_ended && !is_due && !rights_changed {
            return;
        }
        let over = self.tables.segment_locks.take_over(now.mono);
        self.ended(over, outbox);
        let waiting = core::mem::take(&mut self.queue.waiting);
        let mut before = Before::default();
        for waiting in waiting {
            // Nobody waits for a session that may not have the lock any more (rule R5).
            if rights_changed
                && let Err(why) =
                    self.check_rights((waiting.caller, waiting.carrier), &waiting.segments)
            {
                self.answer(waiting.caller, Err(why));
                continue;
            }
            match self.stands_against(now.mono, &waiting, &before) {
                None => self.grant(now, &waiting, outbox),
                Some(name) if waiting.due <= now.mono => {
                    self.answer(waiting.caller, Err(CallError::Locked { name }));
                }
                Some(_) => {
                    before.add(&waiting);
                    self.queue.waiting.push(waiting);
                }
            }
        }
        // What has ended just now was looked at.
        self.tables.segment_locks.take_has_ended();
        let due = self.queue.waiting.iter().map(|waiting| waiting.due).min();
        let look = due.map(|due| due.min(now.mono.plus(LOOK_MS)));
        self.queue.next = look
            .into_iter()
            .chain(self.tables.segment_locks.deadline())
            .min();
    }

    /// What stands against a lock: another lock, somebody who waits longer, a vote in doubt, or who may write what the home has not
    /// seen. Names the holder, if there is one.
    fn stands_against(&mut self, now: Millis, wanted: &Waiting, before: &Before) -> Option<String> {
        let (segments, mode) = (&wanted.segments, wanted.mode);
        let held = self.tables.segment_locks.want(segments, mode, now);
        if held.is_none() && before.conflicts(wanted) {
            return Some(String::new());
        }
        let is_voted = self.tables.votes.writes_in(segments) && !planted::is(Bug::LockBesideVote);
        let is_written =
            self.writers.may_write(segments, now) && !planted::is(Bug::LockBesideWriter);
        if is_written {
            self.recall(segments, now);
        }
        match held {
            Some(holder) => Some(self.name_of(holder)),
            None if is_voted || is_written => Some(String::new()),
            None => None,
        }
    }

    /// Wants back the leases that stand against a lock (rule C1).
    fn recall(&mut self, segments: &[SegmentId], now: Millis) {
        for (child, segments) in self.writers.recall(segments, now) {
            // A child without an edge is asked when it comes.
            if let Some(edge) = self.children.edge_of(child) {
                self.log.after_all(OnDurable::Recall(edge, segments));
            }
        }
    }

    fn name_of(&self, holder: MemberId) -> String {
        self.tables.audit.name(holder.name()).unwrap_or_else(|| {
            let edge = self.children.edge_of(holder);
            let child = edge.and_then(|edge| self.children.get(edge));
            child.map_or_else(
                || alloc::format!("{}", holder.name()),
                |child| child.name.clone(),
            )
        })
    }

    fn grant(&mut self, now: Now, waiting: &Waiting, outbox: &mut Outbox) {
        let (caller, segments) = (waiting.caller, &waiting.segments);
        // Its right may have been taken away while it waited.
        let checked = self.check_rights((caller, waiting.carrier), segments);
        let checked = checked.and_then(|()| match self.log.has_space() {
            true => Ok(()),
            false => Err(CallError::Full(self.log.lack())),
        });
        if let Err(why) = checked {
            return self.answer(caller, Err(why));
        }
        let CallId { member, number } = caller.call;
        let lock = Lock {
            holder: member,
            is_operator: caller.who.is_operator,
            call: number,
            incarnation: self.incarnation,
            mode: waiting.mode,
            lease_ms: self.tables.segment_locks.lease_ms(),
            segments: segments.clone(),
        };
        let lease_ms = lock.lease_ms;
        let (fence, ops) = self.tables.segment_locks.grant(lock, now);
        outbox.note(Note::LockGranted);
        let granted = Ok(CallResponse::Locked { fence, lease_ms });
        if planted::is(Bug::LockBeforeStep) {
            let result = responses::call_result(self.log.home(), caller.call, granted);
            outbox.down(caller.edge, result);
            let purpose = Purpose::Housekeeping;
            return self
                .log
                .append_ops(purpose, ops, OnDurable::Nothing, outbox);
        }
        // The answer comes behind all that was accepted, and when the lock is durable.
        let then = OnDurable::Answer(caller.edge, caller.call, granted);
        self.log
            .append_ops(Purpose::Housekeeping, ops, then, outbox);
    }

    fn answer(&mut self, caller: Caller, result: Called) {
        let answer = OnDurable::Answer(caller.edge, caller.call, result);
        self.log.after_all(answer);
    }
}
