//! The member: a program's end of the protocol. It keeps the pages, asks for
//! what is missing, sends commits, and publishes to the page cache what the
//! stream tells; what reads the cache is not its business.

use crate::change::{self, PageChange, PageSlots};
use crate::door::{Answer, Ask, Core, Direction, Input, Out, Publish};
use crate::ids::{
    CommitId, EdgeId, EntryNo, Epoch, HomeId, MemberId, Millis, NodeKind, Now, PageId, Place,
    Position, Registration, SegmentId, Stamp, Ticket,
};
use crate::image::Image;
use crate::kept::Kept;
use crate::limits::{
    BUSY_RETRY_MS, CALLS_PER_CHILD_MAX, COMMITS_IN_FLIGHT_MAX, FETCHES_MAX, HEARTBEAT_MS,
    KEPT_COMMIT_BYTES_MAX,
};
use crate::message::{
    CallError, CallId, CommitRequest, Down, Message, Outcome, Part, PeerImage, Refusal, Request,
    Response, Step, Up,
};
use crate::note::Note;
use crate::planted::{self, Bug};
use crate::upstream::{Fetched, Upstream};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

/// What a member is told when it starts.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// This process start: 128 random bits.
    pub id: MemberId,
    /// Its name, for people.
    pub name: String,
    /// Bytes of its own commits kept until they are delivered.
    pub kept_bytes_max: usize,
}

impl MemberConfig {
    /// The usual limits.
    pub fn new(id: MemberId, name: String) -> Self {
        MemberConfig {
            id,
            name,
            kept_bytes_max: KEPT_COMMIT_BYTES_MAX,
        }
    }
}

/// The state machine of a member.
#[derive(Debug)]
pub struct Member {
    config: MemberConfig,
    homes: BTreeMap<HomeId, AtHome>,
    commits: BTreeMap<CommitId, InFlight>,
    calls: BTreeMap<CallId, Called>,
    parents: BTreeMap<EdgeId, NodeKind>,
    kept: Kept,
    sequence: u64,
    call_number: u64,
    next_ack: Millis,
}

/// What a member knows of one home.
#[derive(Debug)]
struct AtHome {
    up: Upstream<Ticket>,
    pages: BTreeMap<PageId, Held>,
    registration: Option<Registration>,
    registering: bool,
    watches: BTreeSet<SegmentId>,
    #[cfg(feature = "planted-bugs")]
    received: BTreeMap<PageId, u32>,
}

#[derive(Debug)]
struct Held {
    image: Image,
    entry: EntryNo,
}

/// A commit whose answer is not there.
#[derive(Debug)]
struct InFlight {
    ticket: Ticket,
    parts: Vec<Part>,
    builds_on: Vec<CommitId>,
    /// Under which registration it was sent.
    registration: Option<Registration>,
    sent: bool,
    /// The answer was lost with an edge: its outcome has to be asked for (rule 11).
    lost: bool,
}

#[derive(Debug)]
struct Called {
    purpose: Purpose,
    home: HomeId,
    request: Request,
    sent: bool,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Program(Ticket),
    Registering,
    Outcome(CommitId),
}

impl Core for Member {
    fn handle(&mut self, now: Now, input: Input, out: &mut Out) {
        let now = now.mono;
        match input {
            Input::Connected {
                edge,
                direction: Direction::Down,
                ..
            } => out.close(edge, "a member has no children"),
            Input::Disconnected { edge } => self.disconnected(edge, out),
            Input::Received {
                edge,
                message: Message::Down(message),
            } => self.received(now, edge, message, out),
            Input::Received { edge, .. } => out.close(edge, "a parent sent up"),
            Input::Asked { ticket, ask } => self.asked(now, ticket, ask, out),
            Input::Evict(places) => self.evict(&places, out),
            Input::Tick => self.tick(now, out),
            // The stream begins with the parent's first message.
            Input::Connected { edge, peer, .. } => {
                self.parents.insert(edge, peer.kind);
            }
            Input::Durable(_) | Input::Loaded { .. } | Input::Room(_) => {}
        }
    }

