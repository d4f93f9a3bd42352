//! How transactions end.

use thorp_model::{CommitId, Position, Stamp};

/// A transaction that is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Committed {
    /// Its id; none if it only read and no home had to judge it.
    pub id: Option<CommitId>,
    /// Its place in the home's order: all of what it read and wrote is as of here. None if it touched no home, or
    /// several: it has a position at each of them.
    pub position: Option<Position>,
    /// When, for ordering commits of different homes; at several homes it is the same. None if it wrote nothing.
    pub stamp: Option<Stamp>,
}

/// The outcome of a commit that did not come in time: see [`Member::outcome`](crate::Member::outcome).
#[derive(Debug)]
pub enum Outcome {
    /// It is durable.
    Committed(Committed),
    /// It has and will have no effect; the error says what to do.
    Refused(crate::Error),
}
