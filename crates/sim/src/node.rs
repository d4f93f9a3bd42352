//! A node of the village: a core, and what its driver keeps beside it.

use crate::checks::rights::Site;
use crate::checks::watches::Watches;
use crate::disk::Disk;
use crate::freshness::FreshnessByHome;
use crate::hostile::Rogue;
use crate::program::{Session, Waiting};
use crate::time::WALL_MS_FIRST;
use crate::time::{At, NodeNo};
use std::collections::{BTreeMap, BTreeSet};
use thorp_cache::Cache;
use thorp_model::{
    CommitId, EdgeId, HomeId, Image, MemberId, Millis, NameId, NodeKind, Now, PageId, Peer, Place,
    Position, Principal, RequestId, StateMachine,
};
use thorp_protocol::{Home, Member, Redirector, Response};

/// The core of a node.
pub enum Machine {
    /// A home's.
    Home(Box<Home>),
    /// A site's.
    Site(Box<Redirector>),
    /// A member's.
    Member(Box<Member>),
    /// That of a process that keeps no rules.
    Byzantine(Rogue),
}

impl Machine {
    /// When the state machine wants a tick.
    pub fn deadline(&self) -> Option<Millis> {
        match self {
            Machine::Home(home) => home.deadline(),
            Machine::Site(site) => site.deadline(),
            Machine::Member(member) => member.deadline(),
            Machine::Byzantine(rogue) => rogue.deadline(),
        }
    }

    /// How far a node that caches pages has applied a home's stream.
    pub fn position(&self, home: HomeId) -> Option<Position> {
        match self {
            Machine::Home(_) | Machine::Byzantine(_) => None,
            Machine::Site(site) => site.position(home),
            Machine::Member(member) => member.position(home),
        }
    }

    /// The pages that a member shows its program: own values lie over what it holds.
    pub fn shown(&self, home: HomeId) -> Vec<(PageId, Image)> {
        match self {
            Machine::Member(member) => member.shown(home),
            _ => Vec::new(),
        }
    }

    /// The pages that a node has cached.
    pub fn images(&self, home: HomeId) -> Vec<(PageId, Image)> {
        match self {
            Machine::Home(_) | Machine::Byzantine(_) => Vec::new(),
            Machine::Site(site) => site.images(home),
            Machine::Member(member) => member.images(home),
        }
    }

    /// Whom a redirector holds for helpers that send wrong images (rule R6).
    pub fn wrong_helpers(&self, home: HomeId) -> Vec<NameId> {
        match self {
            Machine::Site(site) => site.wrong_helpers(home),
            Machine::Home(_) | Machine::Member(_) | Machine::Byzantine(_) => Vec::new(),
        }
    }

    /// Whether a parent has a child entered for a page.
    pub fn holds(&self, home: HomeId, edge: EdgeId, page: PageId) -> bool {
        match self {
            Machine::Home(machine) => machine.id() == home && machine.holds(edge, page),
            Machine::Site(site) => site.holds(home, edge, page),
            Machine::Member(_) | Machine::Byzantine(_) => false,
        }
    }

    /// Whether a parent streams a home's changes down an edge.
    pub fn streams(&self, home: HomeId, edge: EdgeId) -> bool {
        let children = match self {
            Machine::Home(machine) if machine.id() == home => machine.children(),
            Machine::Home(_) => Vec::new(),
            Machine::Site(site) => site.children(home),
            Machine::Member(_) | Machine::Byzantine(_) => Vec::new(),
        };
        children.iter().any(|(child, _)| *child == edge)
    }

    /// Whether a child listens to a home's stream down an edge. A second parent's is left alone (rule 1).
    pub fn listens(&self, home: HomeId, edge: EdgeId) -> bool {
        match self {
            Machine::Site(site) => site.stream_edge(home) == Some(edge),
            Machine::Member(member) => member
                .streams()
                .any(|(of, _, live)| of == home && live == Some(edge)),
            Machine::Home(_) | Machine::Byzantine(_) => false,
        }
    }

    /// Whether a node has pages of a home that it has not reported yet, or not heard the answer
    /// for (rule 13).
    pub fn is_resynchronising(&self, home: HomeId) -> bool {
        match self {
            Machine::Site(site) => site.is_resynchronising(home),
            Machine::Member(member) => member.is_held(home),
            Machine::Home(_) | Machine::Byzantine(_) => false,
        }
    }

    /// Whether a member stays where its old stream ended.
    pub fn is_held(&self, home: HomeId) -> bool {
        matches!(self, Machine::Member(member) if member.is_held(home))
    }

    /// Whether a member has a live stream of a home.
    pub fn is_live(&self, home: HomeId) -> bool {
        match self {
            Machine::Member(member) => member
                .streams()
                .any(|(of, _, live)| of == home && live.is_some()),
            _ => false,
        }
    }

    /// The sizes of the state machine's tables.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        match self {
            Machine::Home(home) => home.sizes(),
            Machine::Site(site) => site.sizes(),
            Machine::Member(member) => member.sizes(),
            Machine::Byzantine(_) => Vec::new(),
        }
    }
}

