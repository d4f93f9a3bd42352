//! The redirector: a site's directory, proxy to the homes and, where it has the
//! memory, a standby cache. To those below it is a parent, to the one above a
//! child; nothing in it assumes how deep the tree is.
//!
//! [`Redirector`] is wiring, and so is a proxy for each home. The parts, and the views of them:
//!
//! | part | what it keeps or does |
//! |---|---|
//! | `requests` | commits and calls on their way up, and the edges that they came by |
//! | `delegations` | which site below brings the requests of which member (rule R2) |
//! | `proxy` | what the redirector knows of one home |
//! | `peer_fetch`, `redirects` | pages for children: from memory, from a neighbour, or from above (rule 9) |
//! | `unanswered` | what nodes below send and nobody answers (rule R7) |
//! | `passed_claims` | claims of nodes below that only the home can judge (rule R9) |
//! | `digests` | what the home vouches for of the pages that neighbours send (rule R6) |
//! | `standby`, `subtree` | the node's own memory, and what nobody in the subtree needs any more |
//! | `prefetch` | what will be wanted: refetches, successors, hints |
//! | `resync` | reports of children and of the node's own memory (rule 13) |
//! | `reach` | the homes that the node is to reach (rule 1) |
//! | `watch` | the segments that are watched below and above |
//! | `writers` | updates of logs below, and pulls (rules C3 and C6) |
//! | `site_log` | updates of members without a log, on their way to the member that keeps the log of the site (rule C6) |
//! | `readers` | read leases below, and what those below show (rules C1 and C2) |

mod config;
mod delegations;
mod digests;
mod passed_claims;
mod peer_fetch;
mod prefetch;
mod proxy;
mod reach;
mod readers;
mod redirects;
mod requests;
mod resync;
mod site_log;
mod standby;
mod subtree;
#[cfg(test)]
mod tests;
mod unanswered;
mod waiter;
mod watch;
mod writers;

pub use config::RedirectorConfig;
pub use reach::ParentNames;

use crate::edge::claims::Claims;
use crate::edge::delegation;
use crate::edge::downstream::cut_off;
use crate::edge::liveness::Neighbours;
use crate::edge::pending_writes::PendingWrites;
use crate::edge::reply_routes::ReplyRoutes;
use crate::edge::unseen::Shown;
use crate::redirector::delegations::Delegations;
use crate::redirector::passed_claims::Passed;
use crate::redirector::prefetch::hints;
use crate::redirector::proxy::Proxy;
use crate::redirector::reach::Reach;
use crate::redirector::requests::{Forwarder, PassedRequests};
use crate::redirector::site_log::SiteLog;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use thorp_model::limits::{CHILDREN_MAX, CLAIMS_MAX, HEARTBEAT_MS, LEASES_PER_CHILD_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallRequest, Claim, Direction, Down, EdgeId, Epoch, Event, HomeId, HomeNames, Image,
    MemberId, Message, Millis, NameId, NodeKind, Note, Now, Outcome, PageId, Peer, Position,
    Privilege, StateMachine, Step, Up, UpdateId, message, planted,
};

/// What a redirector fills.
type Outbox = thorp_model::Outbox<Infallible>;

/// The state machine of a redirector.
#[derive(Debug)]
pub struct Redirector {
    config: RedirectorConfig,
    below: BTreeMap<EdgeId, Peer>,
    /// What those below hold of homes whose streams have not begun there (rule R9).
    claims: Claims,
    above: BTreeMap<EdgeId, NodeKind>,
    reach: Reach,
    neighbours: Neighbours,
    homes: BTreeMap<HomeId, Proxy>,
    passed: PassedRequests,
    delegations: Delegations,
    pending_writes: PendingWrites,
    site_log: SiteLog,
    next_beat: Millis,
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
            Event::Received {
                edge,
                message: Message::Claims(claims),
            } => self.claimed(now, edge, claims, outbox),
            Event::Received {
                edge,
                message: Message::Homes(homes),
            } => self.told_of_homes(edge, homes, outbox),
            Event::Tick => self.tick(now, outbox),
            Event::Connected { edge, peer, .. } => {
                self.reach.parent_came(edge, &peer);
                self.above.insert(edge, peer.kind);
                self.neighbours.came(edge);
                outbox.claim(edge, self.own_claims());
            }
            Event::Command(never) => match never {},
        }
        self.tell_homes(outbox);
        for edge in self.neighbours.tick(now, outbox) {
            self.give_up(now, edge, outbox);
        }
        while let Some(edge) = self.worn_out() {
            outbox.note(Note::EdgeWornOut);
            self.end_edge(now, edge, "its entries are counted out: begin anew", outbox);
        }
        for proxy in self.homes.values_mut() {
            proxy.sweep(outbox);
        }
    }

    fn deadline(&self) -> Option<Millis> {
        let fetches = self.homes.values().filter_map(|p| p.up.deadline());
        let pulls = self.homes.values().filter_map(|p| p.writers.deadline());
        let seen = self.homes.values().filter_map(|p| p.readers.deadline());
        let alive = self.neighbours.deadline();
        fetches
            .chain(pulls)
            .chain(seen)
            .chain(alive)
            .chain([self.next_beat])
            .min()
    }
}

