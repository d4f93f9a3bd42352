//! Who waits for what: asks of the program that the member has not answered, and when their patience ends.
//!
//! Timers live here and not at the caller, so that neither the blocking nor the async face needs a runtime there.

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

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The member answered.
    Response(Response),
    /// It did not in time. A commit goes on: its id.
    TimedOut(Option<CommitId>),
    /// The member is closed.
    Closed,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    /// Only for the time.
    Time,
    /// A page or a call: given up when nobody waits any more.
    Response,
    /// A commit: goes on whoever waits.
    Commit(Option<CommitId>),
}

/// What became of a commit whose answer nobody waited for.
#[derive(Clone, Debug)]
pub(crate) enum LateOutcome {
    /// Not answered yet.
    Pending,
    /// Answered: by that home, if it was one.
    Ended(Outcome, Option<HomeId>),
}

pub(crate) struct PendingRequests {
    table: Mutex<Table>,
    /// An earlier time is waited for than the alarm is set to.
    earlier: Notify,
    /// Counts late outcomes.
    outcomes: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    tickets: u64,
    entries: HashMap<RequestId, Entry>,
    alarms: BTreeSet<(Instant, RequestId)>,
    alarm: Option<Instant>,
    late: HashMap<CommitId, Option<(Outcome, Option<HomeId>)>>,
    /// Commits that are shown and not answered (rule 14).
    open: HashSet<CommitId>,
    /// Ended late commits, the oldest first.
    ended: VecDeque<CommitId>,
    closed: bool,
}

struct Entry {
    /// None: nobody waits any more, and the commit goes on.
    tell: Option<oneshot::Sender<Completion>>,
    due: Instant,
    kind: RequestKind,
    /// What a commit names, at each of its homes.
    staged: Vec<Arc<StagedTokens>>,
    /// Its program goes on without its answer.
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

    /// A ticket for which nobody waits.
    pub(crate) fn ticket(&self) -> RequestId {
        lock(&self.table).ticket()
    }

    /// A ticket and what tells how it ended. Closed: told at once.
    pub(crate) fn begin(
        &self,
        kind: RequestKind,
        due: Instant,
    ) -> (RequestId, oneshot::Receiver<Completion>) {
        let (tell, told) = oneshot::channel();
        let mut table = lock(&self.table);
        let ticket = table.ticket();
        if table.closed {
            // Nobody hears it but the receiver below.
            let _ = tell.send(Completion::Closed);
            return (ticket, told);
        }
        table.alarms.insert((due, ticket));
        let tell = Some(tell);
        let entry = Entry {
            tell,
            due,
            kind,
            staged: Vec::new(),
            early: None,
        };
        table.entries.insert(ticket, entry);
        if table.alarm.is_none_or(|alarm| due < alarm) {
            self.earlier.notify_one();
        }
        (ticket, told)
    }

    /// What a commit names is kept until it is answered.
    pub(crate) fn hold(&self, ticket: RequestId, staged: Vec<Arc<StagedTokens>>) {
        if let Some(entry) = lock(&self.table).entries.get_mut(&ticket) {
            entry.staged = staged;
        }
    }

    /// What is kept of a commit whose program is to go on.
    pub(crate) fn hold_early(&self, ticket: RequestId, early: EarlyCommit) {
        if let Some(entry) = lock(&self.table).entries.get_mut(&ticket) {
            entry.early = Some(early);
        }
    }

    /// A commit is about to be shown: whoever reads what it wrote has to know that it is not answered.
    pub(crate) fn open(&self, id: CommitId) {
        lock(&self.table).open.insert(id);
    }

    /// Commits that are shown and not answered.
    pub(crate) fn open_commits(&self) -> usize {
        lock(&self.table).open.len()
    }

    /// Whether a commit is shown and not answered.
    pub(crate) fn is_open(&self, id: CommitId) -> bool {
        lock(&self.table).open.contains(&id)
    }

    /// A commit is shown: its program goes on.
    fn show(&self, ticket: RequestId, id: CommitId) {
        let mut table = lock(&self.table);
        let entry = table.entries.get_mut(&ticket);
        if let Some(early) = entry.and_then(|entry| entry.early.as_mut()) {
            early.show(id);
        }
    }

