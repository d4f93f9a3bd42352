//! The member: a program's end of the protocol. It keeps the pages, asks for
//! what is missing, sends commits, and publishes to the page cache what the
//! stream tells; what reads the cache is not its business.

mod commits;
mod in_flight;
mod interface;
mod overlay;
mod recent_changes;
mod replica;
mod requests;
mod resync;
mod sending;
mod speculation;
#[cfg(test)]
mod tests;

pub use interface::{MemberAction, MemberCommand, Request, Response, Source};

use crate::member::in_flight::InFlight;
use crate::member::replica::Replica;
use thorp_model::message;

use crate::edge::liveness::{AliveLimits, Neighbours};
use crate::edge::pending_writes::PendingWrites;
use crate::edge::send_window::SendWindow;
use crate::edge::upstream::Fetched;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::{
    HEARTBEAT_MS, KEPT_CHANGES_MAX, PENDING_WRITES_COMMIT_BYTES_MAX, REPORT_PAGES_MAX,
    SEND_WINDOW_BYTES_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallRequest, CommitId, Direction, Down, EdgeId, Epoch, Event, HomeId, Image,
    MemberId, Message, Millis, NodeKind, Note, Now, Outcome, PageId, PeerImage, Place, Position,
    RequestId, StateMachine, Step, planted,
};

/// What a member is told when it starts.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// This process start: 128 random bits.
    pub id: MemberId,
    /// Its name, for people.
    pub name: String,
    /// Bytes of its own commits kept until they are delivered.
    pub kept_bytes_max: usize,
    /// Messages kept for a page that is on its way (rule 9).
    pub kept_changes_max: usize,
    /// Whether a home may answer beside its stream (rule 9): where its images travel by sockets of their own.
    pub images_beside: bool,
    /// Bytes of commits that it has on their way up one edge, and of values
    /// that are being staged.
    pub upward_bytes_max: usize,
    /// Pages in one piece of a report to a new parent (rule 13).
    pub report_pages_max: usize,
    /// When a parent is silent; none waits for ever.
    pub alive: Option<AliveLimits>,
}

impl MemberConfig {
    /// The usual limits.
    pub fn new(id: MemberId, name: String) -> Self {
        MemberConfig {
            id,
            name,
            kept_bytes_max: PENDING_WRITES_COMMIT_BYTES_MAX,
            kept_changes_max: KEPT_CHANGES_MAX,
            images_beside: false,
            upward_bytes_max: SEND_WINDOW_BYTES_MAX,
            report_pages_max: REPORT_PAGES_MAX,
            alive: Some(AliveLimits::default()),
        }
    }
}

/// What a member fills.
type Outbox = thorp_model::Outbox<MemberAction>;

/// The state machine of a member.
#[derive(Debug)]
pub struct Member {
    config: MemberConfig,
    homes: BTreeMap<HomeId, Replica>,
    commits: BTreeMap<CommitId, InFlight>,
    calls: BTreeMap<CallId, Called>,
    /// Staged values that a busy home did not give up: each is asked for again with the next tick.
    /// At most [`STAGED_PER_MEMBER_MAX`](thorp_model::limits::STAGED_PER_MEMBER_MAX) of a home.
    unstaging: Vec<Called>,
    parents: BTreeMap<EdgeId, NodeKind>,
    neighbours: Neighbours,
    pending_writes: PendingWrites,
    window: SendWindow,
    sequence: u64,
    call_number: u64,
    next_ack: Millis,
    /// Something that was sent is answered: what waits for space may go.
    window_freed: bool,
}

#[derive(Debug)]
struct Called {
    purpose: Purpose,
    home: HomeId,
    request: CallRequest,
    /// Bytes of a value that it stages.
    bytes: usize,
    sent: bool,
}

impl Called {
    fn new(purpose: Purpose, home: HomeId, request: CallRequest) -> Self {
        Called {
            purpose,
            home,
            bytes: request.staged_bytes(),
            request,
            sent: false,
        }
    }

