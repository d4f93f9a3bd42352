//! Parts of transactions over several homes that this home voted for, and the
//! objects that they lock (rule 10).

use crate::edge::reply_routes::ReplyRoutes;
use crate::home::commit::refusal::NotNow;
use crate::home::two_phase::locks::Locks;
use crate::home::two_phase::other_homes::{Known, OtherHomes};
use crate::home::two_phase::patience::Patience;
use crate::home::two_phase::shares::{Share, Shares};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;
use thorp_model::limits::{IN_DOUBT_MS, IN_DOUBT_RETRY_MS, PARTICIPANTS_MAX, UNSETTLED_MS};
use thorp_model::planted::Bug;
use thorp_model::records::VoteRecord;
use thorp_model::{
    CallResponse, CommitId, CommitRequest, Decision, EdgeId, HomeId, InvalidCommit, Millis,
    NewValue, Op, Outcome, Overflow, PageId, Participant, Refusal, Registration, SegmentId,
    SlotSet, Stamp, Table, WriteOp, planted, records,
};

/// One vote.
#[derive(Debug)]
pub(in crate::home) struct Vote {
    /// The part, and who else takes part.
    pub(in crate::home) request: CommitRequest,
    /// The stamp voted for.
    pub(in crate::home) stamp: Stamp,
    /// Who hears of the outcome.
    routes: ReplyRoutes,
    pub(in crate::home) state: State,
    /// The stamp of a decision that this home's clock does not believe, or not yet.
    doubted: Option<Stamp>,
    /// Pages that the decision waits for: they stay in memory.
    needs: BTreeSet<PageId>,
    locks: Locks,
    /// When it was given, or found in the store.
    pub(in crate::home) since: Millis,
    /// When the other homes are asked next.
    ask_at: Millis,
    /// Other homes that were asked and have not answered.
    asked: BTreeSet<HomeId>,
    /// What other homes are known to have voted for.
    votes: BTreeMap<HomeId, Stamp>,
    /// Homes that are known to have heard the outcome.
    heard: BTreeSet<HomeId>,
}

/// How far a vote has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::home) enum State {
    /// The outcome is not known here. Its objects are locked.
    InDoubt,
    /// It is known, and waits for pages or for space. Its objects are locked.
    Decided(Decision),
    /// It has ended here; kept until every home has heard.
    Ended(Outcome),
}

impl Vote {
    /// A vote for a request, which locks what it is said to.
    pub(in crate::home) fn new(
        request: CommitRequest,
        stamp: Stamp,
        locks: Locks,
        now: Millis,
    ) -> Self {
        Vote {
            request,
            stamp,
            routes: ReplyRoutes::default(),
            state: State::InDoubt,
            doubted: None,
            needs: BTreeSet::new(),
            locks,
            since: now,
            ask_at: now.plus(IN_DOUBT_MS),
            asked: BTreeSet::new(),
            votes: BTreeMap::new(),
            heard: BTreeSet::new(),
        }
    }

    /// Whether the votes could come to this stamp: it is the highest of them, and this home's is
    /// one. Below that watermarks are promised already.
    pub(in crate::home) fn may_end_at(&self, stamp: Stamp) -> bool {
        let is_others = || self.others().any(|other| other.home == stamp.home);
        stamp == self.stamp || (stamp > self.stamp && is_others())
    }

    /// The highest stamp among the votes that are known here: an operator's commit gets it (rule R7).
    pub(in crate::home) fn highest_known(&self) -> Stamp {
        self.votes.values().copied().fold(self.stamp, Stamp::max)
    }

    /// What another home is known to have voted for.
    pub(in crate::home) fn vote_of(&self, home: HomeId) -> Option<Stamp> {
        self.votes.get(&home).copied()
    }

    /// Whether another stamp could only come from an operator's settlement at another home: that knew fewer votes (rule
    /// R7).
    pub(in crate::home) fn may_be_settled_at(&self, stamp: Stamp) -> bool {
        stamp < self.stamp && self.others().any(|other| other.home == stamp.home)
    }

    /// The edge that the outcome goes to first; none if that is gone.
    pub(in crate::home) fn route(&self) -> Option<EdgeId> {
        self.routes.last()
    }