    /// The member has given a commit its id.
    pub(crate) fn named(&self, ticket: RequestId, id: CommitId) {
        if let Some(entry) = lock(&self.table).entries.get_mut(&ticket) {
            entry.kind = RequestKind::Commit(Some(id));
        }
    }

    /// The member answered.
    pub(crate) fn answer(&self, ticket: RequestId, answer: Response) {
        if let Response::Shown(id) = answer {
            return self.show(ticket, id);
        }
        let Some(entry) = lock(&self.table).take(ticket) else {
            return;
        };
        // Nothing more under the lock: whoever is woken asks for a ticket next, and so does who lets go of staged values last.
        if let Response::Outcome(_, outcome, _) = &answer {
            entry.staged.iter().for_each(|staged| staged.ended(outcome));
        }
        self.close_open(&answer);
        let told = Completion::Response(answer);
        let unheard = match entry.tell {
            Some(tell) => tell.send(told).err(),
            None => Some(told),
        };
        unheard.into_iter().for_each(|told| self.keep(told));
    }

    /// An outcome that nobody took is kept, for who asks.
    pub(crate) fn keep(&self, told: Completion) {
        if let Completion::Response(Response::Outcome(id, outcome, by)) = told {
            lock(&self.table).end_late(id, (outcome, by));
            self.outcomes.send_modify(|count| *count += 1);
        }
    }

    fn close_open(&self, answer: &Response) {
        if let Response::Outcome(id, ..) = answer
            && lock(&self.table).open.remove(id)
        {
            self.outcomes.send_modify(|count| *count += 1);
        }
    }

    /// What was to be waited for was never asked.
    pub(crate) fn cancel(&self, ticket: RequestId) {
        let entry = lock(&self.table).take(ticket);
        // Not under the lock: who lets go of staged values last asks for a ticket.
        drop(entry);
    }

    /// Nobody waits any more. True if the member should be told.
    pub(crate) fn forget(&self, ticket: RequestId) -> bool {
        let mut table = lock(&self.table);
        let Some(entry) = table.entries.get_mut(&ticket) else {
            return false;
        };
        match entry.kind {
            RequestKind::Commit(id) => {
                entry.tell = None;
                let due = entry.due;
                table.alarms.remove(&(due, ticket));
                if let Some(id) = id {
                    table.late.insert(id, None);
                }
                false
            }
            RequestKind::Time | RequestKind::Response => {
                let kind = table.take(ticket).map(|entry| entry.kind);
                kind == Some(RequestKind::Response)
            }
        }
    }

    /// What became of a late commit; `None` if it is not known here.
    pub(crate) fn late(&self, id: CommitId) -> Option<LateOutcome> {
        let late = lock(&self.table).late.get(&id).cloned()?;
        Some(late.map_or(LateOutcome::Pending, |(outcome, by)| {
            LateOutcome::Ended(outcome, by)
        }))
    }

    /// Tells when another late outcome is known.
    pub(crate) fn outcomes(&self) -> watch::Receiver<u64> {
        self.outcomes.subscribe()
    }

