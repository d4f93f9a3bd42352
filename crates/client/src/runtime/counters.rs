//! What a member counts itself: plain sums that order nothing, hence relaxed.

use crate::{Stats, Waits};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thorp_protocol::Source;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    free_commits: AtomicU64,
    conflicts: AtomicU64,
    aborts: AtomicU64,
    unknown: AtomicU64,
    from_home: AtomicU64,
    through_site: AtomicU64,
    from_peers: AtomicU64,
    commit_nanos: AtomicU64,
    home_nanos: AtomicU64,
    site_nanos: AtomicU64,
    peer_nanos: AtomicU64,
    room_nanos: AtomicU64,
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Committed,
    /// No message was sent.
    Free,
    Conflict,
    Aborted,
    Unknown,
    /// How, is counted when it is known.
    Early,
}

impl Counters {
    pub(crate) fn ended(&self, ending: Ending) {
        match ending {
            Ending::Committed => count(&self.commits),
            Ending::Free => {
                count(&self.commits);
                count(&self.free_commits);
            }
            Ending::Conflict => count(&self.conflicts),
            Ending::Aborted => count(&self.aborts),
            Ending::Unknown => count(&self.unknown),
            Ending::Early => {}
        }
    }

    /// A page came.
    pub(crate) fn fetched(&self, source: Source) {
        match source {
            Source::Home => count(&self.from_home),
            Source::Site => count(&self.through_site),
            Source::Peer => count(&self.from_peers),
        }
    }

    /// A transaction waited for a page. Without a source the page was cached when it was requested.
    pub(crate) fn waited_for_page(&self, since: Instant, source: Option<Source>) {
        add(
            match source {
                Some(Source::Home) => &self.home_nanos,
                // A page that was cached when it was requested came a moment ago, from anywhere.
                Some(Source::Site) | None => &self.site_nanos,
                Some(Source::Peer) => &self.peer_nanos,
            },
            since,
        );
    }

    /// A transaction waited for its outcome.
    pub(crate) fn waited_for_commit(&self, since: Instant) {
        add(&self.commit_nanos, since);
    }

    /// A transaction waited for pages to create objects in, or for staging.
    pub(crate) fn waited_for_room(&self, since: Instant) {
        add(&self.room_nanos, since);
    }

    pub(crate) fn fill(&self, stats: &mut Stats) {
        stats.commits = get(&self.commits);
        stats.free_commits = get(&self.free_commits);
        stats.conflicts = get(&self.conflicts);
        stats.aborts = get(&self.aborts);
        stats.unknown_outcomes = get(&self.unknown);
        stats.from_home = get(&self.from_home);
        stats.through_site = get(&self.through_site);
        stats.from_peers = get(&self.from_peers);
        stats.waits = Waits {
            commit: nanos(&self.commit_nanos),
            home_fetch: nanos(&self.home_nanos),
            site_fetch: nanos(&self.site_nanos),
            peer_fetch: nanos(&self.peer_nanos),
            room: nanos(&self.room_nanos),
        };
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn add(counter: &AtomicU64, since: Instant) {
    let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanos, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn nanos(counter: &AtomicU64) -> Duration {
    Duration::from_nanos(get(counter))
}
