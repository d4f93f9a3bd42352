//! The tables of the configuration files.

use serde::Deserialize;
use thorp_model::limits;
use thorp_net::{Address, Congestion, driver};
use thorp_protocol::{AliveLimits, NameLimits};

use super::values::{Bytes, text, texts};

/// `[log]`: what is logged, and how. To standard error.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug` or `trace`, also for single parts: `info,thorp_net=debug`.
    pub level: String,
    /// `text` or `json`.
    pub format: LogFormat,
}

/// Whom the status port answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpFor {
    /// Whoever is on this machine.
    #[default]
    Machine,
    /// Operators, by TLS and their certificates.
    Operators,
    /// Whoever can reach it: without TLS, and without a question.
    Everybody,
}

/// The form of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object in each line.
    Json,
}

/// `[store]`: the durable storage of a home.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The most that the store may hold, in keys, values and checksums; none by default. The last part of it is kept free,
    /// so commits are refused a little below it; see [`StoreConfig::room_low`]. Changes of rights, deletions and audit records
    /// are taken up to a little beyond it (rule R7).
    pub limit: Option<Bytes>,
    /// Memory for blocks read from disk.
    pub cache: Bytes,
    /// Space on the volume that is left alone; by default an eighth of the volume, at most 256 MiB.
    pub disk_reserve: Option<Bytes>,
    /// Between looks at whether there is space (again), in milliseconds.
    pub room_probe_ms: u64,
    /// A copy of the store's directory is noticed by the inode number of a file in it. To be switched off where inode
    /// numbers do not survive a mount.
    pub origin_proof: bool,
}

/// One `[[parent]]`: a home or another site that a site sits below.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentEntry {
    /// The name that it must have in its certificate; without it any node of the village will do.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it listens; tried in turn.
    #[serde(deserialize_with = "texts::deserialize")]
    pub addresses: Vec<Address>,
    /// Plays a wide-area link: what goes up is delayed so long, in milliseconds.
    #[serde(default)]
    pub one_way_ms: u64,
}

/// One `[[other_home]]`: a home that a home may share transactions with, and asks how they ended (rule 10).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherHome {
    /// Its name, which it must have in its certificate.
    pub name: String,
    /// Where it listens; tried in turn.
    #[serde(deserialize_with = "texts::deserialize")]
    pub addresses: Vec<Address>,
    /// Plays a wide-area link: what goes to it is delayed so long, in milliseconds.
    #[serde(default)]
    pub one_way_ms: u64,
}

/// One `[[child_delay]]`: plays a wide-area link towards one child.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildDelay {
    /// The name that the child tells.
    pub child: String,
    /// What goes down to it is delayed so long, in milliseconds.
    pub one_way_ms: u64,
}

/// Threads of a node, at most.
pub const THREADS_MAX: usize = 64;

/// `[link]`: limits of edges (rule 15).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkLimits {
    /// Bytes that wait to be written to one peer; one that lets more pile up is cut off.
    pub queue: Bytes,
    /// Frames that wait to be written to one peer.
    pub queue_frames_max: usize,
    /// Bytes of frames that are arriving from all peers, or wait for the loop. No name in a certificate has more of them
    /// than it leaves free.
    pub inbox: Bytes,
    /// How long a frame that is arriving may show no sign of life, in milliseconds; then the connection ends.
    pub frame_progress_ms_max: u64,
    /// Edges at one time. No name in a certificate has more of them than it leaves free.
    pub edges_max: usize,
    /// Callers of one address to listen on that have sent nothing yet. No address that they come from has more of them than
    /// it leaves free; above that a newer caller takes the place of the oldest one.
    pub silent_callers_max: usize,
    /// Callers that are in handshake or not let in yet. The same holds for these.
    pub handshakes_max: usize,
    /// So many more for addresses of which a caller has greeted before.
    pub handshakes_known_max: usize,
    /// How long a caller may send nothing, and after TLS no greeting, in milliseconds.
    pub first_byte_ms_max: u64,
    /// How long a clean shutdown goes on writing, in milliseconds.
    pub flush_ms_max: u64,
    /// How often this node tells its neighbours that it is alive, in milliseconds (rule 13).
    pub alive_ms: u64,
    /// So many of these periods without a word from a neighbour end its edge.
    pub alive_missed_max: u32,
    /// Sockets of one connection between a home and a site or member beyond this machine: what may overtake goes by all of them.
    pub lanes: usize,
    /// Threads that read, write and encrypt; the loop is a task on one of them. One is the quickest while one processor can do all
    /// that the node has to do.
    pub threads: usize,
    /// How TCP decides how fast it sends: `best` (BBR where the system lets programs choose it), `system`, or a name.
    #[serde(deserialize_with = "text")]
    pub congestion: Congestion,
}

/// `[limits]` of a home.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HomeLimits {
    /// Memory for page images.
    pub cache: Bytes,
    /// Modified objects in memory before they are installed in pages.
    pub mob: Bytes,
    /// Commits accepted and not yet durable.
    pub pending: Bytes,
    /// Objects of which the last change is known; below that, commits are judged by pages.
    pub changes_known_max: usize,
    /// Commits that wait for pages from disk.
    pub parked_max: usize,
    /// Memory for such commits and for the pages kept for them.
    pub parked: Bytes,
    /// Members whose outcomes are remembered.
    pub registrations_max: usize,
    /// Outcomes remembered of each.
    pub outcomes_per_member: u64,
    /// How long a lease lasts, in milliseconds (rule C4). If a site that may have written falls silent, hard reads wait for the end
    /// of its lease.
    pub lease_ms: u32,
}

