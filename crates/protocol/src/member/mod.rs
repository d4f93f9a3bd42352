//! The member: a program's end of the protocol. It keeps the pages, asks for
//! what is missing, sends commits, and publishes to the page cache what the
//! stream brings; what reads the cache is not its business.
//!
//! [`Member`] is wiring. It owns the parts, and hands each event to the replica of
//! the home that it concerns, or to a view of the parts:
//!
//! | part | what it keeps or does |
//! |---|---|
//! | `homes`, `replica` | what the member knows of each home, and how it follows the home's stream |
//! | `pages`, `overlay` | images of one home, and the values that lie over them |
//! | `resync` | pages under a new parent, until their reports are answered (rule 13) |
//! | `recent_changes`, `rests`, `speculation` | whether a commit can still come true that is not answered (rule 14) |
//! | `requests` | the pages and watches that the program asks for |
//! | `commits`, `in_flight`, `submit` | commits on their way, and how each goes to its end |
//! | `calls`, `caller` | calls on their way, and registrations |
//! | `signing` | what the member signs for the sites on its way (rule R2) |
//! | `uplink` | the bytes on their way up |
//! | `locks` | locks that sessions of the program hold (rule C5) |
//! | `hard_reads`, `reading` | reads with hard bounds, and what parents want to know to be shown (rules C2 and C3) |
//! | `withheld` | answers that homes keep back until readers have seen what they tell (rule C2) |
//! | `lease` | a lease to write or to read (rule C4) |
//! | `updates` | what is written without waiting for the home (rules C6 and C7) |

mod caller;
mod calls;
mod commits;
mod config;
mod hard_reads;
mod homes;
mod in_flight;
mod interface;
mod lease;
mod locks;
mod overlay;
mod pages;
mod reading;
mod recent_changes;
mod replica;
mod requests;
mod rests;
mod resync;
mod signing;
mod speculation;
mod submit;
#[cfg(test)]
mod tests;
mod updates;
mod uplink;
mod withheld;

pub use config::MemberConfig;
pub use interface::{
    InLog, MemberAction, MemberCommand, Request, Resolution, Response, Source, UpdateInfo,
};

pub use thorp_model::NotKept;

use crate::edge::liveness::Neighbours;
use crate::edge::pending_writes::PendingWrites;
use crate::member::caller::{Answered, Caller};
use crate::member::calls::{Called, Calls, Purpose};
use crate::member::commits::Commits;
use crate::member::hard_reads::{HardReads, Pulling};
use crate::member::homes::Homes;
use crate::member::in_flight::InFlight;
use crate::member::locks::Locks;
use crate::member::reading::Reading;
use crate::member::replica::Replica;
use crate::member::requests::Requests;
use crate::member::signing::Signing;
use crate::member::submit::Submitter;
use crate::member::updates::{Updates, Updating};
use crate::member::uplink::Uplink;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use thorp_model::limits::HEARTBEAT_MS;
use thorp_model::{
    CallError, CallRequest, CallResponse, CommitId, Direction, Down, EdgeId, Event, Fence, HomeId,
    HomeNames, Image, Message, Millis, NodeKind, Note, Now, Outcome, PageId, Place, Position,
    RequestId, SegmentId, StateMachine, Step, UpdateId, Verdict, message,
};

/// What a member fills.
type Outbox = thorp_model::Outbox<MemberAction>;

/// The state machine of a member.
#[derive(Debug)]
pub struct Member {
    homes: Homes,
    commits: Commits,
    calls: Calls,
    uplink: Uplink,
    signing: Signing,
    pending_writes: PendingWrites,
    parents: BTreeMap<EdgeId, NodeKind>,
    neighbours: Neighbours,
    updates: Updates,
    hard_reads: HardReads,
    locks: Locks,
    next_ack: Millis,
}

impl StateMachine for Member {
    type Command = MemberCommand;
    type Action = MemberAction;

