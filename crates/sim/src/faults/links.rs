//! Faults of connections.

use super::{HUNG_MS_MAX, Relief};
use crate::link::Edge;
use crate::time::{End, Local, NodeNo};
use crate::world::World;
use thorp_model::limits::IN_DOUBT_MS;
use thorp_model::{EdgeId, NodeKind};

impl World {
    pub(super) fn cut_one(&mut self, kind: NodeKind) -> bool {
        let edge = self.pick_edge(Some(kind));
        if let Some(edge) = edge {
            self.cut(edge);
        }
        edge.is_some()
    }

    pub(super) fn part(&mut self) -> bool {
        let Some(id) = self.pick_edge(None) else {
            return false;
        };
        let ms = self.fault_prng.range(100, 4_000);
        let until = self.now.plus_ms(ms);
        if let Some(edge) = self.edges.get(&id) {
            self.partitions.insert((edge.child, edge.parent), until);
        }
        self.cut(id);
        true
    }

    /// Nothing arrives at one end, not even that the connection has ended, and nobody can connect
    /// anew: what is sent comes later.
    pub(super) fn close_one_way(&mut self) -> bool {
        let Some(id) = self.pick_edge(None) else {
            return false;
        };
        let until = self.now.plus_ms(self.fault_prng.range(200, HUNG_MS_MAX));
        let end = [End::Child, End::Parent][self.fault_prng.index(2)];
        if let Some(edge) = self.edges.get_mut(&id) {
            edge.lane(end).hold(until);
            self.partitions.insert((edge.child, edge.parent), until);
        }
        true
    }

    /// A home has just told a vote: that arrives, and nothing else comes or goes for a while.
    pub fn leave_in_doubt(&mut self, home: NodeNo) {
        self.leave_in_doubt = false;
        let now = self.now;
        let until = now.plus_ms(self.fault_prng.range(IN_DOUBT_MS + 600, 3 * IN_DOUBT_MS));
        self.trace
            .line(|| format!("{now:?} a home is left in doubt until {until:?}"));
        for other in (0..self.nodes.len()).map(NodeNo) {
            self.partitions.insert((home, other), until);
            self.partitions.insert((other, home), until);
        }
        let own = |edge: &Edge| edge.child == home || edge.parent == home;
        let edges = self.edges.iter().filter(|(_, edge)| own(edge));
        for id in edges.map(|(id, _)| *id).collect::<Vec<EdgeId>>() {
            self.hang_up(home, id);
        }
    }

    pub(super) fn slow_link(&mut self) -> bool {
        let Some(id) = self.pick_edge(None) else {
            return false;
        };
        let delay_us = self.fault_prng.range(20_000, 800_000);
        let ms = self.fault_prng.range(200, 3_000);
        let Some(edge) = self.edges.get_mut(&id) else {
            return false;
        };
        edge.delay_us = edge.delay_us.max(delay_us);
        self.relieve_in(ms, Relief::Link(id));
        true
    }

    pub(super) fn move_member(&mut self) -> bool {
        let Some(no) = self.pick_node(NodeKind::Member) else {
            return false;
        };
        let homes = self.nodes.iter().filter(|n| n.kind == NodeKind::Home);
        let homes: Vec<NodeNo> = homes.map(|node| node.no).collect();
        let mut parents = match self.pick_node(NodeKind::Redirector) {
            Some(site) if self.fault_prng.percent(75) => vec![site],
            _ => homes,
        };
        if self.nodes[no.0].parents == parents {
            return false;
        }
        std::mem::swap(&mut self.node(no).parents, &mut parents);
        let own = |edge: &Edge| edge.child == no && !edge.down.closed;
        let edges = self.edges.iter().filter(|(_, edge)| own(edge));
        let edges: Vec<EdgeId> = edges.map(|(id, _)| *id).collect();
        for id in edges {
            self.close(no, id, "it moves");
        }
        // If it has no connection just now, nothing else makes it look for one.
        for parent in self.nodes[no.0].parents.clone() {
            let at = self.now.plus_ms(self.fault_prng.range(1, 300));
            self.plan_local(no, at, Local::Dial { parent });
        }
        true
    }

    /// A node connects to a parent that is not its own: it has to turn that away, as long as
    /// its own is there (rule 1).
    pub(super) fn connect_besides(&mut self) -> bool {
        let kind =
            [NodeKind::Member, NodeKind::Member, NodeKind::Redirector][self.fault_prng.index(3)];
        let Some(child) = self.pick_node(kind) else {
            return false;
        };
        let parents: Vec<NodeNo> = self
            .nodes
            .iter()
            .filter(|parent| parent.is_up() && self.may_connect_besides(child, parent.no))
            .map(|parent| parent.no)
            .collect();
        let Some(parent) = self.fault_prng.pick(&parents).copied() else {
            return false;
        };
        let edge = self.connect(child, parent);
        let ms = self.fault_prng.range(300, 3_000);
        self.relieve_in(ms, Relief::Besides(edge));
        true
    }

    /// Sites go only straight to a home besides: two could become each other's parents.
    fn may_connect_besides(&self, child: NodeNo, parent: NodeNo) -> bool {
        let kind = self.nodes[parent.0].kind;
        let right = match self.nodes[child.0].kind {
            NodeKind::Member => kind != NodeKind::Member,
            _ => kind == NodeKind::Home,
        };
        let connected = |edge: &Edge| edge.child == child && edge.parent == parent;
        right
            && !self.nodes[child.0].parents.contains(&parent)
            && !self.edges.values().any(connected)
    }
}
