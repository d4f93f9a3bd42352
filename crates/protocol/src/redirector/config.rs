//! What a redirector gets when it starts.

use crate::edge::downstream::ChildLimits;
use crate::edge::liveness::AliveLimits;
use crate::redirector::ParentNames;
use alloc::string::String;
use thorp_model::limits::{
    HISTORY_PAGES_MAX, KEPT_CHANGES_MAX, PENDING_WRITES_COMMIT_BYTES_MAX, REPORT_PAGES_MAX,
    REPORTED_MAX, SEND_WINDOW_BYTES_MAX, SITE_CACHE_BYTES, SUCCESSOR_PAGES_MAX,
};
use thorp_model::{MemberId, NameId};

/// What a redirector gets when it starts.
#[derive(Clone, Debug)]
pub struct RedirectorConfig {
    /// This process start.
    pub node: MemberId,
    /// What its parents are called. Without it, it does not tell its children which homes there are (rule 1).
    pub parents: Option<ParentNames>,
    /// Its name, for people.
    pub name: String,
    /// Bytes of page images that it keeps itself, shared evenly by its homes; zero keeps none.
    pub cache_bytes: usize,
    /// Bytes of commits kept until they are delivered (rule 8).
    pub kept_bytes_max: usize,
    /// Pages of one home of which it knows whether they are asked for again when they were
    /// invalidated (rule 8); with zero it refetches none.
    pub history_pages_max: usize,
    /// Pages of one home of which it knows what its children waited for next (rule 9); with zero it
    /// gives no hints, and asks for nothing because of them.
    pub successor_pages_max: usize,
    /// Messages kept for a page that is on its way (rule 9).
    pub kept_changes_max: usize,
    /// Whether a home may answer beside its stream (rule 9): where its images travel by sockets of their own.
    pub images_beside: bool,
    /// Bytes of commits that it has on their way up one edge, and of values
    /// that are being staged.
    pub upward_bytes_max: usize,
    /// Pages in one piece of a report to a new parent (rule 13).
    pub report_pages_max: usize,
    /// Pages of one home that it asks its parent about for all that report to it.
    pub reported_max: usize,
    /// When a neighbour is silent; none waits for ever.
    pub alive: Option<AliveLimits>,
    /// How much is kept for each child.
    pub per_child: ChildLimits,
    /// The name of the member that keeps the log of the site (rule C6). None: the site has no log.
    pub log_keeper: Option<NameId>,
}

impl RedirectorConfig {
    /// A redirector with the limits of `thorp_model::limits`.
    pub fn new(node: MemberId, name: String) -> Self {
        RedirectorConfig {
            node,
            parents: None,
            name,
            cache_bytes: SITE_CACHE_BYTES,
            kept_bytes_max: PENDING_WRITES_COMMIT_BYTES_MAX,
            history_pages_max: HISTORY_PAGES_MAX,
            successor_pages_max: SUCCESSOR_PAGES_MAX,
            kept_changes_max: KEPT_CHANGES_MAX,
            images_beside: false,
            upward_bytes_max: SEND_WINDOW_BYTES_MAX,
            report_pages_max: REPORT_PAGES_MAX,
            reported_max: REPORTED_MAX,
            alive: Some(AliveLimits::default()),
            per_child: ChildLimits::default(),
            log_keeper: None,
        }
    }
}