    fn key(&self) -> Vec<u8> {
        records::vote_key(self.request.registration, self.request.id.sequence)
    }

    /// The other homes that take part.
    pub(in crate::home) fn others(&self) -> impl Iterator<Item = Participant> + '_ {
        let own = self.request.home();
        let with = self.request.with.iter().copied();
        with.filter(move |other| other.home != own)
    }

    /// Homes that may not have heard the outcome.
    fn unheard(&self) -> impl Iterator<Item = Participant> + '_ {
        self.others()
            .filter(|other| !self.heard.contains(&other.home))
    }

    /// Homes whose answer is wanted.
    fn wanted(&self) -> impl Iterator<Item = Participant> + '_ {
        self.others().filter(|other| match self.state {
            State::InDoubt => true,
            State::Decided(_) => false,
            State::Ended(_) => !self.heard.contains(&other.home),
        })
    }

    /// The operation that logs it, with both sets.
    fn store(&self) -> Op {
        let record = VoteRecord {
            request: self.request.clone(),
            stamp: self.stamp,
            ended: match &self.state {
                State::Ended(outcome) => Some(outcome.clone()),
                State::InDoubt | State::Decided(_) => None,
            },
        };
        records::put(Table::Meta, self.key(), &record)
    }

    /// What was voted on is not needed any more.
    fn forget_part(&mut self) {
        let part = &mut self.request.part;
        (part.reads, part.writes) = (Vec::new(), Vec::new());
        self.request.depends_on = Vec::new();
    }

    fn names_staged(&self, of: Overflow) -> bool {
        let ops = self.request.part.writes.iter().flat_map(|w| &w.slots);
        ops.map(|(_, op)| op).any(|op| match op {
            WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => {
                *value == NewValue::Staged(of)
            }
            WriteOp::Patch { .. } | WriteOp::Delete { .. } | WriteOp::Apply { .. } => false,
        })
    }

    pub(in crate::home) fn holds_locks(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }
}

/// What is done about a vote whose time to ask has come.
#[derive(Debug)]
pub(in crate::home) enum Inquire {
    /// This home was the last one to learn how it ended, and has found out by itself.
    Settled,
    /// These homes are asked.
    Ask(Vec<Participant>),
}

/// All votes of a home.
///
/// A vote is in `open` and in `locked` if, and only if, it holds locks; `open_bytes` is the sum of
/// those requests. A vote in `decided` holds locks, too. `shares` adds up the same for each name.
#[derive(Debug, Default)]
pub(in crate::home) struct Votes {
    by_commit: BTreeMap<CommitId, Vote>,
    shares: Shares,
    patience: Patience,
    /// Those that hold locks: they may still become commits. By the stamps voted for.
    open: BTreeSet<(Stamp, CommitId)>,
    /// Those of them whose outcome is known and could not be carried out yet.
    decided: BTreeSet<CommitId>,
    /// Bytes of them.
    open_bytes: usize,
    /// The same, by the pages where they hold them.
    locked: BTreeMap<PageId, BTreeSet<CommitId>>,
    /// Those of which another home was asked, and had too much to do to answer.
    turned_away: BTreeMap<HomeId, BTreeSet<CommitId>>,
}

impl Votes {
    /// How many there are.
    pub(in crate::home) fn len(&self) -> usize {
        self.by_commit.len()
    }

    /// How many may still become commits.
    pub(in crate::home) fn in_doubt(&self) -> usize {
        self.open.len()
    }

    /// Bytes of those.
    pub(in crate::home) fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    /// A vote.
    pub(in crate::home) fn get(&self, commit: CommitId) -> Option<&Vote> {
        self.by_commit.get(&commit)
    }

    /// All votes.
    pub(in crate::home) fn iter(&self) -> impl Iterator<Item = (CommitId, &Vote)> {
        self.by_commit.iter().map(|(id, vote)| (*id, vote))
    }

