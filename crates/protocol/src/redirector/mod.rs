//! The redirector: a site's directory, proxy to the homes and, where it has the
//! memory, a standby cache. To those below it is a parent, to the one above a
//! child; nothing in it assumes how deep the tree is.

mod edges;
mod peer_fetch;
mod prefetch;
mod requests;
mod resync;
mod standby;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

use crate::edge::admission::UnderWay;
use crate::edge::downstream::{ChildLimits, Children, cut_off};
use crate::edge::liveness::{AliveLimits, Neighbours};
use crate::edge::pending_writes::PendingWrites;
use crate::edge::reports::Reports;
use crate::edge::upstream::Upstream;
use crate::redirector::peer_fetch::{Redirecting, Waiter};
use crate::redirector::prefetch::history::History;
use crate::redirector::prefetch::successors::Successors;
use crate::redirector::requests::PassedRequests;
use crate::redirector::resync::Whose;
use crate::redirector::standby::Images;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use thorp_model::limits::{
    HEARTBEAT_MS, HISTORY_PAGES_MAX, KEPT_CHANGES_MAX, PENDING_WRITES_COMMIT_BYTES_MAX,
    REPORT_PAGES_MAX, REPORTED_MAX, SEND_WINDOW_BYTES_MAX, SITE_CACHE_BYTES, SUCCESSOR_PAGES_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CommitId, CommitRequest, Direction, Down, EdgeId, Epoch, Event, HomeId, Image,
    MemberId, Message, Millis, NodeKind, Note, Now, Outcome, PageId, Peer, Position, Refusal,
    SegmentId, StateMachine, Up, message, planted,
};

/// What a commit is charged beside its reads and writes.
const COMMIT_CHARGE: usize = 64;

/// What a redirector is told when it starts.
#[derive(Clone, Debug)]
pub struct RedirectorConfig {
    /// This process start.
    pub node: MemberId,
    /// Its name, for people.
    pub name: String,
    /// Bytes of page images that it keeps itself, shared evenly by its homes; zero keeps none.
    pub cache_bytes: usize,
    /// Bytes of commits kept until they are delivered (rule 8).
    pub kept_bytes_max: usize,
    /// Pages of one home of which it knows whether they are asked for again when they were
    /// invalidated (rule 8); with zero it refetches none.
    pub history_pages_max: usize,
    /// Pages of one home of which it knows what its children waited for next (rule 9); with zero it
    /// gives no hints, and asks for nothing because of them.
    pub successor_pages_max: usize,
    /// Messages kept for a page that is on its way (rule 9).
    pub kept_changes_max: usize,
    /// Whether a home may answer beside its stream (rule 9): where its images travel by sockets of their own.
    pub images_beside: bool,
    /// Bytes of commits that it has on their way up one edge, and of values
    /// that are being staged.
    pub upward_bytes_max: usize,
    /// Pages in one piece of a report to a new parent (rule 13).
    pub report_pages_max: usize,
    /// Pages of one home that it asks its parent about for all that report to it.
    pub reported_max: usize,
    /// When a neighbour is silent; none waits for ever.
    pub alive: Option<AliveLimits>,
    /// How much is kept for each child.
    pub per_child: ChildLimits,
}

impl RedirectorConfig {
    /// A redirector with the limits of `thorp_model::limits`.
    pub fn new(node: MemberId, name: String) -> Self {
        RedirectorConfig {
            node,
            name,
            cache_bytes: SITE_CACHE_BYTES,
            kept_bytes_max: PENDING_WRITES_COMMIT_BYTES_MAX,
            history_pages_max: HISTORY_PAGES_MAX,
            successor_pages_max: SUCCESSOR_PAGES_MAX,
            kept_changes_max: KEPT_CHANGES_MAX,
            images_beside: false,
            upward_bytes_max: SEND_WINDOW_BYTES_MAX,
            report_pages_max: REPORT_PAGES_MAX,
            reported_max: REPORTED_MAX,
            alive: Some(AliveLimits::default()),
            per_child: ChildLimits::default(),
        }
    }
}

/// What a redirector fills.
type Outbox = thorp_model::Outbox<Infallible>;

