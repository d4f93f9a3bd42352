//! The simulated world: nodes, connections, what is going to happen, and the
//! truth that all of it is held against.

use crate::certificates::Authority;
use crate::checks;
use crate::checks::watches::Watches;
use crate::counts::Counts;
use crate::digest::Turn;
use crate::disk::Disk;
use crate::failure::{Checked, demand};
use crate::faults::Relief;
use crate::freshness::Freshness;
use crate::history::History;
use crate::link::Edge;
use crate::node::{Machine, Node, Resident};
use crate::options::Options;
use crate::oracle::Oracle;
use crate::pace::Pace;
use crate::program::{PROGRESS_MIN, Session};
use crate::time::{Agenda, At, Local, NodeNo, Planned};
use crate::trace::Trace;
use crate::village::Village;
use std::collections::BTreeMap;
use thorp_cache::Cache;
use thorp_model::limits::{ENTERINGS_MAX, SWEPT_PAGES_MAX};
use thorp_model::{
    EdgeId, EntryNo, HomeId, Lack, MemberId, NameId, NodeKind, Outbox, Position, ReceiptKey,
    RequestId, Stamp, Xoshiro256,
};
use thorp_protocol::{
    ChildLimits, Home, HomeCommand, HomeConfig, Member, MemberConfig, Redirector, RedirectorConfig,
};

/// A village in simulated time.
pub struct World {
    /// What the seed has drawn.
    pub village: Village,
    /// The time.
    pub now: At,
    /// What is going to happen.
    pub agenda: Agenda,
    /// Homes first, then sites, then members.
    pub nodes: Vec<Node>,
    /// The connections that somebody still knows of.
    pub edges: BTreeMap<EdgeId, Edge>,
    /// Each home's truth.
    pub oracles: BTreeMap<HomeId, Oracle>,
    /// What programs did and were told.
    pub history: History,
    /// When each node last heard of a home, itself or through its parent.
    pub heard: BTreeMap<(NodeNo, HomeId), At>,
    /// The highest watermark that anybody was promised, for each home.
    pub promised: BTreeMap<HomeId, Stamp>,
    /// What was durable and told at each home, by time.
    pub durable_told: BTreeMap<HomeId, Vec<(At, Position)>>,
    /// Freshness of a home that a node is about to take, or to turn away.
    pub arriving: Option<(HomeId, Freshness)>,
    /// When members last committed.
    pub pace: Pace,
    /// What is counted.
    pub counts: Counts,
    /// What happened.
    pub trace: Trace,
    /// The chance of delays, disks and the like.
    pub prng: Xoshiro256,
    /// The chance of faults.
    pub fault_prng: Xoshiro256,
    /// Faults that last, and are to be relieved.
    pub reliefs: Vec<Option<Relief>>,
    /// Children that cannot reach a parent, and until when.
    pub partitions: BTreeMap<(NodeNo, NodeNo), At>,
    /// The next home that tells a vote is cut off then.
    pub leave_in_doubt: bool,
    /// Redirectors that members carry in their processes.
    pub carried: BTreeMap<NodeNo, NodeNo>,
    /// Faults still to come.
    pub strikes_left: usize,
    /// Whether the faults are over.
    pub healed: bool,
    /// Whether programs stop after what they are at.
    pub closing: bool,
    /// Edges given so far.
    pub last_edge: EdgeId,
    /// Sessions so far.
    pub sessions: u32,
}

/// Events after which a run is taken to be running away.
const EVENTS_MAX: u64 = 3_000_000;

/// Simulated milliseconds that programs have to make progress in, once healed.
const LIVENESS_MS_MAX: u64 = 60_000;

/// Round trips to a home that programs have besides: pages one after the other, a commit, and all
/// of it again after a conflict.
const LIVENESS_ROUND_TRIPS: u64 = 100;

/// Where there are many pages a transaction over all of them waits for each.
const LIVENESS_ROUND_TRIPS_A_PAGE: u64 = 15;

/// Simulated milliseconds until a village at rest is quiet.
const QUIET_MS: u64 = 8_000;

/// And until the homes' logs are as short as they get: one that deletes one record with each batch, on a slow disk, needed
/// twenty seconds more for what it had taken in (seed 5487).
const TRIMMED_MS: u64 = 60_000;

