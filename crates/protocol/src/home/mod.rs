//! The home: orders and validates commits, keeps the log, tells its children.
//!
//! What is *accepted* is ahead of what is *durable*: validation and new pages
//! follow the accepted tip, everything that is sent follows the durable end of
//! the log (rule 1).

mod admission;
mod calls;
mod clock;
mod commit;
mod interface;
pub(crate) mod log;
mod once;
mod pages;
mod responses;
mod resync;
mod segments;
mod serve;
mod staging;
mod tables;
#[cfg(test)]
mod tests;
mod two_phase;

pub use crate::home::log::recovery::HomeConfig;
pub use crate::home::two_phase::inquiry::Doubts;
pub use interface::{HomeAction, HomeCommand, LoadResult};

use crate::edge::downstream::{Children, News, Values};
use crate::edge::liveness::Neighbours;
use crate::home::commit::parking::{Parked, Parking};
use crate::home::commit::pipeline::Pipeline;
use crate::home::commit::refusal::busy;
use crate::home::log::Log;
use crate::home::log::queue::{OnDurable, Reached};
use crate::home::pages::install::{Installing, Removing};
use crate::home::pages::waiters::{Waiter, Waiters};
use crate::home::tables::Tables;
use crate::home::two_phase::inquiry::Question;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::HEARTBEAT_MS;
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallResponse, CommitId, CommitRequest, Direction, Down, EdgeId, Event,
    FetchRefusal, HomeId, Mark, Message, Millis, NodeKind, Note, Now, Outcome, PageId, Peer,
    Position, Purpose, SegmentId, Stamp, StateMachine, Up, message, planted,
};

/// What a home fills.
type Outbox = thorp_model::Outbox<HomeAction>;

/// The state machine of a home.
#[derive(Debug)]
pub struct Home {
    config: HomeConfig,
    log: Log,
    tables: Tables,
    /// The ways to other homes, and what was asked there (rule 10).
    others: BTreeMap<HomeId, EdgeId>,
    askers: BTreeSet<EdgeId>,
    asking: BTreeMap<CallId, Question>,
    questions: u64,
    children: Children,
    parking: Parking,
    waiters: Waiters,
    installed: Position,
    installing: Option<Installing>,
    /// Pages that are loaded in order to be installed.
    to_install: BTreeSet<PageId>,
    removing: Option<Removing>,
    /// Removed segments whose end was told: their pages may go.
    removable: BTreeSet<SegmentId>,
    next_beat: Millis,
    neighbours: Neighbours,
}

impl StateMachine for Home {
    type Command = HomeCommand;
    type Action = HomeAction;

    fn handle(&mut self, now: Now, event: Event<HomeCommand>, outbox: &mut Outbox) {
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
            } => self.connected(now, edge, &peer, outbox),
            Event::Connected { edge, peer, .. } if peer.kind == NodeKind::Home => {
                self.neighbours.came(edge);
            }
            Event::Connected { edge, .. } => outbox.close(edge, "a home has no parent"),
            Event::Disconnected { edge } => self.disconnected(edge),
            Event::Received {
                edge,
                message: Message::Up(message),
            } => self.received(now, edge, message, outbox),
            Event::Received { edge, .. } if self.is_below(edge) => {
                self.cut_off(edge, "a child sent down", outbox);
            }
            Event::Received {
                edge,
                message: Message::Down(message),
            } => self.heard_other(now, edge, message, outbox),
            Event::Command(command) => self.command(now, command, outbox),
            Event::Tick => {}
        }
        self.send_due(outbox);
        for edge in self.neighbours.tick(now.mono, outbox) {
            self.neighbour_is_silent(edge, outbox);
        }
        while let Some(edge) = self.children.worn_out() {
            outbox.note(Note::EdgeWornOut);
            self.end_edge(edge, "its entries are counted out: begin anew", outbox);
        }
        self.children.sweep();
        self.beat(now, outbox);
        self.housekeep(outbox);
    }

    fn deadline(&self) -> Option<Millis> {
        let alive = self.neighbours.deadline();
        alive.into_iter().chain([self.next_beat]).min()
    }
}

