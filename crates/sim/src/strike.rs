//! How faults strike the simulated world, and how it is healed.

use crate::failure::Checked;
use crate::faults::Kind;
use crate::link::Edge;
use crate::node::{Drift, Machine};
use crate::rogue::Rogue;
use crate::time::{End, Event, Local, NodeNo};
use crate::world::World;
use thorp_core::door::Input;
use thorp_core::ids::{EdgeId, NodeKind, PageId, Place};
use thorp_core::limits::IN_DOUBT_MS;
use thorp_core::message::{CommitRequest, Message, Outcome, Up};

/// A fault that lasts, to be taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relief {
    /// A connection is as quick as before.
    Link {
        /// Which.
        edge: EdgeId,
        /// Its delay, in microseconds.
        delay_us: u64,
    },
    /// A node is as quick as before.
    Node(NodeNo),
    /// A node's wall clock goes right.
    Clock(NodeNo),
    /// A process that keeps no rules is ended.
    Rogue(NodeNo),
    /// A connection beside a node's own is ended.
    Besides(EdgeId),
    /// What a disk had stored is put back.
    Mend(NodeNo),
    /// A disk has room again.
    Disk(NodeNo),
    /// A disk is going to refuse what it is given.
    Refuse(NodeNo),
    /// A disk is as quick as before.
    DiskSpeed {
        /// Whose.
        node: NodeNo,
        /// Milliseconds of a sync, at most.
        sync_ms_max: u64,
    },
}

/// Milliseconds that a node may stop reading.
const DEAF_MS_MAX: u64 = 3_000;

/// Milliseconds that a node stands still, at most: longer than its neighbours wait for it.
const HUNG_MS_MAX: u64 = 6_000;

/// Thousandths by which a wall clock goes wrong, at most: a fifth, where real ones do a tenth of a thousandth.
const DRIFT_PER_MILLE_MAX: u64 = 200;

impl World {
    /// The next fault.
    pub fn strike(&mut self) -> Checked {
        if self.healed {
            return Ok(());
        }
        if self.strikes_left > 0 {
            let kinds = self.village.faults.clone();
            if let Some(kind) = self.fault_prng.pick(&kinds).copied()
                && self.strike_with(kind)?
            {
                let now = self.now;
                self.trace.line(|| format!("{now:?} fault {}", kind.name()));
                self.counts.struck(kind);
                self.strikes_left -= 1;
            }
        }
        let gap = self.fault_prng.range(20, self.village.strike_gap_ms_max);
        self.agenda.plan(self.now.plus_ms(gap), Event::Strike);
        Ok(())
    }

    fn strike_with(&mut self, kind: Kind) -> Checked<bool> {
        match kind {
            Kind::MemberCut => Ok(self.cut_one(NodeKind::Member)),
            Kind::SiteCut => Ok(self.cut_one(NodeKind::Redirector)),
            Kind::Partition => Ok(self.part()),
            Kind::OneWay => Ok(self.close_one_way()),
            Kind::SlowLink => Ok(self.slow_link()),
            Kind::SlowNode => Ok(self.slow_node()),
            Kind::Hangs => Ok(self.hang()),
            Kind::StopsReading => Ok(self.stop_reading()),
            Kind::HomeCrash => self.crash(NodeKind::Home),
            Kind::SiteCrash => self.crash(NodeKind::Redirector),
            Kind::MemberCrash => self.crash(NodeKind::Member),
            Kind::DiskFull => self.fill_disk(false),
            Kind::DiskRefuses => self.fill_disk(true),
            Kind::SlowDisk => Ok(self.slow_disk()),
            Kind::ClockJump => Ok(self.jump_clock()),
            Kind::ClockDrift => Ok(self.let_clock_drift()),
            Kind::Squeeze => self.empty_cache(),
            Kind::Moves => Ok(self.move_member()),
            Kind::SentAgain => self.send_again(),
            Kind::Rogue => self.let_rogue_in(),
            Kind::SecondParent => Ok(self.connect_besides()),
            Kind::BitFlip => self.flip_bit(),
            Kind::LeftInDoubt => Ok(!std::mem::replace(&mut self.leave_in_doubt, true)),
        }
    }

    /// A node of a kind that is up.
    fn pick_node(&mut self, kind: NodeKind) -> Option<NodeNo> {
        let nodes = self.nodes.iter().filter(|n| n.kind == kind && n.is_up());
        let nodes = nodes.filter(|n| kind != NodeKind::Member || n.resident.is_some());
        let nodes: Vec<NodeNo> = nodes.map(|node| node.no).collect();
        self.fault_prng.pick(&nodes).copied()
    }

