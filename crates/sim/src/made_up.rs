//! Names that a rogue makes up, which no node has.

use thorp_model::NameId;

/// How many there are. The names of nodes are digests, and above these.
pub(crate) const MADE_UP_NAMES: u64 = 1 << 20;

/// The name in the certificate of every rogue.
pub(crate) const ROGUE: &str = "rogue";

/// Whether a name is a rogue's: its own, or one that it has made up.
pub(crate) fn is_rogues(name: NameId) -> bool {
    name.0 < MADE_UP_NAMES || name == NameId::of(ROGUE)
}
