//! What a member has counted.

use std::time::Duration;
use thorp_net::Traffic;

/// What a member has counted since it joined. Take two and subtract for what a stretch of work did: [`Stats::since`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Slots read from the cache, also those that had to wait for their page first (of transactions that have ended).
    pub cached_reads: u64,
    /// Times that a read had to wait for a page (of transactions that have ended). The many pages of a large object are
    /// not counted.
    pub misses: u64,
    /// Pages requested, prefetched ones included.
    pub fetches: u64,
    /// Pages that came from a home that this member is joined to directly.
    pub from_home: u64,
    /// Pages that came through the site: out of its memory, or from the home behind it. The protocol does not
    /// distinguish them; the site itself does, in its status.
    pub through_site: u64,
    /// Pages that came from a neighbour.
    pub from_peers: u64,
    /// Pages requested before a transaction waited for them
    /// ([`JoinConfig::fetch_ahead`](crate::JoinConfig::fetch_ahead)). They lie near a page that a transaction waited
    /// for, or neighbours at the site read them next. Or a typed value refers to them ([`Ref`](crate::Ref)), or the
    /// program named them ([`Member::prefetch`](crate::Member::prefetch)).
    pub ahead: u64,
    /// Of those, the ones that neighbours read after the page that was waited for.
    pub ahead_hinted: u64,
    /// Of all of them, the ones that were read afterwards.
    pub ahead_used: u64,
    /// Of all of them, the ones that were not read while hundreds of others were prefetched.
    pub ahead_wasted: u64,
    /// Transactions committed, all kinds.
    pub commits: u64,
    /// Of those, the ones that only read and sent no message.
    pub free_commits: u64,
    /// Pages shown as they had been before others changed them, to transactions that only read (of transactions that
    /// have ended).
    pub old_images: u64,
    /// Transactions that only read, as far as they went, and went on as of before a change to what they had read. Each
    /// of them would have been doomed.
    pub behind: u64,
    /// Transactions that were found doomed here, because what they read had changed; the home refuses others.
    pub doomed: u64,
    /// Transactions that ended because what they read had changed.
    pub conflicts: u64,
    /// Transactions given up by the program, or that failed otherwise.
    pub aborts: u64,
    /// Commits whose outcome did not come in time.
    pub unknown_outcomes: u64,
    /// Uses of pages that are missing in the trace ([`JoinConfig::record_trace`](crate::JoinConfig::record_trace)),
    /// because it could not be written; what was on its way when that was found is not counted.
    pub not_recorded: u64,
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
    /// For pages from a home that this member is joined to directly.
    pub home_fetch: Duration,
    /// For pages that came through the site, wherever it had them from; and for pages that came in the moment they were
    /// asked for.
    pub site_fetch: Duration,
    /// For pages from a neighbour.
    pub peer_fetch: Duration,
    /// For pages to create objects in, and for staging large values.
    pub room: Duration,
}

impl Stats {
    /// What was counted since an earlier moment. What is cached is as of now.
    #[must_use]
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            cached_reads: self.cached_reads.saturating_sub(earlier.cached_reads),
            misses: self.misses.saturating_sub(earlier.misses),
            fetches: self.fetches.saturating_sub(earlier.fetches),
            from_home: self.from_home.saturating_sub(earlier.from_home),
            through_site: self.through_site.saturating_sub(earlier.through_site),
            from_peers: self.from_peers.saturating_sub(earlier.from_peers),
            ahead: self.ahead.saturating_sub(earlier.ahead),
            ahead_hinted: self.ahead_hinted.saturating_sub(earlier.ahead_hinted),
            ahead_used: self.ahead_used.saturating_sub(earlier.ahead_used),
            ahead_wasted: self.ahead_wasted.saturating_sub(earlier.ahead_wasted),
            commits: self.commits.saturating_sub(earlier.commits),
            free_commits: self.free_commits.saturating_sub(earlier.free_commits),
            old_images: self.old_images.saturating_sub(earlier.old_images),
            behind: self.behind.saturating_sub(earlier.behind),
            doomed: self.doomed.saturating_sub(earlier.doomed),
            conflicts: self.conflicts.saturating_sub(earlier.conflicts),
            aborts: self.aborts.saturating_sub(earlier.aborts),
            unknown_outcomes: self
                .unknown_outcomes
                .saturating_sub(earlier.unknown_outcomes),
            not_recorded: self.not_recorded.saturating_sub(earlier.not_recorded),
            cached_pages: self.cached_pages,
            cached_bytes: self.cached_bytes,
            waits: self.waits.since(&earlier.waits),
            traffic: traffic_since(&self.traffic, &earlier.traffic),
        }
    }
}

impl Waits {
    /// All of them together.
    pub fn total(&self) -> Duration {
        self.commit + self.home_fetch + self.site_fetch + self.peer_fetch + self.room
    }

    fn since(&self, earlier: &Waits) -> Waits {
        Waits {
            commit: self.commit.saturating_sub(earlier.commit),
            home_fetch: self.home_fetch.saturating_sub(earlier.home_fetch),
            site_fetch: self.site_fetch.saturating_sub(earlier.site_fetch),
            peer_fetch: self.peer_fetch.saturating_sub(earlier.peer_fetch),
            room: self.room.saturating_sub(earlier.room),
        }
    }
}

fn traffic_since(now: &Traffic, earlier: &Traffic) -> Traffic {
    Traffic {
        bytes_sent: now.bytes_sent.saturating_sub(earlier.bytes_sent),
        frames_sent: now.frames_sent.saturating_sub(earlier.frames_sent),
        bytes_received: now.bytes_received.saturating_sub(earlier.bytes_received),
        frames_received: now.frames_received.saturating_sub(earlier.frames_received),
    }
}