    /// The program learns that the home did not do it.
    fn fail(self, failure: CallError, outbox: &mut Outbox) {
        if let Purpose::Program(request_id) = self.purpose {
            let failed = Response::Called(Err(failure));
            outbox.act(MemberAction::Respond(request_id, failed));
        }
    }

    /// Whether it gives up a staged value.
    fn is_unstaging(&self) -> bool {
        matches!(self.request, CallRequest::Unstage { .. })
    }
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Program(RequestId),
    /// The program wants the answer no more.
    Forgotten,
    Registering,
    Outcome(CommitId),
}

impl StateMachine for Member {
    type Command = MemberCommand;
    type Action = MemberAction;

    fn handle(&mut self, now: Now, event: Event<MemberCommand>, outbox: &mut Outbox) {
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
            Event::Received { edge, .. } => outbox.close(edge, "a parent sent up"),
            Event::Command(MemberCommand::Request { id, request }) => {
                self.requested(now, id, request, outbox);
            }
            Event::Command(MemberCommand::Evict(places)) => self.evict(&places, outbox),
            Event::Tick => {
                self.tick(now, outbox);
                self.unstage_again(outbox);
            }
            // The stream begins with the parent's first message.
            Event::Connected { edge, peer, .. } => {
                self.parents.insert(edge, peer.kind);
                self.neighbours.came(edge);
            }
        }
        self.use_window(outbox);
        self.uncover(outbox);
        for edge in self.neighbours.tick(now, outbox) {
            self.give_up(edge, outbox);
        }
    }

    fn deadline(&self) -> Option<Millis> {
        let fetches = self.homes.values().filter_map(|at| at.up.deadline());
        let alive = self.neighbours.deadline();
        fetches.chain(alive).chain([self.next_ack]).min()
    }
}

impl Member {
    /// A member that knows no home yet.
    pub fn new(config: MemberConfig) -> Self {
        Member {
            pending_writes: PendingWrites::new(config.kept_bytes_max),
            neighbours: Neighbours::new(config.alive),
            window: SendWindow::new(config.upward_bytes_max),
            config,
            homes: BTreeMap::new(),
            commits: BTreeMap::new(),
            calls: BTreeMap::new(),
            unstaging: Vec::new(),
            parents: BTreeMap::new(),
            sequence: 0,
            call_number: 0,
            next_ack: Millis(0),
            window_freed: false,
        }
    }

    /// How far a home's stream was applied.
    pub fn position(&self, home: HomeId) -> Option<Position> {
        self.homes.get(&home).map(|at| at.up.position)
    }

    /// The homes known, their names, and the edges that their live streams come
    /// down on.
    pub fn streams(&self) -> impl Iterator<Item = (HomeId, &str, Option<EdgeId>)> {
        let homes = self.homes.iter();
        homes.map(|(home, at)| (*home, at.up.name.as_str(), at.up.edge))
    }

    /// Whether pages of a home are not resynchronised yet (rule 13).
    pub fn is_held(&self, home: HomeId) -> bool {
        self.homes.get(&home).is_some_and(|at| at.up.is_held())
    }

    /// Whether a page is on its way.
    pub fn is_fetching(&self, place: Place) -> bool {
        let at = self.homes.get(&place.home);
        at.is_some_and(|at| at.up.is_fetching(place.page))
    }

    /// The pages held of a home.
    pub fn images(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let pages = self.homes.get(&home).map(|at| &at.pages);
        let pages = pages.into_iter().flatten();
        pages
            .map(|(page, held)| (*page, held.image.clone()))
            .collect()
    }

