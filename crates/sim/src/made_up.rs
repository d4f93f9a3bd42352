//! Names that a rogue makes up, which no node has.

use thorp_model::NameId;

/// How many there are. The names of nodes are digests, and above these.
pub(crate) const MADE_UP_NAMES: u64 = 1 << 20;

/// Whether a rogue has made up a name.
pub(crate) fn is_made_up(name: NameId) -> bool {
    name.0 < MADE_UP_NAMES
}
