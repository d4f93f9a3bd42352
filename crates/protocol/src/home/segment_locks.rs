//! Locks that sessions hold on segments (rule C5).

use crate::home::lists::is_list;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{LOCK_WANT_FORGOTTEN_MS, LOCK_WANTED_MS_MAX, LOCKS_ENDED_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, Fence, Lock, LockMode, MemberId, Millis, NameId, Now, ObjectId, Op,
    PageWrites, Part, Principal, Refusal, SegmentId, Table, planted, records,
};

/// A lock that is held.
#[derive(Debug)]
struct Held {
    lock: Lock,
    /// Its holder believes in it for less long.
    until: Millis,
    wanted: Option<Want>,
}

/// Others want what stands against a lock.
#[derive(Clone, Copy, Debug)]
struct Want {
    since: Millis,
    /// When somebody tried last.
    last: Millis,
}

impl Want {
    /// Somebody tries now. Whoever has not tried for long wants nothing any more.
    fn pressed(before: Option<Want>, now: Millis) -> Want {
        let before = before.filter(|want| want.counts(now));
        let since = before.map_or(now, |want| want.since);
        Want { since, last: now }
    }

    fn counts(&self, now: Millis) -> bool {
        let is_fresh = now.since(self.last) <= LOCK_WANT_FORGOTTEN_MS;
        is_fresh || planted::is(Bug::WantNeverForgotten)
    }

    /// For how long somebody has wanted it.
    fn lasts(&self, now: Millis) -> u64 {
        match self.counts(now) {
            true => now.since(self.since),
            false => 0,
        }
    }
}

/// The locks of a home, as of the accepted tip.
///
/// Invariant: no two that conflict are held in one segment. Each is in the store before its holder hears of it, and each has a higher
/// number than all before. `of_segment` names the locks in `held` by their segments.
#[derive(Debug)]
pub(in crate::home) struct SegmentLocks {
    held: BTreeMap<Fence, Held>,
    of_segment: BTreeMap<SegmentId, BTreeSet<Fence>>,
    last: Fence,
    lease_ms: u32,
    /// The last ones that their sessions have ended: one that asks again hears the same.
    ended: BTreeMap<Fence, MemberId>,
    /// A lock has ended since somebody looked.
    has_ended: bool,
    /// Others may write in some segment since it was asked last.
    rights_changed: bool,
}

impl SegmentLocks {
    /// No lock, with this lease time.
    pub(in crate::home) fn new(lease_ms: u32) -> Self {
        SegmentLocks {
            held: BTreeMap::new(),
            of_segment: BTreeMap::new(),
            last: Fence(0),
            lease_ms,
            ended: BTreeMap::new(),
            has_ended: false,
            rights_changed: false,
        }
    }

    /// The home starts again, and has given numbers up to this one.
    pub(in crate::home) fn recover_last(&mut self, last: Fence) {
        self.last = self.last.max(last);
    }

    /// The home starts again. The holder of a lock may believe in it for a whole lease still (rule C4).
    pub(in crate::home) fn recover(&mut self, fence: Fence, lock: Lock, now: Millis) {
        self.recover_last(fence);
        if !planted::is(Bug::LocksForgotten) {
            self.put(fence, lock, now);
        }
    }

    fn put(&mut self, fence: Fence, lock: Lock, now: Millis) {
        for segment in &lock.segments {
            self.of_segment.entry(*segment).or_default().insert(fence);
        }
        let held = Held {
            until: now.plus(u64::from(lock.lease_ms)),
            lock,
            wanted: None,
        };
        self.held.insert(fence, held);
    }

    /// How many are held.
    pub(in crate::home) fn len(&self) -> usize {
        self.held.len()
    }

    /// How many the sessions of a name hold.
    pub(in crate::home) fn of_name(&self, name: NameId) -> usize {
        let held = self.held.values();
        held.filter(|held| held.lock.holder.name() == name).count()
    }

    /// How long a lock lasts.
    pub(in crate::home) fn lease_ms(&self) -> u32 {
        self.lease_ms
    }

    /// When the next one ends.
    pub(in crate::home) fn deadline(&self) -> Option<Millis> {
        self.held.values().map(|held| held.until).min()
    }

