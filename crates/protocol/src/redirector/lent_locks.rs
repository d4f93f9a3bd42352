//! Locks that a site hands over among the sessions below it (rule C5).

use crate::edge::turns::{self, InTurn};
use crate::redirector::Outbox;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{LENT_WAIT_MS_MAX, TRACKED_LOCKS_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, CommitId, EdgeId, Fence, LockMode, MemberId,
    Millis, NameId, Note, SegmentId, believed_until, planted,
};

/// What a site has to do about a lock.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Act {
    /// A call of a child goes up.
    PassUp(EdgeId, CallId, CallRequest),
    /// A child has its answer here.
    Answer(EdgeId, CallId, Result<CallResponse, CallError>),
    /// The home learns that this lock may be lent (none), or that it is handed over no more, and its number now.
    Lending(Fence, Option<Fence>),
}

/// Whether a commit may go up.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Judged {
    /// It may, after these.
    Passes(Vec<Act>),
    /// It names the number of another session.
    LockLost,
}

/// The locks of one home that were granted to sessions below this site, as far as it tracks them.
///
/// Invariant: while the home takes anything under a number that it has lent, this site knows which session has it, and passes up only
/// what is of that session, or what the home refuses. So the home lends only what the site has said that it tracks, and from then on the
/// entry ends with the home's word alone.
#[derive(Debug, Default)]
pub(super) struct LentLocks {
    /// By the numbers with which the home has granted them.
    tracked: BTreeMap<Fence, Tracked>,
    /// Calls for locks that the home has not answered.
    asked: BTreeMap<CallId, Asked>,
    /// Those for more time: for which lock, and when they went up.
    keeping: BTreeMap<CallId, (Fence, Millis)>,
    /// Those that end locks.
    ending: BTreeMap<CallId, Fence>,
    /// Commits that name locks and have not ended, also of locks that this site has not heard of yet.
    open: BTreeMap<CommitId, Fence>,
}

/// A lock.
#[derive(Debug)]
struct Tracked {
    segments: Vec<SegmentId>,
    /// The call of the session that has it.
    call: CallId,
    /// Its number now.
    number: Fence,
    /// The session believes in it for less long, and the home for longer.
    until: Millis,
    lease_ms: u32,
    /// The home knows that this site tracks it.
    is_told: bool,
    /// The home has lent it.
    is_lent: bool,
    is_recalled: bool,
    /// The home was asked to end it.
    is_ending: bool,
    /// Whom the home would grant it, by the edges that they came by.
    may_lock: BTreeSet<(EdgeId, MemberId)>,
    /// Who gets it next.
    waiting: Vec<Waiting>,
}

/// A session that waits here.
#[derive(Debug)]
struct Waiting {
    edge: EdgeId,
    call: CallId,
    /// It waits at the home from then on.
    until: Millis,
    /// It waits no longer.
    due: Millis,
    round: u64,
}

impl InTurn for Waiting {
    fn turn(&self) -> (NameId, u64) {
        (self.call.member.name(), self.round)
    }

    fn set_round(&mut self, round: u64) {
        self.round = round;
    }
}

/// A call for a lock that went up.
#[derive(Debug)]
struct Asked {
    edge: EdgeId,
    segments: Vec<SegmentId>,
    sent: Millis,
    due: Millis,
}

impl Tracked {
    /// Whether this number was the lock's before another session got it.
    fn is_older(&self, number: Fence) -> bool {
        number < self.number
    }

    /// The number for whoever gets it next.
    fn next_number(&self, fence: Fence) -> Option<Fence> {
        let next = Fence(self.number.0 + 1);
        (self.is_lent && fence.lends(next)).then_some(next)
    }