    fn handle(&mut self, now: Now, event: Event<MemberCommand>, outbox: &mut Outbox) {
        self.signing.now = now;
        let now = now.mono;
        if let Event::Received { edge, .. } = &event {
            self.neighbours.heard(*edge);
        }
        match event {
            Event::Connected {
                edge,
                direction: Direction::Down,
                ..
            } => outbox.close(edge, "a member has no children"),
            Event::Received {
                message: Message::Alive,
                ..
            } => {}
            Event::Disconnected { edge } => self.disconnected(edge, outbox),
            Event::Received {
                edge,
                message: Message::Down(message),
            } => self.received(now, edge, message, outbox),
            Event::Received {
                edge,
                message: Message::Homes(homes),
            } => self.told_of_homes(edge, homes, outbox),
            Event::Received { edge, .. } => outbox.close(edge, "a parent sent up"),
            Event::Command(MemberCommand::Request { id, request }) => {
                self.requested(now, id, request, outbox);
            }
            Event::Command(MemberCommand::Evict(places)) => self.evict(&places, outbox),
            Event::Command(MemberCommand::Kept(mark)) => self.updating().kept(mark, outbox),
            Event::Command(MemberCommand::NotKept(mark, lack)) => {
                self.updating().not_kept(mark, lack, outbox);
            }
            Event::Tick => {
                self.tick(now, outbox);
                self.caller().give_back_again(outbox);
            }
            // The stream begins with the parent's first message, and that follows on this one (rule R9).
            Event::Connected { edge, peer, .. } => {
                self.parents.insert(edge, peer.kind);
                self.neighbours.came(edge);
                outbox.claim(edge, self.homes.claims());
            }
        }
        self.use_window(outbox);
        self.uncover(outbox);
        for edge in self.neighbours.tick(now, outbox) {
            self.give_up(edge, outbox);
        }
    }

    fn deadline(&self) -> Option<Millis> {
        let fetches = self.homes.iter().filter_map(|(_, at)| at.up.deadline());
        let alive = self.neighbours.deadline();
        let is_reached = |home| self.homes.edge(home).is_some();
        let updates = self.updates.deadline(is_reached);
        let reads = self.hard_reads.deadline(self.signing.now.mono, is_reached);
        let locks = self.locks.deadline(is_reached);
        fetches
            .chain(locks)
            .chain(updates)
            .chain(reads)
            .chain(alive)
            .chain([self.next_ack])
            .min()
    }
}

impl Member {
    /// A member that knows no home yet.
    pub fn new(config: MemberConfig) -> Self {
        Member {
            commits: Commits::new(config.id),
            calls: Calls::new(config.id),
            uplink: Uplink::new(config.upward_bytes_max),
            signing: Signing::new(
                config.id,
                Arc::clone(&config.signer),
                config.verifier.clone(),
            ),
            pending_writes: PendingWrites::new(config.kept_bytes_max),
            parents: BTreeMap::new(),
            neighbours: Neighbours::new(config.alive),
            updates: Updates::new(&config),
            hard_reads: HardReads::default(),
            locks: Locks::default(),
            next_ack: Millis(0),
            homes: Homes::new(config),
        }
    }

    /// How far a home's stream was applied.
    pub fn position(&self, home: HomeId) -> Option<Position> {
        self.homes.get(home).map(|at| at.up.position)
    }

    /// The homes known, their names, and the edges that their live streams come
    /// down on.
    pub fn streams(&self) -> impl Iterator<Item = (HomeId, &str, Option<EdgeId>)> {
        let homes = self.homes.iter();
        homes.map(|(home, at)| (home, at.up.name.as_str(), at.up.edge))
    }

    /// Whether pages of a home are not resynchronised yet (rule 13).
    pub fn is_held(&self, home: HomeId) -> bool {
        self.homes.get(home).is_some_and(|at| at.up.is_held())
    }

    /// Whether what a home has answered may not be here yet, because pages are not resynchronised, or were not when the last stream
    /// ended (rules C3 and 13).
    pub fn is_behind(&self, home: HomeId) -> bool {
        self.homes.get(home).is_some_and(|at| !at.up.stands())
    }

    /// Whether a page is on its way.
    pub fn is_fetching(&self, place: Place) -> bool {
        let at = self.homes.get(place.home);
        at.is_some_and(|at| at.up.is_fetching(place.page))
    }

    /// The pages held of a home.
    pub fn images(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let at = self.homes.get(home);
        at.map_or_else(Vec::new, |at| at.pages.images())
    }

