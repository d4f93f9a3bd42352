//! The home: orders and validates commits, keeps the log, informs its children.
//!
//! What is *accepted* is ahead of what is *durable*: validation and new pages
//! follow the accepted tip, everything that is sent follows the durable end of
//! the log (rule 1).
//!
//! [`Home`] is wiring. It owns the parts, hands each event to a view of those
//! that the event concerns, and sends what has become due. Each part has its
//! own state, invariant and tests:
//!
//! | part | what it keeps or does |
//! |---|---|
//! | `tables` | everything that an accepted commit changes, and the step that changes it |
//! | `log` | positions, stamps, the queue for the disk, space, recovery |
//! | `commit` | the pipeline of a request: validation, effects, dependencies, parking |
//! | `two_phase` | votes and their locks, decisions, the inquiry at other homes, what operators end |
//! | `pages` | images and the MOB, installation, removal, quarantine, waiters |
//! | `audit` | what is recorded about rights (rule R8) |
//! | `opening` | how operators open a closed home (rule R9) |
//! | `history` | what the home proves of its own history, and how it judges others' claims (rule R9) |
//! | `lists` | where rights lists are among changes |
//! | `rights` | who may do what in each segment (rules R3 and R4) |
//! | `usage` | what each name has of segments, page numbers and space (rule R7) |
//! | `outcomes` | outcomes and registrations: exactly once (rule 11) |
//! | `delegations` | by which sites the requests of a member may come (rule R2) |
//! | `serve`, `resync`, `calls` | what children ask for |
//! | `founding` | how a segment begins, and the home's own records |
//! | `delivery` | what the children are sent when it is durable |
//! | `housekeeping` | the home's own batches: installations and removals |
//! | `saved` | how far each log's updates are executed (rule C7) |
//! | `writers` | who may have written what the home has not seen, and readers that wait for it (rules C1, C3 and C4) |
//! | `segment_locks` | locks that sessions hold, and what is written under them (rule C5) |
//! | `lock_queue`, `locking` | who waits for locks, and when each gets its own (rule C5) |
//! | `readers` | answers that wait until readers with hard bounds have seen what they tell (rules C1, C2 and C4) |
//! | `lease_origins` | in whose names leases to write were asked for (rules C4 and R5) |
//! | `lease_log` | what is logged of leases, and awaited after a restart (rule C4) |

mod admission;
mod allowance;
mod audit;
mod calls;
mod clock;
mod commit;
mod config;
mod delegations;
mod delivery;
mod drift;
mod founding;
mod groups;
mod history;
mod housekeeping;
mod interface;
mod lease_log;
mod lease_origins;
mod lists;
mod lock_queue;
mod locking;
pub(crate) mod log;
mod name_limits;
mod opening;
mod operators;
mod outcomes;
mod pages;
mod readers;
mod registrars;
mod responses;
mod resync;
mod rights;
mod saved;
mod segment_locks;
mod segments;
mod serve;
mod signatures;
mod stager;
mod staging;
mod tables;
#[cfg(test)]
mod tests;
mod two_phase;
mod usage;
mod writers;

pub use crate::home::config::HomeConfig;
pub use crate::home::drift::ClockDrift;
pub use crate::home::history::{HomeHistory, OtherHistory, Reopen};
pub use crate::home::name_limits::NameLimits;
pub use crate::home::two_phase::inquiry::Doubts;
pub use interface::{HomeAction, HomeCommand, LoadResult};

use crate::edge::delegation;
use crate::edge::downstream::{Beginning, Children, cut_off};
use crate::edge::liveness::Neighbours;
use crate::home::allowance::Allowance;
use crate::home::audit::Occasion;
use crate::home::calls::{Caller, Calls};
use crate::home::commit::parking::{Parked, Parking};
use crate::home::commit::pipeline::Pipeline;
use crate::home::delivery::Delivery;
use crate::home::founding::Founding;
use crate::home::history::Judgement;
use crate::home::housekeeping::Housekeeping;
use crate::home::lock_queue::LockQueue;
use crate::home::locking::{Locking, Wanted};
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::log::recovery::{self, Recovered};
use crate::home::pages::install::Installer;
use crate::home::pages::remove::Remover;
use crate::home::pages::waiters::{Waiter, Waiters};
use crate::home::readers::{Leasing, Readers, Reading};
use crate::home::resync::Resync;
use crate::home::saved::Saving;
use crate::home::serve::Serve;
use crate::home::signatures::Signatures;
use crate::home::tables::Tables;
use crate::home::two_phase::decision::{Decisions, Sender};
use crate::home::two_phase::inquiry::Inquiry;
use crate::home::two_phase::passed_questions::PassedQuestions;
use crate::home::two_phase::remembered::Remembered;
use crate::home::two_phase::resolution::Resolution;
use crate::home::writers::{Writers, Writing};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::{CHILDREN_MAX, CLAIMS_MAX, HEARTBEAT_MS, LEASES_PER_CHILD_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallRequest, Claim, Closed, CommitRequest, Direction, Down, EdgeId, Epoch, Event,
    HomeId, LifeEnd, LifeId, LogHead, Mark, Message, Millis, NameId, NodeKind, NotDelegated, Note,
    Now, Outcome, PageId, Peer, Position, Principal, Privilege, Purpose, Reader, Receipt, Refusal,
    Right, Stamp, StateMachine, StorageError, Up, UpdateId, Verdict, message, planted,
};