    /// The pages held of a home as the program sees them: own values lie over them (rule 3).
    pub fn shown(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let state = self.homes.get(&home);
        let pages = state
            .into_iter()
            .flat_map(|at| at.pages.keys().map(move |page| (at, *page)));
        pages
            .filter_map(|(at, page)| Some((page, at.shown(page)?)))
            .collect()
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let homes = self.homes.values();
        let homes_own = homes.clone().map(|at| at.overlay.len()).sum();
        let homes_recent = homes.clone().map(|at| at.recent_changes.len()).sum();
        alloc::vec![
            ("pages", homes.clone().map(|at| at.pages.len()).sum()),
            ("fetches", homes.clone().map(|at| at.up.fetches()).sum()),
            ("overtaken", homes.clone().map(|at| at.up.overtaken()).sum()),
            ("watches", homes.clone().map(|at| at.watches.len()).sum()),
            ("waiting", homes.map(Replica::waiting).sum()),
            ("reported", self.reported()),
            ("own", homes_own),
            ("recent", homes_recent),
            ("commits", self.commits.len()),
            ("calls", self.calls.len()),
            ("unstaging", self.unstaging.len()),
            ("upward_bytes", self.window.bytes()),
            ("kept", self.pending_writes.len()),
        ]
    }

    /// Pages that were reported and not answered.
    fn reported(&self) -> usize {
        let pieces = self
            .homes
            .values()
            .flat_map(|at| at.resync.reports.pieces());
        pieces.map(|piece| piece.pages.len()).sum()
    }

    fn at(&mut self, home: HomeId) -> &mut Replica {
        let at = self.homes.entry(home).or_insert_with(|| Replica::new(home));
        at.up.kept_changes_max = self.config.kept_changes_max;
        at.up.images_beside = self.config.images_beside;
        at.resync.reports.limit(self.config.report_pages_max);
        at
    }

    /// A parent says nothing: its edge ends here and now, whatever still comes of it.
    fn give_up(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        outbox.note(Note::ParentSilent);
        self.disconnected(edge, outbox);
        outbox.close(edge, "it says nothing");
    }

    fn disconnected(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        self.parents.remove(&edge);
        self.neighbours.went(edge);
        let homes = self.homes.iter_mut();
        let lost = homes.filter_map(|(home, at)| at.up.lost(edge).then_some(*home));
        for home in lost.collect::<Vec<HomeId>>() {
            self.end(home, outbox);
        }
    }

    /// The home is out of reach: what is cached stays readable as of where the
    /// stream ended, for as long as sessions allow (foundation 9).
    fn end(&mut self, home: HomeId, outbox: &mut Outbox) {
        outbox.note(Note::StreamEnded);
        outbox.act(MemberAction::StreamEnded(home));
        let state = self.at(home);
        state.up.end(outbox);
        state.resync.clear();
        // What was on this edge weighs on no other.
        self.window_freed = true;
        self.calls.retain(|call, called| {
            let stays = called.home != home || !matches!(called.purpose, Purpose::Forgotten);
            if !stays {
                self.window.call_answered(*call);
            }
            stays
        });
    }

    // --- Down ---

    fn received(&mut self, now: Millis, edge: EdgeId, message: Down, outbox: &mut Outbox) {
        if !self.parents.contains_key(&edge) {
            return outbox.note(Note::OtherEpochDropped);
        }
        // A member belongs to one parent at a time, for each home (rule 1).
        let home = message.home();
        let is_heard = match self.homes.get_mut(&home) {
            Some(at) => at.up.hears(edge, &message, outbox),
            None => matches!(message, Down::Begin(_)),
        };
        if !is_heard {
            return;
        }
        match message {
            Down::Begin(begin) => self.begin(now, edge, begin, outbox),
            Down::End(_) => self.end(home, outbox),
            Down::Step(step) => self.step(now, step, outbox),
            Down::Image(response) => self.image(now, response, outbox),
            Down::Peer(peer) => self.peer_image(now, peer, outbox),
            Down::Redirect(redirect) => self.help(edge, redirect, outbox),
            Down::Voted(voted) => self.voted(&voted, outbox),
            Down::Refused(refused) => self.refused(refused, outbox),
            Down::Committed(committed) => self.committed(now, committed, outbox),
            Down::Heartbeat(heartbeat) => self.heartbeat(now, &heartbeat, outbox),
            Down::CallResult(result) => self.answered(now, result, outbox),
            Down::Unwatched(unwatched) => self.unwatched(&unwatched, outbox),
            Down::Hint(hint) => self.hinted(&hint, outbox),
            Down::Joined(joined) => self.joined(&joined, outbox),
            Down::Resynchronised(answer) => self.resynchronised(now, &answer, outbox),
        }
    }