/// The state machine of a redirector.
#[derive(Debug)]
pub struct Redirector {
    config: RedirectorConfig,
    below: BTreeMap<EdgeId, Peer>,
    above: BTreeMap<EdgeId, NodeKind>,
    neighbours: Neighbours,
    homes: BTreeMap<HomeId, Proxy>,
    passed: PassedRequests,
    pending_writes: PendingWrites,
    next_beat: Millis,
}

/// What a redirector knows of one home.
#[derive(Debug)]
struct Proxy {
    up: Upstream<Waiter>,
    children: Children,
    images: Images,
    history: History,
    successors: Successors,
    /// What helpers were asked for, by who wants it: one try for each page.
    redirecting: BTreeMap<(MemberId, PageId), Redirecting>,
    watched: BTreeSet<SegmentId>,
    reports: Reports<Whose>,
    reported_max: usize,
}

impl StateMachine for Redirector {
    type Command = Infallible;
    type Action = Infallible;

    fn handle(&mut self, now: Now, event: Event<Infallible>, outbox: &mut Outbox) {
        let now = now.mono;
        if let Event::Received { edge, .. } = &event {
            self.neighbours.heard(*edge);
        }
        match event {
            Event::Received {
                message: Message::Alive,
                ..
            } => {}
            Event::Connected {
                edge,
                direction: Direction::Down,
                peer,
            } => self.child_came(now, edge, peer, outbox),
            Event::Disconnected { edge } => self.disconnected(now, edge, outbox),
            Event::Received {
                edge,
                message: Message::Down(message),
            } => self.received_down(now, edge, message, outbox),
            Event::Received {
                edge,
                message: Message::Up(message),
            } => self.received_up(now, edge, message, outbox),
            Event::Tick => self.tick(now, outbox),
            Event::Connected { edge, peer, .. } => {
                self.above.insert(edge, peer.kind);
                self.neighbours.came(edge);
            }
            Event::Command(never) => match never {},
        }
        for edge in self.neighbours.tick(now, outbox) {
            self.give_up(now, edge, outbox);
        }
        while let Some(edge) = self.worn_out() {
            outbox.note(Note::EdgeWornOut);
            self.end_edge(now, edge, "its entries are counted out: begin anew", outbox);
        }
        for proxy in self.homes.values_mut() {
            for page in proxy.children.sweep() {
                proxy.give_up_if_unused(page, outbox);
            }
        }
    }

    fn deadline(&self) -> Option<Millis> {
        let fetches = self.homes.values().filter_map(|p| p.up.deadline());
        let alive = self.neighbours.deadline();
        fetches.chain(alive).chain([self.next_beat]).min()
    }
}

impl Redirector {
    /// A redirector that knows no home yet.
    pub fn new(config: RedirectorConfig) -> Self {
        Redirector {
            pending_writes: PendingWrites::new(config.kept_bytes_max),
            neighbours: Neighbours::new(config.alive),
            passed: PassedRequests::new(config.upward_bytes_max),
            config,
            below: BTreeMap::new(),
            above: BTreeMap::new(),
            homes: BTreeMap::new(),
            next_beat: Millis(0),
        }
    }

    /// How far a home's stream was applied.
    pub fn position(&self, home: HomeId) -> Option<Position> {
        self.homes.get(&home).map(|proxy| proxy.up.position)
    }

    /// The homes known, their names, and how far the streams were applied.
    pub fn homes(&self) -> Vec<(HomeId, String, Position, bool)> {
        let homes = self.homes.iter();
        homes
            .map(|(home, proxy)| {
                let up = &proxy.up;
                (*home, up.name.clone(), up.position, up.edge.is_some())
            })
            .collect()
    }

    /// The edge that a home's live stream comes down on.
    pub fn stream_edge(&self, home: HomeId) -> Option<EdgeId> {
        self.homes.get(&home)?.up.edge
    }

    /// How far each child has acknowledged, for people.
    pub fn children(&self, home: HomeId) -> Vec<(EdgeId, Position)> {
        let Some(proxy) = self.homes.get(&home) else {
            return Vec::new();
        };
        let edges = proxy.children.edges();
        edges
            .filter_map(|edge| Some((edge, proxy.children.get(edge)?.acked)))
            .collect()
    }

    /// Whether something that was reported, here or below, is not answered (rule 13).
    pub fn is_resynchronising(&self, home: HomeId) -> bool {
        let proxy = self.homes.get(&home);
        proxy.is_some_and(|proxy| !proxy.reports.is_empty())
    }

