//! What a home is given when it starts.

use crate::edge::downstream::ChildLimits;
use crate::edge::liveness::AliveLimits;
use crate::home::history::HomeHistory;
use crate::home::name_limits::NameLimits;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use thorp_model::{HomeId, MemberId, NoVerifier, ReceiptKey, Verifier, limits};

/// What a home is given when it starts.
#[derive(Clone, Debug)]
pub struct HomeConfig {
    /// The home's id, fixed when its store is made.
    pub home: HomeId,
    /// The home's name in `thorp://NAME/path`.
    pub name: String,
    /// This process start.
    pub node: MemberId,
    /// The names of the other homes with which it shares transactions (rule 10). It votes for no
    /// transaction that names another home (rule R7).
    pub other_homes: Vec<String>,
    /// Whether a home that has no list of who makes segments makes one at its start: then only operators do, and a new
    /// segment is its maker's alone (rule R3).
    pub begins_closed: bool,
    /// Objects of which the last change is known.
    pub changes_known_max: usize,
    /// Bytes of modified objects before installation begins.
    pub mob_bytes_high: usize,
    /// Pages that one batch installs when installation has fallen behind, at most.
    pub install_pages_max: usize,
    /// Records in the log before installation, however little is modified.
    pub log_records_high: usize,
    /// Bytes of page images in memory.
    pub cache_bytes: usize,
    /// Bytes of commits accepted and not yet durable.
    pub pending_bytes_max: usize,
    /// Commits that wait for pages from disk.
    pub parked_max: usize,
    /// Bytes of such commits and of the pages that they keep in memory.
    pub parked_bytes_max: usize,
    /// Bytes of parts that were voted for and may still become commits.
    pub votes_bytes_max: usize,
    /// Members whose outcomes are remembered.
    pub registrations_max: usize,
    /// Outcomes remembered of each, at least [`limits::COMMITS_IN_FLIGHT_MAX`].
    pub outcomes_per_member: u64,
    /// How long the values that a member has staged are kept when it is not heard
    /// of, in milliseconds.
    pub staged_silent_ms_max: u64,
    /// How much is kept for each child.
    pub per_child: ChildLimits,
    /// How much each name may have (rule R7).
    pub per_name: NameLimits,
    /// Bytes of what it tells a site about the readers of all segments (rule R4).
    pub readers_bytes_max: usize,
    /// When a child is silent; none waits for ever.
    pub alive: Option<AliveLimits>,
    /// Log records trimmed by one batch, at least one.
    pub log_trim_max: u64,
    /// Pages of a removed segment deleted by one batch, at least one.
    pub pages_removed_max: u32,
    /// How long a lease lasts, in milliseconds (rule C4).
    pub lease_ms: u32,
    /// Checks who has signed what sites bring (rule R2).
    pub verifier: Arc<dyn Verifier>,
    /// What its store knows of its history (rule R9).
    pub history: HomeHistory,
}

impl HomeConfig {
    /// A home with the limits of `thorp_model::limits`, to which members come by edges of their own. Its history is that
    /// of a new store with a known key: whoever has a store gives its own.
    pub fn new(home: HomeId, name: String, node: MemberId) -> Self {
        HomeConfig {
            home,
            name,
            node,
            other_homes: Vec::new(),
            begins_closed: false,
            changes_known_max: limits::CHANGES_KNOWN_MAX,
            mob_bytes_high: limits::MOB_BYTES_HIGH,
            install_pages_max: limits::INSTALL_PAGES_MAX,
            log_records_high: limits::LOG_RECORDS_HIGH,
            cache_bytes: limits::HOME_CACHE_BYTES,
            pending_bytes_max: limits::PENDING_BYTES_MAX,
            parked_max: limits::PARKED_MAX,
            parked_bytes_max: limits::PARKED_BYTES_MAX,
            votes_bytes_max: limits::VOTES_BYTES_MAX,
            registrations_max: limits::REGISTRATIONS_MAX,
            outcomes_per_member: limits::OUTCOMES_PER_MEMBER,
            staged_silent_ms_max: limits::STAGED_SILENT_MS_MAX,
            per_child: ChildLimits::default(),
            per_name: NameLimits::default(),
            readers_bytes_max: limits::READERS_BYTES_MAX,
            alive: Some(AliveLimits::default()),
            log_trim_max: limits::LOG_TRIM_MAX,
            pages_removed_max: limits::PAGES_REMOVED_MAX,
            lease_ms: limits::LEASE_MS,
            verifier: Arc::new(NoVerifier),
            history: HomeHistory::first(0, ReceiptKey::new([0; 32])),
        }
    }

    /// How long a read lease lasts, in milliseconds.
    pub(super) fn read_lease_ms(&self) -> u32 {
        self.lease_ms.min(limits::READ_LEASE_MS_MAX)
    }
}