    fn deadline(&self) -> Option<Millis> {
        let fetches = self.homes.values().filter_map(|at| at.up.deadline());
        fetches.chain([self.next_ack]).min()
    }
}

impl Member {
    /// A member that knows no home yet.
    pub fn new(config: MemberConfig) -> Self {
        Member {
            kept: Kept::new(config.kept_bytes_max),
            config,
            homes: BTreeMap::new(),
            commits: BTreeMap::new(),
            calls: BTreeMap::new(),
            parents: BTreeMap::new(),
            sequence: 0,
            call_number: 0,
            next_ack: Millis(0),
        }
    }

    /// How far a home's stream was applied.
    pub fn position(&self, home: HomeId) -> Option<Position> {
        self.homes.get(&home).map(|at| at.up.position)
    }

    /// The pages held of a home.
    pub fn images(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let pages = self.homes.get(&home).map(|at| &at.pages);
        let pages = pages.into_iter().flatten();
        pages
            .map(|(page, held)| (*page, held.image.clone()))
            .collect()
    }

    /// The id of a commit that was asked for under this ticket and is not answered.
    pub fn commit_of(&self, ticket: Ticket) -> Option<CommitId> {
        let mut commits = self.commits.iter();
        let found = commits.find(|(_, commit)| commit.ticket == ticket);
        found.map(|(id, _)| *id)
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let homes = self.homes.values();
        alloc::vec![
            ("pages", homes.clone().map(|at| at.pages.len()).sum()),
            ("fetches", homes.map(|at| at.up.fetches()).sum()),
            ("commits", self.commits.len()),
            ("calls", self.calls.len()),
            ("kept", self.kept.len()),
        ]
    }

    fn at(&mut self, home: HomeId) -> &mut AtHome {
        self.homes.entry(home).or_insert_with(|| AtHome::new(home))
    }

    fn disconnected(&mut self, edge: EdgeId, out: &mut Out) {
        self.parents.remove(&edge);
        let homes: Vec<HomeId> = self
            .homes
            .iter()
            .filter(|(_, at)| at.up.edge == Some(edge))
            .map(|(home, _)| *home)
            .collect();
        for home in homes {
            self.end(home, out);
        }
    }

    /// The home is out of reach: what is cached stays readable as of where the
    /// stream ended, for as long as sessions allow (decision 9).
    fn end(&mut self, home: HomeId, out: &mut Out) {
        out.note(Note::StreamEnded);
        self.at(home).up.end();
    }

    // --- Down ---

    fn received(&mut self, now: Millis, edge: EdgeId, message: Down, out: &mut Out) {
        match message {
            Down::Begin {
                home,
                name,
                epoch,
                position,
                watermark,
            } => {
                self.at(home).up.name = name;
                self.begin(now, home, edge, epoch, (position, watermark), out);
            }
            Down::End { home } => self.end(home, out),
            Down::Step(step) => self.step(now, step, out),
            Down::Image {
                home,
                page,
                attempt,
                entry,
                position,
                answer,
            } => {
                let up = &mut self.at(home).up;
                up.advance(position, now);
                if let Some(fetched) = up.take_in_stream(page, attempt, entry, answer, out) {
                    self.install(home, fetched, out);
                }
                self.caught_up(now, home, out);
                self.at(home).settle_strays(out);
            }
            Down::Peer(peer) => {
                let home = peer.home;
                if let Some(fetched) = self.at(home).up.take_peer(peer, now, out) {
                    self.install(home, fetched, out);
                }
                self.at(home).settle_strays(out);
            }
            Down::Redirect {
                home,
                page,
                requester,
                epoch,
                attempt,
                entry,
            } => {
                let answer = PeerImage {
                    home,
                    page,
                    requester,
                    epoch,
                    attempt,
                    entry,
                    position: self.at(home).up.position,
                    image: None,
                };
                self.help(edge, answer, out);
            }
            Down::Refused {
                commit, refusal, ..
            } => self.ended(commit, Outcome::Refused(refusal), out),
            Down::Told {
                home,
                commit,
                position,
                stamp,
            } => {
                self.told(now, home, commit, position, out);
                self.ended(commit, Outcome::Committed { position, stamp }, out);
            }
            Down::Heartbeat {
                home,
                position,
                watermark,
            } => self.heartbeat(now, home, position, watermark, out),
            Down::Answer { home, call, result } => self.answered(now, home, call, result, out),
        }
    }

