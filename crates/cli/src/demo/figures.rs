//! What the demo measures: the table, the report and the file of raw figures are made from this alone.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use thorp_client::Stats;

/// Everything a run of the demo found out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Of the program.
    pub(crate) version: String,
    /// Processors of the machine.
    pub(crate) processors: usize,
    /// Between sites and home, both ways together.
    pub(crate) round_trip_ms: u64,
    /// All of it.
    pub(crate) elapsed_s: f64,
    /// Part 1.
    pub(crate) building: Option<Building>,
    /// Part 2.
    pub(crate) runs: Vec<Run>,
    /// What had to hold.
    pub(crate) checks: Vec<Check>,
}

/// Something that had to hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Check {
    /// What.
    pub(crate) name: String,
    /// Whether it does.
    pub(crate) good: bool,
    /// The figures behind it.
    pub(crate) detail: String,
}

/// Members of two sites at work on one building model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Building {
    /// The model's file, or that it was made up.
    pub(crate) model: String,
    /// Entities in it.
    pub(crate) entities: u64,
    /// Bytes of its file.
    pub(crate) file_bytes: u64,
    /// Time to import it, over the wide-area link.
    pub(crate) import_s: f64,
    /// Time to export it again.
    pub(crate) export_s: f64,
    /// Who worked on it.
    pub(crate) people: Vec<Person>,
    /// What crossed the link of both sites while they did.
    pub(crate) wide_area: Link,
    /// What the foreign reader said.
    pub(crate) reader: Vec<String>,
}

/// One member that walked and edited the model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Person {
    /// Its name.
    pub(crate) name: String,
    /// Its site.
    pub(crate) site: String,
    /// Objects met on the walk.
    pub(crate) walked: u64,
    /// Edits that were committed.
    pub(crate) edits: u64,
    /// Objects it was told of that others (or it) had changed, without asking.
    pub(crate) changes_heard: u64,
    /// The first walk through the building, with nothing cached.
    pub(crate) walk: Spent,
    /// All its edits.
    pub(crate) edit: Spent,
    /// The median time of an edit, commit and repeats included.
    pub(crate) edit_median_ms: f64,
}

/// Members at one traversal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// With a site, or without.
    pub(crate) way: Way,
    /// How many members.
    pub(crate) members: usize,
    /// What they did.
    pub(crate) phase: Phase,
    /// Averaged over those who did it.
    pub(crate) mean: Spent,
    /// The time of the slowest.
    pub(crate) slowest_s: f64,
    /// How many atomic parts each has visited.
    pub(crate) visited: Vec<u64>,
    /// What crossed the wide-area link.
    pub(crate) wide_area: Link,
}

/// How members reach the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// Each by itself, over the wide-area link.
    Direct,
    /// By a site that they share.
    Thorp,
}

/// What members do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// All: T1 with nothing cached.
    ColdT1,
    /// All: T1 with everything cached.
    HotT1,
    /// One: T2b, which changes every atomic part.
    T2b,
    /// The others: T1, with what the T2b has left of their caches.
    T1AfterT2b,
}

/// What crossed a link, both ways together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Link {
    /// Messages.
    pub(crate) messages: u64,
    /// Bytes, without those of TLS.
    pub(crate) bytes: u64,
}

/// Where a member's time went, in seconds, and what it counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// All of it.
    pub(crate) elapsed: f64,
    /// Waiting for commits.
    pub(crate) commit: f64,
    /// Waiting for pages from the home, directly or through the site: the demo's sites have no memory of their own.
    pub(crate) home_fetch: f64,
    /// Waiting for pages from neighbours.
    pub(crate) peer_fetch: f64,
    /// Waiting for room to create objects in.
    pub(crate) room: f64,
    /// Pages from the home, directly or through the site.
    pub(crate) home_pages: f64,
    /// Pages from neighbours.
    pub(crate) peer_pages: f64,
    /// Reads answered from the cache.
    pub(crate) cached_reads: f64,
    /// Reads that had to wait.
    pub(crate) misses: f64,
    /// Transactions run again.
    pub(crate) conflicts: f64,
    /// What travelled on this member's own edge.
    pub(crate) messages: f64,
    /// What travelled on this member's own edge.
    pub(crate) bytes: f64,
}