impl Home {
    fn command(&mut self, now: Now, command: HomeCommand, outbox: &mut Outbox) {
        match command {
            HomeCommand::Durable(mark) => self.made_durable(mark, outbox),
            HomeCommand::Loaded { page, result } => self.loaded(now, page, result, outbox),
            HomeCommand::HasSpace(has_space) => {
                self.log.set_space(has_space);
                self.carry_out_waiting(now, outbox);
            }
            HomeCommand::Space { free, as_of } => self.log.report_space(free, as_of),
        }
    }

    /// Which home it is.
    pub fn id(&self) -> HomeId {
        self.config.home
    }

    /// How far the log is durable and told.
    pub fn durable(&self) -> Position {
        self.log.durable()
    }

    /// The validation floor (rule 6).
    pub fn floor(&self) -> Position {
        self.tables.changes.floor()
    }

    /// Whether a child is entered for a page (rule 2).
    pub fn holds(&self, edge: EdgeId, page: PageId) -> bool {
        self.children.holds(edge, page)
    }

    /// How far each child has acknowledged, for people.
    pub fn children(&self) -> Vec<(EdgeId, Position)> {
        let edges = self.children.edges();
        edges
            .filter_map(|edge| Some((edge, self.children.get(edge)?.acked)))
            .collect()
    }

