//! Answers that a home keeps back until readers with hard bounds have seen what they tell (rules C1, C2 and C4).

use crate::edge::downstream::Children;
use crate::edge::read_leases::ReadLeases;
use crate::edge::slow_holders::SlowHolders;
use crate::edge::unseen::{Shown, Unseen};
use crate::home::calls::{Caller, check_right};
use crate::home::lease_log::LeaseLog;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::tables::Tables;
use crate::home::{Outbox, responses};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{
    LEASED_SEGMENTS_MAX, READ_LEASE_MODS_MAX, WITHHELD_MAX, WITHHELD_PER_NAME_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallResponse, CommitId, Down, EdgeId, HomeId, MemberId, Millis, NameId,
    Note, Outcome, PageChange, Position, Privilege, Right, SegmentId, Stamp, UpdateId, message,
    planted,
};

type Called = Result<CallResponse, CallError>;

/// The answer to a commit that may not go out yet.
#[derive(Debug)]
struct Withheld {
    commit: CommitId,
    /// The update that it saves, if it is one of a log.
    update: Option<UpdateId>,
    /// The home has started again: it is not known who has to see it before then.
    quiet_until: Millis,
    since: Millis,
    /// Who has asked for it, and what they will be told.
    asked: Vec<(EdgeId, CallId, Called)>,
}

/// What a home knows of readers with hard bounds.
///
/// Invariant: of the changes that were answered, a child misses at most as many in a segment as its read lease there allows. So an
/// answer is in `withheld` until each child that must not miss it has seen its position, or its lease is over.
#[derive(Debug)]
pub(super) struct Readers {
    leases: ReadLeases,
    logged: LeaseLog,
    lease_ms: u32,
    unseen: Unseen,
    withheld: BTreeMap<Position, Withheld>,
    by_commit: BTreeMap<CommitId, Position>,
    updates: BTreeSet<UpdateId>,
    by_name: BTreeMap<NameId, usize>,
    /// Positions that were answered although these children, which may miss some, have not seen them.
    missed: BTreeMap<(MemberId, SegmentId), BTreeSet<Position>>,
    /// Until then a writer goes first: readers get no more time there.
    wanted: BTreeMap<SegmentId, Millis>,
    slow: SlowHolders,
    /// How long writers have waited for readers, all added up, in milliseconds.
    waited_ms: u64,
    /// Something has changed since the answers were looked at.
    is_stirred: bool,
    /// When they are to be looked at next, if nothing changes.
    next: Option<Millis>,
    /// When the event came that is handled.
    pub(super) now: Millis,
}

impl Readers {
    /// Nobody holds a lease, but for what an earlier life may have granted.
    pub(super) fn new(lease_ms: u32, granted: BTreeMap<SegmentId, u32>, now: Millis) -> Self {
        let mut logged = LeaseLog::new(Privilege::Read { mods: 0 }, granted, now);
        if planted::is(Bug::ReadLeasesForgotten) {
            logged.forget();
        }
        Readers {
            leases: ReadLeases::default(),
            logged,
            lease_ms,
            unseen: Unseen::default(),
            withheld: BTreeMap::new(),
            by_commit: BTreeMap::new(),
            updates: BTreeSet::new(),
            by_name: BTreeMap::new(),
            missed: BTreeMap::new(),
            wanted: BTreeMap::new(),
            slow: SlowHolders::default(),
            waited_ms: 0,
            is_stirred: false,
            next: None,
            now,
        }
    }