/// Why a closed home ends an edge.
const IS_CLOSED: &str =
    "the home has met another history of itself, and is closed until an operator opens it";

/// What a home fills.
type Outbox = thorp_model::Outbox<HomeAction>;

/// The state machine of a home.
#[derive(Debug)]
pub struct Home {
    config: HomeConfig,
    log: Log,
    tables: Tables,
    inquiry: Inquiry,
    passed_questions: PassedQuestions,
    children: Children,
    /// Nodes that have come and have not claimed anything yet (rule R9).
    arrivals: BTreeMap<EdgeId, Peer>,
    /// Why it lets in operators only, if it does.
    closed: Option<Closed>,
    parking: Parking,
    waiters: Waiters,
    writers: Writers,
    readers: Readers,
    locks: LockQueue,
    installer: Installer,
    remover: Remover,
    next_beat: Millis,
    neighbours: Neighbours,
}

impl StateMachine for Home {
    type Command = HomeCommand;
    type Action = HomeAction;

    fn handle(&mut self, now: Now, event: Event<HomeCommand>, outbox: &mut Outbox) {
        self.readers.now = now.mono;
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
            } => self.arrived(edge, peer, outbox),
            Event::Connected { edge, peer, .. } if peer.kind == NodeKind::Home => {
                self.neighbours.came(edge);
                outbox.claim(edge, self.tables.receipts.claims());
            }
            Event::Connected { edge, .. } => outbox.close(edge, "a home has no parent"),
            Event::Disconnected { edge } => self.disconnected(edge),
            Event::Received {
                edge,
                message: Message::Claims(claims),
            } => self.claimed(now, edge, claims, outbox),
            Event::Received {
                edge,
                message: Message::Up(message),
            } => self.received(now, edge, message, outbox),
            Event::Received { edge, .. } if self.is_below(edge) => {
                cut_off(edge, "a child sent down", outbox);
            }
            Event::Received {
                edge,
                message: Message::Down(message),
            } => self.heard_other(now, edge, message, outbox),
            // Another home leads to no home but itself.
            Event::Received {
                message: Message::Homes(_),
                ..
            } => {}
            Event::Command(command) => self.command(now, command, outbox),
            Event::Tick => {}
        }
        self.writing(None).finish(now.mono, outbox);
        self.locking().finish(now, outbox);
        self.delivery().send_due(outbox);
        for edge in self.neighbours.tick(now.mono, outbox) {
            self.neighbour_is_silent(edge, outbox);
        }
        while let Some(edge) = self.children.worn_out() {
            outbox.note(Note::EdgeWornOut);
            self.end_edge(edge, "its entries are counted out: begin anew", outbox);
        }
        self.children.sweep();
        self.beat(now, outbox);
        self.housekeeping().run(outbox);
        self.reading().finish(outbox);
    }

    fn deadline(&self) -> Option<Millis> {
        let alive = self.neighbours.deadline();
        let pulls = self.writers.deadline();
        let answers = self.readers.deadline();
        let locks = self.locks.deadline();
        alive
            .into_iter()
            .chain(pulls)
            .chain(answers)
            .chain(locks)
            .chain([self.next_beat])
            .min()
    }
}

impl Home {
    /// Starts a home from its store, empty or not. The first batch, which marks
    /// this life, lies in the outbox.
    pub fn open(
        config: HomeConfig,
        store: &dyn Reader,
        now: Now,
        outbox: &mut Outbox,
    ) -> Result<Home, StorageError> {
        let Recovered {
            mut log,
            tables,
            installed,
            first_ops,
            receipts,
            granted,
            granted_to_read,
        } = recovery::recover(&config, store, now)?;
        let first = (Purpose::Housekeeping, first_ops);
        log.append(now, first, OnDurable::Nothing, outbox);
        let epoch = Epoch(u64::from(tables.next.life) << 32);
        let removed = tables.segments.removing();
        let mut children = Children::new(config.home, epoch, config.per_child);
        children.set_readers(tables.rights.readers());
        let locks = LockQueue::new(tables.segment_locks.deadline());
        let mut home = Home {
            remover: Remover::new(removed, config.pages_removed_max),
            installer: Installer::new(installed, config.log_records_high, config.log_trim_max),
            log,
            tables,
            inquiry: Inquiry::new(config.node, &config.other_homes),
            passed_questions: PassedQuestions::default(),
            children,
            arrivals: BTreeMap::new(),
            closed: config.history.closed.clone(),
            parking: Parking::new(config.parked_max, config.parked_bytes_max),
            waiters: Waiters::new(config.per_name.fetches_max),
            writers: Writers::new(config.lease_ms, granted, now.mono),
            readers: Readers::new(config.read_lease_ms(), granted_to_read, now.mono),
            locks,
            next_beat: Millis(0),
            neighbours: Neighbours::new(config.alive),
            config,
        };
        home.recover_receipts(receipts);
        if home.config.begins_closed {
            home.founding().found_closed_lists(now, outbox)?;
        }
        Ok(home)
    }

