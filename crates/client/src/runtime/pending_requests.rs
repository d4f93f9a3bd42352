//! The requests that the member has not responded to, and the commits of this program whose outcome is open.
//!
//! Timers are here and not at the caller: so neither the blocking nor the async calls need a runtime there.

use super::completion::Completion;
use super::early_commit::EarlyCommit;
use super::staged_tokens::StagedTokens;
use crate::limits::OUTCOMES_KEPT_MAX;
use crate::lock::lock;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thorp_model::{CommitId, HomeId, Outcome, RequestId};
use thorp_protocol::Response;
use tokio::sync::{Notify, oneshot, watch};

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    /// A time: nothing is sent.
    Time,
    /// The response to a fetch or a call. The request is given up when no thread waits any more.
    Response,
    /// The outcome of a commit, which goes on when no thread waits any more. Its id, as soon as the member has given
    /// it.
    Commit(Option<CommitId>),
    /// The same of a commit that only reads. If it ends too late, the program learns neither its id nor its outcome.
    Validation(Option<CommitId>),
}

/// The outcome of a commit for which a program asks by its id.
#[derive(Clone, Debug)]
pub(crate) enum LateOutcome {
    /// Not known yet.
    Pending,
    /// Known, from this home if it was one.
    Ended(Outcome, Option<HomeId>),
    /// This member sent the commit, and does not keep its outcome, or not any more.
    NotKept,
    /// This member did not send it.
    NotSent,
}

/// The requests under way, and the commits of this program whose outcome is not known. Each request has one entry until
/// it ends.
///
/// `late` has a commit as soon as its program may ask for it: a thread heard that the outcome did not come in time, its
/// program went on ahead of the outcome, or a thread asks. No other outcome takes a place there.
pub(crate) struct PendingRequests {
    table: Mutex<Table>,
    /// A request is due before the alarm.
    earlier: Notify,
    /// Counts outcomes that no thread took, and those of commits that were shown before.
    outcomes: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<RequestId, Entry>,
    alarms: BTreeSet<(Instant, RequestId)>,
    alarm: Option<Instant>,
    late: HashMap<CommitId, Option<(Outcome, Option<HomeId>)>>,
    /// Commits that are shown and have no outcome yet (rule 14).
    open: HashSet<CommitId>,
    /// Those of `late` that have ended, the oldest first.
    ended: VecDeque<CommitId>,
    /// The commit that the member named last: it counts its commits.
    last_named: Option<CommitId>,
    closed: bool,
}

struct Entry {
    /// None: no thread waits any more, and the commit goes on.
    waiter: Option<oneshot::Sender<Completion>>,
    due: Instant,
    kind: RequestKind,
    /// The values that a commit has staged at each of its homes.
    staged: Vec<Arc<StagedTokens>>,
    /// Of a commit whose program goes on before the response.
    early: Option<EarlyCommit>,
}

impl PendingRequests {
    pub(crate) fn new() -> Self {
        PendingRequests {
            table: Mutex::default(),
            earlier: Notify::new(),
            outcomes: watch::Sender::new(0),
        }
    }

    /// A request begins. The receiver gets its completion, at once if the member is closed.
    pub(crate) fn begin(
        &self,
        request: RequestId,
        kind: RequestKind,
        due: Instant,
    ) -> oneshot::Receiver<Completion> {
        let (waiter, completion) = oneshot::channel();
        let mut table = lock(&self.table);
        if table.closed {
            // The receiver is still here.
            let _ = waiter.send(Completion::Closed);
            return completion;
        }
        table.alarms.insert((due, request));
        let entry = Entry {
            waiter: Some(waiter),
            due,
            kind,
            staged: Vec::new(),
            early: None,
        };
        table.entries.insert(request, entry);
        if table.alarm.is_none_or(|alarm| due < alarm) {
            self.earlier.notify_one();
        }
        completion
    }

    /// Keeps the staged values of a commit until its outcome is known.
    pub(crate) fn hold(&self, request: RequestId, staged: Vec<Arc<StagedTokens>>) {
        if let Some(entry) = lock(&self.table).entries.get_mut(&request) {
            entry.staged = staged;
        }
    }

    /// Keeps an early commit until its outcome is known.
    pub(crate) fn hold_early(&self, request: RequestId, early: EarlyCommit) {
        if let Some(entry) = lock(&self.table).entries.get_mut(&request) {
            entry.early = Some(early);
        }
    }