    /// The pages held of a home as the program sees them: the overlay lies over them (rule 3).
    pub fn shown(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let at = self.homes.get(home);
        at.map_or_else(Vec::new, |at| at.pages.all_shown())
    }

    /// What homes do not know yet, and whoever ends now leaves open there: outcomes of commits over several homes, which stay
    /// in doubt, and staged values that are to be given up; and updates of which the answer is on its way.
    pub fn untold(&self) -> usize {
        self.commits.untold() + self.calls.giving_up() + self.updates.on_their_way()
    }

    /// Whether the member believes that its home asks it when somebody pulls (rule C4).
    pub fn holds_lease(&self, home: HomeId, segment: SegmentId, now: Millis) -> bool {
        self.updates.holds_lease(home, segment, now)
    }

    /// Whether the member believes in a lease to read: hard reads there need no message (rule C2).
    pub fn holds_read_lease(&self, home: HomeId, segment: SegmentId, now: Millis) -> bool {
        self.hard_reads.holds(home, segment, now)
    }

    /// What is in the log; none: there is no log.
    pub fn in_log(&self, now: Millis) -> Option<InLog> {
        self.updates.in_log(now)
    }

    /// Updates in the log that their homes have not executed, or refused.
    pub fn unsaved(&self) -> usize {
        self.updates.open()
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let sum = |size: fn(&Replica) -> usize| self.homes.iter().map(|(_, at)| size(at)).sum();
        alloc::vec![
            ("pages", sum(|at| at.pages.len())),
            ("fetches", sum(|at| at.up.fetches())),
            ("overtaken", sum(|at| at.up.overtaken())),
            ("watches", sum(|at| at.watches.len())),
            ("waiting", sum(Replica::waiting)),
            ("reported", sum(|at| at.resync.reported())),
            ("own", sum(|at| at.pages.overlay.len())),
            ("recent", sum(Replica::recent)),
            ("commits", self.commits.len()),
            ("calls", self.calls.len() - self.calls.registering()),
            ("registering", self.calls.registering()),
            ("unstaging", self.calls.unstaging()),
            ("upward_bytes", self.uplink.bytes()),
            ("kept", self.pending_writes.len()),
        ]
        .into_iter()
        .chain(self.updates.sizes())
        .chain(self.hard_reads.sizes())
        .chain([("withheld", self.commits.withheld.len())])
        .chain([("locks", self.locks.len())])
        .collect()
    }

    // --- Edges ---

    /// A parent says nothing: its edge ends here and now, whatever still comes of it.
    fn give_up(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        outbox.note(Note::ParentSilent);
        self.disconnected(edge, outbox);
        outbox.close(edge, "it says nothing");
    }

    fn disconnected(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        self.parents.remove(&edge);
        self.neighbours.went(edge);
        self.updating().parent_went(edge, outbox);
        let homes = self.homes.iter_mut();
        let lost = homes.filter_map(|(home, at)| at.up.lost(edge).then_some(home));
        for home in lost.collect::<Vec<HomeId>>() {
            self.end(home, outbox);
        }
    }

    /// The home is out of reach: what is cached stays readable as of where the
    /// stream ended, for as long as sessions allow (foundation 9).
    fn end(&mut self, home: HomeId, outbox: &mut Outbox) {
        outbox.note(Note::StreamEnded);
        outbox.act(MemberAction::StreamEnded(home));
        self.homes.at(home).end(outbox);
        self.caller().stream_ended(home);
        self.locks.stream_ended(home);
        self.reading().end(home, outbox);
        self.updating().end(home, outbox);
    }

    // --- The program ---

