//! Who may have written what the home has not seen, and what a reader waits for because of that (rules C1, C3 and C4).

use crate::edge::downstream::Children;
use crate::edge::followers::Followers;
use crate::edge::leases::Leases;
use crate::edge::pulls::{Pull, Pulls, Question, Wanted};
use crate::edge::recalls::Recalls;
use crate::edge::slow_holders::SlowHolders;
use crate::home::Outbox;
use crate::home::calls::{Caller, check_right};
use crate::home::lease_log::LeaseLog;
use crate::home::lease_origins::{LeaseOrigins, Turn};
use crate::home::lock_queue::LockQueue;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::readers::Readers;
use crate::home::tables::Tables;
use crate::home::two_phase::votes::Votes;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thorp_model::limits::{
    FOLLOWED_LOGS_MAX, LEASED_SEGMENTS_MAX, PULL_SEGMENTS_MAX, PULLS_MAX, PULLS_PER_NAME_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallResponse, CommitId, EdgeId, LogHead, LogId, MemberId, Millis, NameId,
    Note, Principal, Privilege, Right, SegmentId, Stamp, message, planted,
};

/// Who gets the answer to a pull.
#[derive(Clone, Copy, Debug)]
pub(super) struct Puller {
    edge: EdgeId,
    call: CallId,
    name: NameId,
    /// The last vote in doubt that wrote there when the pull came: its program may have its answer (rule C2).
    last_vote: Option<Stamp>,
}

impl Puller {
    /// A vote in doubt that its pull waits for: its program may have been answered by the votes of other homes and this one.
    fn in_doubt(&self, segments: &[SegmentId], votes: &Votes) -> Option<CommitId> {
        votes.until(segments, self.last_vote?)
    }
}

/// What the home knows of logs below it: who may hold updates, who follows, and who waits.
///
/// Invariant: whoever holds a lease to write is in `leases`, or the home has started again, and `logged` says so.
#[derive(Debug)]
pub(super) struct Writers {
    pub(super) followers: Followers,
    leases: Leases,
    pulls: Pulls<Puller>,
    logged: LeaseLog,
    lease_ms: u32,
    /// In whose names they were asked for.
    origins: LeaseOrigins,
    /// Leases that are wanted back, because somebody waits for a lock.
    recalls: Recalls,
    /// Names that kept readers waiting until their leases were over.
    slow: SlowHolders,
    /// When it was last looked at.
    now: Millis,
}

impl Writers {
    /// Nobody holds a lease, but for what an earlier life may have granted.
    pub(super) fn new(lease_ms: u32, granted: BTreeMap<SegmentId, u32>, now: Millis) -> Self {
        let mut logged = LeaseLog::new(Privilege::Write, granted, now);
        if planted::is(Bug::LeasesForgotten) {
            logged.forget();
        }
        Writers {
            followers: Followers::default(),
            leases: Leases::default(),
            origins: LeaseOrigins::default(),
            recalls: Recalls::default(),
            pulls: Pulls::default(),
            logged,
            lease_ms,
            slow: SlowHolders::default(),
            now,
        }
    }

    /// An edge is gone. Leases stay: their holders may believe in them (rule C4).
    pub(super) fn went(&mut self, edge: EdgeId, child: Option<MemberId>) {
        if let Some(child) = child.filter(|_| planted::is(Bug::LeaseEndsWithEdge)) {
            self.leases.forget(child);
        }
        self.followers.went(edge);
        let Writers { pulls, leases, .. } = self;
        pulls.retain(self.now, leases, |puller| puller.edge != edge);
    }

    /// A lease was over while its holder kept readers waiting. If they waited for long, its name gets none for a time.
    fn blame(&mut self, child: MemberId, since: Millis) {
        if self.now.since(since) > u64::from(self.lease_ms / 4) {
            self.slow.note(child.name(), self.lease_ms, self.now);
        }
    }

    fn take_due(&mut self, now: Millis) -> Vec<Pull<Puller>> {
        self.pulls.take_due(now, &self.leases)
    }