    /// Hands it over to whoever comes next: nobody elsewhere waits, nothing that was written under it is on its way, and its lease
    /// lasts. False otherwise.
    fn hand_over(
        &mut self,
        now: Millis,
        (fence, is_open): (Fence, bool),
        acts: &mut Vec<Act>,
    ) -> bool {
        let is_open = is_open && !planted::is(Bug::HandsOverOpen);
        let left = self.until.since(now);
        if self.is_recalled || self.is_ending || is_open || left == 0 || self.waiting.is_empty() {
            return false;
        }
        let Some(number) = self.next_number(fence) else {
            return false;
        };
        let next = self.waiting.remove(0);
        (self.number, self.call) = (number, next.call);
        acts.push(Act::Answer(next.edge, next.call, Ok(self.locked(now))));
        true
    }

    /// What its session is told: the rest of its lease.
    fn locked(&self, now: Millis) -> CallResponse {
        let left = u32::try_from(self.until.since(now)).unwrap_or(u32::MAX);
        let lease_ms = match planted::is(Bug::HandsOverWhole) {
            true => self.lease_ms,
            false => left,
        };
        let fence = self.number;
        CallResponse::Locked { fence, lease_ms }
    }

    /// It is handed over no more: who waits here waits at the home.
    fn recall(&mut self, now: Millis, acts: &mut Vec<Act>) {
        self.is_recalled = true;
        self.pass_up(now, |_| true, acts);
    }

    fn pass_up(&mut self, now: Millis, which: impl Fn(&Waiting) -> bool, acts: &mut Vec<Act>) {
        let segments = &self.segments;
        let passed = self.waiting.extract_if(.., |waiting| which(waiting));
        acts.extend(passed.map(|waiting| {
            let left = waiting.due.since(now);
            let request = CallRequest::Lock {
                segments: segments.clone(),
                mode: LockMode::Write,
                patience_ms: u32::try_from(left).unwrap_or(u32::MAX),
            };
            Act::PassUp(waiting.edge, waiting.call, request)
        }));
    }
}

impl LentLocks {
    // --- What children call ---

    /// A child calls for a lock, for more time, or to end one.
    pub(super) fn called(
        &mut self,
        now: Millis,
        (edge, call): (EdgeId, CallId),
        request: CallRequest,
        is_below_home: bool,
        outbox: &mut Outbox,
    ) -> Vec<Act> {
        let up = |request| Vec::from([Act::PassUp(edge, call, request)]);
        let answer = |result| Vec::from([Act::Answer(edge, call, result)]);
        match request {
            CallRequest::Lock {
                ref segments,
                mode: LockMode::Write,
                patience_ms,
            } if is_below_home => {
                let due = now.plus(u64::from(patience_ms));
                if let Some(acts) = self.waits_here(now, (edge, call), (segments, due)) {
                    return acts;
                }
                let mut acts = self.tell_tracked(segments);
                acts.extend(up(request));
                acts
            }
            CallRequest::KeepLock { fence: number } => match self.find(number) {
                Some((_, lock)) if !lock.is_of(number, call.member) => {
                    answer(Err(CallError::LockLost))
                }
                _ => up(request),
            },
            CallRequest::Unlock { fence: number } => match self.find_with_open(number) {
                Some((fence, is_open, lock)) if lock.is_of(number, call.member) => {
                    let mut acts = answer(Ok(CallResponse::Unlocked));
                    match lock.hand_over(now, (fence, is_open), &mut acts) {
                        true => outbox.note(Note::LockHandedOver),
                        false => acts = up(request),
                    }
                    acts
                }
                Some((_, _, lock)) if lock.is_older(number) => answer(Ok(CallResponse::Unlocked)),
                Some(_) => answer(Err(CallError::LockLost)),
                None => up(request),
            },
            request => up(request),
        }
    }

    /// The lock that a number belongs to, or was lent with.
    fn find(&mut self, number: Fence) -> Option<(Fence, &mut Tracked)> {
        let (fence, lock) = self.tracked.range_mut(..=number).next_back()?;
        fence.lends(number).then_some((*fence, lock))
    }

    /// The same, and whether a commit under it is on its way.
    fn find_with_open(&mut self, number: Fence) -> Option<(Fence, bool, &mut Tracked)> {
        let (fence, _) = self.find(number)?;
        let is_open = self.open.values().any(|of| fence.lends(*of));
        let lock = self.tracked.get_mut(&fence)?;
        Some((fence, is_open, lock))
    }