    /// The pages in its own memory.
    pub fn images(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let proxy = self.homes.get(&home);
        proxy.map_or_else(Vec::new, |proxy| proxy.images.all())
    }

    /// Whether a child is entered for a page (rule 2).
    pub fn holds(&self, home: HomeId, edge: EdgeId, page: PageId) -> bool {
        let proxy = self.homes.get(&home);
        proxy.is_some_and(|proxy| proxy.children.holds(edge, page))
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let homes = self.homes.values();
        alloc::vec![
            ("children", self.below.len()),
            (
                "directory",
                homes.clone().map(|p| p.children.directory.len()).sum()
            ),
            ("image_bytes", homes.clone().map(|p| p.images.bytes()).sum()),
            ("fetches", homes.clone().map(|p| p.up.fetches()).sum()),
            ("overtaken", homes.clone().map(|p| p.up.overtaken()).sum()),
            (
                "waiting",
                homes.clone().map(|p| p.up.waiting().count()).sum()
            ),
            ("history", homes.clone().map(|p| p.history.len()).sum()),
            (
                "refetches",
                homes.clone().map(|p| p.history.under_way()).sum()
            ),
            ("sequels", homes.clone().map(|p| p.successors.len()).sum()),
            (
                "unasked",
                homes.clone().map(|p| p.successors.unasked()).sum()
            ),
            (
                "ahead",
                homes.clone().map(|p| p.successors.under_way()).sum()
            ),
            (
                "redirecting",
                homes.clone().map(|p| p.redirecting.len()).sum()
            ),
            ("reported", homes.clone().map(|p| p.reported()).sum()),
            ("watches", homes.map(|p| p.watched.len()).sum()),
            ("commits", self.passed.commits()),
            ("calls", self.passed.calls()),
            ("upward_bytes", self.passed.bytes()),
            ("kept", self.pending_writes.len()),
        ]
    }

    // --- Up ---

    fn received_up(&mut self, now: Millis, edge: EdgeId, message: Up, outbox: &mut Outbox) {
        if self.above.contains_key(&edge) {
            return outbox.close(edge, "a parent sent up");
        }
        let Some(child) = self.below.get(&edge) else {
            return outbox.note(Note::OtherEpochDropped);
        };
        let is_own = message.is_own(child.node) || planted::is(Bug::OthersHeard);
        if child.kind == NodeKind::Member && !is_own {
            return cut_off(edge, "it speaks for another member", outbox);
        }
        let home = message.home();
        let is_of_epoch = |epoch| self.is_of_epoch(home, edge, epoch, outbox);
        if !message.epoch().is_none_or(is_of_epoch) {
            return;
        }
        let proxy = self.homes.get_mut(&home);
        match (message, proxy) {
            (Up::Commit(request), _) => self.commit(edge, request, outbox),
            (Up::Decide(decide), _) => self.decide(edge, decide, outbox),
            (Up::Settled(settled), _) => {
                self.pass_up(home, Up::Settled(settled), outbox);
            }
            (Up::Call(call), _) => self.call(edge, call, outbox),
            (Up::Fetch(fetch), Some(proxy)) => proxy.asked(now, edge, &fetch, outbox),
            (Up::Evict(evict), Some(proxy)) => proxy.evicted(edge, &evict, outbox),
            (Up::Ack(ack), Some(proxy)) => proxy.children.ack(edge, ack.position),
            (Up::Watch(watch), Some(proxy)) => proxy.watch(edge, &watch, outbox),
            (Up::Peer(peer), Some(proxy)) => proxy.helper_answered(now, edge, peer, outbox),
            (Up::Report(report), Some(proxy)) => {
                if let Err(why) = proxy.report(edge, &report, outbox) {
                    cut_off(edge, why, outbox);
                }
            }
            (_, None) => {}
        }
    }

    /// Whether a child's message belongs to its stream of this home (rule 1).
    fn is_of_epoch(&self, home: HomeId, edge: EdgeId, epoch: Epoch, outbox: &mut Outbox) -> bool {
        let proxy = self.homes.get(&home);
        proxy.is_some_and(|proxy| proxy.children.in_epoch(edge, epoch, outbox).is_some())
    }