    /// The page cache is about to show a commit whose outcome is not known. A transaction that reads its values has to
    /// know that.
    pub(crate) fn mark_open(&self, id: CommitId) {
        lock(&self.table).open.insert(id);
    }

    /// How many commits are shown and have no outcome yet.
    pub(crate) fn open_commits(&self) -> usize {
        lock(&self.table).open.len()
    }

    /// Whether a commit is shown and has no outcome yet.
    pub(crate) fn is_open(&self, id: CommitId) -> bool {
        lock(&self.table).open.contains(&id)
    }

    /// A commit is shown: its program goes on.
    fn show(&self, request: RequestId, id: CommitId) {
        let mut table = lock(&self.table);
        let entry = table.entries.get_mut(&request);
        if let Some(early) = entry.and_then(|entry| entry.early.as_mut()) {
            early.show(id);
        }
    }

    /// The member has given a commit its id.
    pub(crate) fn named(&self, request: RequestId, id: CommitId) {
        let mut table = lock(&self.table);
        table.last_named = table.last_named.max(Some(id));
        if let Some(entry) = table.entries.get_mut(&request) {
            entry.kind = match entry.kind {
                RequestKind::Validation(_) => RequestKind::Validation(Some(id)),
                _ => RequestKind::Commit(Some(id)),
            };
        }
    }

    /// The member responded.
    pub(crate) fn complete(&self, request: RequestId, response: Response) {
        if let Response::Shown(id) = response {
            return self.show(request, id);
        }
        let Some(entry) = lock(&self.table).take(request) else {
            return;
        };
        // The lock is free again: the thread that wakes up begins the next request.
        if let Response::Outcome(_, outcome, _) = &response {
            entry.staged.iter().for_each(|staged| staged.ended(outcome));
        }
        self.close_open(&response);
        self.end_late(&response);
        let is_early = entry.early.is_some();
        let completion = Completion::Response(response);
        let untaken = match entry.waiter {
            Some(waiter) => waiter.send(completion).err(),
            None => Some(completion),
        };
        if let Some(untaken) = untaken.filter(|_| is_early) {
            self.keep(untaken);
        }
    }

    /// Keeps the outcome of an early commit that no thread took: its program has the id.
    pub(crate) fn keep(&self, completion: Completion) {
        if let Completion::Response(response) = completion {
            if let Response::Outcome(id, ..) = &response {
                lock(&self.table).late.entry(*id).or_default();
            }
            self.end_late(&response);
        }
    }

    /// Keeps an outcome if its program may ask for it.
    fn end_late(&self, response: &Response) {
        if let Response::Outcome(id, outcome, by) = response
            && lock(&self.table).end_late(*id, (outcome.clone(), *by))
        {
            self.outcomes.send_modify(|count| *count += 1);
        }
    }

    fn close_open(&self, response: &Response) {
        if let Response::Outcome(id, ..) = response
            && lock(&self.table).open.remove(id)
        {
            self.outcomes.send_modify(|count| *count += 1);
        }
    }

    /// The request was not sent.
    pub(crate) fn cancel(&self, request: RequestId) {
        let entry = lock(&self.table).take(request);
        // Not under the lock: the last owner of staged tokens sends requests when it drops them.
        drop(entry);
    }

    /// No thread waits any more. True if the member may forget the request, too.
    pub(crate) fn forget(&self, request: RequestId) -> bool {
        let mut table = lock(&self.table);
        let Some(entry) = table.entries.get_mut(&request) else {
            return false;
        };
        match entry.kind {
            RequestKind::Commit(id) | RequestKind::Validation(id) => {
                entry.waiter = None;
                let (due, is_early) = (entry.due, entry.early.is_some());
                table.alarms.remove(&(due, request));
                if let Some(id) = id.filter(|_| is_early) {
                    table.late.entry(id).or_default();
                }
                false
            }
            RequestKind::Time | RequestKind::Response => {
                let kind = table.take(request).map(|entry| entry.kind);
                kind == Some(RequestKind::Response)
            }
        }
    }

    /// The outcome of a commit for which a program asks. While it is not known, it is kept for that program.
    pub(crate) fn late(&self, id: CommitId) -> LateOutcome {
        let mut table = lock(&self.table);
        if table.is_under_way(id) {
            table.late.entry(id).or_default();
        }
        match table.late.get(&id).cloned() {
            Some(Some((outcome, by))) => LateOutcome::Ended(outcome, by),
            Some(None) => LateOutcome::Pending,
            None if table.has_named(id) => LateOutcome::NotKept,
            None => LateOutcome::NotSent,
        }
    }