    fn requested(
        &mut self,
        now: Millis,
        request_id: RequestId,
        request: Request,
        outbox: &mut Outbox,
    ) {
        match request {
            Request::Fetch(Place { home, page }) => {
                self.requests(home).fetch(now, request_id, page, outbox);
            }
            Request::Prefetch(Place { home, page }) => {
                self.requests(home).prefetch(now, page, outbox);
            }
            Request::Commit {
                parts,
                histories,
                depends_on,
                after,
                early,
            } => {
                let (depends_on, stamp) = self.homes.depends_on(&parts, &depends_on);
                let seen = (after.max(stamp), early);
                let left = self.homes.left(&parts, &histories);
                let commit = InFlight::new(request_id, parts, depends_on, seen);
                self.submitter().commit(commit, left, outbox);
            }
            Request::Call { home, request } => {
                if let CallRequest::Unlock { fence } = request {
                    self.locks.end((home, fence));
                }
                let mut caller = self.caller();
                caller.call_of_program(request_id, home, request, outbox);
            }
            Request::Watch { home, segment, on } => {
                self.requests(home).watch(request_id, segment, on, outbox);
            }
            Request::Update {
                home,
                writes,
                patience_ms,
            } => {
                let written = (home, writes);
                let mut updating = self.updating();
                updating.update(request_id, written, patience_ms, outbox);
            }
            Request::Resolve {
                home,
                id,
                resolution,
            } => self.updating().resolve((home, id), resolution, outbox),
            Request::Follow { home, segment, on } => {
                let wanted = (home, segment, on);
                self.updating().sharing().want(request_id, wanted, outbox);
            }
            Request::Pull {
                home,
                segments,
                patience_ms,
                mods,
            } => {
                let pulling = Pulling {
                    request_id,
                    home,
                    segments,
                    patience_ms,
                    mods,
                };
                self.reading().pull(pulling, outbox);
            }
            Request::Leave => {
                self.updating().leasing().leave(outbox);
                self.reading().leave(outbox);
            }
            Request::ListUpdates => {
                let list = Response::Updates(self.updates.list());
                outbox.act(MemberAction::Respond(request_id, list));
            }
            Request::Forget(request_id) => self.forget(request_id),
        }
    }

    fn forget(&mut self, request_id: RequestId) {
        for (_, replica) in self.homes.iter_mut() {
            replica.up.retain_waiting(|waiting| *waiting != request_id);
            replica.pages.forget_request(request_id);
        }
        self.caller().forget(request_id);
        self.commits.withheld.forget(request_id);
        self.updating().sharing().forget(request_id);
    }

    fn evict(&mut self, places: &[Place], outbox: &mut Outbox) {
        let homes: BTreeSet<HomeId> = places.iter().map(|place| place.home).collect();
        for home in homes {
            let pages = places.iter().filter(|place| place.home == home);
            let pages: Vec<PageId> = pages.map(|place| place.page).collect();
            self.homes.at(home).evict(&pages, outbox);
        }
        outbox.act(MemberAction::Evicted);
    }

    // --- Down ---

    fn told_of_homes(&mut self, edge: EdgeId, homes: HomeNames, outbox: &mut Outbox) {
        if self.parents.contains_key(&edge) {
            let homes = homes.checked();
            outbox.act(MemberAction::HomesTold { edge, homes });
        }
    }

    fn received(&mut self, now: Millis, edge: EdgeId, message: Down, outbox: &mut Outbox) {
        if !self.parents.contains_key(&edge) {
            return outbox.note(Note::OtherEpochDropped);
        }
        // These are beside all streams.
        let message = match message {
            Down::Update(told) => return self.updating().sharing().shown(told, outbox),
            Down::Keep(keep) => return self.updating().keep(edge, *keep, outbox),
            Down::Kept(kept) => return self.updating().given(edge, &kept, outbox),
            message => message,
        };
        // A member belongs to one parent at a time, for each home (rule 1).
        let home = message.home();
        let has_ended = matches!(message, Down::End(_));
        let is_heard = match self.homes.get_mut(home) {
            Some(at) => at.up.hears(edge, &message, outbox),
            None => matches!(message, Down::Begin(_)),
        };
        if is_heard {
            self.heard(now, edge, message, outbox);
        }
        // Whatever this parent sends of the home next rests on what the member holds now (rule R9).
        if has_ended {
            outbox.claim(edge, self.homes.claim_of(home));
        }
    }