    /// A stream begins: the cache of the home is dropped, what runs is doomed,
    /// and what was lost with the old edge is asked again (rules 1 and 11).
    fn begin(
        &mut self,
        now: Millis,
        home: HomeId,
        edge: EdgeId,
        epoch: Epoch,
        at: (Position, Stamp),
        out: &mut Out,
    ) {
        out.note(Note::StreamBegan);
        let helpers = self.parents.get(&edge) == Some(&NodeKind::Redirector);
        let state = self.at(home);
        state.pages.clear();
        state.up.helpers = helpers;
        state.up.begin(edge, epoch, at, now, out);
        let mut publish = state.publish();
        publish.reset = true;
        out.publish(publish);
        for segment in state.watches.clone() {
            let on = true;
            out.up(
                edge,
                Up::Watch {
                    home,
                    epoch,
                    segment,
                    on,
                },
            );
        }
        self.resend(home, out);
    }

    fn step(&mut self, now: Millis, step: Step, out: &mut Out) {
        let home = step.home;
        let mut changes = step.changes;
        if let Some(commit) = step.commit {
            self.kept.fill(commit, &mut changes);
        }
        let state = self.at(home);
        state.up.advance(step.position, now);
        state.up.keep(step.position, step.stamp, &changes, now, out);
        let mut publish = state.publish();
        for change in &changes {
            publish.touched.push((change.page, change.slot_set()));
            state.apply(change, step.position, step.stamp, &mut publish, out);
        }
        out.publish(publish);
        if let Some(commit) = step.commit {
            let outcome = Outcome::Committed {
                position: step.position,
                stamp: step.stamp,
            };
            self.ended(commit, outcome, out);
        }
        self.caught_up(now, home, out);
    }

    fn heartbeat(
        &mut self,
        now: Millis,
        home: HomeId,
        position: Position,
        watermark: Stamp,
        out: &mut Out,
    ) {
        let state = self.at(home);
        state.up.advance(position, now);
        state.up.watermark = state.up.watermark.max(watermark);
        let publish = state.publish();
        out.publish(publish);
        self.caught_up(now, home, out);
    }

    fn caught_up(&mut self, now: Millis, home: HomeId, out: &mut Out) {
        for fetched in self.at(home).up.caught_up(now, out) {
            self.install(home, fetched, out);
        }
    }

    fn install(&mut self, home: HomeId, fetched: Fetched<Ticket>, out: &mut Out) {
        let state = self.at(home);
        let answer = match fetched.result {
            Ok(image) => {
                state.install(fetched.page, image, fetched.entry, out);
                Answer::Fetched
            }
            Err(refusal) => Answer::NotFetched(refusal),
        };
        for ticket in fetched.waiting {
            out.answer(ticket, answer.clone());
        }
    }

    /// Answers a redirected request after everything before it, with the
    /// newest committed image (rule 9).
    fn help(&mut self, edge: EdgeId, mut answer: PeerImage, out: &mut Out) {
        let pages = &self.at(answer.home).pages;
        let held = pages.get(&answer.page).map(|held| &held.image);
        answer.image = held.filter(|image| image.is_complete()).cloned();
        out.note(if answer.image.is_some() {
            Note::HelperAnswered
        } else {
            Note::HelperRefused
        });
        out.up(edge, Up::Peer(answer));
    }

    // --- The program ---