    /// When answers are to be looked at next. A lease that has been made longer is looked at too early.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.next
    }

    fn next(&self) -> Option<Millis> {
        let quiet = self.withheld.values().map(|kept| kept.quiet_until);
        let quiet = quiet.filter(|until| *until > self.now).min();
        self.unseen
            .deadline(&self.leases)
            .into_iter()
            .chain(quiet)
            .min()
    }

    /// The sizes of its tables, by name.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 5] {
        let missed = self.missed.values().map(BTreeSet::len).sum();
        [
            ("read_leases", self.leases.len()),
            ("unseen", self.unseen.len()),
            ("missed", missed),
            ("withheld", self.withheld.len()),
            ("slow_readers", self.slow.len()),
        ]
    }

    /// How long writers have waited for readers with leases, all added up, in milliseconds. What still waits counts when it has its
    /// answer.
    pub(super) fn waited_ms(&self) -> u64 {
        self.waited_ms
    }

    /// A writer wants a lease. Whether readers hold some there: then they get no more time for half a lease (rule C1).
    pub(super) fn outranks_writers(&mut self, segments: &[SegmentId], now: Millis) -> bool {
        let is_read = self.logged.quiet_until(segments) > now
            || !self.leases.holders(segments, now).is_empty();
        if is_read {
            let until = now.plus(u64::from(self.lease_ms / 2));
            self.wanted
                .extend(segments.iter().map(|segment| (*segment, until)));
        }
        is_read && !planted::is(Bug::ReadLeaseBesideWriter)
    }

    /// Whether an update was saved, and its answer is kept back (rule C2).
    pub(super) fn keeps_back(&self, update: UpdateId, is_saved: bool) -> bool {
        let is_quiet = || self.logged.quiet_until(&[update.segment]) > self.now;
        let is_kept = self.updates.contains(&update) || is_saved && is_quiet();
        is_kept && !planted::is(Bug::ToldAgainNotWithheld)
    }

    /// Whether the home keeps back as many answers of a name as it may.
    pub(super) fn is_full_of(&self, name: NameId) -> bool {
        let most = match self.withheld.len() < WITHHELD_MAX {
            true => WITHHELD_PER_NAME_MAX,
            false => 1,
        };
        self.by_name.get(&name).is_some_and(|kept| *kept >= most)
    }

    /// The segments, of these, that concern children with read leases; the children; and until when nobody knows all of them.
    fn concerned(&self, segments: &BTreeSet<SegmentId>) -> (Vec<SegmentId>, Vec<MemberId>, Millis) {
        let now = self.now;
        let waits_always = planted::is(Bug::AnswerWaitsAlways);
        let is_leased = |of: &&SegmentId| {
            let is_held = !self.leases.holders(&[**of], now).is_empty();
            self.logged.quiet_until(&[**of]) > now || is_held || waits_always
        };
        let leased: Vec<SegmentId> = segments.iter().filter(is_leased).copied().collect();
        let children = self.leases.holders(&leased, now);
        let quiet = match waits_always {
            true => now.plus(u64::from(self.lease_ms)),
            false => self.logged.quiet_until(&leased),
        };
        (leased, children, quiet)
    }

    /// Keeps the answer to a commit back, if it has to wait.
    fn withhold(
        &mut self,
        (position, commit, update): (Position, CommitId, Option<UpdateId>),
        (segments, children, quiet_until): (Vec<SegmentId>, Vec<MemberId>, Millis),
    ) {
        self.unseen.add(self.now, position, segments, children);
        let kept = Withheld {
            commit,
            update,
            quiet_until,
            since: self.now,
            asked: Vec::new(),
        };
        self.withheld.insert(position, kept);
        self.by_commit.insert(commit, position);
        self.updates.extend(update);
        self.is_stirred = true;
        *self.by_name.entry(commit.member.name()).or_default() += 1;
    }

    /// Takes the answer to a commit that may go out.
    fn release(&mut self, position: Position) -> Option<Withheld> {
        let kept = self.withheld.remove(&position)?;
        self.by_commit.remove(&kept.commit);
        self.waited_ms += self.now.since(kept.since);
        if let Some(update) = kept.update {
            self.updates.remove(&update);
        }
        let name = kept.commit.member.name();
        if let Some(count) = self.by_name.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.by_name.remove(&name);
            }
        }
        Some(kept)
    }

    /// Whether all who must not miss a position have seen it. What the others miss counts from now on.
    fn may_answer(&mut self, position: Position) -> bool {
        let Some(awaited) = self.unseen.at(position) else {
            return true;
        };
        let (segments, children) = (awaited.segments.clone(), awaited.children.clone());
        self.may_miss(position, &segments, children)
    }

    /// Whether these children may miss a position. Then that counts from now on.
    fn may_miss(
        &mut self,
        position: Position,
        segments: &[SegmentId],
        children: impl IntoIterator<Item = MemberId>,
    ) -> bool {
        let mut misses = Vec::new();
        for child in children {
            for (segment, mods) in self.leases.bounds(child, segments, self.now) {
                let missed = self.missed.get(&(child, segment));
                if missed.map_or(0, BTreeSet::len) >= mods as usize {
                    return false;
                }
                misses.push((child, segment));
            }
        }
        for of in misses
            .into_iter()
            .filter(|_| !planted::is(Bug::MissedNotCounted))
        {
            self.missed.entry(of).or_default().insert(position);
        }
        true
    }

    /// A child shows what it was asked about, between some positions.
    fn seen(&mut self, child: MemberId, shown: Shown) {
        self.is_stirred = true;
        self.unseen.seen(child, shown);
        let of_child = (child, SegmentId(0))..=(child, SegmentId(u32::MAX));
        for (_, missed) in self.missed.range_mut(of_child) {
            missed.retain(|missed| !shown.has(*missed));
        }
    }

    /// What a child is asked once more, because it has come by a new edge: also what was answered because it may miss it.
    fn owed(&self, child: MemberId) -> BTreeMap<Position, BTreeSet<SegmentId>> {
        let mut owed: BTreeMap<Position, BTreeSet<SegmentId>> = BTreeMap::new();
        for (position, segments) in self.unseen.of(child) {
            owed.entry(position).or_default().extend(segments);
        }
        let of_child = (child, SegmentId(0))..=(child, SegmentId(u32::MAX));
        let missed = self.missed.range(of_child);
        for ((_, segment), positions) in missed.filter(|_| !planted::is(Bug::MissedNotAskedAgain)) {
            for position in positions {
                owed.entry(*position).or_default().insert(*segment);
            }
        }
        owed
    }

    /// A child has kept a writer waiting since then. Whoever was asked just before its lease ended has kept nobody waiting.
    fn blame(&mut self, child: MemberId, since: Millis) {
        if self.now.since(since) > u64::from(self.lease_ms / 4) {
            self.slow.note(child.name(), self.lease_ms, self.now);
        }
    }

    fn blame_if_owing(&mut self, child: MemberId, segments: &[SegmentId]) {
        if let Some(since) = self.unseen.owes_since(child, segments) {
            self.blame(child, since);
        }
    }

    /// The positions whose answers may go out now, and how many leases were waited for in vain.
    fn take_released(&mut self) -> (Vec<Withheld>, usize) {
        let is_due = self.next.is_some_and(|next| next <= self.now);
        if !core::mem::take(&mut self.is_stirred) && !is_due {
            return (Vec::new(), 0);
        }
        let over = self.unseen.end_over(self.now, &self.leases);
        let now = self.now;
        for (child, since) in &over {
            self.blame(*child, *since);
        }
        let of_time = |(position, kept): (&Position, &Withheld)| {
            (kept.quiet_until <= now).then_some(*position)
        };
        let positions: Vec<Position> = self.withheld.iter().filter_map(of_time).collect();
        let mut released = Vec::new();
        for position in positions {
            if self.may_answer(position) {
                self.unseen.remove(position);
                released.extend(self.release(position));
            }
        }
        self.next = self.next();
        (released, over.len())
    }

    /// Forgets what is over.
    fn sweep(&mut self, now: Millis) {
        self.leases.sweep(now);
        self.slow.sweep(now);
        self.wanted.retain(|_, until| *until > now);
        let leases = &self.leases;
        self.missed.retain(|(child, segment), missed| {
            !missed.is_empty() && leases.until(*child, &[*segment], now).is_some()
        });
    }
}