    /// Changes when another outcome is known.
    pub(crate) fn outcomes(&self) -> watch::Receiver<u64> {
        self.outcomes.subscribe()
    }

    /// Ends every request as [`Completion::Closed`], now and later.
    pub(crate) fn close(&self) {
        let entries = {
            let mut table = lock(&self.table);
            table.closed = true;
            table.alarms.clear();
            std::mem::take(&mut table.entries)
        };
        for entry in entries.into_values() {
            complete(entry.waiter, Completion::Closed);
        }
        self.outcomes.send_modify(|count| *count += 1);
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.table).entries.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.table).closed
    }

    /// Ends the requests whose time has come, for ever, and calls `forget` for each that the member may forget.
    pub(crate) async fn end_in_time(&self, mut forget: impl FnMut(RequestId)) {
        loop {
            let (next, forgotten) = lock(&self.table).fire(Instant::now());
            forgotten.into_iter().for_each(&mut forget);
            let earlier = self.earlier.notified();
            match next {
                Some(next) => tokio::select! {
                    () = earlier => {}
                    () = tokio::time::sleep_until(next.into()) => {}
                },
                None => earlier.await,
            }
        }
    }
}

impl Table {
    fn take(&mut self, request: RequestId) -> Option<Entry> {
        let entry = self.entries.remove(&request)?;
        self.alarms.remove(&(entry.due, request));
        Some(entry)
    }

    /// False: no program may ask for it, or it has ended before.
    fn end_late(&mut self, id: CommitId, ended: (Outcome, Option<HomeId>)) -> bool {
        let Some(late @ None) = self.late.get_mut(&id) else {
            return false;
        };
        *late = Some(ended);
        self.ended.push_back(id);
        while self.ended.len() > OUTCOMES_KEPT_MAX {
            if let Some(oldest) = self.ended.pop_front() {
                self.late.remove(&oldest);
            }
        }
        true
    }

    fn is_under_way(&self, id: CommitId) -> bool {
        let mut entries = self.entries.values();
        entries.any(|entry| entry.kind == RequestKind::Commit(Some(id)))
    }

    /// Whether the member has given this id: it counts them up.
    fn has_named(&self, id: CommitId) -> bool {
        let last = self.last_named.filter(|last| last.member == id.member);
        last.is_some_and(|last| (1..=last.sequence).contains(&id.sequence))
    }

    /// Ends the requests that are due. Gives the next alarm, and the requests that the member may forget.
    fn fire(&mut self, now: Instant) -> (Option<Instant>, Vec<RequestId>) {
        let mut forgotten = Vec::new();
        while let Some((due, request)) = self.alarms.first().copied().filter(|(due, _)| *due <= now)
        {
            self.alarms.remove(&(due, request));
            self.expire(now, request, &mut forgotten);
        }
        self.alarm = self.alarms.first().map(|(due, _)| *due);
        (self.alarm, forgotten)
    }

    fn expire(&mut self, now: Instant, request: RequestId, forgotten: &mut Vec<RequestId>) {
        let Some(entry) = self.entries.get_mut(&request) else {
            return;
        };
        match entry.kind {
            // Without the id, the program could not ask for the outcome later. The member gives the id soon.
            RequestKind::Commit(None) | RequestKind::Validation(None) => {
                entry.due = now + ID_PATIENCE;
                self.alarms.insert((entry.due, request));
            }
            RequestKind::Commit(Some(id)) => {
                self.late.entry(id).or_default();
                complete(entry.waiter.take(), Completion::TimedOut(Some(id)));
            }
            RequestKind::Validation(Some(id)) => {
                complete(entry.waiter.take(), Completion::TimedOut(Some(id)));
            }
            kind => {
                let entry = self.entries.remove(&request);
                complete(entry.and_then(|e| e.waiter), Completion::TimedOut(None));
                if kind == RequestKind::Response {
                    forgotten.push(request);
                }
            }
        }
    }
}

fn complete(waiter: Option<oneshot::Sender<Completion>>, completion: Completion) {
    if let Some(waiter) = waiter {
        // A thread that dropped its future needs no completion.
        let _ = waiter.send(completion);
    }
}

