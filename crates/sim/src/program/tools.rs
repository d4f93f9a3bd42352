//! What an action of a transaction is given, and why it may stop.

use super::value::{HEAD_BYTES, Known, Maker};
use crate::failure::Failure;
use crate::oracle::Oracle;
use crate::village::Habits;
use std::collections::BTreeMap;
use std::sync::Arc;
use thorp_cache::Cache;
use thorp_model::limits::INLINE_VALUE_BYTES_MAX;
use thorp_model::{Content, ObjectId, Overflow, PageNo, SegmentId, Xoshiro256};

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

/// Stops with the failure of a checker, if something is not right.
pub(super) fn demand_stop(right: bool, detail: impl FnOnce() -> String) -> Result<(), Stop> {
    if right {
        return Ok(());
    }
    Err(Stop::Wrong(Failure::new("reads", detail())))
}

/// Unique bytes within a value of this length.
pub(super) fn draw_patch(length: usize, tools: &mut Tools<'_>) -> Option<(usize, Vec<u8>)> {
    if !(HEAD_BYTES..=INLINE_VALUE_BYTES_MAX).contains(&length) {
        return None;
    }
    let tag = tools.maker.tag();
    let offset = tools.prng.range(8, (length - tag.len()) as u64);
    Some((offset as usize, tag.to_vec()))
}

/// Whether an object still lies where it was seen to lie.
pub(super) fn is_there(oracle: &Oracle, object: ObjectId, overflow: Overflow) -> bool {
    let image = oracle.image(object.page, oracle.end);
    image.content(object.slot) == Content::Overflow(overflow)
}