/// `[shares]`: the most that one name may have of a home (rule R7). By whatever processes and sites: no name has more of a
/// table than it leaves free.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NameShares {
    /// Segments that it made and that are there.
    pub segments_max: usize,
    /// Page numbers that it is given of each segment; they are never given again.
    pub page_numbers_max: u32,
    /// What it has stored, in percent of that and the free space of the store together. With 100 one name may fill it.
    pub store_percent_max: u8,
    /// What it has stored; no limit but the part by default. Each page counts as a whole.
    pub store: Option<Bytes>,
    /// Commits under way.
    pub commits_max: usize,
    /// Calls under way.
    pub calls_max: usize,
    /// Pages that its members at this home wait for.
    pub fetches_max: usize,
}

/// `[limits]` of a site.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteLimits {
    /// Memory for page images; `0` keeps none, and pages come from the members.
    pub cache: Bytes,
    /// New values of commits that passed, kept until they are delivered.
    pub kept: Bytes,
}

impl StoreConfig {
    /// When less than this can still be brought, in bytes, commits are refused as *full*: a sixteenth of the limit,
    /// from [`ROOM_LOW_MIN`] to [`ROOM_LOW_MAX`]. So a commit is rarely caught halfway.
    pub fn room_low(limit: Option<u64>) -> u64 {
        let part = |limit: u64| (limit / 16).clamp(ROOM_LOW_MIN, ROOM_LOW_MAX);
        limit.map_or(ROOM_LOW_MAX, part)
    }
}

/// Space, in bytes, below which a home takes no commits, however small its limit is.
pub const ROOM_LOW_MIN: u64 = 4 << 10;
/// And however large.
pub const ROOM_LOW_MAX: u64 = 16 << 20;

/// Between looks at whether there is space (again).
const ROOM_PROBE_MS: u64 = 1_000;

impl HttpFor {
    /// As the configuration writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Operators => "operators",
            Self::Everybody => "everybody",
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            limit: None,
            cache: Bytes(thorp_store::Options::default().cache_bytes),
            disk_reserve: None,
            room_probe_ms: ROOM_PROBE_MS,
            origin_proof: true,
        }
    }
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            queue: bytes(thorp_net::QUEUE_BYTES_MAX),
            queue_frames_max: thorp_net::QUEUE_FRAMES_MAX,
            inbox: bytes(driver::INBOX_BYTES_MAX),
            frame_progress_ms_max: thorp_net::FRAME_PROGRESS_TIME_MAX.as_millis() as u64,
            edges_max: driver::EDGES_MAX,
            silent_callers_max: thorp_net::SILENT_CALLERS_MAX,
            handshakes_max: thorp_net::HANDSHAKES_MAX,
            handshakes_known_max: thorp_net::HANDSHAKES_KNOWN_MAX,
            first_byte_ms_max: thorp_net::FIRST_BYTE_TIME_MAX.as_millis() as u64,
            flush_ms_max: driver::FLUSH_TIME_MAX.as_millis() as u64,
            alive_ms: limits::ALIVE_MS,
            alive_missed_max: limits::ALIVE_MISSED_MAX,
            lanes: thorp_net::LANES,
            threads: 1,
            congestion: Congestion::default(),
        }
    }
}

impl LinkLimits {
    /// When a neighbour is silent.
    pub fn alive(&self) -> AliveLimits {
        AliveLimits {
            every_ms: self.alive_ms,
            missed_max: self.alive_missed_max,
        }
    }
}

impl Default for HomeLimits {
    fn default() -> Self {
        Self {
            cache: bytes(limits::HOME_CACHE_BYTES),
            mob: bytes(limits::MOB_BYTES_HIGH),
            pending: bytes(limits::PENDING_BYTES_MAX),
            changes_known_max: limits::CHANGES_KNOWN_MAX,
            parked_max: limits::PARKED_MAX,
            parked: bytes(limits::PARKED_BYTES_MAX),
            registrations_max: limits::REGISTRATIONS_MAX,
            outcomes_per_member: limits::OUTCOMES_PER_MEMBER,
            lease_ms: limits::LEASE_MS,
        }
    }
}

impl Default for NameShares {
    fn default() -> Self {
        let NameLimits {
            segments_max,
            page_numbers_max,
            store_percent_max,
            commits_max,
            calls_max,
            fetches_max,
            ..
        } = NameLimits::default();
        Self {
            segments_max,
            page_numbers_max,
            store_percent_max,
            store: None,
            commits_max,
            calls_max,
            fetches_max,
        }
    }
}

impl NameShares {
    /// As the home's state machine takes them.
    pub fn limits(&self) -> NameLimits {
        NameLimits {
            segments_max: self.segments_max,
            page_numbers_max: self.page_numbers_max,
            store_percent_max: self.store_percent_max,
            store_bytes_max: self.store.map_or(u64::MAX, |bytes| bytes.0),
            commits_max: self.commits_max,
            calls_max: self.calls_max,
            fetches_max: self.fetches_max,
        }
    }
}

impl Default for SiteLimits {
    fn default() -> Self {
        Self {
            cache: bytes(limits::SITE_CACHE_BYTES),
            kept: bytes(limits::PENDING_WRITES_COMMIT_BYTES_MAX),
        }
    }
}

fn bytes(size: usize) -> Bytes {
    Bytes(size as u64)
}