    fn command(&mut self, now: Now, command: HomeCommand, outbox: &mut Outbox) {
        match command {
            HomeCommand::Durable(mark) => self.made_durable(mark, outbox),
            HomeCommand::Loaded { page, result } => self.loaded(now, page, result, outbox),
            HomeCommand::Lacks(lack) => {
                self.log.set_lack(lack);
                self.decisions().carry_out_waiting(now, outbox);
            }
            HomeCommand::Space {
                free,
                room,
                of,
                installs,
                as_of,
            } => self.log.report_space((free, room, of), installs, as_of),
            HomeCommand::TurnedAway(away) => self.tables.audit.note_turned_away(&away),
        }
    }

    /// Which home it is.
    pub fn id(&self) -> HomeId {
        self.config.home
    }

    /// The life that runs, and where the one before has ended. It has to be durable before anybody hears of this home
    /// (trap R25).
    pub fn life(&self) -> (LifeId, LifeEnd) {
        self.log.life()
    }

    /// How far the log is durable and told.
    pub fn durable(&self) -> Position {
        self.log.durable()
    }

    /// Whether this home's clock or another home's is wrong, as far as stamps show it.
    pub fn clock_drift(&self, now: Now) -> Option<ClockDrift> {
        self.log.clock.drift(now)
    }

    /// What is in doubt here.
    pub fn doubts(&self, now: Millis) -> Doubts {
        self.inquiry.doubts(&self.tables.votes, now)
    }

    /// How long writers have waited for readers with leases since the home started, all added up, in milliseconds (rule C2).
    pub fn writers_waited_ms(&self) -> u64 {
        self.readers.waited_ms()
    }

