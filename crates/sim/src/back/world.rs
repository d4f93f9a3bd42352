//! A village whose homes go back, in simulated time, and the truth that it is held against.

use super::branch::{Branch, BranchNo};
use super::ledger::Ledger;
use super::node::{Node, Store};
use super::plan::Plan;
use super::streams::Streams;
use crate::counts::Counts;
use crate::disk::Disk;
use crate::link::Edge;
use crate::options::Options;
use crate::oracle::Oracle;
use crate::time::{Agenda, At, Local, NodeNo, Planned};
use crate::trace::Trace;
use std::collections::BTreeMap;
use thorp_model::{CommitId, EdgeId, HomeId, MemberId, NameId, NodeKind, ReceiptKey, Xoshiro256};

/// The village.
pub(super) struct World {
    /// What the seed has drawn.
    pub(super) plan: Plan,
    /// The time.
    pub(super) now: At,
    /// What is going to happen.
    pub(super) agenda: Agenda,
    /// Homes first, then sites, then members, then copies of homes.
    pub(super) nodes: Vec<Node>,
    /// The connections that somebody still knows of.
    pub(super) edges: BTreeMap<EdgeId, Edge>,
    /// All histories of all homes.
    pub(super) branches: Vec<Branch>,
    /// Which node follows which of them.
    pub(super) streams: Streams,
    /// What programs did and were told.
    pub(super) ledger: Ledger,
    /// Copies of stores, the latest last.
    pub(super) copies: Vec<Copied>,
    /// What is counted.
    pub(super) counts: Counts,
    /// What happened.
    pub(super) trace: Trace,
    /// All chance.
    pub(super) prng: Xoshiro256,
    /// No more faults.
    pub(super) is_healed: bool,
    /// Programs stop after what they are at.
    pub(super) is_closing: bool,
    /// Edges given so far.
    pub(super) last_edge: EdgeId,
}

/// A copy of a home's store, of one moment.
pub(super) struct Copied {
    /// Whose.
    pub(super) home: HomeId,
    /// What was durable.
    pub(super) disk: Disk,
    /// Its history until then.
    pub(super) branch: Branch,
    /// The history that it was taken from.
    pub(super) of: BranchNo,
}

impl World {
    /// The village of a seed, in which nobody runs.
    pub(super) fn new(seed: u64, options: Options) -> Self {
        let mut prng = Xoshiro256::new(seed);
        let plan = Plan::draw(&mut prng.fork());
        let counts = Counts {
            seeds: 1,
            ..Counts::default()
        };
        let mut world = World {
            plan,
            now: At(0),
            agenda: Agenda::default(),
            nodes: Vec::new(),
            edges: BTreeMap::new(),
            branches: Vec::new(),
            streams: Streams::default(),
            ledger: Ledger::default(),
            copies: Vec::new(),
            counts,
            trace: Trace::new(options.trace),
            prng,
            is_healed: false,
            is_closing: false,
            last_edge: EdgeId(0),
        };
        world.settle();
        world
    }

    /// Puts everybody in place.
    fn settle(&mut self) {
        let homes: Vec<NodeNo> = (0..self.plan.homes).map(NodeNo).collect();
        for home in self.plan.home_ids() {
            let index = home.0 as usize - 1;
            let others = homes.iter().copied().filter(|no| no.0 != index).collect();
            let no = self.add(NodeKind::Home, format!("h{index}"), others);
            let key = ReceiptKey::new([home.0 as u8; 32]);
            let branch = self.add_branch(Branch::first(home, key.clone()));
            let disk = Disk::new(self.plan.sync_ms_max, key);
            let wall_ms_ahead = self.prng.below(2) * self.prng.below(5_000);
            let node = &mut self.nodes[no.0];
            node.wall_ms_ahead = wall_ms_ahead;
            node.store = Some(Store { home, disk, branch });
        }
        for (index, above) in self.plan.sites.clone().into_iter().enumerate() {
            let parents = match above {
                Some(above) => vec![NodeNo(homes.len() + above)],
                None => homes.clone(),
            };
            self.add(NodeKind::Redirector, format!("r{index}"), parents);
        }
        for (index, site) in self.plan.members.clone().into_iter().enumerate() {
            let parents = match site {
                Some(site) => vec![NodeNo(homes.len() + site)],
                None => homes.clone(),
            };
            self.add(NodeKind::Member, format!("m{index}"), parents);
        }
    }