    /// When pulls are to be looked at next.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.pulls.deadline(&self.leases)
    }

    /// The sizes of its tables, by name.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 6] {
        [
            ("followers", self.followers.len()),
            ("leases", self.leases.len()),
            ("lease_origins", self.origins.len()),
            ("recalls", self.recalls.len()),
            ("pulls", self.pulls.count(|_| true)),
            ("slow_writers", self.slow.len()),
        ]
    }

    /// Whether a child may hold updates of these segments that the home has not seen.
    pub(super) fn may_write(&self, segments: &[SegmentId], now: Millis) -> bool {
        self.logged.quiet_until(segments) > now || !self.leases.holders(segments, now).is_empty()
    }

    /// Others may write in a segment from now on. Nobody waits for those that have lost the right (rule R5). Who has it back may have
    /// believed in its lease all the time. Returns the questions to children that are asked again.
    pub(super) fn rights_changed(
        &mut self,
        segment: SegmentId,
        may: impl Fn(Principal) -> bool,
        outbox: &mut Outbox,
    ) -> Vec<Question> {
        if planted::is(Bug::LeaseOutlivesRight) {
            return Vec::new();
        }
        let (mut less, mut back) = (Vec::new(), Vec::new());
        for (child, turn) in self.origins.rights_changed(segment, may) {
            match turn {
                Turn::Over => self.leases.end(child, &[segment]),
                Turn::Less => less.push(child),
                Turn::Back(_) if planted::is(Bug::RestoredNotAsked) => {}
                Turn::Back(until) => {
                    self.leases.restore(child, segment, until);
                    back.push(child);
                }
            }
            if !matches!(turn, Turn::Back(_)) {
                outbox.note(Note::LeaseVoid);
            }
        }
        let void = self.origins.void(&[segment]);
        let mut questions = self.pulls.revoked(&less, segment, &void);
        for child in back {
            questions.extend(self.pulls.granted(child, &[segment]));
        }
        questions
    }

    /// Wants leases to write in these segments back. Returns what each holder is to be asked for.
    pub(super) fn recall(
        &mut self,
        segments: &[SegmentId],
        now: Millis,
    ) -> Vec<(MemberId, Vec<SegmentId>)> {
        let holders = self.leases.holders(segments, now).into_iter();
        let wanted = holders.map(|child| {
            let is_held = |of: &&SegmentId| self.leases.until(child, &[**of], now).is_some();
            let held: Vec<SegmentId> = segments.iter().filter(is_held).copied().collect();
            (child, self.recalls.add(child, &held))
        });
        wanted
            .filter(|(_, segments)| !segments.is_empty())
            .collect()
    }
}

/// Grants leases, takes followers, and carries out pulls.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    pub(super) writers: &'a mut Writers,
    pub(super) readers: &'a mut Readers,
    pub(super) locks: &'a LockQueue,
    pub(super) children: &'a Children,
    pub(super) tables: &'a mut Tables,
    pub(super) log: &'a mut Log,
    /// The name of the child that brings a call.
    pub(super) carrier: Option<NameId>,
}

type Called = Result<CallResponse, CallError>;

