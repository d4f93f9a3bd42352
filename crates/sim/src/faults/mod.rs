//! How faults strike the simulated world, and how it is healed.

mod disks;
pub mod kinds;
mod links;
mod nodes;

use crate::digest::Turn;
use crate::failure::Checked;
use crate::faults::kinds::Kind;
use crate::time::{Local, NodeNo, Planned};
use crate::world::World;
use thorp_model::{EdgeId, NodeKind};
use thorp_protocol::{Home, HomeCommand};

/// A fault that lasts, to be taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relief {
    /// A connection is as quick as usual.
    Link(EdgeId),
    /// A node is as quick as before.
    Node(NodeNo),
    /// A node's wall clock goes right.
    Clock(NodeNo),
    /// A process that keeps no rules is ended.
    Byzantine(NodeNo),
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

/// Milliseconds that a node stands still, at most: longer than its neighbours wait for it.
const HUNG_MS_MAX: u64 = 6_000;

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
                self.trace
                    .digest(|digest| digest.turn(now, Turn::Strikes, kind as usize));
                self.counts.struck(kind);
                self.strikes_left -= 1;
            }
        }
        let gap = self.fault_prng.range(20, self.village.strike_gap_ms_max);
        self.agenda.plan(self.now.plus_ms(gap), Planned::Strike);
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
            Kind::Byzantine => self.let_rogue_in(),
            Kind::SecondParent => Ok(self.connect_besides()),
            Kind::BitFlip => self.flip_bit(),
            Kind::LeftInDoubt => Ok(!std::mem::replace(&mut self.leave_in_doubt, true)),
        }
    }

    /// A node of a kind that is up.
    pub(super) fn pick_node(&mut self, kind: NodeKind) -> Option<NodeNo> {
        let nodes = self.nodes.iter().filter(|n| n.kind == kind && n.is_up());
        let nodes = nodes.filter(|n| kind != NodeKind::Member || n.resident.is_some());
        let nodes: Vec<NodeNo> = nodes.map(|node| node.no).collect();
        self.fault_prng.pick(&nodes).copied()
    }

    /// An edge whose child is of a kind.
    pub(super) fn pick_edge(&mut self, kind: Option<NodeKind>) -> Option<EdgeId> {
        let edges = self.edges.iter().filter(|(_, edge)| {
            let of = self.nodes[edge.child.0].kind;
            kind.is_none_or(|kind| kind == of) && edge.down.opened && !edge.down.closed
        });
        let edges: Vec<EdgeId> = edges.map(|(id, _)| *id).collect();
        self.fault_prng.pick(&edges).copied()
    }

    /// Plans that a fault is taken back.
    pub(super) fn relieve_in(&mut self, ms: u64, relief: Relief) {
        self.reliefs.push(Some(relief));
        let at = self.now.plus_ms(ms);
        self.agenda
            .plan(at, Planned::Relieve(self.reliefs.len() - 1));
    }

    /// A fault is taken back.
    pub fn relieve(&mut self, which: usize) -> Checked {
        let Some(relief) = self.reliefs[which].take() else {
            return Ok(());
        };
        let now = self.now;
        self.trace.line(|| format!("{now:?} over: {relief:?}"));
        self.trace
            .digest(|digest| digest.turn(now, Turn::Relieved, which));
        match relief {
            Relief::Byzantine(no) => {
                if self.nodes[no.0].is_up() {
                    self.kill(no)?;
                }
            }
            Relief::Besides(edge) => self.cut(edge),
            Relief::Mend(no) => self.mend(no)?,
            Relief::Link(id) => {
                let parent = self.edges.get(&id).map(|edge| edge.parent);
                let usual = parent.map(|parent| self.usual_delay(parent));
                if let (Some(edge), Some(usual)) = (self.edges.get_mut(&id), usual) {
                    edge.delay_us = usual.least_us;
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
                self.set_left(no, None);
                self.node(no).room = true;
                if self.nodes[no.0].is_up() {
                    self.command::<Home>(no, HomeCommand::Lacks(None))?;
                    self.tell_left(no)?;
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

    /// Nothing goes wrong any more.
    pub fn heal(&mut self) -> Checked {
        self.healed = true;
        let now = self.now;
        self.trace.line(|| format!("{now:?} healed"));
        self.trace
            .digest(|digest| digest.turn(now, Turn::Healed, 0));
        self.partitions.clear();
        self.turn_back();
        self.leave_in_doubt = false;
        for (no, node) in (0..self.nodes.len()).map(NodeNo).zip(&self.nodes) {
            for parent in node.parents.clone() {
                let life = node.life;
                let local = Local::Dial { parent };
                let node = no;
                self.agenda.plan(now, Planned::At { node, life, local });
            }
        }
        Ok(())
    }
}