    fn asked(&mut self, now: Millis, ticket: Ticket, ask: Ask, out: &mut Out) {
        match ask {
            Ask::Fetch(place) => self.fetch(now, ticket, place, out),
            Ask::Commit { parts, builds_on } => self.commit(ticket, parts, builds_on, out),
            Ask::Call { home, request } => {
                if self.calls.len() >= CALLS_PER_CHILD_MAX {
                    return out.answer(ticket, Answer::Busy);
                }
                self.call(home, request, Purpose::Program(ticket), out);
            }
            Ask::Watch { home, segment, on } => self.watch(home, segment, on, out),
            Ask::Forget(ticket) => self.forget(ticket),
        }
    }

    fn fetch(&mut self, now: Millis, ticket: Ticket, place: Place, out: &mut Out) {
        let state = self.at(place.home);
        let held = state.pages.get(&place.page);
        if held.is_some_and(|held| held.image.is_complete()) {
            return out.answer(ticket, Answer::Fetched);
        }
        if state.up.fetches() >= FETCHES_MAX && !state.up.is_fetching(place.page) {
            return out.answer(ticket, Answer::Busy);
        }
        state.up.ask(place.page, ticket, now, out);
    }

    fn commit(
        &mut self,
        ticket: Ticket,
        parts: Vec<Part>,
        builds_on: Vec<CommitId>,
        out: &mut Out,
    ) {
        self.sequence += 1;
        let id = CommitId {
            member: self.config.id,
            sequence: self.sequence,
        };
        let home = parts.first().map_or(HomeId(0), |part| part.home);
        if self.commits.len() >= COMMITS_IN_FLIGHT_MAX || self.would_outrun(home) {
            out.note(Note::RefusedBusy);
            let refusal = Refusal::Busy {
                retry_after_ms: BUSY_RETRY_MS,
            };
            return out.answer(ticket, Answer::Outcome(id, Outcome::Refused(refusal)));
        }
        let in_flight = InFlight {
            ticket,
            parts,
            builds_on,
            registration: None,
            sent: false,
            lost: false,
        };
        self.commits.insert(id, in_flight);
        self.register(home, out);
        self.send_commit(id, out);
    }

    /// Whether the commit just counted lies so far above one that waits for its
    /// answer that the home might forget that one's outcome (rule 11).
    fn would_outrun(&self, home: HomeId) -> bool {
        let waiting = self.commits_at(home, |_| true);
        let oldest = waiting.first().map_or(self.sequence, |id| id.sequence);
        self.sequence - oldest >= COMMITS_IN_FLIGHT_MAX as u64
    }

    /// Sends a commit once the home has registered this member.
    fn send_commit(&mut self, id: CommitId, out: &mut Out) {
        let Some(commit) = self.commits.get_mut(&id) else {
            return;
        };
        let home = commit.parts.first().map(|part| part.home);
        let state = home.and_then(|home| self.homes.get(&home));
        let Some((edge, registration)) = state.and_then(|s| s.up.edge.zip(s.registration)) else {
            return;
        };
        commit.sent = true;
        commit.registration = Some(registration);
        for part in &commit.parts {
            self.kept.put(id, &part.writes, out);
        }
        out.up(
            edge,
            Up::Commit(CommitRequest {
                id,
                registration,
                parts: commit.parts.clone(),
                builds_on: commit.builds_on.clone(),
            }),
        );
    }

    /// A commit has ended: the program is told. What it asked to be forgotten, is.
    fn ended(&mut self, id: CommitId, outcome: Outcome, out: &mut Out) {
        self.kept.drop_commit(id);
        if let Some(commit) = self.commits.remove(&id) {
            let home = commit.parts.first().map(|part| part.home);
            if let (Outcome::Refused(Refusal::Unknown), Some(home)) = (&outcome, home) {
                // The home may have forgotten this member: it registers again.
                self.at(home).registration = None;
            }
            out.answer(commit.ticket, Answer::Outcome(id, outcome));
        }
    }

    /// A remembered outcome is no delivery: its values fill nothing (rule 3),
    /// but the stream has come as far.
    fn told(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        position: Position,
        out: &mut Out,
    ) {
        let state = self.homes.entry(home).or_insert_with(|| AtHome::new(home));
        let mut publish = None;
        if planted::is(Bug::AppliedTwice) {
            let parts = self.commits.get(&commit).map(|c| c.parts.clone());
            publish = parts.map(|parts| state.apply_again(&parts, position, out));
        }
        state.up.advance(position, now);
        out.publish(publish.unwrap_or_else(|| state.publish()));
        self.caught_up(now, home, out);
    }

