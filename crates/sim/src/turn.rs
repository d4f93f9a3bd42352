//! Members that have lost their site turn to another, or to a redirector that one of them carries
//! in its process (rule 13).

use crate::failure::Checked;
use crate::time::{Local, NodeNo};
use crate::world::World;
use thorp_model::NodeKind;
use thorp_protocol::takeover;
use thorp_protocol::takeover::Next;

impl World {
    /// A member has lost a site, or cannot reach it: whom it dials now.
    pub fn turn(&mut self, no: NodeNo, lost: NodeNo) -> Checked {
        let node = &self.nodes[no.0];
        let of_site = node.parents == [lost] && self.nodes[lost.0].kind == NodeKind::Redirector;
        if !self.village.turns || self.healed || !of_site || node.resident.is_none() {
            return Ok(());
        }
        let parent = self.preferred(no)?;
        if parent != lost {
            self.counts.answered("members turned to another site");
            self.turn_to(no, parent);
        }
        Ok(())
    }

    /// A member that has turned looks whether it would rather be elsewhere by now, and goes there in one step.
    pub fn heal_turned(&mut self, no: NodeNo) -> Checked {
        let node = &self.nodes[no.0];
        if self.healed || node.resident.is_none() || node.parents.len() != 1 {
            return Ok(());
        }
        let present = node.parents.clone();
        let parent = self.preferred(no)?;
        if present == [parent] {
            self.plan_heal(no);
            return Ok(());
        }
        self.counts
            .answered("members turned back to a preferred site");
        self.turn_to(no, parent);
        self.leave_edges(no, "a parent that is preferred has answered");
        Ok(())
    }

    fn turn_to(&mut self, no: NodeNo, parent: NodeNo) {
        self.node(no).parents = vec![parent];
        let at = self.now.plus_ms(1);
        self.plan_local(no, at, Local::Dial { parent });
        self.plan_heal(no);
    }

    fn plan_heal(&mut self, no: NodeNo) {
        let at = self.now.plus_ms(HEAL_EVERY_MS);
        self.plan_local(no, at, Local::Heal);
    }

    /// The first that answers.
    fn preferred(&mut self, no: NodeNo) -> Checked<NodeNo> {
        let before = self.before(no);
        let answers = before.iter().map(|member| self.answers(no, *member));
        let answers: Vec<bool> = answers.collect();
        match takeover::next(&self.in_reach(no), &answers) {
            Next::Site(index) => Ok(self.site(index)),
            Next::Neighbour(rank) => self.carry(before.get(rank).copied().unwrap_or(no)),
            Next::Itself => self.carry(no),
        }
    }

    fn site(&self, index: usize) -> NodeNo {
        NodeNo(self.village.homes.len() + index)
    }

    /// Which dedicated sites answer a member's dialling.
    fn in_reach(&self, no: NodeNo) -> Vec<bool> {
        let sites = (0..self.village.sites.len()).map(|index| self.site(index));
        sites
            .map(|site| self.is_there(site) && !self.is_apart(no, site))
            .collect()
    }

    /// The members before one in rank, which is the order of the village's plan.
    fn before(&self, no: NodeNo) -> Vec<NodeNo> {
        let members = self.nodes.iter().filter(|node| node.resident.is_some());
        let before = members.filter(|node| node.no < no);
        before.map(|node| node.no).collect()
    }

    /// Whether a member's process answers, for the redirector that it carries.
    fn answers(&self, no: NodeNo, member: NodeNo) -> bool {
        let carried = self.carried.get(&member);
        let apart = carried.is_some_and(|site| self.is_apart(no, *site));
        self.is_there(member) && !apart
    }

    fn is_there(&self, no: NodeNo) -> bool {
        let node = &self.nodes[no.0];
        node.is_up() && node.hung_until <= self.now
    }

    fn is_apart(&self, no: NodeNo, site: NodeNo) -> bool {
        let until = self.partitions.get(&(no, site));
        until.is_some_and(|until| *until > self.now)
    }

    /// The redirector in a member's process, which begins to run if it does not.
    fn carry(&mut self, member: NodeNo) -> Checked<NodeNo> {
        if let Some(site) = self.carried.get(&member) {
            return Ok(*site);
        }
        self.counts.answered("redirectors carried by members");
        let homes = (0..self.village.homes.len()).map(NodeNo).collect();
        let site = self.add_node(NodeKind::Redirector, 0, homes, None);
        self.node(site).name = format!("r_of_m{}", self.nodes[member.0].plan);
        self.node(site).is_carried = true;
        self.carried.insert(member, site);
        self.start(site)?;
        Ok(site)
    }

    /// A member dies, and with it what its process carries.
    pub fn kill_carried(&mut self, member: NodeNo) -> Checked {
        if let Some(site) = self.carried.remove(&member)
            && self.nodes[site.0].is_up()
        {
            self.kill(site)?;
        }
        Ok(())
    }

    /// Whether a node is a redirector that a member carries, or carried.
    pub fn is_carried(&self, no: NodeNo) -> bool {
        let dedicated = self.village.homes.len() + self.village.sites.len();
        self.nodes[no.0].kind == NodeKind::Redirector && no.0 >= dedicated
    }

    /// All is well again: members go back to where they belong.
    pub fn turn_back(&mut self) {
        // Also those that are down just now, for when they start again.
        let is_member = |node: &&crate::node::Node| node.kind == NodeKind::Member && !node.rogue;
        let members = self.nodes.iter().filter(is_member);
        let members: Vec<(NodeNo, usize)> = members.map(|node| (node.no, node.plan)).collect();
        for (no, plan) in members {
            let mut parents = self.nodes[no.0].parents.iter();
            if !parents.any(|parent| self.is_carried(*parent)) {
                continue;
            }
            let site = self.village.members.get(plan).and_then(|plan| plan.site);
            let belongs_to = match site {
                Some(site) => vec![self.site(site)],
                // It had moved to a site.
                None => (0..self.village.homes.len()).map(NodeNo).collect(),
            };
            self.node(no).parents = belongs_to;
            self.leave_edges(no, "it goes back");
        }
    }

    fn leave_edges(&mut self, no: NodeNo, why: &'static str) {
        let own = |edge: &crate::link::Edge| edge.child == no && !edge.down.closed;
        let edges = self.edges.iter().filter(|(_, edge)| own(edge));
        let edges: Vec<_> = edges.map(|(id, _)| *id).collect();
        for edge in edges {
            self.close(no, edge, why);
        }
    }
}

/// How often a member that has turned tries what it would rather have.
const HEAL_EVERY_MS: u64 = 3_000;