/// Round trips until it is, too. Where an answer takes longer than anybody waits, a site asks again, the site above it
/// does for that, and its answer is that to a third try.
const QUIET_ROUND_TRIPS: u64 = 5;

impl World {
    /// The village of a seed, at the beginning of time.
    pub fn new(seed: u64, options: Options) -> Checked<Self> {
        Self::with_village(seed, options, Village::draw)
    }

    /// The village that somebody draws for a seed.
    pub(crate) fn with_village(
        seed: u64,
        options: Options,
        draw: fn(&mut Xoshiro256) -> Village,
    ) -> Checked<Self> {
        let mut prng = Xoshiro256::new(seed);
        let village = draw(&mut prng.fork());
        let fault_prng = prng.fork();
        let mut world = World {
            now: At(0),
            agenda: Agenda::default(),
            nodes: Vec::new(),
            edges: BTreeMap::new(),
            oracles: BTreeMap::new(),
            history: History::default(),
            heard: BTreeMap::new(),
            promised: BTreeMap::new(),
            durable_told: BTreeMap::new(),
            arriving: None,
            pace: Pace::default(),
            counts: Counts {
                seeds: 1,
                ..Counts::default()
            },
            trace: Trace::new(options.trace),
            prng,
            fault_prng,
            reliefs: Vec::new(),
            partitions: BTreeMap::new(),
            carried: BTreeMap::new(),
            leave_in_doubt: false,
            strikes_left: village.strikes,
            healed: false,
            closing: false,
            last_edge: EdgeId(0),
            sessions: 0,
            village,
        };
        world.trace.line(|| format!("seed {seed}"));
        world.settle()?;
        Ok(world)
    }

    /// Puts everybody in place.
    fn settle(&mut self) -> Checked {
        let (homes, sites) = (self.village.homes.len(), self.village.sites.len());
        let all_homes: Vec<NodeNo> = (0..homes).map(NodeNo).collect();
        for index in 0..homes {
            let home = HomeId(index as u32 + 1);
            let key = ReceiptKey::new([home.0 as u8; 32]);
            let disk = Disk::new(self.village.homes[index].sync_ms_max, key);
            self.oracles.insert(home, Oracle::default());
            let others = all_homes.iter().copied().filter(|no| no.0 != index);
            let no = self.add_node(NodeKind::Home, index, others.collect(), Some((home, disk)));
            self.node(no).wall_ms_ahead = self.village.homes[index].wall_ms_ahead as i64;
        }
        for index in 0..sites {
            let above = self.village.sites[index].above;
            let parents = match above {
                Some(above) => vec![NodeNo(homes + above)],
                None => all_homes.clone(),
            };
            self.add_node(NodeKind::Redirector, index, parents, None);
        }
        for index in 0..self.village.members.len() {
            let parents = match self.village.members[index].site {
                Some(site) => vec![NodeNo(homes + site)],
                None => all_homes.clone(),
            };
            self.add_node(NodeKind::Member, index, parents, None);
        }
        for index in 0..self.nodes.len() {
            self.start(NodeNo(index))?;
        }
        self.agenda.plan(At(0).plus_ms(500), Planned::Strike);
        Ok(())
    }

    /// Adds a node that does not run yet.
    pub fn add_node(
        &mut self,
        kind: NodeKind,
        plan: usize,
        parents: Vec<NodeNo>,
        home: Option<(HomeId, Disk)>,
    ) -> NodeNo {
        let no = NodeNo(self.nodes.len());
        let letter = match kind {
            NodeKind::Home => "h",
            NodeKind::Redirector => "r",
            NodeKind::Member => "m",
        };
        self.nodes.push(Node {
            no,
            name: format!("{letter}{plan}"),
            kind,
            greets_as: kind,
            id: MemberId(0),
            life: 0,
            started: self.now,
            mono_per_mille: 0,
            wall_ms_ahead: 0,
            drift: None,
            machine: None,
            tick_planned: None,
            news: BTreeMap::new(),
            freshness_held: BTreeMap::new(),
            parents,
            deaf_until: At(0),
            hung_until: At(0),
            slow_us: 0,
            busy_until: At(0),
            home,
            room: true,
            resident: None,
            rogue: false,
            is_carried: false,
            plan,
        });
        no
    }