    fn call(&mut self, home: HomeId, request: Request, purpose: Purpose, out: &mut Out) {
        self.call_number += 1;
        let call = CallId {
            member: self.config.id,
            number: self.call_number,
        };
        let called = Called {
            purpose,
            home,
            request,
            sent: false,
        };
        self.calls.insert(call, called);
        self.send_call(call, out);
    }

    /// Sends a call, once the home has registered this member if the call says so.
    fn send_call(&mut self, call: CallId, out: &mut Out) {
        let Some(called) = self.calls.get_mut(&call) else {
            return;
        };
        let home = called.home;
        let Some(state) = self.homes.get(&home) else {
            return;
        };
        let Some(edge) = state.up.edge else {
            return;
        };
        let mut request = called.request.clone();
        if let Some(registration) = request.registration_mut() {
            let Some(own) = state.registration else {
                return self.register(home, out);
            };
            *registration = own;
        }
        called.sent = true;
        out.up(
            edge,
            Up::Call {
                call,
                home,
                request,
            },
        );
    }

    fn answered(
        &mut self,
        now: Millis,
        home: HomeId,
        call: CallId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        let Some(called) = self.calls.remove(&call) else {
            return;
        };
        if result == Err(CallError::NotRegistered) {
            self.at(home).registration = None;
        }
        match called.purpose {
            Purpose::Program(ticket) => out.answer(ticket, Answer::Called(result)),
            Purpose::Registering => self.registered(home, result, out),
            Purpose::Outcome(commit) => self.outcome(now, home, commit, result, out),
        }
    }

    /// The home remembers this member's commits from its first one on (rule 11).
    fn register(&mut self, home: HomeId, out: &mut Out) {
        let state = self.at(home);
        if state.registration.is_none() && !state.registering && state.up.edge.is_some() {
            state.registering = true;
            self.call(home, Request::Register, Purpose::Registering, out);
        }
    }

    fn registered(&mut self, home: HomeId, result: Result<Response, CallError>, out: &mut Out) {
        let state = self.at(home);
        state.registering = false;
        // A home that cannot register now is asked again with the next commit.
        if let Ok(Response::Registered(registration)) = result {
            state.registration = Some(registration);
        }
        let registered = self.at(home).registration.is_some();
        for id in self.commits_at(home, |commit| !commit.sent) {
            if registered {
                self.send_commit(id, out);
            } else {
                self.ended(id, Outcome::Refused(Refusal::Full), out);
            }
        }
        if registered {
            self.send_waiting_calls(home, out);
        }
    }

    fn commits_at(&self, home: HomeId, wanted: impl Fn(&InFlight) -> bool) -> Vec<CommitId> {
        let at_home = |c: &InFlight| c.parts.first().is_some_and(|part| part.home == home);
        let commits = self.commits.iter();
        commits
            .filter(|(_, commit)| at_home(commit) && wanted(commit))
            .map(|(id, _)| *id)
            .collect()
    }