    /// A stream begins: what is cached is reported (rule 13), and what was lost
    /// with the old edge is asked again (rules 1 and 11).
    fn begin(&mut self, now: Millis, edge: EdgeId, begin: message::Begin, outbox: &mut Outbox) {
        outbox.note(Note::StreamBegan);
        let (home, epoch) = (begin.home, begin.epoch);
        let name = begin.name.clone();
        outbox.act(MemberAction::StreamBegan { home, name, edge });
        let helpers = self.parents.get(&edge) == Some(&NodeKind::Redirector);
        let state = self.at(home);
        let is_first = state.up.epoch == Epoch(0);
        state.own_ended(outbox);
        state.up.helpers = helpers;
        let held = state.report_all();
        state.up.begin(edge, begin, held, now, outbox);
        state.recent_changes.begin_anew(state.up.position);
        state.send_reports(edge, epoch, outbox);
        if !held {
            let mut publish = state.publish();
            publish.missed = (!is_first).then(Vec::new);
            outbox.act(MemberAction::Publish(publish));
        }
        for segment in state.watches.keys() {
            state.tell_watch(*segment, true, outbox);
        }
        self.resend(home, outbox);
    }

    /// An image came in the stream: the stream is complete up to there.
    fn image(&mut self, now: Millis, response: message::FetchResponse, outbox: &mut Outbox) {
        let home = response.home;
        let up = &mut self.at(home).up;
        if planted::is(Bug::MemoryIsNews) {
            up.heard = now;
        }
        if let Some(fetched) = up.take_in_stream(response, outbox) {
            self.install(home, fetched, outbox);
        }
        self.caught_up(now, home, outbox);
        self.at(home).settle_strays(outbox);
    }

    /// An image came beside the stream (rule 9).
    fn peer_image(&mut self, now: Millis, peer: PeerImage, outbox: &mut Outbox) {
        let home = peer.home;
        if let Some(fetched) = self.at(home).up.take_peer(peer, now, outbox) {
            self.install(home, fetched, outbox);
        }
        self.at(home).settle_strays(outbox);
    }

    fn step(&mut self, now: Millis, step: Step, outbox: &mut Outbox) {
        let home = step.home;
        let mut changes = step.changes;
        if let Some(commit) = step.commit {
            self.pending_writes.fill(home, commit, &mut changes);
        }
        let state = self.at(home);
        state.up.advance_promised(step.position, step.watermark);
        state
            .up
            .keep(step.position, step.stamp, &changes, now, outbox);
        let at = (step.position, step.stamp);
        state.take_step(step.commit, &changes, at, outbox);
        if let Some(commit) = step.commit {
            let outcome = Outcome::Committed {
                position: step.position,
                stamp: step.stamp,
            };
            self.ended(home, commit, outcome, outbox);
        }
        self.caught_up(now, home, outbox);
    }

    fn heartbeat(&mut self, now: Millis, heartbeat: &message::Heartbeat, outbox: &mut Outbox) {
        let home = heartbeat.home;
        let state = self.at(home);
        state.up.beaten(heartbeat, now);
        let publish = state.publish();
        outbox.act(MemberAction::Publish(publish));
        self.caught_up(now, home, outbox);
    }