    /// The sizes of all tables, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        let parked = |edge| self.parking.of(edge);
        let most = self.log.admission().most(&self.children, parked);
        let (pending, pending_bytes) = self.log.pending();
        alloc::vec![
            ("commits_of_a_member", most.commits),
            ("calls_of_a_member", most.calls),
            ("children", self.children.len()),
            ("directory", self.children.directory.len()),
            ("watches", self.children.watches()),
            ("pages", self.tables.pages.len()),
            ("image_bytes", self.tables.pages.image_bytes()),
            ("mob_bytes", self.tables.pages.mob_bytes()),
            ("aside", self.tables.pages.quarantine.len()),
            ("log", (self.log.durable().0 - self.installed.0) as usize),
            ("changes", self.tables.changes.len()),
            ("registrations", self.tables.outcomes.len()),
            ("votes", self.tables.votes.len()),
            ("asking", self.asking.len()),
            ("telling", self.log.admission().telling()),
            ("in_doubt", self.tables.votes.in_doubt()),
            ("in_doubt_bytes", self.tables.votes.open_bytes()),
            ("segments", self.tables.segments.len()),
            ("staged", self.tables.staging.len()),
            ("pending", pending),
            ("pending_bytes", pending_bytes),
            ("parked", self.parking.len()),
            ("parked_bytes", self.parking.bytes()),
            ("waiting", self.waiters.len()),
        ]
    }

    fn connected(&mut self, now: Now, edge: EdgeId, peer: &Peer, outbox: &mut Outbox) {
        let at = (self.log.durable(), self.watermark(now));
        let name = self.config.name.clone();
        if peer.kind == NodeKind::Home {
            return self.other_came(edge, name, at, outbox);
        }
        // It has lost the old edge: nobody reads there, nobody acknowledges.
        if let Some(old) = self.children.edge_of(peer.node) {
            outbox.note(Note::CameAgain);
            self.end_edge(old, "the same node has come again", outbox);
        }
        if !self.children.begin(edge, peer, at, &name, 0, outbox) {
            return outbox.close(edge, "too many children");
        }
        self.neighbours.came(edge);
    }

    /// A child says nothing: it is struck, and what it has committed stays. Or another home does:
    /// it is asked again by another edge.
    fn neighbour_is_silent(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        if self.children.get(edge).is_some() {
            outbox.note(Note::ChildSilent);
            if planted::is(Bug::StruckChildBelieved) {
                self.neighbours.went(edge);
                return self.children.strike_pages(edge);
            }
        }
        self.end_edge(edge, "it says nothing", outbox);
    }

    /// A child's edge, or that of another home that asks.
    fn is_below(&self, edge: EdgeId) -> bool {
        self.children.get(edge).is_some() || self.askers.contains(&edge)
    }

    fn disconnected(&mut self, edge: EdgeId) {
        self.neighbours.went(edge);
        self.children.end(edge);
        self.other_gone(edge);
        self.parking.forget(edge);
        self.waiters.forget(edge);
    }

    /// Ends an edge now: what still comes of it changes nothing.
    fn end_edge(&mut self, edge: EdgeId, why: &'static str, outbox: &mut Outbox) {
        self.disconnected(edge);
        outbox.close(edge, why);
    }

    fn cut_off(&mut self, edge: EdgeId, why: &'static str, outbox: &mut Outbox) {
        outbox.note(Note::ChildCutOff);
        outbox.close(edge, why);
    }

    fn received(&mut self, now: Now, edge: EdgeId, message: Up, outbox: &mut Outbox) {
        let Some(child) = self.children.get(edge) else {
            return self.asked_by_other(now, edge, message, outbox);
        };
        let is_own = message.is_own(child.node) || planted::is(Bug::OthersHeard);
        if child.kind == NodeKind::Member && !is_own {
            return self.cut_off(edge, "it speaks for another member", outbox);
        }
        // A message of another stream is noted once, whatever it says (rule 1).
        if let Some(epoch) = message.epoch()
            && self.children.in_epoch(edge, epoch, outbox).is_none()
        {
            return;
        }
        match message {
            Up::Fetch(fetch) => self.fetch(fetch.page, Waiter::of(edge, &fetch), outbox),
            Up::Evict(evict) => {
                self.children.evict(edge, evict.page, evict.entry, outbox);
            }
            Up::Ack(ack) => self.acknowledged(edge, ack.position, outbox),
            Up::Watch(watch) => self.watch(edge, &watch, outbox),
            Up::Report(report) => self.report(edge, &report, outbox),
            Up::Commit(request) => self.commit(now, edge, request, outbox),
            Up::Decide(decide) => self.decide(now, edge, &decide, outbox),
            Up::Settled(settled) => self.settled(settled.commit, outbox),
            Up::Call(call) => self.called(now, edge, call, outbox),
            // Nobody redirects to or from a home.
            Up::Peer(_) => {}
        }
    }

    fn watch(&mut self, edge: EdgeId, watch: &message::Watch, outbox: &mut Outbox) {
        let (home, segment) = (self.config.home, watch.segment);
        if !self.children.watch(edge, segment, watch.on) {
            outbox.note(Note::ChildLimited);
            outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
        }
    }

    fn called(&mut self, now: Now, edge: EdgeId, call: message::Call, outbox: &mut Outbox) {
        // The home refuses at once: an answer that waits for the disk would be one more that does.
        let admission = self.log.admission();
        if self.log.is_busy() || admission.has_all_calls(edge, &self.children, outbox) {
            let busy = Err(CallError::Busy);
            let home = self.config.home;
            return outbox.down(edge, responses::call_result(home, call.call, busy));
        }
        self.call(now, edge, call.call, call.request, outbox);
    }

    fn commit(&mut self, now: Now, edge: EdgeId, request: CommitRequest, outbox: &mut Outbox) {
        let parked = self.parking.of(edge);
        let admission = self.log.admission();
        if admission.has_all_commits(edge, parked, &self.children, outbox) {
            outbox.note(Note::RefusedBusy);
            return self.tell(edge, request.id, &Outcome::Refused(busy()), outbox);
        }
        let parked = Parked {
            edge,
            request,
            needs: BTreeSet::new(),
            missing: BTreeSet::new(),
        };
        self.pipeline().commit(now, parked, outbox);
    }

    fn pipeline(&mut self) -> Pipeline<'_> {
        Pipeline {
            config: &self.config,
            log: &mut self.log,
            tables: &mut self.tables,
            parking: &mut self.parking,
        }
    }

    fn acknowledged(&mut self, edge: EdgeId, position: Position, outbox: &mut Outbox) {
        self.children.ack(edge, position);
        if let Some(acknowledged) = self.children.acknowledged()
            && self.tables.changes.trim(acknowledged)
        {
            outbox.note(Note::TrimmedToAcknowledged);
        }
    }

    // --- What is durable ---

    fn made_durable(&mut self, mark: Mark, outbox: &mut Outbox) {
        self.log.made_durable(mark);
        self.send_due(outbox);
        self.end_install();
    }

    /// Sends what rests on batches that are durable by now.
    fn send_due(&mut self, outbox: &mut Outbox) {
        while let Some(due) = self.log.pop() {
            self.send(due, outbox);
        }
    }

    fn send(&mut self, due: OnDurable, outbox: &mut Outbox) {
        let home = self.config.home;
        match due {
            OnDurable::Reach(reached) => self.reach(reached, outbox),
            OnDurable::Vote(edge, commit, stamp) => {
                outbox.down(edge, responses::vote(home, commit, stamp));
            }
            OnDurable::Tell(edge, commit, outcome) => {
                outbox.down(edge, responses::outcome(home, commit, &outcome));
            }
            OnDurable::Answer(edge, call, result) => {
                outbox.down(edge, responses::call_result(home, call, result));
            }
            OnDurable::Watermark(edge, call) => self.tell_watermark(edge, call, outbox),
            OnDurable::NoPage(page, waiter) => {
                let child = self.children.in_epoch(waiter.edge, waiter.epoch, outbox);
                if child.is_some() {
                    self.refuse_fetch(page, waiter, FetchRefusal::NoSuchSegment, outbox);
                }
            }
            OnDurable::Nothing => {}
        }
    }

    /// A position is durable: every child learns what concerns it, with values only where it
    /// subscribed to them.
    fn reach(&mut self, reached: Reached, outbox: &mut Outbox) {
        let Reached {
            position, stamp, ..
        } = reached;
        self.log.reach(position, stamp);
        for change in &reached.changes {
            self.tables.pages.made_durable(change.page, position);
        }
        let mut changes = reached.changes;
        if let Some(segment) = reached.removed {
            changes.extend(self.whole_segment(segment));
        }
        let news = News {
            position,
            stamp,
            watermark: self.promised(),
            changes,
            values: Values::ToWhoAsked,
            origin: reached.origin,
        };
        self.children.deliver(news, outbox);
    }

    /// The promise itself comes as a heartbeat: it is for all that are below the child.
    fn tell_watermark(&self, edge: EdgeId, call: CallId, outbox: &mut Outbox) {
        let home = self.config.home;
        let watermark = self.promised();
        outbox.down(
            edge,
            Down::Heartbeat(message::Heartbeat {
                home,
                position: self.log.durable(),
                watermark,
            }),
        );
        let result = Ok(CallResponse::Watermark(watermark));
        outbox.down(edge, responses::call_result(home, call, result));
    }

    fn tell(&self, edge: EdgeId, commit: CommitId, outcome: &Outcome, outbox: &mut Outbox) {
        outbox.down(edge, responses::outcome(self.config.home, commit, outcome));
    }

    // --- Time ---

    fn watermark(&mut self, now: Now) -> Stamp {
        self.log.watermark(now, self.tables.votes.lowest_stamp())
    }

    /// What may be promised without moving the clock.
    fn promised(&self) -> Stamp {
        self.log.promised(self.tables.votes.lowest_stamp())
    }

    /// Drops a value of a member that is silent for long. Also without room, for it makes some.
    fn expire_staged(&mut self, now: Now, outbox: &mut Outbox) {
        let silent_ms_max = self.config.staged_silent_ms_max;
        if self.log.is_busy() {
            return;
        }
        let votes = &self.tables.votes;
        let may_go = |registration| !votes.concern_open(registration);
        let staging = &mut self.tables.staging;
        let ops = staging.expire(now, silent_ms_max, may_go);
        if !ops.is_empty() {
            outbox.note(Note::StagedExpired);
            self.log
                .append_ops(Purpose::Housekeeping, ops, OnDurable::Nothing, outbox);
        }
    }

    fn beat(&mut self, now: Now, outbox: &mut Outbox) {
        if now.mono < self.next_beat {
            return;
        }
        self.next_beat = now.mono.plus(HEARTBEAT_MS);
        if self.log.reserves(now) {
            self.log.append(
                now,
                (Purpose::Housekeeping, Vec::new()),
                OnDurable::Nothing,
                outbox,
            );
        }
        self.expire_staged(now, outbox);
        self.ask_others(now, outbox);
        self.send_due(outbox);
        let watermark = self.watermark(now);
        self.children
            .heartbeat(self.log.durable(), watermark, outbox);
    }
}