    fn send_waiting_calls(&mut self, home: HomeId, out: &mut Out) {
        let waiting: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, called)| called.home == home && !called.sent)
            .map(|(call, _)| *call)
            .collect();
        for call in waiting {
            self.send_call(call, out);
        }
    }

    /// After a new beginning: calls are made again, outcomes of commits that
    /// were sent are asked for, and never guessed (rule 11).
    fn resend(&mut self, home: HomeId, out: &mut Out) {
        self.at(home).registering = false;
        self.calls.retain(|_, called| {
            called.home != home || matches!(called.purpose, Purpose::Program(_))
        });
        for called in self.calls.values_mut().filter(|c| c.home == home) {
            called.sent = false;
        }
        self.register(home, out);
        self.send_waiting_calls(home, out);
        for id in self.commits_at(home, |commit| commit.sent) {
            self.ask_outcome(home, id, out);
        }
        for id in self.commits_at(home, |commit| !commit.sent) {
            self.send_commit(id, out);
        }
    }

    fn ask_outcome(&mut self, home: HomeId, commit: CommitId, out: &mut Out) {
        out.note(Note::OutcomeAsked);
        if let Some(in_flight) = self.commits.get_mut(&commit) {
            in_flight.lost = true;
        }
        // Its place in the stream may be past: what was kept of it fills nothing any more.
        self.kept.drop_commit(commit);
        let registration = self.commits.get(&commit).and_then(|c| c.registration);
        let request = Request::Outcome {
            commit,
            registration: registration.unwrap_or_default(),
        };
        self.call(home, request, Purpose::Outcome(commit), out);
    }

    fn outcome(
        &mut self,
        now: Millis,
        home: HomeId,
        commit: CommitId,
        result: Result<Response, CallError>,
        out: &mut Out,
    ) {
        // A home that has no room to end the id is asked again with the next tick.
        if let Ok(Response::Outcome(outcome)) = result {
            if let Outcome::Committed { position, .. } = outcome {
                self.told(now, home, commit, position, out);
            }
            self.ended(commit, outcome, out);
        }
    }

    fn watch(&mut self, home: HomeId, segment: SegmentId, on: bool, out: &mut Out) {
        let state = self.at(home);
        if on {
            state.watches.insert(segment);
        } else {
            state.watches.remove(&segment);
        }
        if let Some(edge) = state.up.edge {
            let epoch = state.up.epoch;
            out.up(
                edge,
                Up::Watch {
                    home,
                    epoch,
                    segment,
                    on,
                },
            );
        }
    }

    fn forget(&mut self, ticket: Ticket) {
        for state in self.homes.values_mut() {
            state.up.retain_waiting(|waiting| *waiting != ticket);
        }
        let program =
            |called: &Called| matches!(called.purpose, Purpose::Program(t) if t == ticket);
        self.calls.retain(|_, called| !program(called));
    }

    // --- Eviction and time ---

    /// Gives up pages: running transactions that read them are told first, by
    /// what is published (rule 2); then the parent.
    fn evict(&mut self, places: &[Place], out: &mut Out) {
        let homes: BTreeSet<HomeId> = places.iter().map(|place| place.home).collect();
        for home in homes {
            let pages = places.iter().filter(|place| place.home == home);
            let pages: Vec<PageId> = pages.map(|place| place.page).collect();
            self.at(home).evict(&pages, out);
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Out) {
        for state in self.homes.values_mut() {
            state.up.tick(now, out);
        }
        if now < self.next_ack {
            return;
        }
        self.next_ack = now.plus(HEARTBEAT_MS);
        for state in self.homes.values_mut() {
            state.acknowledge(out);
        }
        self.ask_unasked(out);
    }

    /// Asks again for outcomes that a home could not tell.
    fn ask_unasked(&mut self, out: &mut Out) {
        let asking: BTreeSet<CommitId> = self
            .calls
            .values()
            .filter_map(|called| match called.purpose {
                Purpose::Outcome(commit) => Some(commit),
                _ => None,
            })
            .collect();
        let unasked: Vec<(HomeId, CommitId)> = self
            .commits
            .iter()
            .filter(|(id, commit)| commit.lost && !asking.contains(id))
            .filter_map(|(id, commit)| Some((commit.parts.first()?.home, *id)))
            .collect();
        for (home, commit) in unasked {
            if self.at(home).up.edge.is_some() {
                self.ask_outcome(home, commit, out);
            }
        }
    }
}

impl AtHome {
    fn new(home: HomeId) -> Self {
        AtHome {
            up: Upstream::new(home),
            pages: BTreeMap::new(),
            registration: None,
            registering: false,
            watches: BTreeSet::new(),
            #[cfg(feature = "planted-bugs")]
            received: BTreeMap::new(),
        }
    }

