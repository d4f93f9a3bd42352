//! A node of the village: a core, and what its driver keeps beside it.

use super::disk::Disk;
use super::names::{self, Homes};
use super::program::Program;
use super::{rights, updates};
use std::collections::BTreeMap;
use std::convert::Infallible;
use thorp_model::{
    Action, EdgeId, EntryNo, Event, HomeId, MemberId, Millis, NodeKind, Now, Outbox, Place,
    Position, Principal, StateMachine,
};
use thorp_protocol::{
    AliveLimits, ChildLimits, Home, HomeAction, HomeCommand, HomeConfig, Member, MemberAction,
    MemberCommand, MemberConfig, ParentNames, Redirector, RedirectorConfig,
};
use thorp_sim::Authority;

/// The first home of every story, and mostly the only one.
pub(crate) const HOME: HomeId = HomeId(1);

/// The core of a node.
pub(crate) enum Machine {
    Home(Box<Home>),
    Site(Box<Redirector>),
    Member(Box<Member>),
}

/// What a node is given.
#[derive(Debug)]
pub(crate) enum Given {
    /// What any node may be given.
    Event(Event<Infallible>),
    /// By a home's disk.
    Home(HomeCommand),
    /// By a member's program or page cache.
    Member(MemberCommand),
}

/// What only nodes of one role want.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Of a home's disk.
    Home(HomeAction),
    /// Of a member's program or page cache.
    Member(MemberAction),
}

fn run<M: StateMachine>(
    machine: &mut M,
    now: Now,
    event: Event<M::Command>,
    wrap: impl Fn(M::Action) -> Wanted,
) -> Vec<Action<Wanted>> {
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    let actions = outbox.actions.into_iter();
    actions.map(|action| action.map(&wrap)).collect()
}

/// A node.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    /// This process start.
    pub(crate) id: MemberId,
    /// How often it started.
    pub(crate) lives: u32,
    /// None while it is dead.
    pub(crate) machine: Option<Machine>,
    pub(crate) program: Option<Program>,
    pub(crate) disk: Disk,
    /// How far its wall clock is ahead of the others'.
    pub(crate) wall_ms_ahead: i64,
    /// The homes there are.
    pub(crate) homes: Homes,
    /// The other homes that a home is configured for: those that it is connected to at first.
    pub(crate) other_homes: Vec<String>,
    /// Limits that the story sets.
    pub(crate) limits: BTreeMap<String, u64>,
}

impl Machine {
    pub(crate) fn handle(&mut self, now: Now, given: Given) -> Vec<Action<Wanted>> {
        match (self, given) {
            (Machine::Home(home), Given::Event(event)) => {
                run(&mut **home, now, event.for_role(), Wanted::Home)
            }
            (Machine::Home(home), Given::Home(command)) => {
                run(&mut **home, now, Event::Command(command), Wanted::Home)
            }
            (Machine::Site(site), Given::Event(event)) => {
                run(&mut **site, now, event, |never| match never {})
            }
            (Machine::Member(member), Given::Event(event)) => {
                run(&mut **member, now, event.for_role(), Wanted::Member)
            }
            (Machine::Member(member), Given::Member(command)) => {
                run(&mut **member, now, Event::Command(command), Wanted::Member)
            }
            (_, given) => panic!("a node of another role is given {given:?}"),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        match self {
            Machine::Home(home) => home.deadline(),
            Machine::Site(site) => site.deadline(),
            Machine::Member(member) => member.deadline(),
        }
    }

    pub(crate) fn position(&self, of: HomeId) -> Option<Position> {
        match self {
            Machine::Home(home) => Some(home.durable()),
            Machine::Site(site) => site.position(of),
            Machine::Member(member) => member.position(of),
        }
    }

    pub(crate) fn is_behind(&self, home: HomeId) -> bool {
        matches!(self, Machine::Member(member) if member.is_behind(home))
    }

    pub(crate) fn holds(&self, edge: EdgeId, place: Place) -> bool {
        match self {
            Machine::Home(home) => home.holds(edge, place.page),
            Machine::Site(site) => site.holds(place.home, edge, place.page),
            Machine::Member(_) => false,
        }
    }

    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        match self {
            Machine::Home(home) => home.sizes(),
            Machine::Site(site) => site.sizes(),
            Machine::Member(member) => member.sizes(),
        }
    }
}

impl Node {
    /// A node that is not started.
    pub(crate) fn new(name: &str) -> Self {
        Node {
            name: String::from(name),
            kind: kind_of(name),
            id: MemberId(0),
            lives: 0,
            machine: None,
            program: None,
            disk: Disk::new(),
            wall_ms_ahead: 0,
            homes: Homes::default(),
            other_homes: Vec::new(),
            limits: BTreeMap::new(),
        }
    }

