//! What a parent grants to a child (rule C1).

use serde::{Deserialize, Serialize};

/// A privilege above the trivial one. Each is a lease (rule C4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Privilege {
    /// WR: the child may hold updates that its home has not seen.
    Write,
    /// RD with a hard bound: of the changes that are answered to others the child misses no more than so many (rule C2).
    Read {
        /// So many. At most [`CONSISTENCY_MODS_MAX`](crate::limits::CONSISTENCY_MODS_MAX) are meant; 0 includes every bound in time.
        mods: u32,
    },
}