    fn heard(&mut self, now: Millis, edge: EdgeId, message: Down, outbox: &mut Outbox) {
        let home = message.home();
        match message {
            Down::Begin(begin) => self.begin(now, edge, begin, outbox),
            Down::End(_) => self.end(home, outbox),
            Down::Step(step) => self.step(now, (step, None), outbox),
            Down::Saved(saved) => {
                let update = Some((saved.update, saved.is_executed));
                self.step(now, (saved.step, update), outbox);
            }
            Down::Get(get) => self.updating().sharing().pulled(&get, outbox),
            Down::Tell(tell) => self
                .updating()
                .sharing()
                .told_to_tell(home, tell.segment, outbox),
            Down::Update(_) | Down::Keep(_) | Down::Kept(_) => {}
            Down::Image(response) => self.homes.at(home).image(now, response, outbox),
            Down::Peer(peer) => self.homes.at(home).peer_image(now, peer, outbox),
            Down::Redirect(redirect) => self.homes.at(home).help(edge, redirect, outbox),
            Down::Heartbeat(heartbeat) => {
                self.homes.at(home).heartbeat(now, &heartbeat, outbox);
            }
            Down::Voted(voted) => self.submitter().voted(&voted, outbox),
            Down::Withheld(withheld) if self.updating().is_sent(withheld.commit) => {
                self.updating().withheld(withheld.commit);
            }
            Down::Withheld(withheld) => self.submitter().withheld(&withheld),
            Down::SeenWanted(wanted) => self.reading().wanted(home, wanted.position, outbox),
            Down::Recall(recall) => self.updating().leasing().recalled(&recall, outbox),
            Down::Refused(refused) if self.updating().is_sent(refused.commit) => {
                let refusal = Some(refused.refusal);
                let mut updating = self.updating();
                updating.answered(refused.commit, refusal, outbox);
            }
            Down::Committed(committed) if self.updating().is_sent(committed.commit) => {
                let (commit, position) = (committed.commit, committed.position);
                let replica = self.homes.at(home);
                replica.outcome_remembered(commit, position, None, outbox);
                self.updating().answered(commit, None, outbox);
            }
            Down::Refused(refused) => {
                let outcome = Outcome::Refused(refused.refusal);
                let mut submitter = self.submitter();
                submitter.ended(home, refused.commit, outcome, outbox);
            }
            Down::Committed(committed) => self.submitter().committed(now, &committed, outbox),
            Down::CallResult(result) => self.answered(now, result, outbox),
            Down::Unwatched(unwatched) => {
                self.requests(home).unwatched(unwatched.segment, outbox);
            }
            Down::Hint(hint) => self.requests(home).hinted(&hint, outbox),
            Down::Joined(joined) => self.requests(home).joined(&joined, outbox),
            Down::Resynchronised(answer) => self.resynchronised(now, &answer, outbox),
            Down::Receipt(receipt) => self.homes.at(home).up.take_receipt(receipt),
            // A member passes no claims up.
            Down::Judged(_) => {}
        }
    }

    /// A stream begins: what is cached is reported (rule 13), and what was lost
    /// with the old edge is asked again (rules 1 and 11).
    fn begin(&mut self, now: Millis, edge: EdgeId, begin: message::Begin, outbox: &mut Outbox) {
        outbox.note(Note::StreamBegan);
        let (home, name) = (begin.home, begin.name.clone());
        outbox.act(MemberAction::StreamBegan {
            home,
            name,
            edge,
            incarnation: begin.receipt.incarnation,
        });
        let helpers = self.parents.get(&edge) == Some(&NodeKind::Redirector);
        let forgets = begin.verdict == Verdict::Forget;
        let follows = self.updates.followed(home);
        let replica = self.homes.at(home);
        replica.begin(now, edge, begin, (helpers, follows), outbox);
        if forgets {
            self.submitter().went_back(home, outbox);
            for fence in self.locks.went_back(home) {
                outbox.act(MemberAction::LockLost { home, fence });
            }
        }
        self.locks.stream_ended(home);
        self.caller().resend(home, outbox);
        self.reading().begin(home, forgets, outbox);
        self.updating().begin(home, forgets, outbox);
        self.submitter().resend(home, outbox);
    }