    /// Starts it, under an id that no process had. Gives what it wants first.
    pub(crate) fn start(&mut self, id: MemberId, now: Now) -> Vec<Action<Wanted>> {
        let mut outbox = Outbox::new();
        self.id = id;
        self.lives += 1;
        self.machine = Some(match self.kind {
            NodeKind::Home => {
                let home = Home::open(self.home_config(), &self.disk, now, &mut outbox);
                let home = home.expect("the disk of a story is sound");
                self.disk.begin_life(home.life());
                Machine::Home(Box::new(home))
            }
            NodeKind::Redirector => {
                let mut config = RedirectorConfig::new(id, self.name.clone());
                self.limit("cache", |n| config.cache_bytes = n as usize);
                // Only where a story says so: nearly every other one would have hints.
                config.successor_pages_max = 0;
                self.limit("sequels", |n| config.successor_pages_max = n as usize);
                self.limit("kept", |n| config.kept_bytes_max = n as usize);
                self.limit("upward", |n| config.upward_bytes_max = n as usize);
                self.limit("report", |n| config.report_pages_max = n as usize);
                self.limit("beside", |n| config.images_beside = n > 0);
                self.limit("reported", |n| config.reported_max = n as usize);
                // Its homes, and one more that nobody starts.
                // `R.keeper=0`: m0 keeps its log.
                self.limit("keeper", |n| {
                    config.log_keeper = Some(rights::name_id(&format!("m{n}")));
                });
                self.limit("told", |_| config.parents = Some(self.parent_names()));
                config.per_child = self.per_child();
                config.alive = self.alive();
                Machine::Site(Box::new(Redirector::new(config)))
            }
            NodeKind::Member => {
                self.program = Some(Program::new(self.homes.clone()));
                let mut config = MemberConfig::new(id, self.name.clone());
                self.limit("kept", |n| config.kept_bytes_max = n as usize);
                self.limit("upward", |n| config.upward_bytes_max = n as usize);
                self.limit("report", |n| config.report_pages_max = n as usize);
                self.limit("beside", |n| config.images_beside = n > 0);
                self.limit("log", |_| config.log = Some(updates::in_log(&self.disk)));
                self.limit("keeps", |_| {
                    config.verifier = Some(Authority::default().verifier());
                });
                config.alive = self.alive();
                config.signer = Authority::default().signer(
                    &self.name,
                    Principal {
                        name: id.name(),
                        is_operator: self.is_operator(),
                    },
                );
                Machine::Member(Box::new(Member::new(config)))
            }
        });
        let actions = outbox.actions.into_iter();
        actions.map(|action| action.map(Wanted::Home)).collect()
    }

    fn parent_names(&self) -> ParentNames {
        let gone = String::from("H9");
        let homes = self.other_homes.iter().cloned().chain([gone]);
        ParentNames {
            homes: homes.collect(),
            others: 0,
        }
    }

    /// Whether its certificate is an operator's: `m1.operator=1`.
    pub(crate) fn is_operator(&self) -> bool {
        self.limits.contains_key("operator")
    }

    /// Which home it is.
    pub(crate) fn home(&self) -> HomeId {
        names::home_id(&self.name).expect("homes are called H, H1, H2")
    }

    fn home_config(&self) -> HomeConfig {
        let mut config = HomeConfig::new(self.home(), self.name.clone(), self.id);
        config.other_homes = self.other_homes.clone();
        config.verifier = Authority::default().verifier();
        // Each start has bits of its own.
        config.history = self.disk.history(u64::from(self.lives));
        self.limit("changes", |n| config.changes_known_max = n as usize);
        self.limit("mob", |n| config.mob_bytes_high = n as usize);
        self.limit("cache", |n| config.cache_bytes = n as usize);
        self.limit("pending", |n| config.pending_bytes_max = n as usize);
        self.limit("parked", |n| config.parked_bytes_max = n as usize);
        self.limit("registrations", |n| config.registrations_max = n as usize);
        self.limit("outcomes", |n| config.outcomes_per_member = n);
        let per_name = &mut config.per_name;
        self.limit("segments-of-a-name", |n| per_name.segments_max = n as usize);
        self.limit("numbers-of-a-name", |n| {
            per_name.page_numbers_max = n as u32
        });
        self.limit("commits-of-a-name", |n| per_name.commits_max = n as usize);
        self.limit("readers", |n| config.readers_bytes_max = n as usize);
        config.per_child = self.per_child();
        config.alive = self.alive();
        self.limit("trim", |n| config.log_trim_max = n);
        self.limit("lease", |n| config.lease_ms = n as u32);
        self.limit("removed", |n| config.pages_removed_max = n as u32);
        config
    }

    /// Only where a story says so: *alive* messages would be most of every other one.
    fn alive(&self) -> Option<AliveLimits> {
        let every_ms = *self.limits.get("alive")?;
        let missed_max = self.limits.get("missed").map_or(2, |n| *n as u32);
        Some(AliveLimits {
            every_ms,
            missed_max,
        })
    }

    fn per_child(&self) -> ChildLimits {
        let mut limits = ChildLimits::default();
        self.limit("entries", |n| limits.entries_per_member_max = n as usize);
        self.limit("site-entries", |n| limits.entries_per_site_max = n as usize);
        self.limit("enterings", |n| limits.enterings_max = EntryNo(n as u32));
        self.limit("swept", |n| limits.swept_pages_max = n as usize);
        limits
    }

    fn limit(&self, name: &str, set: impl FnOnce(u64)) {
        if let Some(limit) = self.limits.get(name) {
            set(*limit);
        }
    }

    /// What the node's clocks say.
    pub(crate) fn now(&self, ms: u64) -> Now {
        Now {
            mono: Now::MONO_FIRST.plus(ms),
            wall: Millis((WALL_MS_FIRST + ms).saturating_add_signed(self.wall_ms_ahead)),
        }
    }
}

/// The wall time when every story begins.
pub(crate) const WALL_MS_FIRST: u64 = 100_000;

/// H is a home, R a redirector, m a member.
fn kind_of(name: &str) -> NodeKind {
    match name.chars().next() {
        Some('H') => NodeKind::Home,
        Some('R' | 'C') => NodeKind::Redirector,
        _ => NodeKind::Member,
    }
}