    fn caught_up(&mut self, now: Millis, home: HomeId, outbox: &mut Outbox) {
        for fetched in self.at(home).up.caught_up(now, outbox) {
            self.install(home, fetched, outbox);
        }
    }

    fn install(&mut self, home: HomeId, fetched: Fetched<RequestId>, outbox: &mut Outbox) {
        let state = self.at(home);
        let answer = match fetched.result {
            Ok(image) => {
                let page = fetched.page;
                state.install(page, image, fetched.entry, outbox);
                let source = state.source(fetched.beside);
                outbox.act(MemberAction::Arrived(Place { home, page }, source));
                Response::Fetched(Some(source))
            }
            Err(refusal) => Response::NotFetched(refusal),
        };
        if state.is_covered(fetched.page) {
            let waiting = state.covered.entry(fetched.page).or_default();
            return waiting.extend(fetched.waiting);
        }
        for request_id in fetched.waiting {
            outbox.act(MemberAction::Respond(request_id, answer.clone()));
        }
    }

    /// Answers who waited for own values to be told.
    fn uncover(&mut self, outbox: &mut Outbox) {
        let states = self.homes.values_mut();
        for state in states.filter(|state| !state.covered.is_empty()) {
            for request_id in state.uncovered() {
                let there = Response::Fetched(None);
                outbox.act(MemberAction::Respond(request_id, there));
            }
        }
    }

    /// Answers a redirected request after everything before it, with the
    /// newest committed image (rule 9).
    fn help(&mut self, edge: EdgeId, redirect: message::Redirect, outbox: &mut Outbox) {
        let state = self.at(redirect.home);
        // What is not resynchronised is as of the old stream, and tells nothing of this one.
        let pages = Some(&state.pages).filter(|_| !state.up.is_held());
        let held = pages.and_then(|pages| pages.get(&redirect.page));
        let image = if planted::is(Bug::TentativeSent) {
            state.shown(redirect.page)
        } else {
            held.map(|held| held.image.clone())
        };
        let image = image.filter(Image::is_complete);
        state.up.help(edge, redirect, image, outbox);
    }

    // --- Eviction and time ---

    /// Gives up pages: running transactions that read them are told first, by
    /// what is published (rule 2); then the parent.
    fn evict(&mut self, places: &[Place], outbox: &mut Outbox) {
        let homes: BTreeSet<HomeId> = places.iter().map(|place| place.home).collect();
        for home in homes {
            let pages = places.iter().filter(|place| place.home == home);
            let pages: Vec<PageId> = pages.map(|place| place.page).collect();
            self.at(home).evict(&pages, outbox);
        }
        outbox.act(MemberAction::Evicted);
    }

    fn tick(&mut self, now: Millis, outbox: &mut Outbox) {
        for state in self.homes.values_mut() {
            state.up.tick(now, outbox);
        }
        if now < self.next_ack {
            return;
        }
        self.next_ack = now.plus(HEARTBEAT_MS);
        for state in self.homes.values_mut() {
            state.acknowledge(outbox);
        }
        self.ask_unasked(outbox);
    }

    /// Asks again for outcomes that a home could not tell.
    fn ask_unasked(&mut self, outbox: &mut Outbox) {
        let asking: BTreeSet<(HomeId, CommitId)> = self
            .calls
            .values()
            .filter_map(|called| match called.purpose {
                Purpose::Outcome(commit) => Some((called.home, commit)),
                _ => None,
            })
            .collect();
        let unasked: Vec<(HomeId, CommitId)> = self
            .commits
            .iter()
            .flat_map(|(id, commit)| commit.parts().iter().map(|at| (*id, at)))
            .filter(|(id, at)| at.is_lost() && !asking.contains(&(at.home(), *id)))
            .map(|(id, at)| (at.home(), id))
            .collect();
        for (home, commit) in unasked {
            if self.at(home).up.edge.is_some() {
                self.ask_outcome(home, commit, outbox);
            }
        }
    }
}
