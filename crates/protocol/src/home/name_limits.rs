//! What a configuration may say of the shares of names (rule R7).

use thorp_model::limits::{
    CALLS_PER_NAME_MAX, COMMITS_PER_NAME_MAX, FETCHES_PER_NAME_MAX, PAGE_NUMBERS_PER_NAME_MAX,
    SEGMENTS_PER_NAME_MAX, STORE_PERCENT_PER_NAME_MAX,
};

/// How much each name may have of a home, beside that it has no more than it leaves free (rule R7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameLimits {
    /// Segments that it made and that are there.
    pub segments_max: usize,
    /// Page numbers that it is given of each segment: of those for objects, and of those for overflow pages.
    pub page_numbers_max: u32,
    /// What it has stored, of that and the free space of the store together, in percent. With 100 it may fill the store.
    pub store_percent_max: u8,
    /// What it has stored, in bytes.
    pub store_bytes_max: u64,
    /// Commits that all of its processes have under way.
    pub commits_max: usize,
    /// Calls that all of its processes have under way.
    pub calls_max: usize,
    /// Pages that all of its processes wait for, without those that sites ask for.
    pub fetches_max: usize,
}

impl Default for NameLimits {
    fn default() -> Self {
        NameLimits {
            segments_max: SEGMENTS_PER_NAME_MAX,
            page_numbers_max: PAGE_NUMBERS_PER_NAME_MAX,
            store_percent_max: STORE_PERCENT_PER_NAME_MAX,
            store_bytes_max: u64::MAX,
            commits_max: COMMITS_PER_NAME_MAX,
            calls_max: CALLS_PER_NAME_MAX,
            fetches_max: FETCHES_PER_NAME_MAX,
        }
    }
}