    /// The nodes of a kind.
    pub fn nodes_of(&self, kind: NodeKind) -> Vec<NodeNo> {
        let nodes = self.nodes.iter().filter(|node| node.kind == kind);
        nodes.map(|node| node.no).collect()
    }

    /// A node by its place.
    pub fn node(&mut self, no: NodeNo) -> &mut Node {
        &mut self.nodes[no.0]
    }

    /// Starts a node, or starts it again.
    pub fn start(&mut self, no: NodeNo) -> Checked {
        let random = self.prng.bits();
        let now = self.now;
        let mono_per_mille = self.draw_mono_drift();
        let name = self.name_of(no);
        let node = self.node(no);
        // Who comes again has another id, and the same name (rule R1).
        let id = MemberId::new(name, random);
        node.life += 1;
        node.started = now;
        node.mono_per_mille = mono_per_mille;
        node.id = id;
        node.tick_planned = None;
        node.news.clear();
        node.freshness_held.clear();
        node.deaf_until = At(0);
        node.hung_until = At(0);
        node.slow_us = 0;
        let name = node.name.clone();
        self.trace.line(|| format!("{now:?} {name} starts"));
        self.trace
            .digest(|digest| digest.turn(now, Turn::Starts, no.0));
        match self.nodes[no.0].kind {
            NodeKind::Home => self.start_home(no)?,
            NodeKind::Redirector => self.start_site(no),
            NodeKind::Member => self.start_member(no),
        }
        self.plan_tick(no);
        for parent in self.nodes[no.0].parents.clone() {
            let delay = self.prng.below(20_000);
            self.plan_local(no, now.plus_us(delay), Local::Dial { parent });
        }
        Ok(())
    }

    /// The name in a node's certificate: its own, unless one user has all members.
    fn name_of(&self, no: NodeNo) -> NameId {
        let carrier = self.carried.iter().find(|(_, site)| **site == no);
        let node = &self.nodes[carrier.map_or(no, |(member, _)| *member).0];
        let is_users = self.village.one_user && node.kind == NodeKind::Member && !node.rogue;
        NameId::of(if is_users { "user" } else { &node.name })
    }

    /// How wrong a monotone clock goes, either way.
    fn draw_mono_drift(&mut self) -> i64 {
        match self.village.mono_per_mille_max {
            0 => 0,
            most => {
                self.counts
                    .answered("lives with a monotone clock gone wrong");
                self.prng.below(2 * most + 1) as i64 - most as i64
            }
        }
    }

    fn start_home(&mut self, no: NodeNo) -> Checked {
        let random = self.prng.bits();
        let plan = self.village.homes[self.nodes[no.0].plan].clone();
        let node = &self.nodes[no.0];
        let now = node.now(self.now);
        let Some((home, disk)) = &node.home else {
            return Ok(());
        };
        let others = node.parents.iter();
        let config = HomeConfig {
            other_homes: others.map(|no| self.nodes[no.0].name.clone()).collect(),
            changes_known_max: plan.changes_known_max,
            mob_bytes_high: plan.mob_bytes_high,
            log_records_high: plan.log_records_high(),
            cache_bytes: plan.cache_bytes,
            pending_bytes_max: plan.pending_bytes_max,
            parked_max: plan.parked_max,
            parked_bytes_max: plan.parked_bytes_max,
            registrations_max: plan.registrations_max,
            outcomes_per_member: plan.outcomes_per_member,
            staged_silent_ms_max: plan.staged_silent_ms_max,
            per_child: self.per_child(),
            log_trim_max: plan.log_trim_max,
            pages_removed_max: plan.pages_removed_max,
            alive: Some(self.village.alive),
            verifier: Authority::default().verifier(),
            history: disk.history(random),
            ..HomeConfig::new(*home, node.name.clone(), node.id)
        };
        let (home, mut outbox) = (*home, Outbox::new());
        let opened = Home::open(config, disk, now, &mut outbox);
        let machine = opened.map_err(|error| {
            crate::failure::Failure::new("recovery", format!("a home does not open: {error}"))
        })?;
        let end = self.oracles[&home].end;
        demand!(
            machine.durable() == end,
            "recovery",
            "home {home} opens at {}, its log ends at {end}",
            machine.durable()
        );
        let room = self.nodes[no.0].room;
        if let Some((_, disk)) = &mut self.node(no).home {
            disk.begin_life(machine.life());
        }
        self.node(no).machine = Some(Machine::Home(Box::new(machine)));
        self.process::<Home>(no, outbox)?;
        if !room && self.nodes[no.0].is_up() {
            self.command::<Home>(no, HomeCommand::Lacks(Some(Lack::OF_ALL)))?;
        }
        Ok(())
    }