    /// Where this member stands, and nothing else.
    fn publish(&self) -> Publish {
        Publish {
            home: self.up.home,
            reset: false,
            touched: Vec::new(),
            evicted: Vec::new(),
            images: Vec::new(),
            position: self.up.position,
            watermark: self.up.watermark,
            heard: self.up.heard,
        }
    }

    fn apply(
        &mut self,
        change: &PageChange,
        position: Position,
        stamp: Stamp,
        publish: &mut Publish,
        out: &mut Out,
    ) {
        let Some(held) = self.pages.get_mut(&change.page) else {
            return;
        };
        let Some(image) = change::apply(&held.image, change, position, stamp) else {
            self.pages.remove(&change.page);
            publish.images.push((change.page, None));
            return;
        };
        if change.makes_holes() {
            out.note(Note::HoleMade);
        }
        held.image = image.clone();
        publish.images.push((change.page, Some(image)));
    }

    fn install(&mut self, page: PageId, image: Image, entry: EntryNo, out: &mut Out) {
        #[cfg(feature = "planted-bugs")]
        {
            *self.received.entry(page).or_default() += 1;
        }
        let mut publish = self.publish();
        publish.images.push((page, Some(image.clone())));
        self.pages.insert(page, Held { image, entry });
        out.publish(publish);
    }

    fn evict(&mut self, pages: &[PageId], out: &mut Out) {
        let mut publish = self.publish();
        let mut notices = Vec::new();
        for page in pages {
            if let Some(held) = self.pages.remove(page) {
                publish.evicted.push(*page);
                publish.images.push((*page, None));
                notices.push((*page, self.notice_number(*page, held.entry)));
            }
        }
        if planted::is(Bug::EvictionNotTold) {
            publish.evicted.clear();
        }
        out.publish(publish);
        let Some(edge) = self.up.edge else {
            return;
        };
        for (page, entry) in notices {
            let (home, epoch) = (self.up.home, self.up.epoch);
            out.up(
                edge,
                Up::Evict {
                    home,
                    epoch,
                    page,
                    entry,
                },
            );
        }
    }

    /// The parent has entered pages whose images were dropped (rule 2).
    fn settle_strays(&mut self, out: &mut Out) {
        for (page, entry) in self.up.take_strays() {
            if let Some(held) = self.pages.get_mut(&page) {
                held.entry = held.entry.max(entry);
            } else if let Some(edge) = self.up.edge {
                let (home, epoch) = (self.up.home, self.up.epoch);
                out.up(
                    edge,
                    Up::Evict {
                        home,
                        epoch,
                        page,
                        entry,
                    },
                );
            }
        }
    }

    /// A notice carries the highest number received for the page (rule 2).
    #[cfg_attr(not(feature = "planted-bugs"), allow(clippy::unused_self))]
    fn notice_number(&self, page: PageId, entry: EntryNo) -> EntryNo {
        #[cfg(feature = "planted-bugs")]
        if planted::is(Bug::NoticesCount) {
            return EntryNo(self.received.get(&page).copied().unwrap_or(0));
        }
        let _ = page;
        entry
    }

    /// A planted bug: a remembered answer is applied as if it were delivered.
    fn apply_again(&mut self, parts: &[Part], position: Position, out: &mut Out) -> Publish {
        let mut publish = self.publish();
        for writes in parts.iter().flat_map(|part| &part.writes) {
            let slots = writes.slots.iter().map(|(s, op)| (*s, op.effect()));
            let change = PageChange {
                page: writes.page,
                slots: PageSlots::Some(slots.collect()),
            };
            self.apply(&change, position, Stamp::default(), &mut publish, out);
        }
        publish
    }

    /// Tells the parent how far everything was applied (rule 7).
    fn acknowledge(&mut self, out: &mut Out) {
        if let Some(edge) = self.up.edge
            && self.up.acked < self.up.position
        {
            self.up.acked = self.up.position;
            let (home, epoch, position) = (self.up.home, self.up.epoch, self.up.position);
            out.up(
                edge,
                Up::Ack {
                    home,
                    epoch,
                    position,
                },
            );
        }
    }
}