    /// Whether the homes of a part are listed well, and are known. A vote that names a home which
    /// nobody can ask would lock what it read for ever (rule R7).
    pub(in crate::home) fn check_participants(
        &self,
        request: &CommitRequest,
        other_homes: &OtherHomes,
    ) -> Result<(), NotNow> {
        let (with, home) = (&request.with, request.home());
        if with.is_empty() {
            return Ok(());
        }
        let ascending = with.windows(2).all(|pair| pair[0].home < pair[1].home);
        let own = with.iter().find(|p| p.home == home);
        let right = own.is_some_and(|own| own.registration == request.registration);
        if !ascending || !right || !(2..=PARTICIPANTS_MAX).contains(&with.len()) {
            return Err(InvalidCommit::Participants.into());
        }
        for other in with.iter().filter(|other| other.home != home) {
            let home = other.home;
            match other_homes.known(home) {
                _ if planted::is(Bug::ParticipantsBelieved) => {}
                Known::Heard => {}
                Known::Unheard => return Err(NotNow::Refused(Refusal::busy())),
                Known::Unknown => return Err(InvalidCommit::UnknownHome { home }.into()),
            }
        }
        Ok(())
    }

    /// Whether there is space for a vote. No name has more votes, and no more of their bytes, than
    /// it leaves free (rule R7): so there is space for a member of another name. A name that left
    /// its votes to the homes again and again waits.
    pub(in crate::home) fn check_space(
        &self,
        request: &CommitRequest,
        bytes_max: usize,
        now: Millis,
    ) -> Result<(), NotNow> {
        if request.with.is_empty() {
            return Ok(());
        }
        let name = request.id.member.name();
        if let Some(retry_after_ms) = self.patience.busy_ms(name, now) {
            return Err(NotNow::Refused(Refusal::Busy { retry_after_ms }));
        }
        let total = Share {
            votes: self.by_commit.len(),
            open_bytes: self.open_bytes,
        };
        match self
            .shares
            .has_space(name, request.bytes(), total, bytes_max)
        {
            true => Ok(()),
            false => Err(NotNow::Refused(Refusal::busy())),
        }
    }

    /// The other homes know how a vote ended, and its member has not said so (rule R7).
    pub(in crate::home) fn left_to_homes(&mut self, commit: CommitId, now: Millis) {
        self.patience.doubted(commit.member.name(), now);
    }

    /// Votes for a part that came by an edge: its objects are locked. Returns the operations that
    /// log the vote.
    pub(in crate::home) fn vote(&mut self, mut vote: Vote, edge: EdgeId) -> Vec<Op> {
        vote.routes.came_by(edge);
        let ops = if planted::is(Bug::VoteForgotten) {
            Vec::new()
        } else {
            Vec::from([vote.store()])
        };
        self.insert(vote);
        ops
    }

    /// A part came again, by an edge: how far its vote has come, and the stamp voted for. None if
    /// the part is new.
    pub(in crate::home) fn came_again(
        &mut self,
        commit: CommitId,
        edge: EdgeId,
    ) -> Option<(State, Stamp)> {
        let vote = self.by_commit.get_mut(&commit)?;
        vote.routes.came_by(edge);
        Some((vote.state.clone(), vote.stamp))
    }

    /// Takes a vote: a new one, or one from the store.
    fn insert(&mut self, vote: Vote) {
        let id = vote.request.id;
        let open_bytes = vote.holds_locks().then(|| vote.request.bytes());
        self.shares
            .begin(id.member.name(), open_bytes.unwrap_or_default());
        if let Some(bytes) = open_bytes {
            self.open.insert((vote.stamp, id));
            self.open_bytes += bytes;
            for page in vote.locks.pages() {
                self.locked.entry(page).or_default().insert(id);
            }
        }
        self.by_commit.insert(id, vote);
    }

    /// Takes a vote from the store.
    pub(in crate::home) fn recover(&mut self, record: VoteRecord, locks: Locks, now: Millis) {
        let mut vote = Vote::new(record.request, record.stamp, locks, now);
        if let Some(outcome) = record.ended {
            vote.state = State::Ended(outcome);
            vote.ask_at = now.plus(UNSETTLED_MS);
            vote.forget_part();
        }
        self.insert(vote);
    }

