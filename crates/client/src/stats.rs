//! What a member has counted.

use std::time::Duration;
use thorp_net::Traffic;

/// What a member has counted since it joined. Take two and subtract for what a stretch of work did: [`Stats::since`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Reads answered from the cache (of transactions that have ended).
    pub cached_reads: u64,
    /// Reads that had to wait for a page.
    pub misses: u64,
    /// Pages asked for, also ahead of reading.
    pub fetches: u64,
    /// Pages that came from the home this member is joined to directly.
    pub from_home: u64,
    /// Pages that came from the site: its memory, or the home behind it.
    pub from_site: u64,
    /// Pages that came from a neighbour.
    pub from_peers: u64,
    /// Transactions committed, all kinds.
    pub commits: u64,
    /// Of those, the ones that only read and asked nobody.
    pub free_commits: u64,
    /// Transactions that ended because what they read had changed.
    pub conflicts: u64,
    /// Transactions given up by the program, or that failed otherwise.
    pub aborts: u64,
    /// Commits whose answer did not come in time.
    pub unknown_outcomes: u64,
    /// Pages in the cache now.
    pub cached_pages: u64,
    /// Bytes of them.
    pub cached_bytes: u64,
    /// Time that transactions spent waiting, added up over all threads.
    pub waits: Waits,
    /// What travelled on this member's edges.
    pub traffic: Traffic,
}

/// Time spent waiting, by what for; the rest of a transaction is the program's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// For commits' outcomes.
    pub commit: Duration,
    /// For pages from the home.
    pub home_fetch: Duration,
    /// For pages from the site.
    pub site_fetch: Duration,
    /// For pages from a neighbour.
    pub peer_fetch: Duration,
    /// For room to create objects in, and for staging large values.
    pub room: Duration,
}