    /// One position: the member puts in the values that it kept of its own commit (rule 8).
    fn step(
        &mut self,
        now: Millis,
        (mut step, update): (Step, Option<(UpdateId, bool)>),
        outbox: &mut Outbox,
    ) {
        let home = step.home;
        if let Some(commit) = step.commit {
            self.pending_writes
                .fill((home, commit), step.executed, &mut step.changes);
        }
        let settled = match update {
            Some(update) => self.updating().saved(home, update, outbox),
            None => Vec::new(),
        };
        self.homes.at(home).step(now, &step, settled, outbox);
        if let Some(commit) = step.commit.filter(|_| update.is_none()) {
            let outcome = Outcome::Committed {
                position: step.position,
                stamp: step.stamp,
            };
            self.submitter().ended(home, commit, outcome, outbox);
        }
        self.homes.at(home).caught_up(now, outbox);
    }

    /// The parent has answered for some pages (rule 13).
    fn resynchronised(
        &mut self,
        now: Millis,
        answer: &message::Resynchronised,
        outbox: &mut Outbox,
    ) {
        let home = answer.home;
        if let Some(ended) = self.homes.at(home).resynchronised(answer, outbox) {
            self.went_on(now, home, ended, outbox);
        }
    }

    /// The member stands where its parent does.
    fn went_on(
        &mut self,
        now: Millis,
        home: HomeId,
        ended: BTreeMap<CommitId, Outcome>,
        outbox: &mut Outbox,
    ) {
        for (commit, outcome) in ended {
            self.submitter().ended(home, commit, outcome, outbox);
        }
        self.homes.at(home).caught_up(now, outbox);
        self.updating().sharing().tell_due(outbox);
        self.reading().tell_seen(home, outbox);
    }

    fn answered(&mut self, now: Millis, result: message::CallResult, outbox: &mut Outbox) {
        let home = result.home;
        match self.caller().answered(result, outbox) {
            Some(Answered::Following(segment, result)) => {
                self.updating().following((home, segment), result, outbox);
                if let Some(ended) = self.homes.at(home).go_on_if_done(outbox) {
                    self.went_on(now, home, ended, outbox);
                }
            }
            Some(Answered::Leased(result)) => {
                self.updating().leasing().leased(home, &result, outbox)
            }
            Some(Answered::ReadLeased(result)) => {
                self.reading().leased(home, &result, outbox);
            }
            Some(Answered::Locked {
                fence,
                lease_ms,
                sent,
                wanted,
            }) if wanted.is_of_program() && locks::comes_late(now, sent, lease_ms) => {
                // Its turn came late. Before the program hears of it, the home gives it a whole lease.
                let keep = Called::new(wanted, home, CallRequest::KeepLock { fence });
                self.caller().call(keep, outbox);
            }
            Some(Answered::Locked {
                fence,
                lease_ms,
                sent,
                wanted,
            }) => self.locked((home, fence), (sent, lease_ms), wanted, outbox),
            Some(Answered::LockNotKept(fence, CallError::LockLost)) => {
                self.locks.end((home, fence));
                outbox.act(MemberAction::LockLost { home, fence });
            }
            Some(Answered::LockNotKept(fence, _)) => self.locks.refused((home, fence), now),
            Some(Answered::Registered) => {
                self.submitter().send_dropped_decisions(home, outbox);
                self.send_waiting(home, outbox);
            }
            // What the home took before may stand still.
            Some(Answered::NotRegistered(_)) if self.homes.at(home).registration.is_some() => {}
            Some(Answered::NotRegistered(failure)) => {
                self.submitter().give_back_waiting(home, &failure, outbox);
            }
            Some(Answered::Outcome(commit, result)) if self.updates.is_withheld(commit) => {
                self.updating().released(commit, &result, outbox);
            }
            Some(Answered::Outcome(commit, result)) => {
                self.submitter()
                    .outcome(now, (home, commit), result, outbox);
            }
            None => {}
        }
    }

