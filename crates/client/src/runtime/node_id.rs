//! The id of a node that begins.

use std::hash::{BuildHasher, RandomState};
use thorp_model::MemberId;

/// 128 bits from the system's randomness, by which std seeds its hashers.
pub(crate) fn random_id() -> MemberId {
    let (high, low) = (RandomState::new(), RandomState::new());
    let process = std::process::id();
    let high = u128::from(high.hash_one(("thorp", process)));
    MemberId((high << 64) | u128::from(low.hash_one(("member", process))))
}