    /// Everybody is told that it is over, now and later.
    pub(crate) fn close(&self) {
        let entries = {
            let mut table = lock(&self.table);
            table.closed = true;
            table.alarms.clear();
            std::mem::take(&mut table.entries)
        };
        for entry in entries.into_values() {
            if let Some(tell) = entry.tell {
                let _ = tell.send(Completion::Closed);
            }
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

    /// Ends the waits whose time has come, for ever. `forget` tells the member of each.
    pub(crate) async fn watch_the_clock(&self, mut forget: impl FnMut(RequestId)) {
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
    fn ticket(&mut self) -> RequestId {
        self.tickets += 1;
        RequestId(self.tickets)
    }

    fn take(&mut self, ticket: RequestId) -> Option<Entry> {
        let entry = self.entries.remove(&ticket)?;
        self.alarms.remove(&(entry.due, ticket));
        Some(entry)
    }

    fn end_late(&mut self, id: CommitId, ended: (Outcome, Option<HomeId>)) {
        self.late.insert(id, Some(ended));
        self.ended.push_back(id);
        while self.ended.len() > OUTCOMES_KEPT_MAX {
            if let Some(oldest) = self.ended.pop_front() {
                self.late.remove(&oldest);
            }
        }
    }

    /// Ends what is due. The next alarm, and what the member may forget.
    fn fire(&mut self, now: Instant) -> (Option<Instant>, Vec<RequestId>) {
        let mut forgotten = Vec::new();
        while let Some((due, ticket)) = self.alarms.first().copied().filter(|(due, _)| *due <= now)
        {
            self.alarms.remove(&(due, ticket));
            self.expire(now, ticket, &mut forgotten);
        }
        self.alarm = self.alarms.first().map(|(due, _)| *due);
        (self.alarm, forgotten)
    }

    fn expire(&mut self, now: Instant, ticket: RequestId, forgotten: &mut Vec<RequestId>) {
        let Some(entry) = self.entries.get_mut(&ticket) else {
            return;
        };
        match entry.kind {
            // Without its id nobody could ask for the outcome: the member is about to give it.
            RequestKind::Commit(None) => {
                entry.due = now + ID_PATIENCE;
                self.alarms.insert((entry.due, ticket));
            }
            RequestKind::Commit(Some(id)) => {
                self.late.insert(id, None);
                tell(entry.tell.take(), Completion::TimedOut(Some(id)));
            }
            kind => {
                let entry = self.entries.remove(&ticket);
                tell(entry.and_then(|e| e.tell), Completion::TimedOut(None));
                if kind == RequestKind::Response {
                    forgotten.push(ticket);
                }
            }
        }
    }
}

fn tell(to: Option<oneshot::Sender<Completion>>, told: Completion) {
    if let Some(to) = to {
        // Whoever went away does not want to know.
        let _ = to.send(told);
    }
}

const ID_PATIENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{MemberId, Refusal};

    fn id(sequence: u64) -> CommitId {
        CommitId {
            member: MemberId(1),
            sequence,
        }
    }

    fn outcome(id: CommitId) -> Response {
        Response::Outcome(id, Outcome::Refused(Refusal::Full), None)
    }

    #[tokio::test]
    async fn patience_ends_and_the_core_is_told() {
        let waits = PendingRequests::new();
        let soon = Instant::now() + Duration::from_millis(5);
        let (ticket, told) = waits.begin(RequestKind::Response, soon);
        let (late, _later) = waits.begin(RequestKind::Response, soon + Duration::from_secs(60));
        let mut forgotten = Vec::new();
        tokio::select! {
            () = waits.watch_the_clock(|ticket| forgotten.push(ticket)) => {}
            told = told => assert!(matches!(told, Ok(Completion::TimedOut(None)))),
        }
        assert_eq!(forgotten, [ticket]);
        waits.answer(ticket, Response::Fetched(None));
        assert!(waits.forget(late) && !waits.forget(late));
    }

    #[tokio::test]
    async fn a_commit_that_timed_out_can_be_asked_for() {
        let waits = PendingRequests::new();
        let (ticket, told) = waits.begin(RequestKind::Commit(None), Instant::now());
        waits.named(ticket, id(1));
        tokio::select! {
            () = waits.watch_the_clock(|_| ()) => {}
            told = told => assert!(matches!(told, Ok(Completion::TimedOut(Some(late))) if late == id(1))),
        }
        assert!(matches!(waits.late(id(1)), Some(LateOutcome::Pending)));
        waits.answer(ticket, outcome(id(1)));
        assert!(matches!(waits.late(id(1)), Some(LateOutcome::Ended(..))));
        assert!(waits.late(id(2)).is_none());
    }

    #[test]
    fn late_outcomes_are_bounded() {
        let waits = PendingRequests::new();
        for sequence in 0..2 * OUTCOMES_KEPT_MAX as u64 {
            let (ticket, _) = waits.begin(RequestKind::Commit(Some(id(sequence))), Instant::now());
            waits.answer(ticket, outcome(id(sequence)));
        }
        assert_eq!(lock(&waits.table).late.len(), OUTCOMES_KEPT_MAX);
    }

    #[test]
    fn closing_ends_every_wait_now_and_later() {
        let waits = PendingRequests::new();
        let (_, mut before) = waits.begin(RequestKind::Response, Instant::now());
        waits.close();
        let (_, mut after) = waits.begin(RequestKind::Time, Instant::now());
        assert!(matches!(before.try_recv(), Ok(Completion::Closed)));
        assert!(matches!(after.try_recv(), Ok(Completion::Closed)));
    }
}