    fn per_child(&self) -> ChildLimits {
        ChildLimits {
            enterings_max: self.village.enterings_max,
            // Where edges wear out, children come and go while others are swept.
            swept_pages_max: match self.village.enterings_max {
                EntryNo(ENTERINGS_MAX) => SWEPT_PAGES_MAX,
                _ => 4,
            },
            ..ChildLimits::default()
        }
    }

    fn start_site(&mut self, no: NodeNo) {
        let node = &self.nodes[no.0];
        let plan = &self.village.sites[node.plan];
        let config = RedirectorConfig {
            cache_bytes: plan.cache_bytes,
            kept_bytes_max: plan.kept_bytes_max,
            history_pages_max: plan.history_pages_max(),
            successor_pages_max: plan.successor_pages_max(),
            images_beside: self.village.beside,
            report_pages_max: self.village.report_pages_max,
            alive: Some(self.village.alive),
            per_child: self.per_child(),
            ..RedirectorConfig::new(node.id, node.name.clone())
        };
        self.node(no).machine = Some(Machine::Site(Box::new(Redirector::new(config))));
    }

    fn start_member(&mut self, no: NodeNo) {
        // Few messages kept for a page on its way: the limit is met.
        let kept_changes_max = [0, 1, 256][self.prng.index(3)];
        let node = &self.nodes[no.0];
        let config = MemberConfig {
            kept_changes_max,
            images_beside: self.village.beside,
            report_pages_max: self.village.report_pages_max,
            alive: Some(self.village.alive),
            signer: Authority::default().signer(&node.name, node.who()),
            ..MemberConfig::new(node.id, node.name.clone())
        };
        let plan = self.village.members.get(node.plan).cloned();
        let cache_bytes = plan.as_ref().map_or(usize::MAX, |plan| plan.cache_bytes);
        let remembered = [16, 1024][self.prng.index(2)];
        let mut sessions = Vec::new();
        for strict in plan.map(|plan| plan.sessions).unwrap_or_default() {
            self.sessions += 1;
            let homes = self.village.homes.len() as u64;
            let home = HomeId(1 + self.prng.below(homes) as u32);
            let prng = self.prng.fork();
            sessions.push(Session::new(home, self.sessions, strict, prng));
        }
        let count = sessions.len();
        let node = self.node(no);
        node.machine = Some(Machine::Member(Box::new(Member::new(config))));
        node.resident = Some(Resident {
            cache: Cache::remembering(cache_bytes, remembered),
            sessions,
            tickets: BTreeMap::new(),
            early: BTreeMap::new(),
            own: BTreeMap::new(),
            answers: BTreeMap::new(),
            watches: Watches::default(),
            last_ticket: RequestId(0),
            squeezing: false,
        });
        for session in 0..count {
            let delay = self.prng.below(200_000);
            let at = self.now.plus_us(delay);
            self.plan_local(no, at, Local::Step { session, wait: 0 });
        }
    }

    /// Plans something at a node, for as long as it lives.
    pub fn plan_local(&mut self, node: NodeNo, at: At, local: Local) {
        let life = self.nodes[node.0].life;
        self.agenda.plan(at, Planned::At { node, life, local });
    }

    // --- The run ---

    /// Runs the whole story: faults, healing, progress, rest, and a last look.
    pub fn run(&mut self) -> Checked {
        while !self.is_struck_enough() {
            self.next()?;
        }
        self.finish()
    }

    /// The end of a story: healing, progress, rest, and a last look.
    pub fn finish(&mut self) -> Checked {
        self.heal()?;
        self.await_progress()?;
        self.rest()?;
        self.counts.simulated_ms = self.now.ms_since(At(0));
        checks::end::check(self)
    }

    fn is_struck_enough(&self) -> bool {
        let relieved = self.reliefs.iter().all(Option::is_none);
        self.strikes_left == 0
            && relieved
            && self.counts.operations >= self.village.operations_min
            && self
                .nodes
                .iter()
                .all(|node| node.is_up() || node.rogue || self.is_carried(node.no))
    }