    /// Somebody here waits for a lock that a session here has: the home may lend it.
    fn tell_tracked(&mut self, segments: &[SegmentId]) -> Vec<Act> {
        let mut tracked = self.tracked.iter_mut();
        let lock = tracked.find(|(_, lock)| lock.segments == segments);
        let lock = lock.filter(|(_, lock)| !lock.is_told && !lock.is_recalled && !lock.is_ending);
        let told = lock.map(|(fence, lock)| {
            lock.is_told = true;
            Act::Lending(*fence, None)
        });
        told.into_iter().collect()
    }

    /// A call for a lock that sessions here hand over, if the home has said that this one may have it.
    fn waits_here(
        &mut self,
        now: Millis,
        (edge, call): (EdgeId, CallId),
        (segments, due): (&[SegmentId], Millis),
    ) -> Option<Vec<Act>> {
        let is_full = self.is_full_of(call.member.name());
        let mut tracked = self.tracked.iter_mut();
        let (fence, lock) = tracked.find(|(_, lock)| lock.segments == segments)?;
        lock.waiting.retain(|waiting| waiting.call != call);
        if lock.call == call && lock.number != *fence && !lock.is_ending {
            // It has come again, by another edge.
            return Some(Vec::from([Act::Answer(edge, call, Ok(lock.locked(now)))]));
        }
        let may_lock = lock.may_lock.contains(&(edge, call.member));
        let is_lent = lock.is_lent && !lock.is_recalled && !lock.is_ending;
        if !may_lock || !is_lent || is_full {
            return None;
        }
        lock.wait(now, (edge, call), due);
        Some(Vec::new())
    }

    /// Whether one more lock can be tracked: no name takes more than it leaves free (rule R7).
    fn has_space(&self, call: CallId) -> bool {
        let tracked = self.tracked.values().map(|lock| lock.call);
        let all = tracked.chain(self.asked.keys().copied());
        leaves_free(all, call.member.name())
    }

    /// The same of those that wait.
    fn is_full_of(&self, name: NameId) -> bool {
        let waiting = self.tracked.values().flat_map(|lock| &lock.waiting);
        !leaves_free(waiting.map(|waiting| waiting.call), name)
    }

    /// A call goes up.
    pub(super) fn passed(
        &mut self,
        now: Millis,
        (edge, call): (EdgeId, CallId),
        request: &CallRequest,
        is_below_home: bool,
    ) {
        match request {
            CallRequest::Lock {
                segments,
                mode: LockMode::Write,
                patience_ms,
            } if is_below_home && self.has_space(call) => {
                let asked = Asked {
                    edge,
                    segments: segments.clone(),
                    sent: now,
                    due: now.plus(u64::from(*patience_ms)),
                };
                self.asked.insert(call, asked);
            }
            CallRequest::KeepLock { fence } => {
                if let Some((fence, _)) = self.find(*fence) {
                    self.keeping.insert(call, (fence, now));
                }
            }
            CallRequest::Unlock { fence } => {
                if let Some((fence, lock)) = self.find(*fence) {
                    lock.is_ending = true;
                    self.ending.insert(call, fence);
                }
            }
            _ => {}
        }
    }

    // --- What the home answers ---