    /// A home grants a lock, or gives it more time. One that nobody wants any more is given back.
    fn locked(
        &mut self,
        (home, fence): (HomeId, Fence),
        (sent, lease_ms): (Millis, u32),
        wanted: Purpose,
        outbox: &mut Outbox,
    ) {
        let of = (home, fence);
        let is_kept = matches!(wanted, Purpose::KeepLock(_)) && self.locks.has(of);
        if is_kept || matches!(wanted, Purpose::Program(_)) {
            let until = self.locks.granted(of, sent, lease_ms);
            outbox.act(MemberAction::Locked { home, fence, until });
        }
        if let Purpose::Program(request_id) = wanted {
            let locked = Response::Called(Ok(CallResponse::Locked { fence, lease_ms }));
            outbox.act(MemberAction::Respond(request_id, locked));
        }
        if is_kept || !matches!(wanted, Purpose::Forgotten) {
            return;
        }
        let unlock = Called::new(Purpose::Unlock, home, CallRequest::Unlock { fence });
        self.caller().call(unlock, outbox);
    }

    /// Asks for more time for the locks that need it.
    fn keep_locks(&mut self, now: Millis, outbox: &mut Outbox) {
        let homes = &self.homes;
        let is_reached = |home| homes.edge(home).is_some();
        for (home, fence) in self.locks.ask_due(now, is_reached) {
            let request = CallRequest::KeepLock { fence };
            let keep = Called::new(Purpose::KeepLock(fence), home, request);
            self.caller().call(keep, outbox);
        }
    }

    // --- After each event ---

    /// Sends what waits, as far as there is space; a home that has forgotten
    /// this member meanwhile registers it first.
    fn use_window(&mut self, outbox: &mut Outbox) {
        if !self.uplink.take_freed() {
            return;
        }
        let homes: Vec<HomeId> = self.homes.iter().map(|(home, _)| home).collect();
        for home in homes {
            if !self.commits.waiting_at(home).is_empty() {
                self.caller().register(home, outbox);
            }
            self.send_waiting(home, outbox);
        }
    }

    fn send_waiting(&mut self, home: HomeId, outbox: &mut Outbox) {
        self.submitter().send_waiting(home, outbox);
        self.updating().send(home, outbox);
        self.caller().send_waiting(home, outbox);
    }

    /// Answers the requests for pages that the overlay covered until now.
    fn uncover(&mut self, outbox: &mut Outbox) {
        for (_, replica) in self.homes.iter_mut() {
            for request_id in replica.pages.uncovered() {
                let there = Response::Fetched(None);
                outbox.act(MemberAction::Respond(request_id, there));
            }
        }
    }

    fn tick(&mut self, now: Millis, outbox: &mut Outbox) {
        for (_, replica) in self.homes.iter_mut() {
            replica.up.tick(now, outbox);
        }
        self.updating().tick(outbox);
        self.reading().tick(outbox);
        self.keep_locks(now, outbox);
        if now < self.next_ack {
            return;
        }
        self.next_ack = now.plus(HEARTBEAT_MS);
        for (_, replica) in self.homes.iter_mut() {
            let applied = replica.up.position;
            replica.up.acknowledge(applied, outbox);
        }
        let homes: Vec<HomeId> = self.homes.iter().map(|(home, _)| home).collect();
        for home in homes {
            self.caller().sign_if_due(home, outbox);
        }
        self.submitter().ask_unasked(outbox);
    }

    // --- Views of the parts ---

    fn requests(&mut self, home: HomeId) -> Requests<'_> {
        Requests {
            replica: self.homes.at(home),
        }
    }

    fn caller(&mut self) -> Caller<'_> {
        self.submitter().caller
    }

    fn reading(&mut self) -> Reading<'_> {
        Reading {
            reads: &mut self.hard_reads,
            caller: Caller {
                calls: &mut self.calls,
                homes: &mut self.homes,
                uplink: &mut self.uplink,
                signing: &mut self.signing,
            },
        }
    }

    fn updating(&mut self) -> Updating<'_> {
        Updating {
            updates: &mut self.updates,
            caller: Caller {
                calls: &mut self.calls,
                homes: &mut self.homes,
                uplink: &mut self.uplink,
                signing: &mut self.signing,
            },
            commits: &mut self.commits,
            pending_writes: &mut self.pending_writes,
            parents: &self.parents,
        }
    }

    fn submitter(&mut self) -> Submitter<'_> {
        Submitter {
            commits: &mut self.commits,
            caller: Caller {
                calls: &mut self.calls,
                homes: &mut self.homes,
                uplink: &mut self.uplink,
                signing: &mut self.signing,
            },
            pending_writes: &mut self.pending_writes,
        }
    }
}