impl Redirector {
    /// A redirector that knows no home yet.
    pub fn new(config: RedirectorConfig) -> Self {
        Redirector {
            pending_writes: PendingWrites::new(config.kept_bytes_max),
            neighbours: Neighbours::new(config.alive),
            passed: PassedRequests::new(config.upward_bytes_max),
            delegations: Delegations::default(),
            reach: Reach::new(config.parents.clone()),
            site_log: SiteLog::kept_by(config.log_keeper),
            config,
            below: BTreeMap::new(),
            claims: Claims::default(),
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
        proxy.is_some_and(|proxy| !proxy.is_resynchronised())
    }

    /// The pages in its own memory.
    pub fn images(&self, home: HomeId) -> Vec<(PageId, Image)> {
        let proxy = self.homes.get(&home);
        proxy.map_or_else(Vec::new, |proxy| proxy.images.all())
    }

    /// The names of nodes that sent wrong images of a home's pages (rule R6).
    pub fn wrong_helpers(&self, home: HomeId) -> Vec<NameId> {
        let proxy = self.homes.get(&home);
        proxy.map_or_else(Vec::new, |proxy| proxy.wrong_helpers.names().collect())
    }

    /// Whether a child is entered for a page (rule 2).
    pub fn holds(&self, home: HomeId, edge: EdgeId, page: PageId) -> bool {
        let proxy = self.homes.get(&home);
        proxy.is_some_and(|proxy| proxy.children.holds(edge, page))
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let sum = |size: fn(&Proxy) -> usize| self.homes.values().map(size).sum();
        alloc::vec![
            ("children", self.below.len()),
            ("directory", sum(|p| p.children.directory.len())),
            ("digests", sum(|p| p.digests.len())),
            ("wrong_helpers", sum(|p| p.wrong_helpers.names().count())),
            ("image_bytes", sum(|p| p.images.bytes())),
            ("fetches", sum(|p| p.up.fetches())),
            ("overtaken", sum(|p| p.up.overtaken())),
            ("waiting", sum(|p| p.up.waiting().count())),
            ("history", sum(|p| p.prefetch.history.len())),
            ("refetches", sum(|p| p.prefetch.history.under_way())),
            ("sequels", sum(|p| p.prefetch.successors.len())),
            ("unasked", sum(|p| p.prefetch.successors.unasked())),
            ("ahead", sum(|p| p.prefetch.successors.under_way())),
            ("redirecting", sum(|p| p.redirects.len())),
            ("reported", sum(Proxy::reported)),
            ("watches", sum(|p| p.watched.len())),
            ("restricted", sum(|p| p.children.restricted())),
            ("commits", self.passed.commits()),
            ("calls", self.passed.calls()),
            ("delegations", self.delegations.len()),
            ("upward_bytes", self.passed.bytes()),
            ("kept", self.pending_writes.len()),
            ("into_log", self.site_log.len()),
            ("followers", sum(|p| p.writers.sizes()[0].1)),
            ("leases", sum(|p| p.writers.sizes()[1].1)),
            ("pulls", sum(|p| p.writers.sizes()[2].1)),
            ("slow_writers", sum(|p| p.writers.sizes()[3].1)),
            ("read_leases", sum(|p| p.readers.sizes()[0].1)),
            ("unseen", sum(|p| p.readers.sizes()[1].1)),
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
        if child.kind == NodeKind::Redirector
            && let Err(why) = self.delegations.judge(child.node.name(), &message)
        {
            outbox.note(Note::NotDelegated);
            if let Some(answer) = delegation::not_delegated(home, &message, why) {
                outbox.down(edge, answer);
            }
            return;
        }
        let is_of_epoch = |epoch| self.is_of_epoch(home, edge, epoch, outbox);
        if !message.epoch().is_none_or(is_of_epoch) {
            return;
        }
        let proxy = self.homes.get_mut(&home);
        match (message, proxy) {
            (Up::Commit(request), _) => {
                self.forwarder().commit(edge, (request, Up::Commit), outbox);
            }
            (Up::Save(save), _) => self.save(edge, *save, outbox),
            (Up::Keep(keep), Some(_)) => {
                let of = (edge, child);
                self.site_log.keep(of, keep, &self.below, outbox);
            }
            // The log keeps nothing for a home that this site has never heard of: nobody would ever take it.
            (Up::Keep(keep), None) => site_log::no_such_home(edge, &keep, outbox),
            (Up::Kept(kept), _) => self.site_log.kept(edge, &kept, outbox),
            (Up::Update(told), Some(proxy)) => {
                let of = (edge, child);
                let mut below = self.below.iter();
                let author = below.find(|(_, peer)| told.author == Some(peer.node));
                let author = author.map(|(edge, _)| *edge);
                if let Err(why) = proxy.writing().update_from(of, author, &told, outbox) {
                    cut_off(edge, why, outbox);
                }
            }
            (Up::GiveBack(back), _) if back.segments.len() > LEASES_PER_CHILD_MAX => {
                cut_off(edge, "it gives back more leases than it may have", outbox);
            }
            (Up::GiveBack(back), Some(proxy)) => match back.privilege {
                Privilege::Write => proxy.writing().give_back(now, child, &back, outbox),
                Privilege::Read { .. } => {
                    proxy
                        .reading()
                        .give_back(now, child, &back.segments, outbox);
                }
            },
            (Up::Seen(seen), Some(proxy)) => {
                let shown = Shown::of(&seen);
                proxy.reading().seen(now, child.node, shown, outbox);
            }
            (Up::Heads(heads), Some(proxy)) => {
                proxy.writing().heads(now, child, heads, outbox);
            }
            (Up::Decide(decide), _) => self.forwarder().decide(edge, decide, outbox),
            (Up::Settled(settled), Some(proxy)) => {
                proxy.pass_unanswered(child.node.name(), Up::Settled(settled), outbox);
            }
            (Up::Call(call), _) => self.call(now, edge, call, outbox),
            (Up::Fetch(fetch), Some(proxy)) => proxy.asked(now, edge, &fetch, outbox),
            (Up::Evict(evict), Some(proxy)) => proxy.evicted(edge, &evict, outbox),
            (Up::Ack(ack), Some(proxy)) => proxy.children.ack(edge, ack.position),
            (Up::Watch(watch), Some(proxy)) => {
                proxy.watch((edge, child.node.name()), &watch, outbox);
            }
            (Up::Peer(peer), Some(proxy)) => {
                proxy.serve().helper_answered(now, edge, peer, outbox);
            }
            // A site below passes on what it denied; a member denies nobody.
            (Up::Denied(denied), Some(proxy)) if child.kind == NodeKind::Redirector => {
                // The home would cut off this node for it.
                if !denied.is_right() {
                    return cut_off(edge, "a name that no certificate has", outbox);
                }
                let site = Some(denied.site.unwrap_or_else(|| child.name.clone()));
                let denied = Up::Denied(message::Denied { site, ..denied });
                proxy.pass_unanswered(child.node.name(), denied, outbox);
            }
            (Up::Denied(_), Some(_)) => {}
            // A site below asks for nodes below it. A member has none.
            (Up::Judge(judge), Some(proxy)) if child.kind == NodeKind::Redirector => {
                let of = (edge, child.node.name());
                if !proxy.judge(of, &judge, outbox) {
                    cut_off(edge, "it passes more claims up than may wait", outbox);
                }
            }
            (Up::Judge(_), Some(_)) => {
                cut_off(
                    edge,
                    "it passes a claim up, and has nobody below it",
                    outbox,
                );
            }
            (Up::Report(report), Some(proxy)) => {
                if let Err(why) = proxy.resync().report(edge, &report, outbox) {
                    cut_off(edge, why, outbox);
                }
            }
            (_, None) => {}
        }
    }

    /// Passes an update on as it came: its log has signed it (rule C7).
    fn save(&mut self, edge: EdgeId, save: message::Save, outbox: &mut Outbox) {
        if save.has_large_proof() {
            return cut_off(edge, "an update with a proof that cannot be right", outbox);
        }
        let message::Save {
            request,
            update,
            confirmed,
            custody,
            author,
        } = save;
        let as_sent = move |request| {
            Up::Save(Box::new(message::Save {
                request,
                update,
                confirmed,
                custody,
                author,
            }))
        };
        self.forwarder().commit(edge, (request, as_sent), outbox);
    }

    /// Whether a child may ask its home for this.
    fn may_ask(&self, now: Millis, edge: EdgeId, call: &message::Call) -> Result<(), CallError> {
        let (proxy, peer) = (self.homes.get(&call.home), self.below.get(&edge));
        let both = proxy.zip(peer);
        both.map_or(Ok(()), |(proxy, peer)| {
            let to_read = &proxy.readers.leases;
            proxy.writers.may_ask(now, peer, &call.request, to_read)
        })
    }

    fn call(&mut self, now: Millis, edge: EdgeId, call: message::Call, outbox: &mut Outbox) {
        let (home, id) = (call.home, call.call);
        if let Err(why) = self.may_ask(now, edge, &call) {
            let (call, result) = (id, Err(why));
            let result = message::CallResult { home, call, result };
            return outbox.down(edge, Down::CallResult(result));
        }
        let is_noted = matches!(
            call.request,
            CallRequest::Register(_) | CallRequest::Follow { .. } | CallRequest::Lease { .. }
        );
        let request = is_noted.then(|| call.request.clone());
        if self.forwarder().call(edge, call, outbox)
            && let Some(request) = request
        {
            self.delegations.passed(home, id, &request);
            if let Some(proxy) = self.homes.get_mut(&home) {
                proxy.writers.passed(id, edge, &request);
            }
        }
    }

    /// Whether a child's message belongs to its stream of this home (rule 1).
    fn is_of_epoch(&self, home: HomeId, edge: EdgeId, epoch: Epoch, outbox: &mut Outbox) -> bool {
        let proxy = self.homes.get(&home);
        proxy.is_some_and(|proxy| proxy.children.in_epoch(edge, epoch, outbox).is_some())
    }

    // --- Children and parents that come and go ---

    fn child_came(&mut self, now: Millis, edge: EdgeId, peer: Peer, outbox: &mut Outbox) {
        if peer.kind == NodeKind::Home {
            return outbox.close(edge, "a home is no child of a site");
        }
        self.end_old_edge(now, peer.node, outbox);
        if self.below.len() >= CHILDREN_MAX {
            outbox.note(Note::ChildLimited);
            return outbox.close(edge, "too many children");
        }
        self.neighbours.came(edge);
        self.claims.child_came(edge);
        if planted::is(Bug::HomesToldFirst) {
            self.reach.child_claimed(edge);
        }
        self.below.insert(edge, peer);
    }

    /// A child claims what it holds: the streams of these homes begin there (rule R9).
    fn claimed(
        &mut self,
        now: Millis,
        edge: EdgeId,
        claims: Vec<(HomeId, Claim)>,
        outbox: &mut Outbox,
    ) {
        if self.above.contains_key(&edge) {
            return outbox.close(edge, "a parent sent up");
        }
        if claims.len() > CLAIMS_MAX {
            return cut_off(
                edge,
                "it claims to hold more homes than there may be",
                outbox,
            );
        }
        self.claims.take(edge, claims);
        let homes: Vec<HomeId> = self.homes.keys().copied().collect();
        for home in homes {
            self.begin_below(now, home, edge, outbox);
        }
        if self.below.contains_key(&edge) {
            self.reach.child_claimed(edge);
        }
    }

    /// A child that has claimed has the streams that there are: what it has no stream of is out of reach (rule 1).
    fn tell_homes(&mut self, outbox: &mut Outbox) {
        if let Some((edges, homes)) = self.reach.take_due() {
            for edge in edges {
                outbox.tell_homes(edge, homes.clone());
            }
        }
    }

    /// A site above tells which homes it is to reach.
    fn told_of_homes(&mut self, edge: EdgeId, homes: HomeNames, outbox: &mut Outbox) {
        if self.below.contains_key(&edge) {
            return cut_off(edge, "a child sent down", outbox);
        }
        self.reach.parent_told(edge, &homes.checked());
    }

    /// Begins the stream of a home at a child, if both are ready.
    fn begin_below(&mut self, now: Millis, home: HomeId, edge: EdgeId, outbox: &mut Outbox) {
        let (Some(proxy), Some(peer)) = (self.homes.get_mut(&home), self.below.get(&edge)) else {
            return;
        };
        if proxy.awaits(edge)
            && let Some(claim) = self.claims.claimed(edge, home)
        {
            proxy.claimed(now, (edge, peer), claim, outbox);
        }
    }

    /// The home's word on a claim of a node below.
    fn judged(&mut self, now: Millis, judged: &message::Judged, outbox: &mut Outbox) {
        let (home, verdict) = (judged.home, judged.verdict);
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        match proxy.judged(judged.question) {
            Some(Passed::OfChild(edge)) => {
                if let Some(peer) = self.below.get(&edge) {
                    proxy.begin_child(now, edge, peer, verdict, outbox);
                }
            }
            Some(Passed::OfSite { edge, question, .. }) => {
                let judged = message::Judged {
                    home,
                    question,
                    verdict,
                };
                outbox.down(edge, Down::Judged(judged));
            }
            None => {}
        }
    }

    /// What this node holds of each home (rule R9).
    fn own_claims(&self) -> Vec<(HomeId, Claim)> {
        let homes = self.homes.iter();
        let claims = homes.filter_map(|(home, proxy)| Some((*home, proxy.up.claim()?)));
        claims.take(CLAIMS_MAX).collect()
    }

    /// A child that comes again has lost its old edge: nobody reads there,
    /// nobody acknowledges, and no helper is to be found.
    fn end_old_edge(&mut self, now: Millis, node: MemberId, outbox: &mut Outbox) {
        let mut below = self.below.iter();
        let Some((old, _)) = below.find(|(_, peer)| peer.node == node) else {
            return;
        };
        let old = *old;
        outbox.note(Note::CameAgain);
        self.end_edge(now, old, "the same node has come again", outbox);
    }

    /// Ends a child's edge now: what still comes of it changes nothing.
    fn end_edge(&mut self, now: Millis, edge: EdgeId, why: &'static str, outbox: &mut Outbox) {
        self.below.remove(&edge);
        self.neighbours.went(edge);
        self.child_went(now, edge, outbox);
        outbox.close(edge, why);
    }

    /// A neighbour says nothing. A child is struck: what it was asked for goes to another, and
    /// what it has committed is delivered to its neighbours as ever. A parent is left.
    fn give_up(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        const WHY: &str = "it says nothing";
        self.neighbours.went(edge);
        if !self.below.contains_key(&edge) {
            outbox.note(Note::ParentSilent);
            self.disconnected(now, edge, outbox);
            return outbox.close(edge, WHY);
        }
        outbox.note(Note::ChildSilent);
        if planted::is(Bug::StruckChildBelieved) {
            let homes = self.homes.values_mut();
            return homes.for_each(|proxy| proxy.children.strike_pages(edge));
        }
        self.end_edge(now, edge, WHY, outbox);
    }

    fn worn_out(&self) -> Option<EdgeId> {
        let mut homes = self.homes.values();
        homes.find_map(|proxy| proxy.children.worn_out())
    }

    fn disconnected(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        self.neighbours.went(edge);
        if self.below.remove(&edge).is_some() {
            return self.child_went(now, edge, outbox);
        }
        self.above.remove(&edge);
        self.reach.parent_went(edge);
        let homes = self.homes.iter_mut();
        let lost = homes.filter_map(|(home, proxy)| proxy.up.lost(edge).then_some(*home));
        for home in lost.collect::<Vec<HomeId>>() {
            self.end(home, outbox);
        }
    }

    fn child_went(&mut self, now: Millis, edge: EdgeId, outbox: &mut Outbox) {
        // What it wrote stays kept: its neighbours get that if it commits (rule 13).
        self.claims.child_went(edge);
        self.reach.child_went(edge);
        self.passed.child_went(edge);
        self.site_log.child_went(edge, outbox);
        for proxy in self.homes.values_mut() {
            proxy.child_went(now, edge, outbox);
        }
    }

    // --- Down ---

    fn received_down(&mut self, now: Millis, edge: EdgeId, message: Down, outbox: &mut Outbox) {
        if self.below.contains_key(&edge) {
            return cut_off(edge, "a child sent down", outbox);
        }
        if !self.above.contains_key(&edge) {
            return outbox.note(Note::OtherEpochDropped);
        }
        let home = message.home();
        if let Down::Update(told) = &message {
            if let Some(proxy) = self.homes.get_mut(&home) {
                proxy.writing().show(edge, told, outbox);
            }
            return;
        }
        let has_ended = matches!(message, Down::End(_));
        let is_heard = match self.homes.get_mut(&home) {
            Some(proxy) => proxy.hears(now, edge, &message, outbox),
            None => matches!(message, Down::Begin(_)),
        };
        if is_heard {
            self.heard_down(now, edge, message, outbox);
        }
        // What this parent sends of the home next rests on what this node holds now (rule R9).
        if has_ended {
            let claim = self.homes.get(&home).and_then(|proxy| proxy.up.claim());
            outbox.claim(edge, claim.map(|claim| (home, claim)).into_iter().collect());
        }
    }

    fn heard_down(&mut self, now: Millis, edge: EdgeId, message: Down, outbox: &mut Outbox) {
        let home = message.home();
        let proxy = self.homes.get_mut(&home);
        match (message, proxy) {
            (Down::Begin(begin), _) => self.begin(now, edge, begin, outbox),
            (Down::End(_), _) => self.end(home, outbox),
            (Down::Step(step), _) => self.step(now, (step, None), outbox),
            (Down::Saved(saved), Some(proxy)) if !saved.is_executed => {
                proxy.writing().rejected(&saved, outbox);
            }
            (Down::Saved(saved), _) => {
                self.step(now, (saved.step, Some(saved.update)), outbox);
            }
            // It is beside the stream.
            (Down::Update(_), _) => {}
            // A site above has a log for its own members alone.
            (Down::Keep(_) | Down::Kept(_), _) => {}
            (Down::Get(get), Some(proxy)) => proxy.writing().pull(now, get, outbox),
            (Down::Recall(recall), Some(proxy)) => {
                proxy.writing().recalled(now, &recall, outbox);
            }
            (Down::Tell(tell), Some(proxy)) => {
                proxy.writing().told_to_tell(tell.segment, outbox);
            }
            (Down::Withheld(withheld), _) => self.forwarder().withheld(&withheld, outbox),
            (Down::SeenWanted(wanted), Some(proxy)) => {
                proxy.reading().wanted(now, wanted, outbox);
            }
            (Down::Voted(voted), _) => self.forwarder().voted(&voted, outbox),
            (Down::Refused(refused), _) => {
                let outcome = Outcome::Refused(refused.refusal);
                self.forwarder()
                    .outcome(home, refused.commit, &outcome, outbox);
            }
            (Down::Committed(committed), _) => self.committed(now, &committed, outbox),
            (Down::Judged(judged), _) => self.judged(now, &judged, outbox),
            (Down::Receipt(receipt), Some(proxy)) => proxy.up.take_receipt(receipt),
            (Down::CallResult(result), _) => {
                self.delegations.answered(&result);
                self.forwarder().call_result(now, &result, outbox);
            }
            (Down::Image(response), Some(proxy)) => proxy.image(now, response, outbox),
            (Down::Peer(peer), Some(proxy)) => proxy.peer_image(now, peer, outbox),
            (Down::Redirect(redirect), Some(proxy)) => proxy.help(edge, redirect, outbox),
            (Down::Hint(hint), Some(proxy)) => proxy.hints().pass_hint(hint, outbox),
            (Down::Joined(joined), Some(proxy)) => {
                hints::joined_above(&proxy.up, joined.page, outbox);
            }
            (Down::Heartbeat(heartbeat), Some(proxy)) => proxy.heartbeat(now, &heartbeat, outbox),
            (Down::Unwatched(unwatched), Some(proxy)) => {
                proxy.watching().unwatched(unwatched.segment, outbox);
            }
            (Down::Resynchronised(answer), Some(proxy)) => {
                proxy.resynchronised(now, answer, outbox);
            }
            (_, None) => {}
        }
    }

    /// A stream begins: what is cached here is reported (rule 13), and the streams
    /// below begin anew (rule 1), so that those below report in their turn.
    fn begin(&mut self, now: Millis, edge: EdgeId, begin: message::Begin, outbox: &mut Outbox) {
        let home = begin.home;
        // The streams below begin anew, each after a claim (rule R9).
        self.end(home, outbox);
        outbox.note(Note::StreamBegan);
        self.passed.stream_began(home);
        self.delegations.forget_home(home);
        if !self.homes.contains_key(&home) {
            self.homes.insert(home, Proxy::new(home, &self.config));
            self.share_memory(outbox);
        }
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        let helpers = self.above.get(&edge) == Some(&NodeKind::Redirector);
        if proxy.begin(now, edge, begin, helpers, outbox) {
            let below: Vec<EdgeId> = self.below.keys().copied().collect();
            for child in below {
                self.begin_below(now, home, child, outbox);
            }
        }
    }

    /// Every home has an equal share of the memory for images.
    fn share_memory(&mut self, outbox: &mut Outbox) {
        let share = self.config.cache_bytes / self.homes.len().max(1);
        for proxy in self.homes.values_mut() {
            proxy.limit_memory(share, outbox);
        }
    }

    /// The home is out of reach: no answer comes for what went up.
    fn end(&mut self, home: HomeId, outbox: &mut Outbox) {
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        let begun: Vec<EdgeId> = proxy.children.edges().collect();
        if proxy.end(outbox) {
            for edge in begun {
                self.claims.stream_ended(edge, home);
            }
            self.passed.stream_ended(home);
            self.delegations.forget_home(home);
            self.pending_writes.forget_home(home);
        }
    }

    /// One position. The values that were kept of the commit are put in here and nowhere else (rule 8).
    fn step(
        &mut self,
        now: Millis,
        (mut step, update): (Step, Option<UpdateId>),
        outbox: &mut Outbox,
    ) {
        let (home, commit) = (step.home, step.commit);
        let from = commit.map(|id| self.passed.commit_ended(home, id));
        let last = from.as_ref().and_then(ReplyRoutes::last);
        let origin = last.zip(commit);
        // Of a commit that came this way the parent tells only what a procedure left.
        let mut run = BTreeMap::new();
        if let Some(commit) = commit {
            let told = step.changes.iter();
            run.extend(told.map(|change| (change.page, change.valued())));
            self.pending_writes
                .fill((home, commit), step.executed, &mut step.changes);
        }
        let Some(proxy) = self.homes.get_mut(&home) else {
            return;
        };
        let outcome = Outcome::Committed {
            position: step.position,
            stamp: step.stamp,
        };
        let invalidated = proxy.step(now, step, (origin, run, update), outbox);
        if let Some((commit, mut from)) = commit.zip(from) {
            for edge in from.take_others() {
                proxy.vouch(edge, outbox);
                outbox.down(edge, Down::outcome(home, commit, outcome.clone()));
            }
        }
        proxy.after_step(now, &invalidated, outbox);
    }

    fn committed(&mut self, now: Millis, committed: &message::Committed, outbox: &mut Outbox) {
        let (home, position) = (committed.home, committed.position);
        if let Some(proxy) = self.homes.get_mut(&home) {
            proxy.up.advance(position);
            proxy.caught_up(now, outbox);
        }
        let outcome = Outcome::Committed {
            position,
            stamp: committed.stamp,
        };
        self.forwarder()
            .outcome(home, committed.commit, &outcome, outbox);
    }

    fn forwarder(&mut self) -> Forwarder<'_> {
        Forwarder {
            below: &self.below,
            homes: &mut self.homes,
            passed: &mut self.passed,
            pending_writes: &mut self.pending_writes,
        }
    }

    // --- Time ---

    fn tick(&mut self, now: Millis, outbox: &mut Outbox) {
        for proxy in self.homes.values_mut() {
            proxy.up.tick(now, outbox);
            proxy.writing().finish(now, outbox);
            proxy.reading().finish(now, outbox);
        }
        if now >= self.next_beat {
            self.next_beat = now.plus(HEARTBEAT_MS);
            for proxy in self.homes.values_mut() {
                proxy.serve().expire_redirects(now);
                proxy.report_denials(outbox);
                proxy.writers.sweep(now);
                proxy.readers.sweep(now);
                proxy.acknowledge(outbox);
            }
        }
    }
}