    /// The home has answered a call. Returns what is to be done then; the child hears `result`.
    pub(super) fn answered(
        &mut self,
        now: Millis,
        call: CallId,
        result: &mut Result<CallResponse, CallError>,
    ) -> Vec<Act> {
        if let Some(asked) = self.asked.remove(&call)
            && let Ok(CallResponse::Locked { fence, lease_ms }) = *result
        {
            let waits = self.asked.values().any(|of| of.segments == asked.segments);
            let segments = asked.segments.clone();
            if !self.track(fence, (call, asked), lease_ms) {
                *result = Err(CallError::LockLost);
            } else if waits {
                return self.tell_tracked(&segments);
            }
        } else if let Some((fence, sent)) = self.keeping.remove(&call)
            && let Ok(CallResponse::Locked { lease_ms, .. }) = *result
        {
            if let Some(lock) = self.tracked.get_mut(&fence) {
                let until = believed_until(sent, u64::from(lease_ms));
                (lock.until, lock.lease_ms) = (lock.until.max(until), lease_ms);
            }
        } else if let Some(fence) = self.ending.remove(&call) {
            match result {
                Ok(CallResponse::Unlocked) | Err(CallError::LockLost) => {
                    return self.over(now, fence);
                }
                _ => {
                    if let Some(lock) = self.tracked.get_mut(&fence) {
                        lock.is_ending = false;
                    }
                }
            }
        }
        Vec::new()
    }

    /// A lock was granted to a session below. False: another one has it by now.
    fn track(&mut self, fence: Fence, (call, asked): (CallId, Asked), lease_ms: u32) -> bool {
        let until = believed_until(asked.sent, u64::from(lease_ms));
        let lock = self.tracked.entry(fence).or_insert_with(|| Tracked {
            segments: asked.segments,
            call,
            number: fence,
            until,
            lease_ms,
            is_told: false,
            is_lent: false,
            is_recalled: false,
            is_ending: false,
            may_lock: BTreeSet::from([(asked.edge, call.member)]),
            waiting: Vec::new(),
        });
        lock.call == call
    }

    /// The home lends a lock: whoever has called for it waits here. Its edge may be gone.
    pub(super) fn lent(
        &mut self,
        now: Millis,
        (edge, call): (Option<EdgeId>, CallId),
        fence: Fence,
    ) -> Vec<Act> {
        let asked = self.asked.remove(&call);
        let is_full = self.is_full_of(call.member.name());
        if let Some(lock) = self.tracked.get_mut(&fence) {
            lock.is_lent = true;
        }
        let Some((edge, asked)) = edge.zip(asked) else {
            let busy = edge.map(|edge| Act::Answer(edge, call, Err(CallError::Busy)));
            return busy.into_iter().collect();
        };
        let lock = self.tracked.get_mut(&fence);
        let lock = lock.filter(|lock| !lock.is_recalled && lock.segments == asked.segments);
        if let Some(lock) = lock.filter(|_| !is_full) {
            lock.may_lock.insert((edge, call.member));
            lock.wait(now, (edge, call), asked.due);
            return Vec::new();
        }
        // It waits at the home, which lends the lock to nobody else then.
        let mut acts = self.end_lending(now, fence);
        let request = CallRequest::Lock {
            segments: asked.segments,
            mode: LockMode::Write,
            patience_ms: u32::try_from(asked.due.since(now)).unwrap_or(u32::MAX),
        };
        acts.push(Act::PassUp(edge, call, request));
        acts
    }

    /// A lock is handed over no more: the home learns its number, and who waits here waits there.
    fn end_lending(&mut self, now: Millis, fence: Fence) -> Vec<Act> {
        let last = self.tracked.get(&fence).map_or(fence, |lock| lock.number);
        let mut acts = Vec::from([Act::Lending(fence, Some(last))]);
        if let Some(lock) = self.tracked.get_mut(&fence) {
            lock.recall(now, &mut acts);
        }
        acts
    }

    /// Somebody elsewhere wants a lock, or it is over.
    pub(super) fn recalled(&mut self, now: Millis, fence: Fence, is_over: bool) -> Vec<Act> {
        if is_over {
            return self.over(now, fence);
        }
        let mut acts = Vec::new();
        if let Some(lock) = self.tracked.get_mut(&fence)
            && !planted::is(Bug::HandsOverRecalled)
        {
            lock.recall(now, &mut acts);
        }
        acts
    }

    /// The home takes nothing under it any more.
    fn over(&mut self, now: Millis, fence: Fence) -> Vec<Act> {
        let mut acts = Vec::new();
        if let Some(mut lock) = self.tracked.remove(&fence) {
            lock.recall(now, &mut acts);
        }
        acts
    }