/// How long a commit that is due waits for its id.
const ID_PATIENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Lack, MemberId, Refusal};

    fn id(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    fn outcome(id: CommitId) -> Response {
        Response::Outcome(id, Outcome::Refused(Refusal::Full(Lack::OF_ALL)), None)
    }

    #[tokio::test]
    async fn a_request_ends_in_time_and_the_member_may_forget_it() {
        let pending = PendingRequests::new();
        let (request, late) = (RequestId(1), RequestId(2));
        let soon = Instant::now() + Duration::from_millis(5);
        let completion = pending.begin(request, RequestKind::Response, soon);
        let _later = pending.begin(late, RequestKind::Response, soon + Duration::from_secs(60));
        let mut forgotten = Vec::new();
        tokio::select! {
            () = pending.end_in_time(|request| forgotten.push(request)) => {}
            ended = completion => assert!(matches!(ended, Ok(Completion::TimedOut(None)))),
        }
        assert_eq!(forgotten, [request]);
        pending.complete(request, Response::Fetched(None));
        assert!(pending.forget(late) && !pending.forget(late));
    }

    #[tokio::test]
    async fn a_commit_that_timed_out_can_be_asked_for() {
        let pending = PendingRequests::new();
        let request = RequestId(1);
        let completion = pending.begin(request, RequestKind::Commit(None), Instant::now());
        pending.named(request, id(1));
        tokio::select! {
            () = pending.end_in_time(|_| ()) => {}
            ended = completion => assert!(matches!(ended, Ok(Completion::TimedOut(Some(late))) if late == id(1))),
        }
        assert!(matches!(pending.late(id(1)), LateOutcome::Pending));
        pending.complete(request, outcome(id(1)));
        assert!(matches!(pending.late(id(1)), LateOutcome::Ended(..)));
        assert!(matches!(pending.late(id(2)), LateOutcome::NotSent));
    }

    /// Commits under way whose threads stop waiting before the outcomes come.
    fn leave(pending: &PendingRequests, kind: RequestKind, sequences: std::ops::Range<u64>) {
        for sequence in sequences {
            let request = RequestId(sequence);
            drop(pending.begin(request, kind, Instant::now()));
            pending.named(request, id(sequence));
            if kind == RequestKind::Commit(None) {
                let (_, forgotten) = lock(&pending.table).fire(Instant::now());
                assert!(forgotten.is_empty(), "a commit goes on");
            }
            pending.complete(request, outcome(id(sequence)));
        }
    }

    #[test]
    fn late_outcomes_are_bounded() {
        let pending = PendingRequests::new();
        let kept = OUTCOMES_KEPT_MAX as u64;
        leave(&pending, RequestKind::Commit(None), 1..2 * kept + 1);
        assert_eq!(lock(&pending.table).late.len(), OUTCOMES_KEPT_MAX);
        // The member sent them all: none is unknown to it.
        assert!(matches!(pending.late(id(kept)), LateOutcome::NotKept));
        assert!(matches!(pending.late(id(kept + 1)), LateOutcome::Ended(..)));
    }

    #[test]
    fn outcomes_for_which_no_program_may_ask_push_out_none() {
        let pending = PendingRequests::new();
        leave(&pending, RequestKind::Commit(None), 1..2);
        let many = 10 * OUTCOMES_KEPT_MAX as u64;
        leave(&pending, RequestKind::Validation(None), 2..many);
        assert_eq!(lock(&pending.table).late.len(), 1);
        assert!(matches!(pending.late(id(1)), LateOutcome::Ended(..)));
    }

    #[test]
    fn an_outcome_that_is_asked_for_is_kept_also_if_a_thread_takes_it() {
        let pending = PendingRequests::new();
        let (request, due) = (RequestId(1), Instant::now() + Duration::from_secs(60));
        let mut waiting = pending.begin(request, RequestKind::Commit(None), due);
        pending.named(request, id(1));
        assert!(matches!(pending.late(id(1)), LateOutcome::Pending));
        pending.complete(request, outcome(id(1)));
        assert!(waiting.try_recv().is_ok());
        assert!(matches!(pending.late(id(1)), LateOutcome::Ended(..)));
    }

    #[test]
    fn closing_ends_every_wait_now_and_later() {
        let pending = PendingRequests::new();
        let mut before = pending.begin(RequestId(1), RequestKind::Response, Instant::now());
        pending.close();
        let mut after = pending.begin(RequestId(2), RequestKind::Time, Instant::now());
        assert!(matches!(before.try_recv(), Ok(Completion::Closed)));
        assert!(matches!(after.try_recv(), Ok(Completion::Closed)));
    }
}