    /// A vote has ended: its locks and all that it said go, its outcome stays for the other homes.
    pub(in crate::home) fn end(
        &mut self,
        commit: CommitId,
        outcome: Outcome,
        now: Millis,
    ) -> Option<Op> {
        let vote = self.by_commit.get_mut(&commit)?;
        vote.state = State::Ended(outcome);
        vote.needs.clear();
        vote.ask_at = now.plus(UNSETTLED_MS);
        if self.open.remove(&(vote.stamp, commit)) {
            let bytes = vote.request.bytes();
            self.open_bytes -= bytes;
            self.shares.unlock(commit.member.name(), bytes);
        }
        self.decided.remove(&commit);
        let locks = core::mem::take(&mut vote.locks);
        vote.forget_part();
        for page in locks.pages() {
            if let Some(votes) = self.locked.get_mut(&page) {
                votes.remove(&commit);
                if votes.is_empty() {
                    self.locked.remove(&page);
                }
            }
        }
        Some(vote.store())
    }

    /// Another home is asked, or need not be asked any more.
    fn note_asked(&mut self, commit: CommitId, home: HomeId) {
        if let Some(commits) = self.turned_away.get_mut(&home) {
            commits.remove(&commit);
        }
    }

    /// Another home has too much to do to answer.
    pub(in crate::home) fn turned_away(&mut self, commit: CommitId, home: HomeId) {
        if self.by_commit.contains_key(&commit) {
            self.turned_away.entry(home).or_default().insert(commit);
        }
    }

    /// What another home had too much to do for, and is asked again now: twice as much as it has just answered.
    pub(in crate::home) fn take_turned_away(
        &mut self,
        home: HomeId,
    ) -> Vec<(CommitId, Participant)> {
        let Some(commits) = self.turned_away.get_mut(&home) else {
            return Vec::new();
        };
        let taken = [commits.pop_first(), commits.pop_first()];
        let asked = taken.into_iter().flatten().filter_map(|commit| {
            let mut wanted = self.by_commit.get(&commit)?.wanted();
            let other = wanted.find(|other| other.home == home)?;
            Some((commit, other))
        });
        asked.collect()
    }

    /// Notes another home's vote; the decision, if no other is missing.
    pub(in crate::home) fn voted(
        &mut self,
        commit: CommitId,
        home: HomeId,
        stamp: Stamp,
    ) -> Option<Decision> {
        let vote = self.by_commit.get_mut(&commit)?;
        vote.votes.insert(home, stamp);
        let all = vote.others().all(|o| vote.votes.contains_key(&o.home));
        let highest = vote.highest_known();
        (all && vote.state == State::InDoubt).then_some(Decision::Commit(highest))
    }

    /// A home has heard the outcome; true if it was the last one.
    pub(in crate::home) fn heard(&mut self, commit: CommitId, home: HomeId) -> bool {
        let Some(vote) = self.by_commit.get_mut(&commit) else {
            return false;
        };
        vote.heard.insert(home);
        vote.unheard().next().is_none()
    }

    /// Every home has heard how it ended: it is forgotten.
    pub(in crate::home) fn forget(&mut self, commit: CommitId) -> Option<Op> {
        let vote = self.by_commit.get(&commit);
        vote.filter(|vote| !vote.holds_locks())?;
        let vote = self.by_commit.remove(&commit)?;
        self.shares.forget(commit.member.name());
        for other in vote.others() {
            self.note_asked(commit, other.home);
        }
        Some(records::delete(Table::Meta, vote.key()))
    }

    /// The edge of askers is gone: outcomes are told to nobody there.
    pub(in crate::home) fn edge_gone(&mut self, edge: EdgeId) {
        for vote in self.by_commit.values_mut() {
            vote.routes.went(edge);
        }
    }

    /// The lowest stamp that was voted for and may still become a commit's: no
    /// watermark may reach it.
    pub(in crate::home) fn lowest_stamp(&self) -> Option<Stamp> {
        if planted::is(Bug::WatermarkPassesVote) {
            return None;
        }
        self.open.first().map(|(stamp, _)| *stamp)
    }

