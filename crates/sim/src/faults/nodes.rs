//! Faults of nodes: slow, hung or dead ones, wrong clocks, and processes that keep no rules.

use super::{HUNG_MS_MAX, Relief};
use crate::byzantine::Byzantine;
use crate::failure::Checked;
use crate::hostile::Rogue;
use crate::link::Edge;
use crate::made_up::ROGUE;
use crate::node::{Drift, Machine};
use crate::time::NodeNo;
use crate::world::World;
use thorp_model::{CommitRequest, MemberId, Message, NodeKind, Outcome, Place, Up};
use thorp_protocol::{Member, MemberCommand};

/// Milliseconds that a node may stop reading.
const DEAF_MS_MAX: u64 = 3_000;

/// Thousandths by which a wall clock goes wrong, at most: a fifth, where real ones do a tenth of a thousandth.
const DRIFT_PER_MILLE_MAX: u64 = 200;

impl World {
    pub(super) fn slow_node(&mut self) -> bool {
        let kinds = [NodeKind::Member, NodeKind::Redirector, NodeKind::Home];
        let kind = kinds[self.fault_prng.index(3)];
        let Some(no) = self.pick_node(kind) else {
            return false;
        };
        // A parent has many children to listen to.
        let most = if kind == NodeKind::Member {
            40_000
        } else {
            4_000
        };
        let slow_us = self.fault_prng.range(500, most);
        let ms = self.fault_prng.range(200, 3_000);
        self.node(no).slow_us = slow_us;
        self.relieve_in(ms, Relief::Node(no));
        true
    }

    pub(super) fn hang(&mut self) -> bool {
        let kinds = [NodeKind::Member, NodeKind::Redirector, NodeKind::Home];
        let kind = kinds[self.fault_prng.index(3)];
        let Some(no) = self.pick_node(kind) else {
            return false;
        };
        let ms = self.fault_prng.range(500, HUNG_MS_MAX);
        let until = self.now.plus_ms(ms);
        let node = self.node(no);
        node.hung_until = until;
        node.deaf_until = node.deaf_until.max(until);
        self.relieve_in(ms, Relief::Node(no));
        true
    }

    pub(super) fn stop_reading(&mut self) -> bool {
        let kind =
            [NodeKind::Member, NodeKind::Member, NodeKind::Redirector][self.fault_prng.index(3)];
        let Some(no) = self.pick_node(kind) else {
            return false;
        };
        let ms = self.fault_prng.range(100, DEAF_MS_MAX);
        let until = self.now.plus_ms(ms);
        self.node(no).deaf_until = until;
        self.relieve_in(ms, Relief::Node(no));
        true
    }

    pub(super) fn crash(&mut self, kind: NodeKind) -> Checked<bool> {
        let Some(no) = self.pick_node(kind) else {
            return Ok(false);
        };
        self.kill(no)?;
        if kind == NodeKind::Home && self.fault_prng.percent(60) {
            // Its clock may be far behind when it comes back (trap 10).
            let ms = self.fault_prng.range(1, 60_000) as i64;
            let ahead = if self.fault_prng.percent(70) { -ms } else { ms };
            self.node(no).wall_ms_ahead += ahead;
        }
        self.plan_restart(no, 1_500);
        Ok(true)
    }