impl Spent {
    /// Of a stretch of work, from what was counted before and after it.
    pub(crate) fn between(elapsed: Duration, before: &Stats, after: &Stats) -> Self {
        let (before, after) = (Spent::counted(before), Spent::counted(after));
        let minus = |field: fn(&Spent) -> f64| field(&after) - field(&before);
        Spent {
            elapsed: elapsed.as_secs_f64(),
            ..Spent::each(minus)
        }
    }

    fn counted(stats: &Stats) -> Self {
        let waits = &stats.waits;
        let traffic = &stats.traffic;
        Spent {
            elapsed: 0.,
            commit: waits.commit.as_secs_f64(),
            home_fetch: (waits.home_fetch + waits.site_fetch).as_secs_f64(),
            peer_fetch: waits.peer_fetch.as_secs_f64(),
            room: waits.room.as_secs_f64(),
            home_pages: (stats.from_home + stats.through_site) as f64,
            peer_pages: stats.from_peers as f64,
            cached_reads: stats.cached_reads as f64,
            misses: stats.misses as f64,
            conflicts: stats.conflicts as f64,
            messages: (traffic.frames_sent + traffic.frames_received) as f64,
            bytes: (traffic.bytes_sent + traffic.bytes_received) as f64,
        }
    }

    /// The program's own time.
    pub(crate) fn compute(&self) -> f64 {
        let waited = self.commit + self.home_fetch + self.peer_fetch + self.room;
        (self.elapsed - waited).max(0.)
    }

    /// Every field made by the same rule.
    fn each(rule: impl Fn(fn(&Spent) -> f64) -> f64) -> Self {
        Spent {
            elapsed: rule(|s| s.elapsed),
            commit: rule(|s| s.commit),
            home_fetch: rule(|s| s.home_fetch),
            peer_fetch: rule(|s| s.peer_fetch),
            room: rule(|s| s.room),
            home_pages: rule(|s| s.home_pages),
            peer_pages: rule(|s| s.peer_pages),
            cached_reads: rule(|s| s.cached_reads),
            misses: rule(|s| s.misses),
            conflicts: rule(|s| s.conflicts),
            messages: rule(|s| s.messages),
            bytes: rule(|s| s.bytes),
        }
    }

    /// The average member's.
    pub(crate) fn mean(all: &[Spent]) -> Self {
        let count = all.len().max(1) as f64;
        Spent::each(|field| all.iter().map(field).sum::<f64>() / count)
    }
}

impl Link {
    /// What came on top of an earlier look.
    pub(crate) fn since(self, earlier: Link) -> Link {
        Link {
            messages: self.messages.saturating_sub(earlier.messages),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

impl Way {
    /// For tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Thorp => "Thorp",
        }
    }
}

impl Phase {
    /// In the order in which they happen.
    pub(crate) const ALL: [Phase; 4] = [Phase::ColdT1, Phase::HotT1, Phase::T2b, Phase::T1AfterT2b];

    /// For tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::ColdT1 => "cold T1",
            Phase::HotT1 => "hot T1",
            Phase::T2b => "T2b",
            Phase::T1AfterT2b => "T1 after T2b",
        }
    }

    /// For the report.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Phase::ColdT1 => "every member reads all atomic parts, with nothing cached",
            Phase::HotT1 => "every member reads all atomic parts again",
            Phase::T2b => "one member changes every atomic part",
            Phase::T1AfterT2b => "the others read all atomic parts with their changes",
        }
    }
}

impl Figures {
    /// The run of that kind.
    pub(crate) fn run(&self, way: Way, members: usize, phase: Phase) -> Option<&Run> {
        let wanted = |run: &&Run| (run.way, run.members, run.phase) == (way, members, phase);
        self.runs.iter().find(wanted)
    }

    /// Adds something that had to hold.
    pub(crate) fn check(&mut self, name: &str, good: bool, detail: impl Into<String>) {
        self.checks.push(Check {
            name: name.to_owned(),
            good,
            detail: detail.into(),
        });
    }

    /// Whether all of it holds.
    pub(crate) fn is_good(&self) -> bool {
        all_good(&self.checks)
    }
}

/// Whether all that had to hold does.
pub(crate) fn all_good(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.good)
}