    /// Those that may still become commits that write in these segments, by their stamps.
    fn in_segments(
        &self,
        segments: &[SegmentId],
    ) -> impl DoubleEndedIterator<Item = (Stamp, CommitId)> {
        let writes_there = |(_, commit): &&(Stamp, CommitId)| {
            self.by_commit.get(commit).is_some_and(|vote| {
                let mut written = vote.request.part.segments_written().into_iter();
                written.any(|segment| segments.contains(&segment))
            })
        };
        self.open.iter().filter(writes_there).copied()
    }

    /// Whether one may still become a commit that writes in these segments.
    pub(in crate::home) fn writes_in(&self, segments: &[SegmentId]) -> bool {
        self.in_segments(segments).next().is_some()
    }

    /// The stamp of the last one that may still become a commit that writes in these segments.
    pub(in crate::home) fn last_in(&self, segments: &[SegmentId]) -> Option<Stamp> {
        self.in_segments(segments)
            .next_back()
            .map(|(stamp, _)| stamp)
    }

    /// One of those up to a stamp that may still become a commit that writes in these segments.
    pub(in crate::home) fn until(&self, segments: &[SegmentId], last: Stamp) -> Option<CommitId> {
        let first = self.in_segments(segments).next();
        first
            .filter(|(stamp, _)| *stamp <= last)
            .map(|(_, commit)| commit)
    }

    /// Whether a part conflicts with what a vote has locked.
    pub(in crate::home) fn conflict(&self, locks: &Locks) -> bool {
        if self.locked.is_empty() || planted::is(Bug::VoteNotLocked) {
            return false;
        }
        let votes = locks.pages().filter_map(|page| self.locked.get(&page));
        let mut votes = votes.flatten().filter_map(|id| self.by_commit.get(id));
        votes.any(|vote| vote.locks.conflict(locks))
    }

    /// The slots of a page that votes will write.
    pub(in crate::home) fn will_write(&self, page: PageId) -> SlotSet {
        let mut slots = SlotSet::default();
        let votes = self.locked.get(&page).into_iter().flatten();
        for vote in votes.filter_map(|id| self.by_commit.get(id)) {
            slots.extend(vote.locks.written(page));
        }
        slots
    }

    /// How many slots a page has to have for what votes will write.
    pub(in crate::home) fn slots_of(&self, page: PageId) -> u16 {
        let last = self.will_write(page).iter().last();
        last.map_or(0, |slot| slot.0 + 1)
    }

    /// Whether a vote has locked anything of a segment.
    pub(in crate::home) fn lock_segment(&self, segment: SegmentId) -> bool {
        self.open().any(|vote| vote.locks.concern(segment))
    }

    /// The registrations with votes that may still become commits.
    pub(in crate::home) fn registrations_in_doubt(&self) -> BTreeSet<Registration> {
        self.open().map(|vote| vote.request.registration).collect()
    }

    /// Whether a registration has votes that may still become commits.
    pub(in crate::home) fn concern_open(&self, registration: Registration) -> bool {
        self.open()
            .any(|vote| vote.request.registration == registration)
    }

    /// Whether a vote that may still become a commit names a staged value.
    pub(in crate::home) fn name_staged(&self, registration: Registration, of: Overflow) -> bool {
        let mut own = self
            .open()
            .filter(|vote| vote.request.registration == registration);
        own.any(|vote| vote.names_staged(of))
    }

    /// Whether a decision waits for a page.
    pub(in crate::home) fn needs(&self, page: PageId) -> bool {
        let mut waiting = self.decided.iter().filter_map(|id| self.by_commit.get(id));
        waiting.any(|vote| vote.needs.contains(&page))
    }

    /// Votes that may still become commits.
    fn open(&self) -> impl Iterator<Item = &Vote> {
        let open = self.open.iter();
        open.filter_map(|(_, id)| self.by_commit.get(id))
    }

    /// The answer to a home or a member that asks how a part ended.
    pub(in crate::home) fn response(&self, commit: CommitId) -> Option<CallResponse> {
        let vote = self.by_commit.get(&commit)?;
        Some(match &vote.state {
            State::InDoubt | State::Decided(_) => CallResponse::Voted(vote.stamp),
            State::Ended(outcome) => CallResponse::Outcome(outcome.clone()),
        })
    }

