//! How much a parent keeps for each child.

use thorp_model::limits::{
    ENTERINGS_MAX, ENTRIES_PER_MEMBER_MAX, ENTRIES_PER_SITE_MAX, PROCESSES_ENTERED_MAX,
    SWEPT_PAGES_MAX,
};
use thorp_model::{EntryNo, NodeKind};

/// How much a parent keeps for each child, and does with one input when it has gone.
#[derive(Clone, Copy, Debug)]
pub struct ChildLimits {
    /// Pages for which a member is entered.
    pub entries_per_member_max: usize,
    /// Pages for which a site is entered.
    pub entries_per_site_max: usize,
    /// Enterings of one epoch.
    pub enterings_max: EntryNo,
    /// Pages looked at with one input for children that have gone.
    pub swept_pages_max: usize,
}

impl Default for ChildLimits {
    fn default() -> Self {
        ChildLimits {
            entries_per_member_max: ENTRIES_PER_MEMBER_MAX,
            entries_per_site_max: ENTRIES_PER_SITE_MAX,
            enterings_max: EntryNo(ENTERINGS_MAX),
            swept_pages_max: SWEPT_PAGES_MAX,
        }
    }
}

impl ChildLimits {
    /// Pages for which one process is entered.
    pub(super) fn of_child(&self, kind: NodeKind) -> usize {
        match kind {
            NodeKind::Member => self.entries_per_member_max,
            _ => self.entries_per_site_max,
        }
    }

    /// Pages for which all processes of a name are entered: of a member those of a few full ones, of a site one.
    pub(super) fn of_name(&self, kind: NodeKind) -> usize {
        match kind {
            NodeKind::Member => self
                .entries_per_member_max
                .saturating_mul(PROCESSES_ENTERED_MAX),
            _ => self.entries_per_site_max,
        }
    }
}