/// What lives in a member's process beside its core.
pub struct Resident {
    /// The page cache.
    pub cache: Cache,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Who waits for which answer, and for which of its waits.
    pub tickets: BTreeMap<RequestId, (usize, u64)>,
    /// Commits whose sessions went on before they were answered, and which session.
    pub early: BTreeMap<RequestId, (usize, Box<Waiting>)>,
    /// The commits whose values are shown before they are delivered, on each page.
    pub own: BTreeMap<Place, BTreeSet<CommitId>>,
    /// Answers on their way to the program.
    pub answers: BTreeMap<RequestId, Response>,
    /// What the program watches.
    pub watches: Watches,
    /// The last ticket given.
    pub last_ticket: RequestId,
    /// Whether a squeeze of the cache is planned.
    pub squeezing: bool,
}

/// A wall clock that goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Drift {
    /// Since when.
    pub since: At,
    /// Thousandths of the true time by which it is too fast.
    pub per_mille: i64,
}

impl Drift {
    /// Milliseconds that it has brought the clock ahead.
    fn ms_ahead(self, at: At) -> i64 {
        at.ms_since(self.since) as i64 * self.per_mille / 1000
    }
}

/// A node.
pub struct Node {
    /// Its place in the list of nodes.
    pub no: NodeNo,
    /// Its name, for people.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// What it says that it is.
    pub greets_as: NodeKind,
    /// Its process start.
    pub id: MemberId,
    /// Counts its starts: what was planned for an earlier life is dropped.
    pub life: u32,
    /// When it started.
    pub started: At,
    /// Thousandths of the true time by which its monotone clock is too fast in this life.
    pub mono_per_mille: i64,
    /// How far its wall clock is ahead of the true time.
    pub wall_ms_ahead: i64,
    /// How its wall clock goes just now.
    pub drift: Option<Drift>,
    /// Its core; none while it is dead.
    pub machine: Option<Machine>,
    /// When the next tick is planned.
    pub tick_planned: Option<At>,
    /// What it last heard of each home.
    pub news: FreshnessByHome,
    /// What it has heard in a stream that it does not follow yet.
    pub freshness_held: FreshnessByHome,
    /// Whom it dials.
    pub parents: Vec<NodeNo>,
    /// Until when it does not read its connections.
    pub deaf_until: At,
    /// Until when it does nothing at all.
    pub hung_until: At,
    /// Microseconds that it takes for each message; zero is none.
    pub slow_us: u64,
    /// Until when it is at its last message.
    pub busy_until: At,
    /// The home it is, and its disk.
    pub home: Option<(HomeId, Disk)>,
    /// Whether the home may take commits.
    pub room: bool,
    /// The program of a member.
    pub resident: Option<Resident>,
    /// Whether it keeps no rules.
    pub rogue: bool,
    /// Whether it is a site that a member carries. Then it has the name of that member, for everybody but people.
    pub is_carried: bool,
    /// The place of its plan in the village's list of its kind.
    pub plan: usize,
}

impl Node {
    /// What the node's clocks say.
    pub fn now(&self, at: At) -> Now {
        let mono = Now::MONO_FIRST.plus((at.0 - self.started.0) * self.mono_rate() / 1_000_000);
        let ahead = self.wall_ms_ahead + self.drift.map_or(0, |drift| drift.ms_ahead(at));
        let wall = (WALL_MS_FIRST + at.0 / 1000).saturating_add_signed(ahead);
        Now {
            mono,
            wall: Millis(wall),
        }
    }

    /// When the node's monotone clock will say so.
    pub fn at(&self, mono: Millis) -> At {
        let us = |ms: u64| (ms * 1_000_000).div_ceil(self.mono_rate());
        match mono.since(Now::MONO_FIRST) {
            0 => At(self
                .started
                .0
                .saturating_sub(us(Now::MONO_FIRST.since(mono)))),
            since => self.started.plus_us(us(since)),
        }
    }

    /// Milliseconds of its monotone clock in a true second.
    fn mono_rate(&self) -> u64 {
        1000_u64.saturating_add_signed(self.mono_per_mille)
    }

    /// Its wall clock goes right again, or wrong otherwise, from where it is.
    pub fn drift(&mut self, at: At, drift: Option<Drift>) {
        let before = std::mem::replace(&mut self.drift, drift);
        self.wall_ms_ahead += before.map_or(0, |drift| drift.ms_ahead(at));
    }

    /// How it names itself when it connects.
    pub fn peer(&self) -> Peer {
        Peer {
            kind: self.greets_as,
            node: self.id,
            name: self.name.clone(),
            is_operator: self.is_operator(),
            is_carried: self.is_carried,
        }
    }

    /// Whether it is none of the village, and looks at everything in the end.
    pub fn is_operator(&self) -> bool {
        self.plan == usize::MAX && !self.rogue
    }

    /// Whose rights count for what its program does.
    pub fn who(&self) -> Principal {
        Principal {
            name: self.id.name(),
            is_operator: self.is_operator(),
        }
    }

    /// A site, as its parent knows it.
    pub fn site(&self) -> Site {
        Site {
            name: self.id.name(),
            is_carried: self.is_carried,
        }
    }

    /// Whether it runs.
    pub fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    /// The size of one of its tables; zero if it has none of that name.
    pub fn size(&self, table: &str) -> usize {
        let sizes = self.machine.iter().flat_map(Machine::sizes);
        let found = sizes.filter(|(name, _)| *name == table);
        found.map(|(_, size)| size).sum()
    }
}
