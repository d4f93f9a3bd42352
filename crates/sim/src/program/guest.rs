//! What other sessions lend to a session's transaction over several homes (rule 10).

use super::value::Known;
use std::collections::BTreeMap;
use std::sync::Arc;
use thorp_model::{HomeId, ObjectId, PageNo, Position, SegmentId, Stamp};

/// What a session lends to the transaction of another one.
pub struct Guest {
    /// Its home.
    pub home: HomeId,
    /// What it knows from earlier transactions.
    pub known: BTreeMap<ObjectId, Known>,
    /// The values that it has staged.
    pub staged: BTreeMap<(SegmentId, PageNo), Arc<[u8]>>,
    /// The highest position that it has seen or was told.
    pub floor: Position,
    /// The highest stamp at which it stood.
    pub stamp_floor: Stamp,
}