    /// A lock that stands against another one.
    fn against(&self, segments: &[SegmentId], mode: LockMode) -> Option<Fence> {
        let here = segments.iter().filter_map(|of| self.of_segment.get(of));
        let mut here = here.flatten();
        let is_against = |fence: &&Fence| {
            let held = self.held.get(fence);
            held.is_some_and(|held| held.lock.mode.conflicts(mode))
        };
        here.find(is_against).copied()
    }

    /// Somebody wants these locks. Returns the holder of what stands against that.
    pub(in crate::home) fn want(
        &mut self,
        segments: &[SegmentId],
        mode: LockMode,
        now: Millis,
    ) -> Option<MemberId> {
        let fence = self.against(segments, mode)?;
        let held = self.held.get_mut(&fence)?;
        held.wanted = Some(Want::pressed(held.wanted, now));
        Some(held.lock.holder)
    }

    /// Whether a lock is held in one of these segments.
    pub(in crate::home) fn is_held(&self, segments: &[SegmentId]) -> bool {
        segments.iter().any(|of| self.of_segment.contains_key(of))
    }

    /// The lock that a call got before.
    pub(in crate::home) fn of_call(&self, call: CallId) -> Option<Fence> {
        let mut held = self.held.iter();
        let is_of = |held: &Held| held.lock.holder == call.member && held.lock.call == call.number;
        held.find(|(_, held)| is_of(held)).map(|(fence, _)| *fence)
    }

    /// Grants a lock that nothing stands against. Returns its number, and what is to be stored before it is told.
    pub(in crate::home) fn grant(&mut self, lock: Lock, now: Now) -> (Fence, Vec<Op>) {
        // A history that is lost may have given higher numbers than this store knows, but none above its time (rule R9).
        let fence = Fence((self.last.0 + 1).max(now.wall.0 << 20));
        self.last = fence;
        let ops = Vec::from([
            records::put(Table::Meta, records::FENCE_KEY.to_vec(), &fence),
            records::put(Table::Meta, records::lock_key(fence), &lock),
        ]);
        self.put(fence, lock, now.mono);
        (fence, ops)
    }

    /// Gives a lock more time, unless somebody else has wanted it for too long.
    pub(in crate::home) fn keep(
        &mut self,
        fence: Fence,
        member: MemberId,
        now: Millis,
    ) -> Result<u32, CallError> {
        let held = self.held.get_mut(&fence);
        let held = held.filter(|held| held.lock.holder == member && held.until > now);
        let held = held.ok_or(CallError::LockLost)?;
        if held
            .wanted
            .filter(|_| !planted::is(Bug::WantNotCounted))
            .is_some_and(|want| want.lasts(now) > LOCK_WANTED_MS_MAX)
        {
            return Err(CallError::Busy);
        }
        held.until = now.plus(u64::from(held.lock.lease_ms));
        Ok(held.lock.lease_ms)
    }

    /// A session needs its lock no more.
    pub(in crate::home) fn end(&mut self, fence: Fence, member: MemberId) -> Option<Op> {
        let held = self.held.get(&fence)?;
        if held.lock.holder != member {
            return None;
        }
        self.ended.insert(fence, member);
        while self.ended.len() > LOCKS_ENDED_MAX {
            self.ended.pop_first();
        }
        Some(self.take(fence))
    }

    /// Whether a session has ended its lock itself, just now or a while ago.
    pub(in crate::home) fn was_ended(&self, fence: Fence, member: MemberId) -> bool {
        self.ended.get(&fence) == Some(&member)
    }

    /// Whether a lock has ended since this was asked last.
    pub(in crate::home) fn take_has_ended(&mut self) -> bool {
        core::mem::take(&mut self.has_ended)
    }

    /// Whether rights have changed since this was asked last.
    pub(in crate::home) fn take_rights_changed(&mut self) -> bool {
        core::mem::take(&mut self.rights_changed)
    }

    fn take(&mut self, fence: Fence) -> Op {
        self.has_ended = true;
        let held = self.held.remove(&fence);
        for segment in held.iter().flat_map(|held| &held.lock.segments) {
            if let Some(here) = self.of_segment.get_mut(segment) {
                here.remove(&fence);
                if here.is_empty() {
                    self.of_segment.remove(segment);
                }
            }
        }
        records::delete(Table::Meta, records::lock_key(fence))
    }