    /// An edge whose child is of a kind.
    fn pick_edge(&mut self, kind: Option<NodeKind>) -> Option<EdgeId> {
        let edges = self.edges.iter().filter(|(_, edge)| {
            let of = self.nodes[edge.child.0].kind;
            kind.is_none_or(|kind| kind == of) && edge.down.opened && !edge.down.closed
        });
        let edges: Vec<EdgeId> = edges.map(|(id, _)| *id).collect();
        self.fault_prng.pick(&edges).copied()
    }

    /// Plans that a fault is taken back.
    fn relieve_in(&mut self, ms: u64, relief: Relief) {
        self.reliefs.push(Some(relief));
        let at = self.now.plus_ms(ms);
        self.agenda.plan(at, Event::Relieve(self.reliefs.len() - 1));
    }

    fn cut_one(&mut self, kind: NodeKind) -> bool {
        let edge = self.pick_edge(Some(kind));
        if let Some(edge) = edge {
            self.cut(edge);
        }
        edge.is_some()
    }

    fn part(&mut self) -> bool {
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
    fn close_one_way(&mut self) -> bool {
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

    fn slow_link(&mut self) -> bool {
        let Some(id) = self.pick_edge(None) else {
            return false;
        };
        let delay_us = self.fault_prng.range(20_000, 800_000);
        let ms = self.fault_prng.range(200, 3_000);
        let Some(edge) = self.edges.get_mut(&id) else {
            return false;
        };
        let before = edge.delay_us;
        edge.delay_us = before.max(delay_us);
        self.relieve_in(
            ms,
            Relief::Link {
                edge: id,
                delay_us: before,
            },
        );
        true
    }

    fn slow_node(&mut self) -> bool {
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

    fn hang(&mut self) -> bool {
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

    fn stop_reading(&mut self) -> bool {
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

    fn crash(&mut self, kind: NodeKind) -> Checked<bool> {
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

    fn jump_clock(&mut self) -> bool {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return false;
        };
        let ms = self.fault_prng.range(1, 30_000) as i64;
        let ahead = if self.fault_prng.percent(50) { -ms } else { ms };
        self.node(no).wall_ms_ahead += ahead;
        true
    }

    fn let_clock_drift(&mut self) -> bool {
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

    fn fill_disk(&mut self, refuses: bool) -> Checked<bool> {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return Ok(false);
        };
        if !self.nodes[no.0].room {
            return Ok(false);
        }
        self.node(no).room = false;
        let ms = self.fault_prng.range(100, 3_000);
        self.relieve_in(ms, Relief::Disk(no));
        if refuses {
            let soon = self.fault_prng.below(ms);
            self.relieve_in(soon, Relief::Refuse(no));
        }
        self.handle(no, Input::Room(false))?;
        Ok(true)
    }

    fn slow_disk(&mut self) -> bool {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return false;
        };
        let sync = self.fault_prng.range(50, 600);
        let ms = self.fault_prng.range(200, 3_000);
        let Some((_, disk)) = &mut self.node(no).home else {
            return false;
        };
        let before = disk.sync_ms_max;
        disk.sync_ms_max = before.max(sync);
        self.relieve_in(
            ms,
            Relief::DiskSpeed {
                node: no,
                sync_ms_max: before,
            },
        );
        true
    }

    fn empty_cache(&mut self) -> Checked<bool> {
        let Some(no) = self.pick_node(NodeKind::Member) else {
            return Ok(false);
        };
        let places = self.held_places(no);
        let some = places.into_iter().filter(|_| self.fault_prng.percent(70));
        let places: Vec<Place> = some.collect();
        self.handle(no, Input::Evict(places))?;
        Ok(true)
    }

    fn move_member(&mut self) -> bool {
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

    /// A member that never heard the answer might send a commit once more.
    fn send_again(&mut self) -> Checked<bool> {
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

    /// A node connects to a parent that is not its own: it has to turn that away, as long as
    /// its own is there (rule 1).
    fn connect_besides(&mut self) -> bool {
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

    /// A bit flips where a page lies, mostly of one that programs use. Often the home starts
    /// again then: what it has in memory is right still.
    fn flip_bit(&mut self) -> Checked<bool> {
        let Some(no) = self.pick_node(NodeKind::Home) else {
            return Ok(false);
        };
        let Some((_, disk)) = &mut self.nodes[no.0].home else {
            return Ok(false);
        };
        let pages: Vec<PageId> = disk.pages().collect();
        let Some(page) = self.fault_prng.pick(&pages).copied() else {
            return Ok(false);
        };
        let bit = self.fault_prng.bits() as usize;
        if !disk.flip(page, bit) {
            return Ok(false);
        }
        let now = self.now;
        self.trace
            .line(|| format!("{now:?} a bit of page {page} flips"));
        let ms = self.fault_prng.range(500, 4_000);
        self.relieve_in(ms, Relief::Mend(no));
        if self.fault_prng.percent(60) {
            self.kill(no)?;
            self.plan_restart(no, 300);
        }
        Ok(true)
    }

    /// What is stored is put back from elsewhere. A home that has found it damaged knows of
    /// that when it starts again.
    fn mend(&mut self, no: NodeNo) -> Checked {
        if let Some((_, disk)) = &mut self.node(no).home {
            disk.mend();
        }
        if self.nodes[no.0].is_up() {
            self.kill(no)?;
            self.plan_restart(no, 300);
        }
        Ok(())
    }

    fn let_rogue_in(&mut self) -> Checked<bool> {
        let kind = [NodeKind::Redirector, NodeKind::Home][self.fault_prng.index(2)];
        let Some(parent) = self.pick_node(kind) else {
            return Ok(false);
        };
        let no = self.add_node(NodeKind::Member, usize::MAX, vec![parent], None);
        let children = self.edges.values().filter(|edge| edge.parent == parent);
        let children = children.count();
        let homes = self.truths.keys().copied().collect();
        let rogue = Rogue::new(self.fault_prng.fork(), children, homes);
        self.node(no).rogue = true;
        self.start(no)?;
        self.node(no).machine = Some(Machine::Rogue(rogue));
        self.node(no).resident = None;
        let ms = self.fault_prng.range(300, 3_000);
        self.relieve_in(ms, Relief::Rogue(no));
        Ok(true)
    }

    /// All pages that a node has cached.
    pub fn held_places(&self, no: NodeNo) -> Vec<Place> {
        let Some(machine) = &self.nodes[no.0].machine else {
            return Vec::new();
        };
        let homes = self.truths.keys();
        homes
            .flat_map(|home| {
                let images = machine.images(*home).into_iter();
                images.map(|(page, _)| Place { home: *home, page })
            })
            .collect()
    }

    /// A fault is taken back.
    pub fn relieve(&mut self, which: usize) -> Checked {
        let Some(relief) = self.reliefs[which].take() else {
            return Ok(());
        };
        let now = self.now;
        self.trace.line(|| format!("{now:?} over: {relief:?}"));
        match relief {
            Relief::Rogue(no) => {
                if self.nodes[no.0].is_up() {
                    self.kill(no)?;
                }
            }
            Relief::Besides(edge) => self.cut(edge),
            Relief::Mend(no) => self.mend(no)?,
            Relief::Link { edge, delay_us } => {
                if let Some(edge) = self.edges.get_mut(&edge) {
                    edge.delay_us = delay_us;
                }
            }
            Relief::Node(no) => {
                let node = self.node(no);
                node.slow_us = 0;
                node.deaf_until = now;
            }
            Relief::Clock(no) => self.node(no).drift(now, None),
            Relief::Refuse(no) => self.set_full(no, true),
            Relief::Disk(no) => {
                self.set_full(no, false);
                self.node(no).room = true;
                if self.nodes[no.0].is_up() {
                    self.handle(no, Input::Room(true))?;
                }
            }
            Relief::DiskSpeed { node, sync_ms_max } => {
                if let Some((_, disk)) = &mut self.node(node).home {
                    disk.sync_ms_max = sync_ms_max;
                }
            }
        }
        Ok(())
    }

    fn set_full(&mut self, no: NodeNo, full: bool) {
        if let Some((_, disk)) = &mut self.node(no).home {
            disk.full = full;
        }
    }

    /// Nothing goes wrong any more.
    pub fn heal(&mut self) -> Checked {
        self.healed = true;
        let now = self.now;
        self.trace.line(|| format!("{now:?} healed"));
        self.partitions.clear();
        self.turn_back();
        self.leave_in_doubt = false;
        for (no, node) in (0..self.nodes.len()).map(NodeNo).zip(&self.nodes) {
            for parent in node.parents.clone() {
                let life = node.life;
                let local = Local::Dial { parent };
                let node = no;
                self.agenda.plan(now, Event::At { node, life, local });
            }
        }
        Ok(())
    }
}

/// Whether a commit only writes, and depends on nothing that was there.
fn is_blind(request: &CommitRequest) -> bool {
    let part = &request.part;
    let mut ops = part.writes.iter().flat_map(|writes| &writes.slots);
    part.reads.is_empty() && !part.writes.is_empty() && ops.all(|(_, op)| !op.reads())
}
