//! The id of a node that begins.

use std::hash::{BuildHasher, RandomState};

/// The random half of a process id (rule R1), from the system's randomness, by which std seeds its hashers.
pub(crate) fn random_bits() -> u64 {
    RandomState::new().hash_one(("thorp", std::process::id()))
}
