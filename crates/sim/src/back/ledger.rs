//! What programs did, what they were told, and which homes they were told to have gone back.

use super::branch::BranchNo;
use crate::oracle::Object;
use crate::time::NodeNo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thorp_model::{CommitId, HomeId, MemberId, ObjectId, Outcome, Position, Stamp};

/// Whoever made the first objects.
pub(super) const FOUNDER: MemberId = MemberId(u128::MAX);

/// An object of a home.
pub(super) type At = (HomeId, ObjectId);

/// A process, by its node and the life of that.
pub(super) type Process = (NodeNo, u32);

/// What a transaction saw and wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// What it saw, at the first reading.
    pub(super) seen: BTreeMap<At, Object>,
    /// What it wrote; none where it deleted.
    pub(super) written: BTreeMap<At, Option<Arc<[u8]>>>,
}

/// A commit that a program has asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Whose program.
    pub(super) process: Process,
    /// What the transaction saw and wrote.
    pub(super) content: Content,
    /// Its homes.
    pub(super) homes: BTreeSet<HomeId>,
    /// When, by the number of the event.
    pub(super) event: u64,
}

/// An outcome that a program was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The outcome.
    pub(super) outcome: Outcome,
    /// When, by the number of the event.
    pub(super) event: u64,
    /// The histories that the member followed.
    pub(super) branches: BTreeMap<HomeId, BranchNo>,
}

/// A transaction that only read, and committed without a message.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// What it saw, where, and as of which position.
    pub(super) seen: Vec<(BranchNo, ObjectId, Position)>,
    /// Where it stands.
    pub(super) stamp: Stamp,
}

/// All of this.
#[derive(Default)]
pub(super) struct Ledger {
    /// Commits that have an id.
    pub(super) asked: BTreeMap<CommitId, Asked>,
    /// Outcomes.
    pub(super) told: BTreeMap<CommitId, Told>,
    /// When a process was told that a home has gone back.
    pub(super) went_back: BTreeMap<(Process, HomeId), Vec<u64>>,
    /// Who made which generation of an object, and the incarnation of its home.
    pub(super) made: BTreeMap<(At, u32), (CommitId, u16)>,
    /// Readings.
    pub(super) readings: Vec<Reading>,
}

impl Ledger {
    /// Whether a process was told after an event that a home has gone back.
    pub(super) fn is_warned(&self, process: Process, home: HomeId, after: u64) -> bool {
        let warned = self.went_back.get(&(process, home));
        warned.is_some_and(|events| events.iter().any(|event| *event > after))
    }
}