    pub(super) fn jump_clock(&mut self) -> bool {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return false;
        };
        let ms = self.fault_prng.range(1, 30_000) as i64;
        let ahead = if self.fault_prng.percent(50) { -ms } else { ms };
        self.node(no).wall_ms_ahead += ahead;
        true
    }

    pub(super) fn let_clock_drift(&mut self) -> bool {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return false;
        };
        let per_mille = self.fault_prng.range(1, DRIFT_PER_MILLE_MAX) as i64;
        let slow = self.fault_prng.percent(50);
        let per_mille = if slow { -per_mille } else { per_mille };
        let since = self.now;
        self.node(no).drift(since, Some(Drift { since, per_mille }));
        let ms = self.fault_prng.range(500, 10_000);
        self.relieve_in(ms, Relief::Clock(no));
        true
    }

    pub(super) fn empty_cache(&mut self) -> Checked<bool> {
        let Some(no) = self.pick_node(NodeKind::Member) else {
            return Ok(false);
        };
        let places = self.held_places(no);
        let some = places.into_iter().filter(|_| self.fault_prng.percent(70));
        let places: Vec<Place> = some.collect();
        self.command::<Member>(no, MemberCommand::Evict(places))?;
        Ok(true)
    }

    /// All pages that a node has cached.
    pub fn held_places(&self, no: NodeNo) -> Vec<Place> {
        let Some(machine) = &self.nodes[no.0].machine else {
            return Vec::new();
        };
        let homes = self.oracles.keys();
        homes
            .flat_map(|home| {
                let images = machine.images(*home).into_iter();
                images.map(|(page, _)| Place { home: *home, page })
            })
            .collect()
    }

    /// A member that never heard the answer might send a commit once more.
    pub(super) fn send_again(&mut self) -> Checked<bool> {
        let requests = self.history.requests.iter().filter(|request| {
            let told = self.history.told.get(&request.id);
            told.is_some_and(|told| match told {
                Outcome::Refused(refusal) => !refusal.leaves_id_usable(),
                Outcome::Committed { .. } => true,
            })
        });
        let requests: Vec<&CommitRequest> = requests.collect();
        // What read nothing is not refused for what has changed since.
        let blind = requests.iter().copied().filter(|r| is_blind(r));
        let blind: Vec<&CommitRequest> = blind.collect();
        let from = if self.fault_prng.percent(70) && !blind.is_empty() {
            blind
        } else {
            requests
        };
        let Some(request) = self.fault_prng.pick(&from).map(|r| (*r).clone()) else {
            return Ok(false);
        };
        let node = self
            .nodes
            .iter()
            .find(|n| n.id == request.id.member && n.is_up());
        let Some(no) = node.map(|node| node.no) else {
            return Ok(false);
        };
        let up = |edge: &Edge| edge.child == no && edge.down.opened && !edge.down.closed;
        let edge = self.edges.iter().find(|(_, edge)| up(edge));
        let Some(id) = edge.map(|(id, _)| *id) else {
            return Ok(false);
        };
        self.send(no, id, Message::Up(Up::Commit(request)))?;
        Ok(true)
    }

    pub(super) fn let_rogue_in(&mut self) -> Checked<bool> {
        let kind = [NodeKind::Redirector, NodeKind::Home][self.fault_prng.index(2)];
        let Some(parent) = self.pick_node(kind) else {
            return Ok(false);
        };
        let no = self.add_node(NodeKind::Member, usize::MAX, vec![parent], None);
        let children = self.edges.values().filter(|edge| edge.parent == parent);
        let homes = self.oracles.keys().copied().collect();
        let neighbours = children.count();
        let node = self.node(no);
        node.rogue = true;
        node.name = String::from(ROGUE);
        self.start(no)?;
        let members = self.nodes.iter().filter(|node| node.resident.is_some());
        let members: Vec<MemberId> = members.map(|node| node.id).collect();
        let own = self.nodes[no.0].id;
        let other = self.fault_prng.pick(&members).copied().unwrap_or(own);
        let is_site = self.fault_prng.percent(ROGUE_SITES_PERCENT);
        if is_site {
            self.node(no).greets_as = NodeKind::Redirector;
        }
        let rogue = Byzantine::new(
            self.fault_prng.fork(),
            [own, other],
            neighbours,
            homes,
            is_site,
        );
        self.node(no).machine = Some(Machine::Byzantine(Rogue::Passing(rogue)));
        self.node(no).resident = None;
        let ms = self.fault_prng.range(300, 3_000);
        self.relieve_in(ms, Relief::Byzantine(no));
        Ok(true)
    }
}

/// Of a hundred rogues, those that say that they are sites.
const ROGUE_SITES_PERCENT: u64 = 25;

/// Whether a commit only writes, and depends on nothing that was there.
fn is_blind(request: &CommitRequest) -> bool {
    let part = &request.part;
    let mut ops = part.writes.iter().flat_map(|writes| &writes.slots);
    part.reads.is_empty() && !part.writes.is_empty() && ops.all(|(_, op)| !op.reads())
}