    /// Ends the locks whose time is over.
    pub(in crate::home) fn take_over(&mut self, now: Millis) -> Vec<Op> {
        let over = self.held.iter().filter(|(_, held)| held.until <= now);
        let over: Vec<Fence> = over.map(|(fence, _)| *fence).collect();
        over.into_iter().map(|fence| self.take(fence)).collect()
    }

    /// Ends the locks in a segment whose holders may not have them any more (rule R5). Nobody waits for them.
    pub(in crate::home) fn take_in(
        &mut self,
        segment: SegmentId,
        may: impl Fn(Principal) -> bool,
    ) -> Vec<Op> {
        self.rights_changed = true;
        let here = self.of_segment.get(&segment).into_iter().flatten();
        let is_over = |fence: &&Fence| {
            let held = self.held.get(fence);
            held.is_some_and(|held| !may(held.lock.principal()))
        };
        let over: Vec<Fence> = here.filter(is_over).copied().collect();
        over.into_iter().map(|fence| self.take(fence)).collect()
    }

    /// Judges what a commit writes: under the lock that it names, and where nobody else has one.
    pub(in crate::home) fn judge(
        &mut self,
        (now, member): (Millis, MemberId),
        part: &Part,
    ) -> Result<(), Refusal> {
        let under = part.under.filter(|_| !planted::is(Bug::LockNotNamed));
        if let Some(fence) = under {
            let held = self.held.get(&fence);
            // Other programs of its name may write under it: a lock is for who has the certificate.
            let is_held =
                |held: &Held| held.lock.holder.name() == member.name() && held.until > now;
            if !held.is_some_and(is_held) {
                return Err(Refusal::LockLost);
            }
        }
        for segment in written(part) {
            let others = self.of_segment.get(&segment).into_iter().flatten();
            let fence = others.copied().find(|fence| Some(*fence) != part.under);
            if let Some(held) = fence.and_then(|fence| self.held.get_mut(&fence)) {
                held.wanted = Some(Want::pressed(held.wanted, now));
                let left = held.until.since(now);
                return Err(Refusal::Locked {
                    ends_ms: u32::try_from(left).unwrap_or(u32::MAX),
                });
            }
            let own = under.and_then(|fence| self.held.get(&fence));
            if own.is_some_and(|own| {
                own.lock.mode == LockMode::Read && own.lock.segments.contains(&segment)
            }) {
                return Err(Refusal::LockLost);
            }
        }
        Ok(())
    }
}

