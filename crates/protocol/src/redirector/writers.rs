//! Updates of logs below a site: who shows them to whom, and who is asked when somebody pulls (rules C1, C3, C4 and C6).

use crate::edge::downstream::Children;
use crate::edge::followers::Followers;
use crate::edge::leases::Leases;
use crate::edge::pulls::{Pulls, Question, Wanted};
use crate::edge::read_leases::ReadLeases;
use crate::edge::slow_holders::SlowHolders;
use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use crate::redirector::waiter::Waiter;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{COMMIT_BYTES_MAX, PULL_HEADS_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, Down, EdgeId, MemberId, Millis, NameId, NodeKind,
    Note, Peer, Privilege, SegmentId, Up, message, planted,
};

/// What a call of a child asked for, until its home has answered.
#[derive(Clone, Debug)]
enum Asked {
    Follow(SegmentId),
    Lease(Vec<SegmentId>, Privilege),
}

/// What a site knows of logs below it, of one home.
///
/// Invariant: whoever follows or writes was allowed to by the home. A child follows only from the place in its stream at which
/// the home has answered it.
#[derive(Debug, Default)]
pub(super) struct Writers {
    followers: Followers,
    leases: Leases,
    /// Those of its holders that are sites. What the home says of a name concerns the member of it alone.
    sites: BTreeSet<MemberId>,
    /// The edges whose children were granted leases: the home has said that they may write.
    may_write: BTreeSet<(EdgeId, SegmentId)>,
    /// Each has the number that the parent has given it.
    pulls: Pulls<u64>,
    asked: BTreeMap<(CallId, EdgeId), Asked>,
    /// The segments whose leases the parent wants back (rule C1).
    recalled: BTreeSet<SegmentId>,
    /// Names that kept readers waiting until their leases were over.
    slow: SlowHolders,
    /// Who keeps the log of the site.
    keeper: Option<NameId>,
    /// What the home has granted last, in milliseconds.
    lease_ms: u32,
    /// When it was last looked at.
    now: Millis,
}

impl Writers {
    /// A site whose log this name keeps.
    pub(super) fn kept_by(keeper: Option<NameId>) -> Self {
        Writers {
            keeper,
            ..Writers::default()
        }
    }

    /// Whether a child may ask for leases. Who keeps readers waiting may not ask for one to write, so that its site loses none (rule
    /// C4). Nor may a name that would hold more than it leaves free: the home would count that for the site.
    pub(super) fn may_ask(
        &self,
        now: Millis,
        peer: &Peer,
        request: &CallRequest,
        to_read: &ReadLeases,
    ) -> Result<(), CallError> {
        let CallRequest::Lease {
            segments,
            privilege,
        } = request
        else {
            return Ok(());
        };
        let fits = match privilege {
            Privilege::Read { .. } => to_read.fits_shared(peer.node, segments),
            Privilege::Write => self.leases.fits_shared(peer.node, segments),
        };
        let keeps_waiting =
            *privilege == Privilege::Write && self.keeps_waiting(now, peer, segments);
        match (fits, keeps_waiting) {
            (false, _) => Err(CallError::TooMany),
            (true, true) => Err(CallError::Busy),
            (true, false) => Ok(()),
        }
    }

    fn keeps_waiting(&self, now: Millis, peer: &Peer, segments: &[SegmentId]) -> bool {
        let owes = self.pulls.owes_since(peer.node, segments);
        let owes = owes.is_some_and(|since| now.since(since) > u64::from(self.lease_ms / 4));
        let is_slow = peer.kind == NodeKind::Member && self.slow.has(peer.node.name(), now);
        owes || is_slow
    }

    /// A child has kept readers waiting since then. If that was long, its name gets no lease for a time.
    fn blame(&mut self, child: MemberId, since: Millis, now: Millis) {
        if now.since(since) > u64::from(self.lease_ms / 4) {
            self.slow.note(child.name(), self.lease_ms, now);
        }
    }

    /// A call of a child goes up.
    pub(super) fn passed(&mut self, call: CallId, edge: EdgeId, request: &CallRequest) {
        let asked = match request {
            CallRequest::Follow { segment, .. } => Asked::Follow(*segment),
            CallRequest::Lease {
                segments,
                privilege,
            } => Asked::Lease(segments.clone(), *privilege),
            _ => return,
        };
        self.asked.insert((call, edge), asked);
    }

    /// The stream has ended. Who followed goes on sharing without the home.
    pub(super) fn stream_ended(&mut self) {
        self.asked.clear();
        self.recalled.clear();
        // The parent asks again.
        self.pulls.restart(self.now, &self.leases);
    }

