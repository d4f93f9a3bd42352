//! A village whose members write by logs, in simulated time.

use super::ledger::Ledger;
use super::link::Edge;
use super::plan::Plan;
use super::program::Scribe;
use crate::counts::Counts;
use crate::disk::Disk;
use crate::node::Machine;
use crate::options::Options;
use crate::time::WALL_MS_FIRST;
use crate::trace::Trace;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use thorp_model::{
    EdgeId, Mark, MemberId, Millis, NameId, NodeKind, Now, PageId, Peer, Principal, ReceiptKey,
    RequestId, Xoshiro256,
};

/// Something that is going to happen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum What {
    /// The first thing on its way down or up an edge arrives.
    Arrive { edge: EdgeId, down: bool },
    /// A fault strikes.
    Strike,
    /// A silent edge carries again what is sent.
    Mend { edge: EdgeId },
    /// A dead node starts.
    Restart { no: usize },
    /// A full log has room again.
    Refill { no: usize },
    /// At a node, in one of its lives.
    At { no: usize, life: u32, local: Local },
}

/// What happens at one node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Local {
    Tick,
    Dial(usize),
    Sync(usize),
    SyncTold(Mark),
    Read(PageId),
    Step,
    Answered(RequestId),
}

/// A node.
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) name: String,
    /// Its process start.
    pub(super) id: MemberId,
    /// Counts its starts and deaths.
    pub(super) life: u32,
    pub(super) started: u64,
    /// Thousandths by which its monotone clock is too fast, or too slow.
    pub(super) drift: i64,
    pub(super) machine: Option<Machine>,
    pub(super) tick_planned: Option<u64>,
    /// Whom it dials.
    pub(super) parents: Vec<usize>,
    /// The disk of a home, or of a log.
    pub(super) disk: Option<Disk>,
    pub(super) scribe: Option<Scribe>,
}

impl Node {
    /// What its clocks say.
    pub(super) fn now(&self, at: u64) -> Now {
        let run = (at - self.started) as i64;
        let ms = run * (1000 + self.drift) / 1_000_000;
        Now {
            mono: Now::MONO_FIRST.plus(ms as u64),
            wall: Millis(WALL_MS_FIRST + at / 1000),
        }
    }

    /// When its monotone clock will say so.
    pub(super) fn at(&self, mono: Millis) -> u64 {
        let ms = mono.since(Now::MONO_FIRST) as i64;
        self.started + (ms * 1_000_000 / (1000 + self.drift)) as u64
    }

    /// How it names itself when it connects.
    pub(super) fn peer(&self) -> Peer {
        Peer {
            kind: self.kind,
            node: self.id,
            name: self.name.clone(),
            is_operator: false,
            is_carried: false,
        }
    }

    /// Whose rights count for its program.
    pub(super) fn who(&self) -> Principal {
        Principal {
            name: self.id.name(),
            is_operator: false,
        }
    }
}

/// The village.
pub(super) struct World {
    pub(super) plan: Plan,
    /// Microseconds since it began.
    pub(super) now: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, What)>>,
    planned: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: BTreeMap<EdgeId, Edge>,
    pub(super) last_edge: EdgeId,
    pub(super) ledger: Ledger,
    pub(super) counts: Counts,
    pub(super) trace: Trace,
    pub(super) prng: Xoshiro256,
    pub(super) is_healed: bool,
}

impl World {
    /// The village of a seed, in which nobody runs.
    pub(super) fn new(seed: u64, options: Options, is_mixed: bool) -> Self {
        let mut prng = Xoshiro256::new(seed);
        let plan = Plan::draw(&mut prng.fork(), is_mixed);
        let counts = Counts {
            seeds: 1,
            ..Counts::default()
        };
        let mut world = World {
            now: 0,
            agenda: BinaryHeap::new(),
            planned: 0,
            nodes: Vec::new(),
            edges: BTreeMap::new(),
            last_edge: EdgeId(0),
            ledger: Ledger::default(),
            counts,
            trace: Trace::new(options.trace),
            prng,
            is_healed: false,
            plan,
        };
        world.settle();
        world
    }

    /// Puts everybody in place: the home first, then the sites, then the members.
    fn settle(&mut self) {
        let key = ReceiptKey::new([1; 32]);
        self.add(NodeKind::Home, String::from("home"), Vec::new());
        self.nodes[0].disk = Some(Disk::new(self.plan.sync_ms_max, key.clone()));
        for (index, above) in self.plan.sites.clone().into_iter().enumerate() {
            let parent = above.map_or(0, |above| 1 + above);
            self.add(NodeKind::Redirector, format!("r{index}"), vec![parent]);
        }
        for (index, site) in self.plan.members.clone().into_iter().enumerate() {
            let parent = site.map_or(0, |site| 1 + site);
            self.add(NodeKind::Member, format!("m{index}"), vec![parent]);
            let has_log = self.plan.has_log(index);
            let disk = has_log.then(|| Disk::new(self.plan.sync_ms_max, key.clone()));
            self.nodes.last_mut().expect("it was added").disk = disk;
        }
    }

    fn add(&mut self, kind: NodeKind, name: String, parents: Vec<usize>) {
        let drift = self.prng.below(2 * self.plan.drift_per_mille + 1) as i64;
        self.nodes.push(Node {
            kind,
            name,
            id: MemberId(0),
            life: 0,
            started: 0,
            drift: drift - self.plan.drift_per_mille as i64,
            machine: None,
            tick_planned: None,
            parents,
            disk: None,
            scribe: None,
        });
    }

    /// The members.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> + use<> {
        1 + self.plan.sites.len()..self.nodes.len()
    }

    /// The number of a member among the members.
    pub(super) fn member_of(&self, no: usize) -> usize {
        no - 1 - self.plan.sites.len()
    }

    /// The node that is this process, and its life.
    pub(super) fn process(&self, id: MemberId) -> Option<(usize, u32)> {
        let no = self.nodes.iter().position(|node| node.id == id)?;
        Some((no, self.nodes[no].life))
    }

    /// Plans something.
    pub(super) fn plan(&mut self, at: u64, what: What) {
        self.planned += 1;
        self.agenda.push(Reverse((at, self.planned, what)));
    }

    /// Plans something at a node, for as long as it lives.
    pub(super) fn plan_local(&mut self, no: usize, at: u64, local: Local) {
        let life = self.nodes[no].life;
        self.plan(at, What::At { no, life, local });
    }

    /// What is planned next.
    pub(super) fn pop(&mut self) -> Option<(u64, What)> {
        let Reverse((at, _, what)) = self.agenda.pop()?;
        Some((at, what))
    }

    /// Plans the tick that a machine asks for.
    pub(super) fn plan_tick(&mut self, no: usize) {
        let now = self.now;
        let node = &mut self.nodes[no];
        let deadline = node.machine.as_ref().and_then(|machine| machine.deadline());
        let Some(deadline) = deadline else {
            return;
        };
        let at = node.at(deadline).max(now + 1000);
        if node.tick_planned.is_none_or(|planned| planned > at) {
            node.tick_planned = Some(at);
            self.plan_local(no, at, Local::Tick);
        }
    }

    /// An id that no process had.
    pub(super) fn draw_id(&mut self, no: usize) -> MemberId {
        let name = NameId::of(&self.nodes[no].name);
        MemberId::new(name, self.prng.bits())
    }
}