/// The segments that a part writes. No lock covers a rights list (rule R5).
fn written(part: &Part) -> BTreeSet<SegmentId> {
    let writes_more = |writes: &&PageWrites| {
        let page = writes.page;
        let mut slots = writes.slots.iter();
        slots.any(|(slot, _)| !is_list(ObjectId { page, slot: *slot }))
    };
    let writes = part.writes.iter().filter(writes_more);
    writes.map(|writes| writes.page.segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::{
        Generation, HomeId, Incarnation, PageId, Position, Slot, WriteOp, rights_page,
    };

    const ME: MemberId = MemberId(1);
    const OTHER: MemberId = MemberId(2 << 64);

    fn lock(holder: MemberId, mode: LockMode, segments: &[u32]) -> Lock {
        Lock {
            holder,
            is_operator: false,
            call: 7,
            incarnation: Incarnation::default(),
            mode,
            lease_ms: 1_000,
            segments: segments.iter().copied().map(SegmentId).collect(),
        }
    }

    fn at(mono: u64) -> Now {
        Now {
            mono: Millis(mono),
            wall: Millis(3),
        }
    }

    fn part(page: PageId, slot: Slot, under: Option<Fence>) -> Part {
        let generation = Generation(1);
        Part {
            home: HomeId(1),
            evidence: Position(0),
            reads: Vec::new(),
            writes: vec![PageWrites {
                page,
                slots: vec![(slot, WriteOp::Delete { generation })],
            }],
            under,
        }
    }

    fn writes(segment: u32, under: Option<Fence>) -> Part {
        part(PageId::new(segment, 1), Slot(1), under)
    }

    #[test]
    fn only_the_holder_writes_and_only_under_the_number() {
        let mut locks = SegmentLocks::new(1_000);
        let (mine, ops) = locks.grant(lock(ME, LockMode::Write, &[1, 2]), at(0));
        assert_eq!((mine, ops.len()), (Fence(3 << 20), 2));
        let mut judge = |now, who, part| locks.judge((Millis(now), who), &part);
        assert_eq!(judge(1, ME, writes(1, Some(mine))), Ok(()));
        assert_eq!(judge(1, ME, writes(3, Some(mine))), Ok(()));
        assert_eq!(
            judge(1, ME, writes(1, None)),
            Err(Refusal::Locked { ends_ms: 999 })
        );
        assert_eq!(
            judge(1, OTHER, writes(2, None)),
            Err(Refusal::Locked { ends_ms: 999 })
        );
        assert_eq!(judge(1, OTHER, writes(3, None)), Ok(()));
        assert_eq!(
            judge(1, OTHER, writes(3, Some(mine))),
            Err(Refusal::LockLost)
        );
        let list = part(rights_page(SegmentId(1)), thorp_model::RIGHTS_SLOT, None);
        assert_eq!(
            judge(1, OTHER, list),
            Ok(()),
            "no lock covers a rights list"
        );
        assert_eq!(
            judge(1_000, ME, writes(1, Some(mine))),
            Err(Refusal::LockLost)
        );
    }

    #[test]
    fn who_locked_to_read_does_not_write() {
        let mut locks = SegmentLocks::new(1_000);
        let (mine, _) = locks.grant(lock(ME, LockMode::Read, &[1]), at(0));
        assert_eq!(locks.want(&[SegmentId(1)], LockMode::Read, Millis(5)), None);
        assert_eq!(
            locks.want(&[SegmentId(1)], LockMode::Write, Millis(5)),
            Some(ME)
        );
        let judged = locks.judge((Millis(1), ME), &writes(1, Some(mine)));
        assert_eq!(judged, Err(Refusal::LockLost));
    }

    #[test]
    fn a_lock_that_somebody_wants_for_long_gets_no_more_time() {
        let mut locks = SegmentLocks::new(1_000);
        let (mine, _) = locks.grant(lock(ME, LockMode::Write, &[1]), at(0));
        assert_eq!(locks.keep(mine, OTHER, Millis(1)), Err(CallError::LockLost));
        let mut now = 0;
        while now < LOCK_WANTED_MS_MAX + 900 {
            assert_eq!(locks.keep(mine, ME, Millis(now)), Ok(1_000));
            locks.want(&[SegmentId(1)], LockMode::Read, Millis(now + 899));
            now += 900;
        }
        assert_eq!(locks.keep(mine, ME, Millis(now + 99)), Err(CallError::Busy));
        assert_eq!(
            locks.keep(mine, ME, Millis(now + 100)),
            Err(CallError::LockLost)
        );
        assert_eq!(locks.take_over(Millis(now + 100)).len(), 1);
        assert_eq!((locks.len(), locks.is_held(&[SegmentId(1)])), (0, false));
    }

    #[test]
    fn a_restarted_home_knows_locks_and_numbers() {
        let mut locks = SegmentLocks::new(1_000);
        let before = Fence(9 << 40);
        locks.recover(before, lock(ME, LockMode::Write, &[1]), Millis(50));
        let call = CallId {
            member: ME,
            number: 7,
        };
        assert_eq!(locks.of_call(call), Some(before));
        assert_eq!(locks.deadline(), Some(Millis(1_050)));
        assert!(locks.end(before, OTHER).is_none());
        assert!(locks.end(before, ME).is_some());
        let (next, _) = locks.grant(lock(OTHER, LockMode::Write, &[1]), at(60));
        assert_eq!(next, Fence(before.0 + 1));
        let writes_there = |who: Principal| who.name != OTHER.name();
        assert_eq!(locks.take_in(SegmentId(2), writes_there).len(), 0);
        assert_eq!(locks.take_in(SegmentId(1), writes_there).len(), 1);
    }
}