    /// Another stream begins: everybody follows anew.
    pub(super) fn stream_began(&mut self) {
        self.stream_ended();
        self.followers.clear();
    }

    /// A child is gone, and its edge. Its leases stay (rule C4).
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        self.followers.went(edge);
        self.may_write.retain(|(of, _)| *of != edge);
        self.asked.retain(|(_, of), _| *of != edge);
    }

    /// When pulls are to be looked at next.
    pub(super) fn deadline(&self) -> Option<Millis> {
        self.pulls.deadline(&self.leases)
    }

    /// The children that follow a segment.
    pub(super) fn followers(&self, segment: SegmentId) -> BTreeSet<EdgeId> {
        self.followers.of(segment)
    }

    /// Others may read or write a segment from now on.
    pub(super) fn rights_changed(&mut self, segment: SegmentId, children: &Children) {
        for edge in self.followers.of(segment) {
            if !children.may_read(edge, segment) {
                self.followers.end(edge, segment);
            }
        }
        // Whoever still may write shows it with the next lease.
        self.may_write.retain(|(_, of)| *of != segment);
    }

    /// How many entries its tables have.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 4] {
        [
            ("followers", self.followers.len()),
            ("leases", self.leases.len()),
            ("pulls", self.pulls.count(|_| true)),
            ("slow_writers", self.slow.len()),
        ]
    }

    /// The recalled segments in which nobody below holds a lease, and nobody can be granted one by an answer that is on its way.
    fn take_returned(&mut self, now: Millis) -> Vec<SegmentId> {
        let (leases, asked) = (&self.leases, &self.asked);
        let is_returned = |segment: &SegmentId| {
            let is_asked = asked.values().any(|asked| match asked {
                Asked::Lease(segments, Privilege::Write) => segments.contains(segment),
                _ => false,
            });
            let is_held = is_asked || !leases.holders(&[*segment], now).is_empty();
            !is_held || planted::is(Bug::GivesBackForOthers)
        };
        self.recalled.extract_if(.., is_returned).collect()
    }

    /// Forgets leases that have ended.
    pub(super) fn sweep(&mut self, now: Millis) {
        self.leases.sweep(now);
        let leases = &self.leases;
        self.sites.retain(|site| leases.has_any(*site));
        self.slow.sweep(now);
    }
}

/// Passes updates and pulls between the two sides of a site.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    pub(super) writers: &'a mut Writers,
    /// The read leases below.
    pub(super) leases: &'a mut ReadLeases,
    pub(super) up: &'a mut Upstream<Waiter>,
    pub(super) children: &'a mut Children,
}

