//! Names that a rogue makes up, which no node has.

use thorp_model::NameId;

/// How many there are. The names of nodes are digests, and above these.
pub(crate) const MADE_UP_NAMES: u64 = 1 << 20;

/// The name in the certificate of a rogue.
pub(crate) const ROGUE: &str = "rogue";

/// The name in the certificate of a hostile site that stays.
pub(crate) const ROGUE_SITE: &str = "rogue-site";

/// The name in the certificate of a hostile member that stays below an honest site.
pub(crate) const ROGUE_BELOW: &str = "rogue-below";

/// Whether a name is a rogue's: its own, or one that it has made up.
pub(crate) fn is_rogues(name: NameId) -> bool {
    let own = [ROGUE, ROGUE_SITE, ROGUE_BELOW];
    name.0 < MADE_UP_NAMES || own.iter().any(|own| name == NameId::of(own))
}