    /// Passes a commit on, and keeps what it writes (rule 8). The evidence is
    /// the member's own: nobody on the way rewrites it (rule 4).
    fn commit(&mut self, edge: EdgeId, mut request: CommitRequest, outbox: &mut Outbox) {
        let id = request.id;
        let home = request.home();
        let of_member = self.commits_of_member(edge, home);
        if of_member.is_some_and(UnderWay::has_all_commits) {
            outbox.note(Note::ChildLimited);
            return refuse_busy(edge, home, id, outbox);
        }
        let Some(proxy) = self.homes.get(&home) else {
            return refuse_busy(edge, home, id, outbox);
        };
        // Without the home the commit is lost, as if it had been lost on the
        // way: the member asks for its outcome when the stream begins again.
        let Some(up) = proxy.up.edge else {
            return;
        };
        let bytes = request.bytes() + COMMIT_CHARGE;
        let is_on = |of| self.stream_edge(of) == Some(up);
        if !self.passed.has_space_for_commit(bytes, is_on) {
            outbox.note(Note::ChildLimited);
            return refuse_busy(edge, home, id, outbox);
        }
        if planted::is(Bug::EvidenceRewritten) {
            request.part.evidence = proxy.up.position;
        }
        self.pending_writes
            .put(home, id, &request.part.writes, outbox);
        self.passed.commit_sent(home, id, edge, bytes);
        outbox.up(up, Up::Commit(request));
    }

    /// The delivery of what is decided is this child's reply, also where the vote went another
    /// way. What is lost here has none: the homes find out by themselves (rule 10).
    fn decide(&mut self, edge: EdgeId, decide: message::Decide, outbox: &mut Outbox) {
        let (home, commit) = (decide.home, decide.commit);
        let of_member = self.commits_of_member(edge, home);
        let has_all = of_member.is_some_and(UnderWay::has_all_answers);
        if has_all && !self.passed.has_commit(home, commit) {
            return outbox.note(Note::ChildLimited);
        }
        if self.pass_up(home, Up::Decide(decide), outbox) {
            self.passed.decision_sent(home, commit, edge);
        }
    }

    /// What a member has under way to one home. A site is not limited: it has limited each
    /// member below it.
    fn commits_of_member(&self, edge: EdgeId, home: HomeId) -> Option<UnderWay> {
        let peer = self.below.get(&edge)?;
        let is_member = peer.kind == NodeKind::Member;
        is_member.then(|| self.passed.commits_of(peer.node, edge, home))
    }

    /// Without the home the message is lost, which is told; the member sends
    /// it again when the stream begins.
    fn pass_up(&self, home: HomeId, message: Up, outbox: &mut Outbox) -> bool {
        let up = self.homes.get(&home).and_then(|proxy| proxy.up.edge);
        if let Some(up) = up {
            outbox.up(up, message);
        }
        up.is_some()
    }

    fn call(&mut self, edge: EdgeId, message: message::Call, outbox: &mut Outbox) {
        let (call, home) = (message.call, message.home);
        let bytes = message.request.staged_bytes();
        let up = self.stream_edge(home);
        let is_on = |of| self.stream_edge(of) == up;
        let has_space = self.passed.has_space_for_call(bytes, is_on);
        if !has_space || self.passed.calls_of(edge).has_all_calls() {
            outbox.note(Note::ChildLimited);
            let result = Err(CallError::Busy);
            return outbox.down(
                edge,
                Down::CallResult(message::CallResult { home, call, result }),
            );
        }
        // Without the home the call is lost; it is made again when the stream begins.
        if let Some(up) = up {
            self.passed.call_sent(call, home, edge, bytes);
            outbox.up(up, Up::Call(message));
        }
    }

    // --- Time ---

    fn tick(&mut self, now: Millis, outbox: &mut Outbox) {
        for proxy in self.homes.values_mut() {
            proxy.up.tick(now, outbox);
        }
        if now >= self.next_beat {
            self.next_beat = now.plus(HEARTBEAT_MS);
            for proxy in self.homes.values_mut() {
                proxy.expire_redirects(now);
                proxy.acknowledge(outbox);
            }
        }
    }
}

fn refuse_busy(edge: EdgeId, home: HomeId, commit: CommitId, outbox: &mut Outbox) {
    outbox.note(Note::RefusedBusy);
    let refused = Outcome::Refused(Refusal::busy());
    outbox.down(edge, Down::outcome(home, commit, refused));
}