    /// Adds a node that does not run yet.
    pub(super) fn add(&mut self, kind: NodeKind, name: String, parents: Vec<NodeNo>) -> NodeNo {
        let no = NodeNo(self.nodes.len());
        self.nodes.push(Node::new(no, kind, name, parents));
        no
    }

    /// A history begins. From the second one of a home on, other homes may meet one stamp twice.
    pub(super) fn add_branch(&mut self, branch: Branch) -> BranchNo {
        let is_first = branch.parent.is_none();
        self.branches.push(branch);
        if !is_first {
            let oracles = self.branches.iter_mut().map(|branch| &mut branch.oracle);
            oracles.for_each(Oracle::let_stamps_repeat);
        }
        BranchNo(self.branches.len() - 1)
    }

    /// A node by its place.
    pub(super) fn node(&mut self, no: NodeNo) -> &mut Node {
        &mut self.nodes[no.0]
    }

    /// A history by its place.
    pub(super) fn branch(&self, no: BranchNo) -> &Branch {
        &self.branches[no.0]
    }

    /// An id that no process had.
    pub(super) fn draw_id(&mut self, no: NodeNo) -> MemberId {
        let name = NameId::of(&self.nodes[no.0].name);
        MemberId::new(name, self.prng.bits())
    }

    /// Plans something at a node, for as long as it lives.
    pub(super) fn plan_local(&mut self, node: NodeNo, at: At, local: Local) {
        let life = self.nodes[node.0].life;
        self.agenda.plan(at, Planned::At { node, life, local });
    }

    /// Plans the tick that a machine asks for.
    pub(super) fn plan_tick(&mut self, no: NodeNo) {
        let now = self.now;
        let node = self.node(no);
        let deadline = node.machine.as_ref().and_then(|machine| machine.deadline());
        let Some(deadline) = deadline else {
            return;
        };
        let at = node.at(deadline).max(now.plus_ms(1));
        if node.tick_planned.is_none_or(|planned| planned > at) {
            node.tick_planned = Some(at);
            self.plan_local(no, at, Local::Tick);
        }
    }

    /// Plans that a node tries to connect to a parent.
    pub(super) fn redial(&mut self, child: NodeNo, parent: NodeNo) {
        let at = self.now.plus_ms(self.prng.range(20, 300));
        self.plan_local(child, at, Local::Dial { parent });
    }

    /// The nodes of a home that were not given up: two while it runs twice.
    pub(super) fn nodes_of(&self, home: HomeId) -> Vec<NodeNo> {
        let nodes = self.nodes.iter();
        let nodes = nodes.filter(|node| node.home() == Some(home) && !node.is_gone);
        nodes.map(|node| node.no).collect()
    }

    /// The history of a node that is a home.
    pub(super) fn branch_of(&self, no: NodeNo) -> Option<BranchNo> {
        self.nodes[no.0].store.as_ref().map(|store| store.branch)
    }

    /// The history that each home has in the end, if it does not run twice.
    pub(super) fn final_branches(&self) -> BTreeMap<HomeId, BranchNo> {
        let nodes = self.nodes.iter().filter(|node| !node.is_gone);
        let stores = nodes.filter_map(|node| node.store.as_ref());
        stores.map(|store| (store.home, store.branch)).collect()
    }

    /// Whether a history is another one, or goes on from it.
    pub(super) fn goes_on_from(&self, branch: BranchNo, earlier: BranchNo) -> bool {
        let mut at = Some(branch);
        while let Some(no) = at {
            if no == earlier {
                return true;
            }
            at = self.branch(no).parent;
        }
        false
    }

    /// Whether a home that was not given up holds a transaction in doubt.
    pub(super) fn is_in_doubt(&self, id: CommitId) -> bool {
        let mut finals = self.final_branches().into_values();
        finals.any(|branch| self.branch(branch).is_in_doubt(id))
    }

    /// The other histories of the home of one: also those before it, which may have gone on after it branched from them.
    pub(super) fn others_of(&self, branch: BranchNo) -> impl Iterator<Item = &Branch> {
        let home = self.branch(branch).home;
        let others = self.branches.iter().enumerate();
        let others =
            others.filter(move |(no, other)| other.home == home && BranchNo(*no) != branch);
        others.map(|(_, other)| other)
    }
}