    fn await_progress(&mut self) -> Checked {
        for session in self.all_sessions() {
            session.progress = 0;
        }
        let ms = self.liveness_ms_max();
        let until = self.now.plus_ms(ms);
        while self.all_sessions().any(|s| s.progress < PROGRESS_MIN) {
            demand!(
                self.now < until,
                "liveness",
                "{ms} ms after all faults these have not ended {PROGRESS_MIN} transactions: \
                 {:?}",
                self.stuck(|session| session.progress < PROGRESS_MIN)
            );
            self.next()?;
        }
        Ok(())
    }

    /// Programs stop, and what is on its way arrives.
    fn rest(&mut self) -> Checked {
        self.closing = true;
        let until = self.now.plus_ms(self.liveness_ms_max());
        while self.all_sessions().any(|s| !s.is_stopped()) {
            demand!(
                self.now < until,
                "liveness",
                "these do not come to an end: {:?}",
                self.stuck(|session| !session.is_stopped())
            );
            self.next()?;
        }
        self.run_for(QUIET_MS + QUIET_ROUND_TRIPS * self.round_trip_ms())?;
        self.trim_logs()?;
        self.finish_batches()
    }

    /// A home that has nothing else to do goes on with its log.
    fn trim_logs(&mut self) -> Checked {
        let until = self.now.plus_ms(TRIMMED_MS);
        while self.now < until && checks::bounds::long_log(self).is_some() {
            self.next()?;
        }
        Ok(())
    }

    /// Also at rest a home reserves its clock now and then, and drops what nobody will come back
    /// for, a little with each heartbeat: whatever lies on its disk just now gets there.
    fn finish_batches(&mut self) -> Checked {
        let until = self.now.plus_ms(QUIET_MS);
        while self.now < until && self.nodes.iter().any(|node| node.size("pending") > 0) {
            self.next()?;
        }
        Ok(())
    }

    fn liveness_ms_max(&self) -> u64 {
        let pages = u64::from(self.village.habits.pages);
        let round_trips = LIVENESS_ROUND_TRIPS.max(LIVENESS_ROUND_TRIPS_A_PAGE * pages);
        LIVENESS_MS_MAX + round_trips * self.round_trip_ms()
    }

    /// Milliseconds that a home's answer takes at least.
    pub fn round_trip_ms(&self) -> u64 {
        2 * self.village.far.least_us / 1000
    }

    fn stuck(&self, is: impl Fn(&Session) -> bool) -> Vec<String> {
        let mut late = Vec::new();
        for node in &self.nodes {
            let sessions = node.resident.iter().flat_map(|r| &r.sessions);
            for session in sessions.filter(|session| is(session)) {
                late.push(format!("{} {}", node.name, session.describe()));
            }
        }
        late
    }

    fn all_sessions(&mut self) -> impl Iterator<Item = &mut Session> {
        let residents = self.nodes.iter_mut().filter_map(|n| n.resident.as_mut());
        residents.flat_map(|resident| resident.sessions.iter_mut())
    }

    /// Lets so many milliseconds pass.
    pub fn run_for(&mut self, ms: u64) -> Checked {
        let until = self.now.plus_ms(ms);
        while self.now < until {
            self.next()?;
        }
        Ok(())
    }

    /// The next event.
    fn next(&mut self) -> Checked {
        let Some((at, event)) = self.agenda.pop() else {
            return Err(crate::failure::Failure::new(
                "liveness",
                "nothing happens any more",
            ));
        };
        self.now = at;
        self.counts.events += 1;
        demand!(
            self.counts.events < EVENTS_MAX,
            "liveness",
            "{EVENTS_MAX} events and no end"
        );
        match event {
            Planned::Arrive { edge, end } => self.arrive(edge, end),
            Planned::ArriveBeside { edge, number } => self.arrive_beside(edge, number),
            Planned::At { node, life, local } => {
                if self.nodes[node.0].life == life && self.nodes[node.0].is_up() {
                    self.happen(node, local)?;
                }
                Ok(())
            }
            Planned::Restart(node) => {
                if self.nodes[node.0].is_up() {
                    return Ok(());
                }
                self.start(node)
            }
            Planned::Strike => self.strike(),
            Planned::Relieve(which) => self.relieve(which),
        }
    }
}