impl Writing<'_> {
    /// The home has answered a call that came up this edge. What it granted counts for this child from here on. False: this site has no
    /// place for it, so the child must not believe in it.
    pub(super) fn answered(
        &mut self,
        now: Millis,
        (edge, peer): (EdgeId, &Peer),
        result: &message::CallResult,
        outbox: &mut Outbox,
    ) -> bool {
        let asked = self.writers.asked.remove(&(result.call, edge));
        match (asked, &result.result) {
            (Some(Asked::Follow(segment)), Ok(CallResponse::Following { position, .. })) => {
                let is_member = peer.kind == NodeKind::Member;
                self.up.advance(*position);
                let is_added = self.writers.followers.add(edge, segment, is_member);
                if is_added {
                    self.tell_again(edge, segment, outbox);
                }
                is_added
            }
            (Some(Asked::Lease(segments, privilege)), Ok(CallResponse::Leased { lease_ms })) => {
                let until = now.plus(u64::from(*lease_ms));
                if let Privilege::Read { mods } = privilege {
                    outbox.note(Note::ReadLeaseGranted);
                    let wanted = (&segments[..], mods);
                    return self.leases.grant_shared(peer.node, wanted, (now, until));
                }
                self.writers.lease_ms = *lease_ms;
                let leases = &mut self.writers.leases;
                if !leases.grant_shared(peer.node, &segments, until) {
                    return false;
                }
                outbox.note(Note::LeaseGranted);
                if peer.kind != NodeKind::Member {
                    self.writers.sites.insert(peer.node);
                }
                // The parent has granted it since it wanted it back.
                self.writers.recalled.retain(|of| !segments.contains(of));
                let is_new = |segment: &SegmentId| self.writers.may_write.insert((edge, *segment));
                let new: Vec<SegmentId> = segments.into_iter().filter(is_new).collect();
                self.keeper_tells_again(&new, outbox);
                true
            }
            (Some(Asked::Lease(..)), _) => {
                self.give_back_recalled(now, outbox);
                true
            }
            _ => true,
        }
    }

    /// A child follows a segment from here on: its neighbours tell it what they have, as of no earlier.
    fn tell_again(&mut self, follower: EdgeId, segment: SegmentId, outbox: &mut Outbox) {
        let writers = self.writers.may_write.iter();
        let of = writers.filter(|(edge, of)| *of == segment && *edge != follower);
        let of: Vec<EdgeId> = of.map(|(edge, _)| *edge).collect();
        for edge in of {
            self.tell(edge, segment, outbox);
        }
    }

    /// Somebody may write since now. What the log of the site keeps of it may be shown.
    fn keeper_tells_again(&mut self, segments: &[SegmentId], outbox: &mut Outbox) {
        let is_keeper = |edge: &EdgeId| {
            let name = self.children.get(*edge).map(|child| child.node.name());
            self.writers.keeper.is_some() && name == self.writers.keeper
        };
        let may_write = self.writers.may_write.iter().copied();
        let due = may_write.filter(|(edge, of)| segments.contains(of) && is_keeper(edge));
        for (edge, segment) in due.collect::<Vec<_>>() {
            self.tell(edge, segment, outbox);
        }
    }

    fn tell(&mut self, edge: EdgeId, segment: SegmentId, outbox: &mut Outbox) {
        let (position, promised) = (self.up.position, self.up.promised());
        self.children
            .tell_position(edge, position, promised, outbox);
        let home = self.up.home;
        outbox.down(edge, Down::Tell(message::Tell { home, segment }));
    }

    /// The parent says that somebody elsewhere follows.
    pub(super) fn told_to_tell(&mut self, segment: SegmentId, outbox: &mut Outbox) {
        self.tell_again(EdgeId(u64::MAX), segment, outbox);
    }

    /// A child shows an update to its neighbours. It speaks for its own logs, or is a site. The author of the update is at this edge.
    pub(super) fn update_from(
        &mut self,
        (edge, peer): (EdgeId, &Peer),
        author: Option<EdgeId>,
        told: &message::Told,
        outbox: &mut Outbox,
    ) -> Result<(), &'static str> {
        let (update, segment) = (&told.update, told.update.id.segment);
        if !update.is_whole() || update.bytes() > COMMIT_BYTES_MAX {
            return Err("an update that cannot be right");
        }
        let is_own = update.id.log.name() == peer.node.name();
        if peer.kind == NodeKind::Member && !is_own {
            return Err("it shows an update of another's log");
        }
        let author_may = author.is_some_and(|author| self.may_write(author, segment));
        let is_author_asked = told.author.is_some() && !planted::is(Bug::AuthorsNotAsked);
        if !self.may_write(edge, segment) || is_author_asked && !author_may {
            // The home has not said that it may write, or somebody took the right away.
            outbox.note(Note::UpdateNotShown);
            return Ok(());
        }
        self.show(edge, told, outbox);
        if let Some(above) = self.up.edge.filter(|_| self.up.helpers) {
            outbox.up(above, Up::Update(told.clone()));
        }
        Ok(())
    }

    /// Whether the home has said that the child at an edge may write.
    fn may_write(&self, edge: EdgeId, segment: SegmentId) -> bool {
        self.writers.may_write.contains(&(edge, segment))
    }

    /// An update goes to all that follow its segment.
    pub(super) fn show(&self, from: EdgeId, told: &message::Told, outbox: &mut Outbox) {
        for edge in self.writers.followers.of(told.update.id.segment) {
            if edge != from {
                outbox.down(edge, Down::Update(told.clone()));
            }
        }
    }

    // --- Pulls ---

    /// An update was refused: whoever follows shows it no more.
    pub(super) fn rejected(&mut self, saved: &message::Saved, outbox: &mut Outbox) {
        let step = &saved.step;
        self.up.advance_promised(step.position, step.watermark);
        let followers = self.writers.followers.of(saved.update.segment);
        let at = (step.position, self.up.promised());
        self.children
            .tell_rejected(saved.update, &followers, at, outbox);
    }

    /// The parent asks how far the logs below are.
    pub(super) fn pull(&mut self, now: Millis, get: message::Get, outbox: &mut Outbox) {
        let Writers {
            pulls,
            leases,
            sites,
            ..
        } = &mut *self.writers;
        let when = (None, Millis(0));
        let wanted = Wanted {
            segments: get.segments,
            void: get.void,
        };
        let is_member = |child: MemberId| !sites.contains(&child);
        let whose = (&*leases, is_member);
        let questions = pulls.begin(now, get.pull, wanted, when, whose);
        self.ask(questions, outbox);
        self.finish(now, outbox);
    }

    /// The parent wants leases back: the children that hold them are asked (rule C1).
    pub(super) fn recalled(&mut self, now: Millis, recall: &message::Recall, outbox: &mut Outbox) {
        self.writers.recalled.extend(&recall.segments);
        for child in self.writers.leases.holders(&recall.segments, now) {
            self.recall(child, outbox);
        }
        self.finish(now, outbox);
    }

    /// A child is asked for all that the parent wants back, if it has an edge.
    fn recall(&self, child: MemberId, outbox: &mut Outbox) {
        let leases = &self.writers.leases;
        let recalled = self.writers.recalled.iter().copied();
        let start = Millis(0);
        let held = recalled.filter(|of| leases.until(child, &[*of], start).is_some());
        let segments: Vec<SegmentId> = held.collect();
        if let Some(edge) = self
            .children
            .edge_of(child)
            .filter(|_| !segments.is_empty())
        {
            let home = self.up.home;
            outbox.down(edge, Down::Recall(message::Recall { home, segments }));
        }
    }

    /// A child has answered.
    pub(super) fn heads(
        &mut self,
        now: Millis,
        child: &Peer,
        heads: message::Heads,
        outbox: &mut Outbox,
    ) {
        let is_member = child.kind == NodeKind::Member;
        self.writers.pulls.answered(child.node, is_member, heads);
        self.finish(now, outbox);
    }

    /// A child gives leases back.
    pub(super) fn give_back(
        &mut self,
        now: Millis,
        peer: &Peer,
        back: &message::GiveBack,
        outbox: &mut Outbox,
    ) {
        let is_member = peer.kind == NodeKind::Member;
        let owes = self.writers.pulls.owes_since(peer.node, &back.segments);
        if let Some(since) = owes.filter(|_| is_member) {
            self.writers.blame(peer.node, since, now);
        }
        // Of a site below, only what was recalled counts: it may have been granted more since.
        let recalled = &self.writers.recalled;
        let may_end = |of: &&SegmentId| is_member || recalled.contains(of);
        let segments: Vec<SegmentId> = back.segments.iter().filter(may_end).copied().collect();
        match is_member {
            true => self.writers.leases.give_back_shared(peer.node, &segments),
            false => self.writers.leases.end(peer.node, &segments),
        }
        self.finish(now, outbox);
    }

    /// The stream of a child begins: what it has not answered it is asked again.
    pub(super) fn came(&mut self, child: MemberId, outbox: &mut Outbox) {
        let questions = self.writers.pulls.came(child);
        self.ask(questions, outbox);
        self.recall(child, outbox);
    }

    /// Answers the pulls that wait for nobody.
    pub(super) fn finish(&mut self, now: Millis, outbox: &mut Outbox) {
        self.writers.now = now;
        let Writers { pulls, leases, .. } = &mut *self.writers;
        let (named, over) = pulls.take_named(now, leases);
        for (child, since) in over {
            self.writers.blame(child, since, now);
        }
        for pull in named {
            let heads: Vec<_> = pull.heads().into_iter().collect();
            let Some(above) = self.up.edge.filter(|_| heads.len() <= PULL_HEADS_MAX) else {
                continue;
            };
            let heads = message::Heads {
                home: self.up.home,
                pull: pull.origin,
                heads,
            };
            outbox.up(above, Up::Heads(heads));
        }
        self.give_back_recalled(now, outbox);
    }

    /// Gives back what was recalled, where nobody below holds it any more.
    pub(super) fn give_back_recalled(&mut self, now: Millis, outbox: &mut Outbox) {
        let Some(above) = self.up.edge else {
            return;
        };
        let segments = self.writers.take_returned(now);
        if !segments.is_empty() {
            self.writers.leases.forget_given_back(&segments);
            let back = message::GiveBack {
                home: self.up.home,
                segments,
                privilege: Privilege::Write,
            };
            outbox.up(above, Up::GiveBack(back));
        }
    }

    fn ask(&self, questions: Vec<Question>, outbox: &mut Outbox) {
        for question in questions {
            let Some(edge) = self.children.edge_of(question.child) else {
                continue;
            };
            outbox.note(Note::PullPassed);
            let get = message::Get {
                home: self.up.home,
                pull: question.number,
                segments: question.wanted.segments,
                void: question.wanted.void,
            };
            outbox.down(edge, Down::Get(get));
        }
    }
}
