//! What an action of a transaction is given, and why it may stop.

use super::session::Known;
use super::value::Maker;
use crate::failure::Failure;
use crate::oracle::Oracle;
use crate::village::Habits;
use std::collections::BTreeMap;
use std::sync::Arc;
use thorp_cache::Cache;
use thorp_model::{ObjectId, PageNo, SegmentId, Xoshiro256};

/// Why an action did not happen.
pub enum Stop {
    /// The client says why.
    Client(thorp_session::Stop),
    /// A checker says why.
    Wrong(Failure),
}

impl From<thorp_session::Stop> for Stop {
    fn from(stop: thorp_session::Stop) -> Self {
        Stop::Client(stop)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Wrong(failure)
    }
}

/// What actions need besides.
pub struct Tools<'a> {
    /// The page cache.
    pub cache: &'a Cache,
    /// The session's chance.
    pub prng: &'a mut Xoshiro256,
    /// The session's values.
    pub maker: &'a mut Maker,
    /// What the session of the action's home knows from earlier transactions.
    pub known: &'a BTreeMap<ObjectId, Known>,
    /// What programs do here.
    pub habits: &'a Habits,
    /// What the action's home has made durable, for checks.
    pub oracle: &'a Oracle,
    /// The values that this session has staged.
    pub staged: &'a BTreeMap<(SegmentId, PageNo), Arc<[u8]>>,
}
