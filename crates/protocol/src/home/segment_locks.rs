//! Locks that sessions hold on segments (rule C5).

use crate::home::lists::is_list;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{
    LENT_NUMBERS, LOCK_WANT_FORGOTTEN_MS, LOCK_WANTED_MS_MAX, LOCKS_ENDED_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, Fence, Lent, Lock, LockMode, MemberId, Millis, NameId, Now, ObjectId, Op,
    PageWrites, Part, Principal, Refusal, SegmentId, Table, planted, records,
};

/// A lock that is held.
#[derive(Debug)]
struct Held {
    lock: Lock,
    /// Its holder believes in it for less long.
    until: Millis,
    wanted: Option<Want>,
    /// The site by which its holder has asked for it.
    site: Option<MemberId>,
    /// That site tracks it: the home may lend it.
    is_tracked: bool,
    lending: Option<Lending>,
}

impl Held {
    /// Whether this number counts when it comes by the edge of this site, or by a member's own (none). Whose sessions it counts
    /// for, only the site knows, if it has handed the lock over.
    fn counts(&self, fence: Fence, number: Fence, site: Option<MemberId>) -> bool {
        let Some(lending) = &self.lending else {
            return number == fence;
        };
        let is_its_edge = site == Some(lending.lent.site) || planted::is(Bug::LentByAnyEdge);
        fence.lends(number)
            && is_its_edge
            && (lending.counts(number) || planted::is(Bug::OldNumberTaken))
    }
}

/// A lock that is lent.
#[derive(Debug)]
struct Lending {
    lent: Lent,
    /// The site hands it over no more, and has said under which number a session has it.
    last: Option<Fence>,
    /// The site was asked not to hand it over any more.
    is_recalled: bool,
}

impl Lending {
    fn counts(&self, number: Fence) -> bool {
        self.last.is_none_or(|last| last == number)
    }
}

/// A session, and the site whose edge it came by; none: by its member's own edge.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Via {
    pub(in crate::home) member: MemberId,
    pub(in crate::home) site: Option<MemberId>,
}

