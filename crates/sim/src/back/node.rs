//! A node of the village: its machine, and what its driver keeps beside that.

use super::branch::BranchNo;
use super::program::Program;
use crate::disk::Disk;
use crate::node::Machine;
use crate::time::WALL_MS_FIRST;
use crate::time::{At, NodeNo};
use thorp_model::{HomeId, MemberId, Millis, NodeKind, Now, Peer, Principal};

/// The store of a home.
pub(super) struct Store {
    /// Which home it is.
    pub(super) home: HomeId,
    /// Its disk.
    pub(super) disk: Disk,
    /// Its history.
    pub(super) branch: BranchNo,
}

/// A node.
pub(super) struct Node {
    /// Its place in the list of nodes.
    pub(super) no: NodeNo,
    /// Its name. Two copies of a home have one name.
    pub(super) name: String,
    /// What it is.
    pub(super) kind: NodeKind,
    /// Its process start.
    pub(super) id: MemberId,
    /// Counts its starts and deaths.
    pub(super) life: u32,
    /// When it started.
    pub(super) started: At,
    /// How far its wall clock is ahead.
    pub(super) wall_ms_ahead: u64,
    /// Its machine; none while it is dead.
    pub(super) machine: Option<Machine>,
    /// When the next tick is planned.
    pub(super) tick_planned: Option<At>,
    /// Whom it dials.
    pub(super) parents: Vec<NodeNo>,
    /// The store of a home.
    pub(super) store: Option<Store>,
    /// The program of a member.
    pub(super) program: Option<Program>,
    /// A copy of a home that was given up: it never starts again.
    pub(super) is_gone: bool,
}

impl Node {
    /// A node that does not run yet.
    pub(super) fn new(no: NodeNo, kind: NodeKind, name: String, parents: Vec<NodeNo>) -> Self {
        Node {
            no,
            name,
            kind,
            id: MemberId(0),
            life: 0,
            started: At(0),
            wall_ms_ahead: 0,
            machine: None,
            tick_planned: None,
            parents,
            store: None,
            program: None,
            is_gone: false,
        }
    }

    /// Whether it runs.
    pub(super) fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    /// What its clocks say.
    pub(super) fn now(&self, at: At) -> Now {
        Now {
            mono: Now::MONO_FIRST.plus(at.ms_since(self.started)),
            wall: Millis(WALL_MS_FIRST + at.0 / 1000 + self.wall_ms_ahead),
        }
    }

    /// When its monotone clock will say so.
    pub(super) fn at(&self, mono: Millis) -> At {
        self.started.plus_ms(mono.since(Now::MONO_FIRST))
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

    /// The home that it is.
    pub(super) fn home(&self) -> Option<HomeId> {
        self.store.as_ref().map(|store| store.home)
    }

    /// Whether it is a home that lets in nobody but operators.
    pub(super) fn is_closed(&self) -> bool {
        self.store
            .as_ref()
            .is_some_and(|store| store.disk.is_closed())
    }
}