    // --- Commits ---

    /// A child sends a commit that names a lock.
    pub(super) fn judge(&mut self, now: Millis, number: Fence, member: MemberId) -> Judged {
        let Some((fence, lock)) = self.find(number) else {
            return Judged::Passes(Vec::new());
        };
        if lock.is_older(number) {
            // It may have been executed before the lock was handed over: the home knows that, and refuses it otherwise.
            return Judged::Passes(self.end_lending(now, fence));
        }
        // Other programs of its name may write under it. Of a lock that cannot be lent the home knows whose it is.
        let is_now = number == lock.number;
        let is_own = is_now && (member.name() == lock.call.member.name() || !lock.is_told);
        match is_own || planted::is(Bug::OthersUnderLent) {
            true => Judged::Passes(Vec::new()),
            false => Judged::LockLost,
        }
    }

    /// It went up.
    pub(super) fn commit_sent(&mut self, number: Fence, id: CommitId) {
        self.open.insert(id, number);
    }

    /// A commit has ended at the home, and its step is here.
    pub(super) fn commit_ended(&mut self, id: CommitId) {
        self.open.remove(&id);
    }

    // --- Edges, streams and time ---

    /// A child is gone, and its edge: whoever waited there calls again.
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        for lock in self.tracked.values_mut() {
            lock.waiting.retain(|waiting| waiting.edge != edge);
            lock.may_lock.retain(|(of, _)| *of != edge);
        }
    }

    /// The stream has ended. Locks last, and nobody gets one from here on.
    pub(super) fn stream_ended(&mut self) {
        self.asked.clear();
        self.keeping.clear();
        self.ending.clear();
        self.open.clear();
        self.tracked.retain(|_, lock| lock.is_told);
        for lock in self.tracked.values_mut() {
            (lock.is_recalled, lock.is_ending) = (true, false);
            lock.waiting.clear();
        }
    }

    /// A stream begins: the home learns under which number each lock is, and forgets that it was lent; or says that it is over.
    pub(super) fn numbers(&self) -> Vec<(Fence, Fence)> {
        let tracked = self.tracked.iter();
        tracked.map(|(fence, lock)| (*fence, lock.number)).collect()
    }

    /// Who has waited here for long waits at the home: it knows the holder, and may wait for its lease.
    pub(super) fn tick(&mut self, now: Millis) -> Vec<Act> {
        let mut acts = Vec::new();
        // The home lends no lock that it does not know to be tracked.
        self.tracked
            .retain(|_, lock| lock.is_told || now < lock.until);
        for lock in self.tracked.values_mut() {
            lock.pass_up(now, |waiting| waiting.until <= now, &mut acts);
        }
        acts
    }

    /// When somebody has waited for long.
    pub(super) fn deadline(&self) -> Option<Millis> {
        let waiting = self.tracked.values().flat_map(|lock| &lock.waiting);
        waiting.map(|waiting| waiting.until).min()
    }

    /// How many it tracks, and how many wait.
    pub(super) fn sizes(&self) -> [usize; 2] {
        let waiting = self.tracked.values().map(|lock| lock.waiting.len());
        [self.tracked.len() + self.asked.len(), waiting.sum()]
    }
}

impl Tracked {
    fn is_of(&self, number: Fence, member: MemberId) -> bool {
        (self.number, self.call.member) == (number, member)
    }

    fn wait(&mut self, now: Millis, (edge, call): (EdgeId, CallId), due: Millis) {
        let waiting = Waiting {
            edge,
            call,
            until: due.min(now.plus(LENT_WAIT_MS_MAX)),
            due,
            round: 0,
        };
        turns::push(&mut self.waiting, waiting);
    }
}