/// A site learns that it is to hand a lock over no more, or to forget it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) struct Recalled {
    pub(in crate::home) site: MemberId,
    pub(in crate::home) fence: Fence,
    pub(in crate::home) is_over: bool,
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
    /// What sites are to learn.
    recalled: Vec<Recalled>,
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
            recalled: Vec::new(),
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
            self.put(fence, lock, None, now);
        }
    }

    /// The home starts again, and had lent this lock. False: it knows no such lock.
    pub(in crate::home) fn recover_lent(&mut self, fence: Fence, lent: Lent) -> bool {
        let held = self.held.get_mut(&fence);
        let is_held = held.is_some();
        if let Some(held) = held {
            (held.site, held.is_tracked) = (Some(lent.site), true);
            // The site hands nothing over any more since the stream has ended.
            held.lending = Some(Lending {
                lent,
                last: None,
                is_recalled: true,
            });
        }
        is_held
    }

    fn put(&mut self, fence: Fence, lock: Lock, site: Option<MemberId>, now: Millis) {
        for segment in &lock.segments {
            self.of_segment.entry(*segment).or_default().insert(fence);
        }
        let held = Held {
            until: now.plus(u64::from(lock.lease_ms)),
            lock,
            wanted: None,
            site,
            is_tracked: false,
            lending: None,
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

    /// The lock that a number counts for.
    fn find(&self, number: Fence, site: Option<MemberId>) -> Option<Fence> {
        // No lock has a number that another one can lend.
        let (fence, held) = self.held.range(..=number).next_back()?;
        held.counts(*fence, number, site).then_some(*fence)
    }

    /// The lock that a number counts for, when a session names it. A number that was not lent is its holder's alone.
    fn of_session(&self, number: Fence, via: Via) -> Option<Fence> {
        let fence = self.find(number, via.site)?;
        let held = self.held.get(&fence)?;
        (number != fence || held.lock.holder == via.member).then_some(fence)
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

    /// The lock that stands against what somebody waits for, if the site of both can hand it over.
    pub(in crate::home) fn lendable(
        &self,
        (segments, mode): (&[SegmentId], LockMode),
        site: Option<MemberId>,
        now: Millis,
    ) -> Option<Fence> {
        let fence = self.against(segments, mode)?;
        let held = self.held.get(&fence)?;
        let of_both = site.is_some() && held.site == site && held.until > now && held.is_tracked;
        let is_same = held.lock.mode == LockMode::Write
            && mode == LockMode::Write
            && held.lock.segments == segments;
        let is_recalled = held.lending.as_ref().is_some_and(|of| of.is_recalled);
        (of_both && is_same && !is_recalled).then_some(fence)
    }

    /// The segments of a lock.
    pub(in crate::home) fn segments(&self, fence: Fence) -> Vec<SegmentId> {
        let held = self.held.get(&fence);
        held.map_or_else(Vec::new, |held| held.lock.segments.clone())
    }

    /// All locks that stand against another one.
    pub(in crate::home) fn all_against(
        &self,
        segments: &[SegmentId],
        mode: LockMode,
    ) -> BTreeSet<Fence> {
        let here = segments.iter().filter_map(|of| self.of_segment.get(of));
        let is_against = |fence: &Fence| {
            let held = self.held.get(fence);
            held.is_some_and(|held| held.lock.mode.conflicts(mode))
        };
        here.flatten().copied().filter(is_against).collect()
    }

    /// Lends a lock to the site of its holder. Returns what is to be stored before that is told.
    pub(in crate::home) fn lend(&mut self, fence: Fence) -> Vec<Op> {
        let held = self.held.get_mut(&fence);
        let held = held.filter(|held| held.lending.is_none() && held.is_tracked);
        let Some((site, held)) = held.and_then(|held| Some((held.site?, held))) else {
            return Vec::new();
        };
        let lent = Lent { site };
        held.lending = Some(Lending {
            lent,
            last: None,
            is_recalled: false,
        });
        Vec::from([records::put(Table::Meta, records::lent_key(fence), &lent)])
    }

    /// Somebody elsewhere wants a lock: its site hands it over no more.
    pub(in crate::home) fn recall(&mut self, fence: Fence) {
        let held = self.held.get_mut(&fence);
        let lending = held.and_then(|held| held.lending.as_mut());
        if let Some(lending) = lending.filter(|lending| !lending.is_recalled) {
            lending.is_recalled = true;
            let site = lending.lent.site;
            self.recalled.push(Recalled {
                site,
                fence,
                is_over: false,
            });
        }
    }

    /// A site tracks a lock from here on; or it hands it over no more, and a session has it under this number.
    pub(in crate::home) fn lending(&mut self, site: MemberId, fence: Fence, last: Option<Fence>) {
        let held = self.held.get_mut(&fence);
        let held = held.filter(|held| held.site == Some(site));
        match (held, last) {
            (Some(held), None) => held.is_tracked = true,
            (
                Some(Held {
                    lending: Some(lending),
                    ..
                }),
                Some(last),
            ) => {
                lending.is_recalled = true;
                lending.last = lending.last.max(Some(last));
            }
            (held, _) => {
                if let Some(held) = held {
                    held.is_tracked = false;
                }
                let is_over = true;
                self.recalled.push(Recalled {
                    site,
                    fence,
                    is_over,
                });
            }
        }
    }

    /// What sites are to learn.
    pub(in crate::home) fn take_recalled(&mut self) -> Vec<Recalled> {
        core::mem::take(&mut self.recalled)
    }

    /// Whether sites are to learn something.
    pub(in crate::home) fn has_recalled(&self) -> bool {
        !self.recalled.is_empty()
    }

    /// Whether a lock is held in one of these segments.
    pub(in crate::home) fn is_held(&self, segments: &[SegmentId]) -> bool {
        segments.iter().any(|of| self.of_segment.contains_key(of))
    }

    /// The lock that a call got before.
    pub(in crate::home) fn of_call(&self, call: CallId, site: Option<MemberId>) -> Option<Fence> {
        let mut held = self.held.iter();
        let is_of = |held: &Held| held.lock.holder == call.member && held.lock.call == call.number;
        let fence = held
            .find(|(_, held)| is_of(held))
            .map(|(fence, _)| *fence)?;
        // Elsewhere it does not count: its site may have handed it over.
        self.find(fence, site)
    }

    /// Grants a lock that nothing stands against. Returns its number, and what is to be stored before it is told.
    pub(in crate::home) fn grant(
        &mut self,
        lock: Lock,
        site: Option<MemberId>,
        now: Now,
    ) -> (Fence, Vec<Op>) {
        // A history that is lost may have given higher numbers than this store knows, but none above its time (rule R9).
        let fence = Fence((self.last.0 + 1).max(now.wall.0 << 20));
        // A site gives the numbers after it to those to which it hands the lock over.
        self.last = match site {
            Some(_) => Fence(fence.0 + LENT_NUMBERS - 1),
            None => fence,
        };
        let ops = Vec::from([
            records::put(Table::Meta, records::FENCE_KEY.to_vec(), &self.last),
            records::put(Table::Meta, records::lock_key(fence), &lock),
        ]);
        self.put(fence, lock, site, now.mono);
        (fence, ops)
    }

    /// Gives a lock more time, unless somebody else has wanted it for too long.
    pub(in crate::home) fn keep(
        &mut self,
        number: Fence,
        via: Via,
        now: Millis,
    ) -> Result<u32, CallError> {
        let fence = self.of_session(number, via).ok_or(CallError::LockLost)?;
        let held = self.held.get_mut(&fence).filter(|held| held.until > now);
        let held = held.ok_or(CallError::LockLost)?;
        if held
            .wanted
            .filter(|_| !planted::is(Bug::WantNotCounted))
            .is_some_and(|want| want.lasts(now) > LOCK_WANTED_MS_MAX)
        {
            return Err(CallError::Busy);
        }
        held.until = now.plus(u64::from(held.lock.lease_ms));
        let lease_ms = held.lock.lease_ms;
        self.comes_by(fence, via.site);
        Ok(lease_ms)
    }

    /// The holder of a lock has another way now. The site that it has left tracks the lock no more.
    fn comes_by(&mut self, fence: Fence, way: Option<MemberId>) {
        let held = self.held.get_mut(&fence);
        if let Some(held) = held.filter(|held| held.lending.is_none())
            && let Some(site) = held.site.filter(|site| Some(*site) != way)
        {
            let is_over = true;
            held.site = None;
            if core::mem::take(&mut held.is_tracked) {
                self.recalled.push(Recalled {
                    site,
                    fence,
                    is_over,
                });
            }
        }
    }

    /// The segments of the lock that a number was lent with. Whoever has it needs the right there.
    pub(in crate::home) fn lent_segments(&self, number: Fence, via: Via) -> Option<Vec<SegmentId>> {
        let fence = self.of_session(number, via).filter(|of| *of != number)?;
        Some(self.held.get(&fence)?.lock.segments.clone())
    }

    /// A session needs its lock no more.
    pub(in crate::home) fn end(&mut self, number: Fence, via: Via) -> Vec<Op> {
        let Some(fence) = self.of_session(number, via) else {
            return Vec::new();
        };
        self.comes_by(fence, via.site);
        self.ended.insert(number, via.member);
        while self.ended.len() > LOCKS_ENDED_MAX {
            self.ended.pop_first();
        }
        self.take(fence)
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

    /// A lock ends, and its site does not know.
    fn take_over_its_site(&mut self, fence: Fence) -> Vec<Op> {
        let held = self.held.get(&fence).filter(|held| held.is_tracked);
        let site = held.and_then(|held| held.site);
        let recalled = site.map(|site| Recalled {
            site,
            fence,
            is_over: true,
        });
        self.recalled.extend(recalled);
        self.take(fence)
    }

    fn take(&mut self, fence: Fence) -> Vec<Op> {
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
        let lending = held.and_then(|held| held.lending);
        let lent = lending.map(|_| records::delete(Table::Meta, records::lent_key(fence)));
        let lock = records::delete(Table::Meta, records::lock_key(fence));
        [lock].into_iter().chain(lent).collect()
    }

    /// Ends the locks whose time is over.
    pub(in crate::home) fn take_over(&mut self, now: Millis) -> Vec<Op> {
        let over = self.held.iter().filter(|(_, held)| held.until <= now);
        let over: Vec<Fence> = over.map(|(fence, _)| *fence).collect();
        over.into_iter()
            .flat_map(|fence| self.take_over_its_site(fence))
            .collect()
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
            // Of a lent one the home does not know who has it.
            let is_lent =
                |held: &Held| held.lending.is_some() && !planted::is(Bug::LentOutlivesRight);
            held.is_some_and(|held| is_lent(held) || !may(held.lock.principal()))
        };
        let over: Vec<Fence> = here.filter(is_over).copied().collect();
        over.into_iter()
            .flat_map(|fence| self.take_over_its_site(fence))
            .collect()
    }

    /// Judges what a commit writes: under the lock that it names, and where nobody else has one.
    pub(in crate::home) fn judge(
        &mut self,
        (now, via): (Millis, Via),
        part: &Part,
    ) -> Result<(), Refusal> {
        let named = part.under.filter(|_| !planted::is(Bug::LockNotNamed));
        let under = match named {
            Some(number) => Some(self.written_under(number, (now, via))?),
            None => part.under,
        };
        for segment in written(part) {
            let others = self.of_segment.get(&segment).into_iter().flatten();
            let fence = others.copied().find(|fence| Some(*fence) != under);
            if let Some((fence, held)) = fence.and_then(|of| Some((of, self.held.get_mut(&of)?))) {
                held.wanted = Some(Want::pressed(held.wanted, now));
                let left = held.until.since(now);
                self.recall(fence);
                return Err(Refusal::Locked {
                    ends_ms: u32::try_from(left).unwrap_or(u32::MAX),
                });
            }
            let own = under.and_then(|fence| self.held.get(&fence));
            if named.is_some()
                && own.is_some_and(|own| {
                    own.lock.mode == LockMode::Read && own.lock.segments.contains(&segment)
                })
            {
                return Err(Refusal::LockLost);
            }
        }
        Ok(())
    }

    /// The lock that a commit names. Other programs of the holder's name may write under it: a lock is for who has the
    /// certificate. Of a number that is lent, the site knows whose it is.
    fn written_under(&self, number: Fence, (now, via): (Millis, Via)) -> Result<Fence, Refusal> {
        let fence = self.find(number, via.site).ok_or(Refusal::LockLost)?;
        let held = self.held.get(&fence).filter(|held| held.until > now);
        let held = held.ok_or(Refusal::LockLost)?;
        let is_own = number != fence || held.lock.holder.name() == via.member.name();
        is_own.then_some(fence).ok_or(Refusal::LockLost)
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
    const SITE: MemberId = MemberId(3 << 64);

    /// By a member's own edge.
    fn own(member: MemberId) -> Via {
        let site = None;
        Via { member, site }
    }

    /// By the edge of a site.
    fn by(member: MemberId, site: MemberId) -> Via {
        let site = Some(site);
        Via { member, site }
    }

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
        let (mine, ops) = locks.grant(lock(ME, LockMode::Write, &[1, 2]), None, at(0));
        assert_eq!((mine, ops.len()), (Fence(3 << 20), 2));
        let mut judge = |now, who, part| locks.judge((Millis(now), own(who)), &part);
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
        let (mine, _) = locks.grant(lock(ME, LockMode::Read, &[1]), None, at(0));
        assert_eq!(locks.want(&[SegmentId(1)], LockMode::Read, Millis(5)), None);
        assert_eq!(
            locks.want(&[SegmentId(1)], LockMode::Write, Millis(5)),
            Some(ME)
        );
        let judged = locks.judge((Millis(1), own(ME)), &writes(1, Some(mine)));
        assert_eq!(judged, Err(Refusal::LockLost));
    }

    #[test]
    fn a_lock_that_somebody_wants_for_long_gets_no_more_time() {
        let mut locks = SegmentLocks::new(1_000);
        let (mine, _) = locks.grant(lock(ME, LockMode::Write, &[1]), None, at(0));
        assert_eq!(
            locks.keep(mine, own(OTHER), Millis(1)),
            Err(CallError::LockLost)
        );
        let mut now = 0;
        while now < LOCK_WANTED_MS_MAX + 900 {
            assert_eq!(locks.keep(mine, own(ME), Millis(now)), Ok(1_000));
            locks.want(&[SegmentId(1)], LockMode::Read, Millis(now + 899));
            now += 900;
        }
        assert_eq!(
            locks.keep(mine, own(ME), Millis(now + 99)),
            Err(CallError::Busy)
        );
        assert_eq!(
            locks.keep(mine, own(ME), Millis(now + 100)),
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
        assert_eq!(locks.of_call(call, None), Some(before));
        assert_eq!(locks.deadline(), Some(Millis(1_050)));
        assert!(locks.end(before, own(OTHER)).is_empty());
        assert!(!locks.end(before, own(ME)).is_empty());
        let (next, _) = locks.grant(lock(OTHER, LockMode::Write, &[1]), None, at(60));
        assert_eq!(next, Fence(before.0 + 1));
        let writes_there = |who: Principal| who.name != OTHER.name();
        assert_eq!(locks.take_in(SegmentId(2), writes_there).len(), 0);
        assert_eq!(locks.take_in(SegmentId(1), writes_there).len(), 1);
    }

    /// A lock that is lent to a site, and its first number.
    fn lent() -> (SegmentLocks, Fence, Fence) {
        let mut locks = SegmentLocks::new(1_000);
        let (mine, _) = locks.grant(lock(ME, LockMode::Write, &[1]), Some(SITE), at(0));
        let wanted = (&[SegmentId(1)][..], LockMode::Write);
        assert_eq!(locks.lendable(wanted, Some(SITE), Millis(1)), None);
        let first = Fence(mine.0 + 1);
        let judged = locks.judge((Millis(1), by(ME, SITE)), &writes(1, Some(first)));
        assert_eq!(judged, Err(Refusal::LockLost), "it is not lent");
        locks.lending(SITE, mine, None);
        assert_eq!(locks.lendable(wanted, Some(SITE), Millis(1)), Some(mine));
        assert_eq!(locks.lendable(wanted, Some(ME), Millis(1)), None);
        assert_eq!(locks.lend(mine).len(), 1);
        assert_eq!(locks.lend(mine).len(), 0, "it is lent");
        (locks, mine, first)
    }

    #[test]
    fn a_lent_lock_counts_by_the_edge_of_its_site_alone() {
        let (mut locks, mine, first) = lent();
        let mut judge = |via, under| locks.judge((Millis(2), via), &writes(1, Some(under)));
        assert_eq!(judge(by(ME, SITE), mine), Ok(()));
        assert_eq!(judge(by(OTHER, SITE), first), Ok(()));
        assert_eq!(judge(by(OTHER, SITE), mine), Err(Refusal::LockLost));
        for via in [own(ME), own(OTHER), by(OTHER, ME)] {
            assert_eq!(judge(via, mine), Err(Refusal::LockLost));
            assert_eq!(judge(via, first), Err(Refusal::LockLost));
        }
        assert_eq!(
            judge(by(OTHER, SITE), Fence(mine.0 + LENT_NUMBERS)),
            Err(Refusal::LockLost)
        );
        assert_eq!(
            locks.keep(first, own(OTHER), Millis(3)),
            Err(CallError::LockLost)
        );
        assert_eq!(locks.keep(first, by(OTHER, SITE), Millis(3)), Ok(1_000));
        assert!(locks.end(first, own(OTHER)).is_empty());
        assert_eq!(locks.end(first, by(OTHER, SITE)).len(), 2);
        let (next, _) = locks.grant(lock(ME, LockMode::Write, &[1]), None, at(4));
        assert!(!mine.lends(next), "no number is given twice");
    }

    #[test]
    fn of_a_lock_that_is_handed_over_no_more_one_number_counts() {
        let (mut locks, mine, first) = lent();
        locks.lending(ME, mine, Some(first));
        let over = |site| Recalled {
            site,
            fence: mine,
            is_over: true,
        };
        assert_eq!(locks.take_recalled(), [over(ME)], "it is not lent to that");
        locks.lending(SITE, mine, Some(first));
        assert_eq!(locks.take_recalled(), []);
        let mut judge = |under| {
            let part = writes(1, Some(under));
            locks.judge((Millis(2), by(OTHER, SITE)), &part)
        };
        assert_eq!(judge(first), Ok(()));
        assert_eq!(judge(Fence(first.0 + 1)), Err(Refusal::LockLost));
        let judged = locks.judge((Millis(2), by(ME, SITE)), &writes(1, Some(mine)));
        assert_eq!(judged, Err(Refusal::LockLost));
    }

    #[test]
    fn a_lent_lock_is_recalled_once_and_ends_with_a_change_of_rights() {
        let (mut locks, mine, first) = lent();
        let locked = Err(Refusal::Locked { ends_ms: 998 });
        assert_eq!(
            locks.judge((Millis(2), own(OTHER)), &writes(1, None)),
            locked
        );
        locks.recall(mine);
        let recalled = |is_over| Recalled {
            site: SITE,
            fence: mine,
            is_over,
        };
        assert_eq!(locks.take_recalled(), [recalled(false)]);
        let wanted = (&[SegmentId(1)][..], LockMode::Write);
        assert_eq!(locks.lendable(wanted, Some(SITE), Millis(1)), None);
        assert_eq!(locks.take_in(SegmentId(1), |_| true).len(), 2);
        assert_eq!(locks.take_recalled(), [recalled(true)]);
        assert_eq!(
            locks.keep(first, by(OTHER, SITE), Millis(3)),
            Err(CallError::LockLost)
        );
    }

    #[test]
    fn a_holder_that_turns_before_its_lock_is_lent_keeps_it() {
        let mut locks = SegmentLocks::new(1_000);
        let (mine, _) = locks.grant(lock(ME, LockMode::Write, &[1]), Some(SITE), at(0));
        locks.lending(SITE, mine, None);
        assert_eq!(locks.keep(mine, own(ME), Millis(1)), Ok(1_000));
        assert_eq!(locks.take_recalled().len(), 1);
        let wanted = (&[SegmentId(1)][..], LockMode::Write);
        assert_eq!(locks.lendable(wanted, Some(SITE), Millis(1)), None);
    }

    #[test]
    fn a_restarted_home_knows_to_whom_it_has_lent() {
        let (_, _, first) = lent();
        let mut locks = SegmentLocks::new(1_000);
        let mine = Fence(3 << 20);
        let of = Lent { site: SITE };
        assert!(!locks.recover_lent(mine, of), "there is no such lock");
        locks.recover(mine, lock(ME, LockMode::Write, &[1]), Millis(0));
        assert!(locks.recover_lent(mine, of));
        assert_eq!(locks.keep(first, by(OTHER, SITE), Millis(3)), Ok(1_000));
        assert_eq!(
            locks.keep(mine, own(ME), Millis(3)),
            Err(CallError::LockLost)
        );
    }
}