impl Writing<'_> {
    /// A child hears of updates from the place of the answer on (rule C6).
    pub(super) fn follow(&mut self, caller: Caller, segment: SegmentId, logs: &[LogId]) {
        let followed = self.followed(caller, segment, logs);
        self.answer(caller.edge, caller.call, followed);
    }

    fn followed(&mut self, caller: Caller, segment: SegmentId, logs: &[LogId]) -> Called {
        let is_sorted = logs.is_sorted_by(|one, next| one < next);
        if logs.len() > FOLLOWED_LOGS_MAX || !is_sorted {
            return Err(CallError::Invalid);
        }
        self.check(caller, &[segment], Right::Read)?;
        let (edge, is_member) = (caller.edge, self.children.is_member(caller.edge));
        if !self.writers.followers.add(edge, segment, is_member) {
            return Err(CallError::TooMany);
        }
        let state = |log: &LogId| self.tables.saved.state(*log, segment);
        Ok(CallResponse::Following {
            position: self.log.tip(),
            logs: logs.iter().map(state).collect(),
        })
    }

    /// A child may hold updates from now on, until the lease ends (rule C4). That the segment has leases is durable first.
    pub(super) fn lease(
        &mut self,
        now: Millis,
        caller: Caller,
        segments: &[SegmentId],
        outbox: &mut Outbox,
    ) {
        let leased = self.leased(now, caller, segments, outbox);
        let is_granted = leased.is_ok();
        self.answer(caller.edge, caller.call, leased);
        let child = self.children.get(caller.edge).map(|child| child.node);
        if let Some(child) = child.filter(|_| is_granted) {
            let questions = self.writers.pulls.granted(child, segments);
            self.ask(questions, outbox);
        }
    }

    fn leased(
        &mut self,
        now: Millis,
        caller: Caller,
        segments: &[SegmentId],
        outbox: &mut Outbox,
    ) -> Called {
        if segments.is_empty() || segments.len() > LEASED_SEGMENTS_MAX {
            return Err(CallError::Invalid);
        }
        self.check(caller, segments, Right::Write)?;
        let child = self.children.get(caller.edge).map(|child| child.node);
        let child = child.ok_or(CallError::Invalid)?;
        let lease_ms = self.writers.lease_ms;
        // Who keeps readers waiting gets no more time for that (rule C4). A site judges those below it itself.
        let is_member = self.children.is_member(caller.edge);
        if is_member && self.writers.slow.has(child.name(), now) {
            return Err(CallError::Busy);
        }
        let owes = self.writers.pulls.owes_since(child, segments);
        if owes.is_some_and(|since| now.since(since) > u64::from(lease_ms / 4)) {
            return Err(CallError::Busy);
        }
        let is_locked = self.tables.segment_locks.is_held(segments) || self.locks.wants(segments);
        if is_locked && !planted::is(Bug::LockBesideWriter) {
            // What its log answered now would come under the lock.
            return Err(CallError::Privileged);
        }
        if self.readers.outranks_writers(segments, now) {
            // The home gives readers no more time here: this writer goes next.
            return Err(CallError::Privileged);
        }
        let logged = &mut self.writers.logged;
        logged.note(segments, lease_ms, self.log, outbox)?;
        let until = now.plus(u64::from(lease_ms));
        let origin = (caller.who, until);
        let writers = &mut *self.writers;
        // First the origin: a lease without one would outlive the right.
        if !writers.origins.note(child, segments, origin)
            || !writers.leases.grant(child, segments, until)
        {
            return Err(CallError::TooMany);
        }
        writers.recalls.end(child, segments);
        outbox.note(Note::LeaseGranted);
        Ok(CallResponse::Leased { lease_ms })
    }

    /// A reader wants all that was answered before (rule C3).
    pub(super) fn pull(
        &mut self,
        now: Millis,
        caller: Caller,
        (segments, patience_ms): (Vec<SegmentId>, u32),
        outbox: &mut Outbox,
    ) {
        let name = caller.who.name;
        let of_name = self.writers.pulls.count(|puller| puller.name == name);
        let all = self.writers.pulls.count(|_| true);
        let checked = match segments.len() {
            1..=PULL_SEGMENTS_MAX => self.check(caller, &segments, Right::Read),
            _ => Err(CallError::Invalid),
        };
        let may_wait = match of_name < PULLS_PER_NAME_MAX && all < PULLS_MAX {
            true => checked,
            false => checked.and(Err(CallError::Busy)),
        };
        if let Err(why) = may_wait {
            return self.answer(caller.edge, caller.call, Err(why));
        }
        let last_vote = self.tables.votes.last_in(&segments);
        let puller = Puller {
            edge: caller.edge,
            call: caller.call,
            name,
            last_vote: last_vote.filter(|_| !planted::is(Bug::PullPastVote)),
        };
        let due = now.plus(u64::from(patience_ms));
        let quiet = self.writers.logged.quiet_until(&segments);
        let void = self.writers.origins.void(&segments);
        let wanted = Wanted { segments, void };
        let when = (Some(due), quiet);
        let Writers { pulls, leases, .. } = &mut *self.writers;
        let nobody = Leases::default();
        let leases = match planted::is(Bug::WritersNotAsked) {
            true => &nobody,
            false => leases,
        };
        let questions = pulls.begin(now, puller, wanted, when, (leases, |_| false));
        self.ask(questions, outbox);
    }

    /// A child says how far the logs below it are.
    pub(super) fn heads(&mut self, edge: EdgeId, heads: message::Heads) {
        let is_member = self.children.is_member(edge);
        let pulls = &mut self.writers.pulls;
        if planted::is(Bug::PullQueued) && pulls.count(|puller| puller.edge == edge) > 0 {
            return;
        }
        if let Some(child) = self.children.get(edge) {
            pulls.answered(child.node, is_member, heads);
        }
    }

    /// A child gives leases back. A site holds them for all below it: it gives back only what it was asked for, and nothing that it
    /// was granted since.
    pub(super) fn give_back(&mut self, edge: EdgeId, back: &message::GiveBack) {
        let Some(child) = self.children.get(edge).map(|child| child.node) else {
            return;
        };
        let recalled = self.writers.recalls.end(child, &back.segments);
        let is_member = self.children.is_member(edge);
        let segments = match is_member {
            true => &back.segments,
            false => &recalled,
        };
        // It has kept readers waiting, whether the lease runs out or not.
        let owes = self.writers.pulls.owes_since(child, segments);
        if let Some(since) = owes.filter(|_| is_member) {
            self.writers.blame(child, since);
        }
        self.writers.leases.end(child, segments);
        self.writers.origins.end(child, segments);
    }

    /// A child has come: what it was asked by an edge that is gone, it is asked again.
    pub(super) fn came(&mut self, child: MemberId, outbox: &mut Outbox) {
        if planted::is(Bug::RestartedIsHolder) {
            self.writers.leases.take_over(child);
        }
        let questions = self.writers.pulls.came(child);
        self.ask(questions, outbox);
        let recalled = self.writers.recalls.of(child);
        if let Some(edge) = self
            .children
            .edge_of(child)
            .filter(|_| !recalled.is_empty())
        {
            self.log.after_all(OnDurable::Recall(edge, recalled));
        }
    }

    /// Answers the pulls that wait for nobody, and those that may not wait longer.
    pub(super) fn finish(&mut self, now: Millis, outbox: &mut Outbox) {
        self.writers.now = now;
        let saved = &self.tables.saved;
        let Writers { pulls, leases, .. } = &mut *self.writers;
        let has = |head: &LogHead| saved.has(head) || planted::is(Bug::HeadsNotAwaited);
        let votes = &self.tables.votes;
        let is_free = |pull: &Pull<Puller>| {
            let in_doubt = pull.origin.in_doubt(&pull.segments, votes);
            in_doubt.is_none()
        };
        let (done, over) = pulls.take_done(now, leases, has, is_free);
        for (child, since) in over {
            outbox.note(Note::LeaseEnded);
            self.writers.blame(child, since);
        }
        for pull in done {
            outbox.note(Note::PullAnswered);
            // The answer comes behind all that was accepted.
            self.answer(pull.origin.edge, pull.origin.call, Ok(CallResponse::Pulled));
        }
        for pull in self.writers.take_due(now) {
            let awaits = Err(self.awaits(now, &pull));
            self.answer(pull.origin.edge, pull.origin.call, awaits);
        }
    }

    /// Forgets leases that have ended.
    pub(super) fn sweep(&mut self, now: Millis, outbox: &mut Outbox) {
        self.writers.leases.sweep(now);
        self.writers.slow.sweep(now);
        self.writers.origins.sweep(now);
        let Writers {
            leases,
            logged,
            recalls,
            ..
        } = &mut *self.writers;
        recalls.retain(|child, segment| leases.until(child, &[segment], now).is_some());
        let is_held = |segment| !leases.holders(&[segment], now).is_empty();
        logged.sweep(now, is_held, self.log, outbox);
    }

    fn awaits(&self, now: Millis, pull: &Pull<Puller>) -> CallError {
        let child = pull.awaits();
        if child.is_none()
            && pull.quiet_until() <= now
            && let Some(commit) = pull.origin.in_doubt(&pull.segments, &self.tables.votes)
        {
            return CallError::InDoubt(commit);
        }
        let lease = |child| self.writers.leases.until(child, &pull.segments, now);
        let until = child.and_then(lease).unwrap_or(pull.quiet_until());
        let left = until.since(now);
        CallError::Awaits {
            name: child.map_or_else(String::new, |child| self.name_of(child)),
            ends_ms: u32::try_from(left).unwrap_or(u32::MAX),
        }
    }

    /// The name of a child, which may be gone.
    fn name_of(&self, child: MemberId) -> String {
        let edge = self.children.edge_of(child);
        let here = edge.and_then(|edge| self.children.get(edge));
        match here {
            Some(child) => child.name.clone(),
            None => {
                let known = self.tables.audit.name(child.name());
                known.unwrap_or_else(|| child.name().to_string())
            }
        }
    }

    fn ask(&mut self, questions: Vec<Question>, outbox: &mut Outbox) {
        ask(self.children, questions, self.log, outbox);
    }

    fn check(
        &mut self,
        caller: Caller,
        segments: &[SegmentId],
        right: Right,
    ) -> Result<(), CallError> {
        let mut segments = segments.iter();
        segments.try_for_each(|segment| {
            check_right(self.tables, (caller.who, self.carrier), *segment, right)
        })
    }

    fn answer(&mut self, edge: EdgeId, call: CallId, result: Called) {
        self.log.after_all(OnDurable::Answer(edge, call, result));
    }
}

/// Questions go to children, behind all that was accepted.
pub(super) fn ask(
    children: &Children,
    questions: Vec<Question>,
    log: &mut Log,
    outbox: &mut Outbox,
) {
    for question in questions {
        let Some(edge) = children.edge_of(question.child) else {
            continue;
        };
        outbox.note(Note::PullPassed);
        let get = message::Get {
            home: log.home(),
            pull: question.number,
            segments: question.wanted.segments,
            void: question.wanted.void,
        };
        log.after_all(OnDurable::Ask(edge, get));
    }
}