/// Whether a name leaves as much free as it takes.
fn leaves_free(all: impl Iterator<Item = CallId>, name: NameId) -> bool {
    let (own, all) = all.fold((0, 0), |(own, all), call| {
        (own + usize::from(call.member.name() == name), all + 1)
    });
    own < TRACKED_LOCKS_MAX.saturating_sub(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const FENCE: Fence = Fence(5_000);
    const LEASE_MS: u32 = 16_000;
    const S: SegmentId = SegmentId(1);

    /// A member of a name of its own, at an edge of its own.
    fn at(name: u64) -> (EdgeId, MemberId) {
        (EdgeId(name), MemberId::new(NameId(name), 1))
    }

    fn call(name: u64, number: u64) -> (EdgeId, CallId) {
        let (edge, member) = at(name);
        (edge, CallId { member, number })
    }

    fn lock() -> CallRequest {
        CallRequest::Lock {
            segments: vec![S],
            mode: LockMode::Write,
            patience_ms: 60_000,
        }
    }

    fn calls(
        locks: &mut LentLocks,
        now: u64,
        of: (EdgeId, CallId),
        request: CallRequest,
    ) -> Vec<Act> {
        let mut outbox = Outbox::new();
        let acts = locks.called(Millis(now), of, request, true, &mut outbox);
        for act in &acts {
            if let Act::PassUp(edge, call, request) = act {
                locks.passed(Millis(now), (*edge, *call), request, true);
            }
        }
        acts
    }

    fn unlock(locks: &mut LentLocks, now: u64, of: (EdgeId, CallId), number: Fence) -> Vec<Act> {
        calls(locks, now, of, CallRequest::Unlock { fence: number })
    }

    fn granted(locks: &mut LentLocks, of: (EdgeId, CallId)) -> Vec<Act> {
        let locked = CallResponse::Locked {
            fence: FENCE,
            lease_ms: LEASE_MS,
        };
        locks.answered(Millis(0), of.1, &mut Ok(locked))
    }

    fn is_locked(act: &Act, of: (EdgeId, CallId), number: u64) -> bool {
        let fence = Fence(FENCE.0 + number);
        matches!(act, Act::Answer(edge, call, Ok(CallResponse::Locked { fence: is, .. }))
            if (*edge, *call) == of && *is == fence)
    }

    /// Member 1 has the lock, and member 2 waits here for it.
    fn lent() -> LentLocks {
        let mut locks = LentLocks::default();
        let (one, two) = (call(1, 1), call(2, 1));
        assert_eq!(calls(&mut locks, 0, one, lock()).len(), 1);
        assert_eq!(granted(&mut locks, one), []);
        // The home learns that the lock may be lent before it gets the call of the second one.
        let acts = calls(&mut locks, 0, two, lock());
        assert_eq!(acts[0], Act::Lending(FENCE, None));
        assert_eq!(acts.len(), 2);
        assert_eq!(locks.lent(Millis(0), (Some(two.0), two.1), FENCE), []);
        locks
    }

    #[test]
    fn a_lock_goes_from_hand_to_hand_with_the_rest_of_its_lease() {
        let mut locks = lent();
        let acts = unlock(&mut locks, 1_000, call(1, 2), FENCE);
        let left = 15_000 - 1_000;
        let locked = CallResponse::Locked {
            fence: Fence(FENCE.0 + 1),
            lease_ms: left,
        };
        let (edge, two) = call(2, 1);
        assert_eq!(acts[1], Act::Answer(edge, two, Ok(locked)));
        // Both may have it, so the first one waits here; a third one asks the home.
        assert_eq!(calls(&mut locks, 1_000, call(1, 3), lock()), []);
        assert_eq!(calls(&mut locks, 1_000, call(3, 1), lock()).len(), 1);
        let acts = unlock(&mut locks, 2_000, call(2, 2), Fence(FENCE.0 + 1));
        assert!(is_locked(&acts[1], call(1, 3), 2), "{acts:?}");
        // It ends a lock again that it has given back.
        let (edge, again) = call(2, 3);
        let acts = unlock(&mut locks, 2_000, (edge, again), Fence(FENCE.0 + 1));
        assert_eq!(acts, [Act::Answer(edge, again, Ok(CallResponse::Unlocked))]);
    }

    #[test]
    fn nothing_is_handed_over_that_is_open_recalled_or_over() {
        let one = at(1).1;
        let passes_up = |locks: &mut LentLocks, now| {
            let acts = unlock(locks, now, call(1, 2), FENCE);
            matches!(acts[..], [Act::PassUp(..)])
        };
        let mut open = lent();
        assert_eq!(
            open.judge(Millis(0), FENCE, one),
            Judged::Passes(Vec::new())
        );
        let commit = CommitId {
            member: one,
            sequence: 1,
        };
        open.commit_sent(FENCE, commit);
        assert!(passes_up(&mut open, 1));
        let mut ended = lent();
        ended.commit_sent(FENCE, commit);
        ended.commit_ended(commit);
        assert!(!passes_up(&mut ended, 1));
        let mut recalled = lent();
        assert_eq!(recalled.recalled(Millis(1), FENCE, false).len(), 1);
        assert!(passes_up(&mut recalled, 1));
        let mut over = lent();
        assert!(passes_up(&mut over, 15_000));
        let mut cut_off = lent();
        cut_off.stream_ended();
        assert_eq!(cut_off.numbers(), [(FENCE, FENCE)]);
        assert!(passes_up(&mut cut_off, 1));
    }

    #[test]
    fn who_waits_for_long_waits_at_the_home() {
        let mut locks = lent();
        assert_eq!(locks.deadline(), Some(Millis(LENT_WAIT_MS_MAX)));
        assert_eq!(locks.tick(Millis(LENT_WAIT_MS_MAX - 1)), []);
        let acts = locks.tick(Millis(LENT_WAIT_MS_MAX));
        let left = 60_000 - LENT_WAIT_MS_MAX as u32;
        assert!(
            matches!(&acts[..], [Act::PassUp(_, _, CallRequest::Lock { patience_ms, .. })]
                if *patience_ms == left),
            "{acts:?}"
        );
    }

    #[test]
    fn a_neighbour_writes_and_ends_nothing_under_the_number_of_another() {
        let mut locks = lent();
        let (_, two) = at(2);
        assert_eq!(locks.judge(Millis(1), FENCE, two), Judged::LockLost);
        let next = Fence(FENCE.0 + 1);
        assert_eq!(locks.judge(Millis(1), next, two), Judged::LockLost);
        for number in [FENCE, next] {
            let (edge, of) = call(2, 7);
            let lost = [Act::Answer(edge, of, Err(CallError::LockLost))];
            assert_eq!(unlock(&mut locks, 1, (edge, of), number), lost);
            let keep = CallRequest::KeepLock { fence: number };
            assert_eq!(calls(&mut locks, 1, (edge, of), keep), lost);
        }
        unlock(&mut locks, 1, call(1, 2), FENCE);
        let passed = locks.judge(Millis(1), FENCE, at(1).1);
        let told = Act::Lending(FENCE, Some(next));
        assert_eq!(passed, Judged::Passes(vec![told]), "the home decides");
        assert_eq!(
            locks.judge(Millis(1), next, two),
            Judged::Passes(Vec::new())
        );
    }

    /// An attack: one name calls for many locks.
    #[test]
    fn no_name_takes_more_than_it_leaves_free() {
        let mut locks = LentLocks::default();
        let segments = |number: u64| vec![SegmentId(number as u32)];
        let ask = |locks: &mut LentLocks, name: u64, number: u64| {
            let request = CallRequest::Lock {
                segments: segments(number),
                mode: LockMode::Write,
                patience_ms: 60_000,
            };
            calls(locks, 0, call(name, number), request);
            locks.sizes()[0]
        };
        let mut most = 0;
        for number in 1..=TRACKED_LOCKS_MAX as u64 {
            most = ask(&mut locks, 1, number);
        }
        assert_eq!(most, TRACKED_LOCKS_MAX / 2);
        assert_eq!(ask(&mut locks, 2, 9_000), TRACKED_LOCKS_MAX / 2 + 1);
    }
}