    /// Those whose outcome is not known, in the order of the stamps voted for, after one of them.
    pub(in crate::home) fn in_doubt_after(
        &self,
        after: Option<(Stamp, CommitId)>,
    ) -> impl Iterator<Item = (CommitId, &Vote)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let open = self.open.range((from, Bound::Unbounded));
        let votes = open.filter_map(|(_, id)| Some((*id, self.by_commit.get(id)?)));
        votes.filter(|(_, vote)| vote.state == State::InDoubt)
    }

    // --- The inquiry ---

    /// Votes whose time to ask the other homes has come.
    pub(in crate::home) fn due(&self, now: Millis) -> Vec<CommitId> {
        let due = self.iter().filter(|(_, vote)| vote.ask_at <= now);
        due.map(|(commit, _)| commit).collect()
    }

    /// What is done about a vote whose time has come. It comes again if the answers do not.
    pub(in crate::home) fn inquire(&mut self, commit: CommitId, now: Millis) -> Inquire {
        let Some(vote) = self.by_commit.get_mut(&commit) else {
            return Inquire::Ask(Vec::new());
        };
        vote.ask_at = now.plus(IN_DOUBT_RETRY_MS);
        let ask: Vec<Participant> = vote.wanted().collect();
        let is_over = !vote.holds_locks() && ask.is_empty();
        if is_over && !planted::is(Bug::VoteKept) {
            return Inquire::Settled;
        }
        Inquire::Ask(ask)
    }

    /// Another home is about to be asked. False if it was asked and has not answered: it answers
    /// every question, however far away or busy it is, so that one of each vote is enough.
    pub(in crate::home) fn begin_asking(&mut self, commit: CommitId, home: HomeId) -> bool {
        let vote = self.by_commit.get_mut(&commit);
        let begins = vote.is_some_and(|vote| vote.asked.insert(home));
        if begins {
            self.note_asked(commit, home);
        }
        begins
    }

    /// Another home has answered, or its edge is gone.
    pub(in crate::home) fn end_asking(&mut self, commit: CommitId, home: HomeId) {
        if let Some(vote) = self.by_commit.get_mut(&commit) {
            vote.asked.remove(&home);
        }
    }

    // --- The decision ---

    /// A member's decision has a stamp that this home's clock does not believe: the other homes are
    /// asked at once.
    pub(in crate::home) fn doubt(&mut self, commit: CommitId, stamp: Stamp, now: Millis) {
        if let Some(vote) = self.by_commit.get_mut(&commit) {
            vote.doubted = Some(stamp);
            vote.ask_at = now;
        }
    }

    /// The stamp of a decision that was not believed.
    pub(in crate::home) fn doubted(&self, commit: CommitId) -> Option<Stamp> {
        self.by_commit.get(&commit)?.doubted
    }

    /// A decision waits for pages: they stay in memory.
    pub(in crate::home) fn wait_for(&mut self, commit: CommitId, pages: &[PageId]) {
        if let Some(vote) = self.by_commit.get_mut(&commit) {
            vote.needs.extend(pages);
        }
    }

    /// Takes the edges other than the last one that the part came by.
    pub(in crate::home) fn take_other_routes(&mut self, commit: CommitId) -> BTreeSet<EdgeId> {
        let vote = self.by_commit.get_mut(&commit);
        vote.map(|vote| vote.routes.take_others())
            .unwrap_or_default()
    }

    /// The outcome of a vote is known; whether it was in doubt.
    pub(in crate::home) fn decide(&mut self, commit: CommitId, decision: Decision) -> bool {
        let vote = self.by_commit.get_mut(&commit);
        let Some(vote) = vote.filter(|vote| vote.state == State::InDoubt) else {
            return false;
        };
        vote.state = State::Decided(decision);
        self.decided.insert(commit)
    }

    /// Those whose outcome is known and could not be carried out yet.
    pub(in crate::home) fn decided(&self) -> Vec<CommitId> {
        self.decided.iter().copied().collect()
    }
}