    /// Segments that have no rights list: they are from before there were rights, and each member may write there (rule
    /// R3).
    pub fn segments_without_rights(&self) -> usize {
        self.tables.rights.without_list(&self.tables.segments)
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
        let most = self.allowance().most_under_way();
        let (pending, pending_bytes) = self.log.pending();
        let log = self.log.durable().0 - self.installer.installed().0;
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
            ("log", log as usize),
            ("changes", self.tables.changes.len()),
            ("registrations", self.tables.outcomes.len()),
            ("votes", self.tables.votes.len()),
            ("asking", self.inquiry.len()),
            ("joints", self.tables.joints.len()),
            ("questions_passed", self.passed_questions.len()),
            ("telling", self.log.admission().telling()),
            ("in_doubt", self.tables.votes.in_doubt()),
            ("in_doubt_bytes", self.tables.votes.open_bytes()),
            ("segments", self.tables.segments.len()),
            ("segments_of_a_name", self.tables.usage.most_segments()),
            ("pages_of_a_name", self.tables.usage.most_pages()),
            (
                "commits_of_a_name",
                self.allowance().most_of_a_name().commits
            ),
            ("calls_of_a_name", self.allowance().most_of_a_name().calls),
            ("fetches_of_a_name", self.waiters.most_of_a_name()),
            ("readers_of_a_name", self.tables.rights.most_told()),
            ("restricted", self.children.restricted()),
            ("staged", self.tables.staging.len()),
            ("pending", pending),
            ("pending_bytes", pending_bytes),
            ("parked", self.parking.len()),
            ("parked_bytes", self.parking.bytes()),
            ("waiting", self.waiters.len()),
            ("logs", self.tables.saved.len()),
            ("locks", self.tables.segment_locks.len()),
            ("lock_queue", self.locks.len()),
        ]
        .into_iter()
        .chain(self.writers.sizes())
        .chain(self.readers.sizes())
        .collect()
    }

    /// A node has come. Its stream begins when it has claimed what it holds (rule R9).
    fn arrived(&mut self, edge: EdgeId, peer: Peer, outbox: &mut Outbox) {
        if self.closed.is_some() && !peer.is_operator {
            return outbox.close(edge, IS_CLOSED);
        }
        // It has lost the old edge: nobody reads there, nobody acknowledges.
        let mut waiting = self.arrivals.iter();
        let waiting = waiting.find(|(_, waits)| waits.node == peer.node);
        let old = self.children.edge_of(peer.node);
        if let Some(old) = old.or(waiting.map(|(edge, _)| *edge)) {
            outbox.note(Note::CameAgain);
            self.end_edge(old, "the same node has come again", outbox);
        }
        if self.arrivals.len() + self.children.len() >= CHILDREN_MAX {
            outbox.note(Note::ChildLimited);
            return outbox.close(edge, "too many children");
        }
        self.neighbours.came(edge);
        self.arrivals.insert(edge, peer);
    }

    /// A node has claimed what it holds of homes: its stream of this one begins (rule R9).
    fn claimed(
        &mut self,
        now: Now,
        edge: EdgeId,
        claims: Vec<(HomeId, Claim)>,
        outbox: &mut Outbox,
    ) {
        let Some(peer) = self.arrivals.remove(&edge) else {
            return outbox.note(Note::OtherEpochDropped);
        };
        if claims.len() > CLAIMS_MAX {
            self.neighbours.went(edge);
            return cut_off(
                edge,
                "it claims to hold more homes than there may be",
                outbox,
            );
        }
        let mut own = claims.iter().filter(|(home, _)| *home == self.config.home);
        let verdict = match own.next() {
            Some((_, claim)) => self.judge(now, &peer.name, claim, outbox),
            None => Some(Verdict::Known),
        };
        match verdict {
            Some(verdict) => self.begin(now, edge, &peer, verdict, outbox),
            None => self.end_edge(edge, IS_CLOSED, outbox),
        }
    }

    fn begin(
        &mut self,
        now: Now,
        edge: EdgeId,
        peer: &Peer,
        verdict: Verdict,
        outbox: &mut Outbox,
    ) {
        let name = self.config.name.clone();
        let beginning = Beginning {
            at: (self.log.durable(), self.watermark(now)),
            name: &name,
            sites: Vec::new(),
            silent_ms: 0,
            receipt: self.receipt(),
            verdict,
        };
        if peer.kind == NodeKind::Home {
            return self.other_came(edge, &peer.name, beginning, outbox);
        }
        if !self.children.begin(edge, peer, beginning, outbox) {
            return self.end_edge(edge, "too many children", outbox);
        }
        self.tables.audit.learn(&peer.name);
        self.writing(None).came(peer.node, outbox);
        self.reading().came(peer.node, outbox);
    }

    // --- History (rule R9) ---

    /// The receipt of how far this home is durable.
    fn receipt(&mut self) -> Receipt {
        self.log.receipt(self.tables.votes.lowest_stamp())
    }

    /// Judges a claim that a node has brought. None: it proves another history, and this home is closed now.
    fn judge(&mut self, now: Now, by: &str, claim: &Claim, outbox: &mut Outbox) -> Option<Verdict> {
        match self.log.judge(claim) {
            Judgement::Known => Some(Verdict::Known),
            // While the home is closed nobody forgets: which history is the right one, an operator decides.
            Judgement::Another if !planted::is(Bug::OtherHistoryIgnored) => {
                if self.closed.is_none() {
                    self.close(now, by, claim.receipt, outbox);
                }
                None
            }
            judged => {
                if judged == Judgement::Unproven {
                    self.tables.audit.note_unproven(by);
                }
                outbox.note(Note::ClaimNotKnown);
                Some(match planted::is(Bug::NobodyForgets) {
                    true => Verdict::Known,
                    false => Verdict::Forget,
                })
            }
        }
    }

    /// A site asks about the claim of a node below it.
    fn judge_below(&mut self, now: Now, edge: EdgeId, judge: &message::Judge, outbox: &mut Outbox) {
        let Some(site) = self.children.get(edge).map(|site| site.name.clone()) else {
            return;
        };
        if let Some(verdict) = self.judge(now, &site, &judge.claim, outbox) {
            let judged = message::Judged {
                home: self.config.home,
                question: judge.question,
                verdict,
            };
            outbox.down(edge, Down::Judged(judged));
        }
    }

    /// Another history was proven. Which of the two is the right one, an operator decides: until then this home serves
    /// nobody else.
    fn close(&mut self, now: Now, by: &str, receipt: Receipt, outbox: &mut Outbox) {
        outbox.note(Note::OtherHistoryMet);
        let by = String::from(by);
        let other = OtherHistory { receipt, by };
        self.closed = Some(other.closes());
        self.tables.audit.note_met(&other);
        self.write_audit(now, outbox);
        outbox.act(HomeAction::Close(other));
        let all = self.children.edges().chain(self.arrivals.keys().copied());
        let all: BTreeSet<EdgeId> = all.chain(self.inquiry.edges()).collect();
        for edge in all {
            self.end_edge(edge, IS_CLOSED, outbox);
        }
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
        self.children.get(edge).is_some()
            || self.arrivals.contains_key(&edge)
            || self.inquiry.is_asker(edge)
    }

    fn disconnected(&mut self, edge: EdgeId) {
        self.neighbours.went(edge);
        self.arrivals.remove(&edge);
        let child = self.children.get(edge).map(|child| child.node);
        self.children.end(edge);
        self.inquiry.went(edge, &mut self.tables.votes);
        for asked in self.passed_questions.went(edge) {
            self.remembered().lost(asked);
        }
        self.parking.forget(edge);
        self.waiters.forget(edge);
        self.writers.went(edge, child);
        self.reading().edge_gone(edge);
        self.locks.edge_gone(edge);
    }

    /// Ends an edge now: what still comes of it changes nothing.
    fn end_edge(&mut self, edge: EdgeId, why: &'static str, outbox: &mut Outbox) {
        self.disconnected(edge);
        outbox.close(edge, why);
    }

    fn received(&mut self, now: Now, edge: EdgeId, message: Up, outbox: &mut Outbox) {
        let Some(child) = self.children.get(edge) else {
            return self.asked_by_other(now, edge, message, outbox);
        };
        let is_own = message.is_own(child.node) || planted::is(Bug::OthersHeard);
        if child.kind == NodeKind::Member && !is_own {
            return cut_off(edge, "it speaks for another member", outbox);
        }
        // A message of another stream is noted once, whatever it says (rule 1).
        if let Some(epoch) = message.epoch()
            && self.children.in_epoch(edge, epoch, outbox).is_none()
        {
            return;
        }
        let who = match self.speaker(now, edge, &message) {
            Ok(who) => who,
            Err(why) => return self.not_delegated(edge, &message, why, outbox),
        };
        match message {
            Up::Fetch(fetch) => {
                let waiter = Waiter::of((edge, who.name), &fetch);
                self.serve().fetch(fetch.page, waiter, outbox);
            }
            Up::Evict(evict) => {
                self.children.evict(edge, evict.page, evict.entry, outbox);
            }
            Up::Ack(ack) => self.acknowledged(edge, ack.position, outbox),
            Up::Watch(watch) => self.watch(edge, &watch, outbox),
            Up::Report(report) => self.resync().report(edge, &report, outbox),
            Up::Commit(request) => self.commit(now, (edge, who), (request, None), outbox),
            Up::Save(save) => self.save(now, (edge, who), *save, outbox),
            Up::Heads(heads) => self.writing(None).heads(edge, heads),
            Up::GiveBack(back) if back.segments.len() > LEASES_PER_CHILD_MAX => {
                cut_off(edge, "it gives back more leases than it may have", outbox);
            }
            Up::GiveBack(back) => match back.privilege {
                Privilege::Write => {
                    self.writing(None).give_back(edge, &back);
                    self.locks.is_stirred = true;
                }
                Privilege::Read { .. } => self.reading().give_back(edge, &back.segments),
            },
            Up::Seen(seen) => self.reading().seen(edge, &seen, outbox),
            Up::Decide(decide) => self.decide(now, edge, &decide, outbox),
            Up::Settled(settled) => self.decisions().settled(settled.commit, outbox),
            Up::Call(call) => self.called(now, (edge, who), call, outbox),
            Up::Denied(denied) => self.denied_below(edge, &denied, outbox),
            Up::Judge(judge) => self.judge_below(now, edge, &judge, outbox),
            // Nobody redirects to or from a home, which shows nothing that it has not executed.
            Up::Peer(_) | Up::Update(_) | Up::Keep(_) | Up::Kept(_) => {}
        }
        self.note_denials();
    }

    /// Whose rights count for a message. What a site brings in the name of a member needs a valid
    /// delegation; on its own edge the certificate of the connection names the member (rule R2).
    fn speaker(&self, now: Now, edge: EdgeId, message: &Up) -> Result<Principal, NotDelegated> {
        let child = self.children.get(edge);
        let site = child.filter(|child| child.kind != NodeKind::Member);
        let (Some(site), Some(member)) = (site, message.member()) else {
            return Ok(child.map_or(Principal::default(), |child| child.who));
        };
        let is_registering = matches!(
            message,
            Up::Call(message::Call {
                request: CallRequest::Register(Some(_)),
                ..
            })
        );
        if is_registering || planted::is(Bug::SiteBelieved) {
            let name = member.name();
            return Ok(Principal {
                name,
                is_operator: false,
            });
        }
        if !message.is_own(member) {
            return Err(NotDelegated::OtherSite);
        }
        let delegated = self.tables.outcomes.delegated(member);
        let delegated = delegated.ok_or(NotDelegated::Missing)?;
        delegated.judge(site.node.name(), now.wall)
    }

    /// Drops a message, and records nothing for the ids that it names (rule R2, trap R34).
    fn not_delegated(
        &mut self,
        edge: EdgeId,
        message: &Up,
        why: NotDelegated,
        outbox: &mut Outbox,
    ) {
        outbox.note(Note::NotDelegated);
        if let Up::Commit(request) = message
            && planted::is(Bug::UndelegatedRecorded)
        {
            let (tables, log) = (&mut self.tables, &mut self.log);
            let refused = (request, None, Refusal::Unknown);
            return tables.refuse(edge, refused, log, outbox);
        }
        if let Some(answer) = delegation::not_delegated(self.config.home, message, why) {
            outbox.down(edge, answer);
        }
    }

    /// A site has denied somebody something (rule R8).
    fn denied_below(&mut self, edge: EdgeId, denied: &message::Denied, outbox: &mut Outbox) {
        let child = self.children.get(edge);
        let Some(site) = child.filter(|child| child.kind != NodeKind::Member) else {
            return;
        };
        if !denied.is_right() {
            return cut_off(edge, "a name that no certificate has", outbox);
        }
        let who = NameId::of(&denied.name);
        let occasion = Occasion::denied(who, denied.segment, Right::Read);
        let occasion = occasion.brought_by(Some(site.node.name()));
        let below = denied.site.as_deref();
        let occasion = occasion.said_by(below.map(NameId::of));
        self.tables.audit.learn_reported(&denied.name);
        below
            .into_iter()
            .for_each(|site| self.tables.audit.learn_reported(site));
        self.tables.audit.note(occasion, denied.count);
    }

    /// What children were denied goes into the audit, which shares its space by name.
    fn note_denials(&mut self) {
        for ((name, segment), count) in self.children.take_denials() {
            let occasion = Occasion::denied(NameId::of(&name), segment, Right::Read);
            self.tables.audit.note(occasion, count);
        }
    }

    /// Records of what has happened are written, where the store has space for them (rule R8).
    fn write_audit(&mut self, now: Now, outbox: &mut Outbox) {
        self.note_denials();
        if !self.log.is_busy() {
            self.founding().write_audit(now, outbox);
        }
    }

    fn watch(&mut self, edge: EdgeId, watch: &message::Watch, outbox: &mut Outbox) {
        let (home, segment) = (self.config.home, watch.segment);
        let is_hidden = watch.on && !self.serve().may_read(edge, segment);
        if is_hidden {
            self.children.deny(edge, segment, outbox);
        } else if self.children.watch(edge, segment, watch.on) {
            return;
        } else {
            outbox.note(Note::ChildLimited);
        }
        outbox.down(edge, Down::Unwatched(message::Unwatched { home, segment }));
    }

    fn called(
        &mut self,
        now: Now,
        (edge, who): (EdgeId, Principal),
        call: message::Call,
        outbox: &mut Outbox,
    ) {
        // The home refuses at once: an answer that waits for the disk would be one more that does.
        if self.log.is_busy() || self.allowance().has_all_calls((edge, who.name), outbox) {
            let busy = Err(CallError::Busy);
            let home = self.config.home;
            return outbox.down(edge, responses::call_result(home, call.call, busy));
        }
        let caller = Caller {
            edge,
            call: call.call,
            who,
            site: self.site(edge),
            is_home: false,
            ends_unknown: true,
        };
        let carrier = self.carrier(edge);
        let mut writing = self.writing(carrier);
        match call.request {
            CallRequest::Follow { segment, logs } => writing.follow(caller, segment, &logs),
            CallRequest::Lease {
                segments,
                privilege,
            } => match privilege {
                Privilege::Write => writing.lease(now.mono, caller, &segments, outbox),
                Privilege::Read { mods } => {
                    let is_written = self.writers.may_write(&segments, now.mono);
                    let wanted = Leasing {
                        segments: &segments,
                        mods,
                        is_written,
                    };
                    self.reading().lease((caller, carrier), wanted, outbox);
                }
            },
            CallRequest::Pull {
                segments,
                patience_ms,
            } => writing.pull(now.mono, caller, (segments, patience_ms), outbox),
            CallRequest::Lock {
                segments,
                mode,
                patience_ms,
            } => {
                let wanted = Wanted {
                    segments,
                    mode,
                    patience_ms,
                };
                self.locking().lock(now, (caller, carrier), wanted, outbox);
            }
            CallRequest::KeepLock { fence } => self.locking().keep(now.mono, caller, fence),
            CallRequest::Unlock { fence } => self.locking().unlock(now, caller, fence, outbox),
            request => self.calls(carrier).call(now, caller, request, outbox),
        }
    }

    /// The node whose edge brings something, if it is a child.
    fn carrier(&self, edge: EdgeId) -> Option<NameId> {
        self.children.get(edge).map(|child| child.node.name())
    }

    /// The site whose edge brings something; none: it is a member's own edge.
    fn site(&self, edge: EdgeId) -> Option<NameId> {
        let child = self.children.get(edge);
        let site = child.filter(|child| child.kind != NodeKind::Member);
        site.map(|site| site.node.name())
    }

    /// An update of a log. The rights of its author count, as the home finds them now (rule C7).
    fn save(
        &mut self,
        now: Now,
        (edge, who): (EdgeId, Principal),
        save: message::Save,
        outbox: &mut Outbox,
    ) {
        let signatures = Signatures {
            verifier: &*self.config.verifier,
            wall: now.wall,
        };
        if self.site(edge).is_some() && !signatures.prove_custody(&save) {
            let why = NotDelegated::NotProven;
            return self.not_delegated(edge, &Up::Save(Box::new(save)), why, outbox);
        }
        let author = signatures.author(&save);
        let saving = Saving {
            update: save.update,
            confirmed: save.confirmed,
            is_proven: author != Some(None),
            author: author.flatten().map(|author| author.name),
        };
        let who = author.flatten().unwrap_or(who);
        self.commit(now, (edge, who), (save.request, Some(saving)), outbox);
    }

    fn commit(
        &mut self,
        now: Now,
        (edge, who): (EdgeId, Principal),
        (request, saving): (CommitRequest, Option<Saving>),
        outbox: &mut Outbox,
    ) {
        // What is under way counts for whoever sends it, and not for the author of an update.
        let name = request.id.member.name();
        if self.allowance().has_all_commits((edge, name), outbox)
            || self.readers.is_full_of(name)
            || saving.is_some_and(|saving| self.keeps_back(saving.update))
        {
            outbox.note(Note::RefusedBusy);
            let (home, refused) = (self.config.home, Outcome::Refused(Refusal::busy()));
            return outbox.down(edge, Down::outcome(home, request.id, refused));
        }
        let parked = Parked {
            edge,
            who,
            carrier: self.carrier(edge),
            request,
            saving,
            needs: BTreeSet::new(),
            missing: BTreeSet::new(),
        };
        self.pipeline().commit(now, parked, outbox);
    }

    /// Whether an update that comes again is saved, and its answer is kept back (rule C2). Then its log sends it once more.
    fn keeps_back(&self, update: UpdateId) -> bool {
        let UpdateId {
            log,
            segment,
            number,
        } = update;
        let head = LogHead {
            log,
            segment,
            number,
        };
        let is_saved = self.tables.saved.has(&head);
        is_saved && self.readers.keeps_back(update, is_saved)
    }

    fn decide(&mut self, now: Now, edge: EdgeId, decide: &message::Decide, outbox: &mut Outbox) {
        let sender = Sender {
            edge,
            is_member: self.allowance().is_member(edge),
            has_all_answers: self.allowance().has_all_answers(edge),
        };
        self.decisions().decide(now, sender, decide, outbox);
    }

    /// A page has come from disk, or is damaged: everything that waited for it goes on.
    fn loaded(&mut self, now: Now, page: PageId, result: LoadResult, outbox: &mut Outbox) {
        if !self.serve().loaded(page, result, outbox) {
            return;
        }
        for waiter in self.waiters.take(page) {
            let child = self.children.in_epoch(waiter.edge, waiter.epoch, outbox);
            if child.is_some() {
                self.serve().fetch(page, waiter, outbox);
                self.delivery().send_due(outbox);
            }
        }
        self.decisions().carry_out_waiting(now, outbox);
        for parked in self.parking.take_complete(page) {
            self.delivery().send_due(outbox);
            self.pipeline().commit(now, parked, outbox);
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

    // --- Other homes (rule 10) ---

    /// Another home has come to ask: it learns whose this is, and gets no stream.
    fn other_came(
        &mut self,
        edge: EdgeId,
        asker: &str,
        beginning: Beginning<'_>,
        outbox: &mut Outbox,
    ) {
        if !self.inquiry.asker_came(edge, asker) {
            outbox.note(Note::ChildLimited);
            return self.end_edge(edge, "too many other homes", outbox);
        }
        let begin = responses::begin_for_home(self.config.home, beginning);
        outbox.down(edge, begin);
    }

    /// Another home asks; it does nothing else here. What comes by all other edges that are no
    /// child's is late.
    fn asked_by_other(&mut self, now: Now, edge: EdgeId, message: Up, outbox: &mut Outbox) {
        match message {
            Up::Call(call)
                if matches!(
                    call.request,
                    CallRequest::Outcome { .. } | CallRequest::Joint { .. }
                ) && self.inquiry.is_asker(edge) =>
            {
                if self.log.is_busy() {
                    // It asks again.
                    let busy = Err(CallError::Busy);
                    let home = self.config.home;
                    return outbox.down(edge, responses::call_result(home, call.call, busy));
                }
                let caller = Caller {
                    edge,
                    call: call.call,
                    who: Principal::default(),
                    site: None,
                    is_home: true,
                    ends_unknown: self.inquiry.is_configured(edge),
                };
                self.calls(None).call(now, caller, call.request, outbox);
            }
            _ => outbox.note(Note::OtherEpochDropped),
        }
    }

    /// The stream of another home: it begins, and brings answers. The rest is not for a home.
    fn heard_other(&mut self, now: Now, edge: EdgeId, message: Down, outbox: &mut Outbox) {
        match message {
            Down::Begin(begin) => {
                self.inquiry.found(&begin, edge);
                self.proved(edge, begin.receipt);
            }
            Down::Receipt(receipt) => self.proved(edge, receipt),
            Down::CallResult(answer) => match self.passed_questions.answered(edge, answer.call) {
                Some(asked) => self.remembered().answered(asked, answer),
                None => self.resolution().answered(now, edge, answer, outbox),
            },
            _ => {}
        }
    }

    /// Another home proves how far it is: what it says later rests on that (rule R9).
    fn proved(&mut self, edge: EdgeId, receipt: Receipt) {
        if let Some(name) = self.inquiry.prover(edge, &receipt) {
            self.tables.receipts.take(&name, receipt);
        }
    }

    /// Takes what other homes had proved before this one started.
    fn recover_receipts(&mut self, receipts: Vec<(String, Receipt)>) {
        if planted::is(Bug::ReceiptsForgotten) {
            return;
        }
        for (name, receipt) in receipts {
            let is_configured = self.inquiry.configured().has(&name);
            self.tables.receipts.recover(&name, receipt, is_configured);
        }
    }

    // --- What is durable ---

    fn made_durable(&mut self, mark: Mark, outbox: &mut Outbox) {
        self.log.made_durable(mark);
        self.delivery().send_due(outbox);
        let durable = self.log.durable_mark();
        self.installer.made_durable(durable, &mut self.tables.pages);
        self.log.installed(self.installer.installed());
        let gone = self.remover.made_durable(durable);
        if let Some(segment) = gone {
            self.tables.segments.end_removal(segment);
            self.tables.usage.forget(segment);
        }
    }

    // --- Time ---

    fn watermark(&mut self, now: Now) -> Stamp {
        self.log.watermark(now, self.tables.votes.lowest_stamp())
    }

    /// Drops a value of a member that is silent for long. Also without space, because it makes some.
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
            let batch = (Purpose::Housekeeping, self.tables.receipts.save());
            self.log.append(now, batch, OnDurable::Nothing, outbox);
        }
        self.expire_staged(now, outbox);
        self.writing(None).sweep(now.mono, outbox);
        self.reading().sweep(outbox);
        self.write_audit(now, outbox);
        // A closed home asks nobody: what it is in doubt about may be of a lost history.
        if self.closed.is_none() {
            self.inquiry.look_for_missing(outbox);
            self.resolution().ask_others(now, outbox);
        }
        self.delivery().send_due(outbox);
        let watermark = self.watermark(now);
        self.vouch(outbox);
        self.children
            .heartbeat(self.log.durable(), watermark, outbox);
    }

    /// Each neighbour gets the receipt of how far this home is, if it has none of that.
    fn vouch(&mut self, outbox: &mut Outbox) {
        let receipt = self.receipt();
        self.children.vouch_all(receipt, outbox);
        for edge in self.inquiry.askers() {
            outbox.down(edge, Down::Receipt(receipt));
        }
    }

    // --- Views of the parts ---

    fn allowance(&self) -> Allowance<'_> {
        Allowance {
            children: &self.children,
            admission: self.log.admission(),
            parking: &self.parking,
            per_name: &self.config.per_name,
        }
    }

    fn delivery(&mut self) -> Delivery<'_> {
        Delivery {
            serve: Serve {
                home: self.config.home,
                children: &mut self.children,
                log: &mut self.log,
                tables: &mut self.tables,
                waiters: &mut self.waiters,
            },
            remover: &mut self.remover,
            writers: &mut self.writers,
            readers: &mut self.readers,
        }
    }

    fn reading(&mut self) -> Reading<'_> {
        Reading {
            home: self.config.home,
            readers: &mut self.readers,
            children: &mut self.children,
            tables: &mut self.tables,
            log: &mut self.log,
        }
    }

    fn locking(&mut self) -> Locking<'_> {
        Locking {
            queue: &mut self.locks,
            writers: &mut self.writers,
            children: &self.children,
            tables: &mut self.tables,
            log: &mut self.log,
            incarnation: self.config.history.incarnation,
        }
    }

    fn writing(&mut self, carrier: Option<NameId>) -> Writing<'_> {
        Writing {
            locks: &self.locks,
            writers: &mut self.writers,
            readers: &mut self.readers,
            children: &self.children,
            tables: &mut self.tables,
            log: &mut self.log,
            carrier,
        }
    }

    fn resolution(&mut self) -> Resolution<'_> {
        Resolution {
            inquiry: &mut self.inquiry,
            decisions: Decisions {
                log: &mut self.log,
                tables: &mut self.tables,
            },
        }
    }

    fn pipeline(&mut self) -> Pipeline<'_> {
        Pipeline {
            config: &self.config,
            log: &mut self.log,
            tables: &mut self.tables,
            parking: &mut self.parking,
            other_homes: self.inquiry.configured(),
        }
    }

    fn housekeeping(&mut self) -> Housekeeping<'_> {
        Housekeeping {
            log: &mut self.log,
            tables: &mut self.tables,
            installer: &mut self.installer,
            remover: &mut self.remover,
            parking: &self.parking,
        }
    }

    fn decisions(&mut self) -> Decisions<'_> {
        self.resolution().decisions
    }

    fn calls(&mut self, carrier: Option<NameId>) -> Calls<'_> {
        Calls {
            carrier,
            verifier: &*self.config.verifier,
            inquiry: &self.inquiry,
            closed: self.closed.as_ref(),
            passed: &mut self.passed_questions,
            node: self.config.node,
            log: &mut self.log,
            tables: &mut self.tables,
            remover: &mut self.remover,
        }
    }

    fn remembered(&mut self) -> Remembered<'_> {
        Remembered {
            inquiry: &self.inquiry,
            passed: &mut self.passed_questions,
            log: &mut self.log,
            tables: &mut self.tables,
        }
    }

    fn founding(&mut self) -> Founding<'_> {
        Founding {
            log: &mut self.log,
            tables: &mut self.tables,
        }
    }

    fn serve(&mut self) -> Serve<'_> {
        self.delivery().serve
    }

    fn resync(&mut self) -> Resync<'_> {
        Resync {
            home: self.config.home,
            children: &mut self.children,
            log: &self.log,
            tables: &self.tables,
            installed: self.installer.installed(),
        }
    }
}