/// A read lease that a child wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leasing<'a> {
    pub(super) segments: &'a [SegmentId],
    /// So many answered changes may be missed.
    pub(super) mods: u32,
    /// Whether somebody may hold updates there that the home has not seen.
    pub(super) is_written: bool,
}

/// Who has to see a position that is told.
#[derive(Debug)]
pub(super) struct Wanted {
    position: Position,
    segments: Vec<SegmentId>,
    children: Vec<MemberId>,
}

/// Grants read leases, keeps answers back, and lets them go.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) home: HomeId,
    pub(super) readers: &'a mut Readers,
    pub(super) children: &'a mut Children,
    pub(super) tables: &'a mut Tables,
    pub(super) log: &'a mut Log,
}

impl Reading<'_> {
    /// A child may miss no more than so many answered changes from now on, until the lease ends (rules C2 and C4).
    pub(super) fn lease(
        &mut self,
        (caller, carrier): (Caller, Option<NameId>),
        wanted: Leasing<'_>,
        outbox: &mut Outbox,
    ) {
        let leased = self.leased((caller, carrier), wanted, outbox);
        let denied = matches!(leased, Err(CallError::Privileged | CallError::Busy));
        if denied {
            outbox.note(Note::ReadLeaseDenied);
        }
        let answer = OnDurable::Answer(caller.edge, caller.call, leased);
        self.log.after_all(answer);
    }

    fn leased(
        &mut self,
        (caller, carrier): (Caller, Option<NameId>),
        wanted: Leasing<'_>,
        outbox: &mut Outbox,
    ) -> Called {
        let segments = wanted.segments;
        let mods = wanted.mods.min(READ_LEASE_MODS_MAX);
        if segments.is_empty() || segments.len() > LEASED_SEGMENTS_MAX {
            return Err(CallError::Invalid);
        }
        for segment in segments {
            let who = (caller.who, carrier);
            check_right(self.tables, who, *segment, Right::Read)?;
        }
        let child = self.children.get(caller.edge).map(|child| child.node);
        let child = child.ok_or(CallError::Invalid)?;
        self.may_lease(child, wanted)?;
        let Readers {
            leases,
            logged,
            lease_ms,
            now,
            ..
        } = &mut *self.readers;
        logged.note(segments, *lease_ms, self.log, outbox)?;
        let until = now.plus(u64::from(*lease_ms));
        if !leases.grant(child, (segments, mods), (*now, until)) {
            return Err(CallError::TooMany);
        }
        outbox.note(Note::ReadLeaseGranted);
        Ok(CallResponse::Leased {
            lease_ms: *lease_ms,
        })
    }

    /// Whether nothing speaks against a read lease: a writer, a vote in doubt, or what the child has done.
    fn may_lease(&self, child: MemberId, wanted: Leasing<'_>) -> Result<(), CallError> {
        let segments = wanted.segments;
        let (readers, now) = (&*self.readers, self.readers.now);
        let is_wanted = |segment: &SegmentId| {
            let until = readers.wanted.get(segment);
            until.is_some_and(|until| *until > now)
        };
        let is_written = wanted.is_written || segments.iter().any(is_wanted);
        if is_written && !planted::is(Bug::ReadLeaseBesideWriter) {
            return Err(CallError::Privileged);
        }
        // Who keeps writers waiting gets no more time for that.
        let owes = readers.unseen.owes_since(child, segments);
        let owes = owes.is_some_and(|since| now.since(since) > u64::from(readers.lease_ms / 4))
            && !planted::is(Bug::SeenDebtForgiven);
        let is_voted = self.tables.votes.writes_in(segments);
        match owes || is_voted || readers.slow.has(child.name(), now) {
            true => Err(CallError::Busy),
            false => Ok(()),
        }
    }

    /// A member gives read leases back.
    pub(super) fn give_back(&mut self, edge: EdgeId, segments: &[SegmentId]) {
        let child = self.children.get(edge).map(|child| child.node);
        if let Some(child) = child.filter(|_| self.children.is_member(edge)) {
            self.readers.blame_if_owing(child, segments);
            self.end(child, segments);
        }
    }

    /// A child holds no leases in these segments any more, and nobody waits for it there.
    fn end(&mut self, child: MemberId, segments: &[SegmentId]) {
        let readers = &mut *self.readers;
        readers.leases.end(child, segments);
        readers.is_stirred = true;
        readers.unseen.end_over(readers.now, &readers.leases);
    }

    /// Who may not read a segment any more holds no lease there: nobody waits for it (rule R5).
    pub(super) fn rights_changed(&mut self, segment: SegmentId) {
        let holders = self.readers.leases.holders(&[segment], self.readers.now);
        for child in holders {
            let edge = self.children.edge_of(child);
            if edge.is_some_and(|edge| !self.children.may_read(edge, segment)) {
                self.end(child, &[segment]);
            }
        }
    }

    /// A child says how far it shows the stream. It was told no more than it has.
    pub(super) fn seen(&mut self, edge: EdgeId, seen: &message::Seen, outbox: &mut Outbox) {
        if let Some(child) = self.children.get(edge) {
            outbox.note(Note::SeenTold);
            self.readers.seen(child.node, Shown::of(seen));
        }
    }

    /// A child has come: what it has not answered it is asked again.
    pub(super) fn came(&mut self, child: MemberId, outbox: &mut Outbox) {
        let Some(edge) = self.children.edge_of(child) else {
            return;
        };
        for (position, segments) in self.readers.owed(child) {
            // Its stream begins at what is durable, and all that is asked about is.
            self.want(edge, position, segments.into_iter().collect(), outbox);
        }
    }

    /// A position is to be told, at which a commit changes these pages. Returns who has to see it.
    pub(super) fn reached(
        &mut self,
        (position, commit, update): (Position, Option<CommitId>, Option<UpdateId>),
        origin: Option<EdgeId>,
        changes: &[PageChange],
        outbox: &mut Outbox,
    ) -> Wanted {
        let segments = changes.iter().map(|change| change.page.segment).collect();
        let mut concerned = self.readers.concerned(&segments);
        if let Some(edge) = origin.filter(|edge| self.children.is_member(*edge)) {
            // It shows its own change when it has the answer.
            let node = self.children.get(edge).map(|child| child.node);
            concerned.1.retain(|child| Some(*child) != node);
        }
        let wanted = Wanted {
            position,
            segments: concerned.0.clone(),
            children: concerned.1.clone(),
        };
        let (segments, children, quiet_until) = &concerned;
        let is_known = *quiet_until <= self.readers.now;
        let readers = &mut *self.readers;
        let is_awaited =
            !is_known || !readers.may_miss(position, segments, children.iter().copied());
        if let Some(commit) = commit.filter(|_| is_awaited) {
            if planted::is(Bug::AnswerNotWithheld) {
                return wanted;
            }
            self.readers.withhold((position, commit, update), concerned);
            origin
                .into_iter()
                .for_each(|edge| self.tell_withheld(edge, commit, outbox));
        }
        wanted
    }

    /// The children were told the position: those with read leases are asked to say when they show it.
    pub(super) fn ask(&mut self, wanted: Wanted, watermark: Stamp, outbox: &mut Outbox) {
        for child in wanted.children {
            if let Some(edge) = self.children.edge_of(child) {
                self.children
                    .tell_position(edge, wanted.position, watermark, outbox);
                self.want(edge, wanted.position, wanted.segments.clone(), outbox);
            }
            if planted::is(Bug::SeenWhenSent) {
                let (after, to) = (Position(0), wanted.position);
                self.readers.seen(child, Shown { after, to });
            }
        }
    }

    fn want(
        &self,
        edge: EdgeId,
        position: Position,
        segments: Vec<SegmentId>,
        outbox: &mut Outbox,
    ) {
        let home = self.home;
        let wanted = message::SeenWanted {
            home,
            position,
            segments,
        };
        outbox.down(edge, Down::SeenWanted(wanted));
    }

    fn tell_withheld(&self, edge: EdgeId, commit: CommitId, outbox: &mut Outbox) {
        outbox.note(Note::AnswerWithheld);
        let home = self.home;
        outbox.down(edge, Down::Withheld(message::Withheld { home, commit }));
    }

    /// A vote is to be told. If its part writes under read leases, the answer to its program waits for this home, too (rule C2).
    pub(super) fn voted(&self, edge: EdgeId, commit: CommitId, outbox: &mut Outbox) {
        let vote = self.tables.votes.get(commit);
        let segments = vote.map(|vote| vote.request.part.segments_written());
        let (_, children, quiet) = self.readers.concerned(&segments.unwrap_or_default());
        let is_awaited = !children.is_empty() || quiet > self.readers.now;
        if is_awaited && !planted::is(Bug::VoteNotWithheld) {
            self.tell_withheld(edge, commit, outbox);
        }
    }

    /// An outcome is told again. The answer to its program may be kept back (rule C2).
    pub(super) fn told_again(
        &self,
        edge: EdgeId,
        commit: CommitId,
        outcome: &Outcome,
        outbox: &mut Outbox,
    ) {
        let readers = &*self.readers;
        let is_committed = matches!(outcome, Outcome::Committed { .. });
        let is_kept = readers.by_commit.contains_key(&commit)
            || readers.logged.quiet_anywhere() > readers.now;
        if is_committed && is_kept && !planted::is(Bug::ToldAgainNotWithheld) {
            self.tell_withheld(edge, commit, outbox);
        }
    }

    /// A member asks how a commit has ended. None: it is told later (rule C2).
    pub(super) fn asked(
        &mut self,
        (edge, call): (EdgeId, CallId),
        commit: CommitId,
        result: Called,
        outbox: &mut Outbox,
    ) -> Option<Called> {
        if planted::is(Bug::RememberedNotWithheld) {
            return Some(result);
        }
        if matches!(result, Ok(CallResponse::Voted(_))) {
            self.voted(edge, commit, outbox);
            return Some(result);
        }
        let readers = &mut *self.readers;
        if let Some(position) = readers.by_commit.get(&commit)
            && let Some(kept) = readers.withheld.get_mut(position)
        {
            // Its member asks once by an edge. Who asked there before asks again, if it still wants to know.
            let before = kept.asked.extract_if(.., |(of, ..)| *of == edge);
            for (_, call, _) in before {
                let busy = responses::call_result(self.home, call, Err(CallError::Busy));
                outbox.down(edge, busy);
            }
            kept.asked.push((edge, call, result));
            return None;
        }
        let is_committed = matches!(result, Ok(CallResponse::Outcome(Outcome::Committed { .. })));
        match is_committed && readers.logged.quiet_anywhere() > readers.now {
            // Its member asks again.
            true => Some(Err(CallError::Busy)),
            false => Some(result),
        }
    }

    /// An edge is gone: nobody waits there.
    pub(super) fn edge_gone(&mut self, edge: EdgeId) {
        for kept in self.readers.withheld.values_mut() {
            kept.asked.retain(|(of, ..)| *of != edge);
        }
    }

    /// Lets the answers go that wait for nobody any more.
    pub(super) fn finish(&mut self, outbox: &mut Outbox) {
        let (released, over) = self.readers.take_released();
        for _ in 0..over {
            outbox.note(Note::ReaderNotAwaited);
        }
        for kept in released {
            outbox.note(Note::AnswerReleased);
            for (edge, call, result) in kept.asked {
                outbox.down(edge, responses::call_result(self.home, call, result));
            }
        }
    }

    /// Forgets what is over.
    pub(super) fn sweep(&mut self, outbox: &mut Outbox) {
        let now = self.readers.now;
        self.readers.sweep(now);
        let Readers { leases, logged, .. } = &mut *self.readers;
        let is_held = |segment| !leases.holders(&[segment], now).is_empty();
        logged.sweep(now, is_held, self.log, outbox);
    }
}
