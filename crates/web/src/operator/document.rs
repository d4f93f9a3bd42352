//! What there is to say, as JSON. Moments are milliseconds since 1970.

use crate::journal::Cause;
use crate::status::Status;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a proxy is doing, and what it has counted since it started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProxyStatus {
    /// Its process.
    pub process: u32,
    /// How long it runs.
    pub uptime_s: u64,
    /// What says when the answers of routes change.
    pub source: SourceKind,
    /// Answers of routes can be hits: there is a keeper, and it is live.
    pub live: bool,
    /// Its recipe has routes. Without any, all answers are cached as the origin says.
    pub has_routes: bool,
    /// Where its origin is.
    pub origins: Vec<String>,
    /// Answers of routes that are stored.
    pub entries: Total,
    /// Addresses without a route whose answers are stored.
    pub others: Total,
    /// Requests of routes that were answered from the cache.
    pub hits: u64,
    /// Requests of routes that got the answer to the request of another.
    pub joined: u64,
    /// Requests of routes that were no hits, by reason.
    pub missed: BTreeMap<String, u64>,
    /// Requests of routes that went past the cache, by reason.
    pub bypassed: BTreeMap<String, u64>,
    /// Answers to routes that were not stored, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Where requests are the source: unsafe requests, by what became of them.
    pub updated: BTreeMap<String, u64>,
    /// Entries that were dropped because of a change.
    pub dropped: u64,
    /// What comparisons of hits with the origin have found.
    pub audit: Audited,
    /// How often its configuration was read again.
    pub reloads: Reloads,
    /// What the keeper of its table says of itself.
    pub keeper: Option<Status>,
    /// The Thorp homes on which answers rest.
    pub homes: Vec<HomeLine>,
    /// How often keys have changed, as the keeper has counted it since it started.
    pub key_changes: u64,
    /// The keys that change most.
    pub keys: Vec<KeyLine>,
}

/// What says when the answers of routes change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SourceKind {
    /// Nothing: there are no routes.
    None,
    /// The database, whose commits wait for a keeper.
    Postgres,
    /// Unsafe requests, which are noted at a keeper.
    Requests,
    /// Thorp homes.
    Homes,
}

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Total {
    /// How many.
    pub count: usize,
    /// Their bytes.
    pub bytes: u64,
    /// How many bytes they may have.
    pub bytes_max: u64,
}

/// A Thorp home on which answers rest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HomeLine {
    /// Its name.
    pub name: String,
    /// Answers that rest on it can be hits.
    pub live: bool,
}

/// How often a key has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeyLine {
    /// The key. A long one is cut.
    pub key: String,
    /// In so many updates.
    pub changes: u64,
}

/// What comparisons of hits with the origin have found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Audited {
    /// The share of the hits that is compared, as `0.1%`.
    pub share: String,
    /// The hit was as the origin's answer, apart from noise.
    pub same: u64,
    /// It was not, and no data behind it had changed.
    pub different: u64,
    /// The data behind it had changed meanwhile: that proves nothing.
    pub changed: u64,
    /// The origin did not answer, or with an error of its own.
    pub failed: u64,
    /// Others were being compared.
    pub skipped: u64,
    /// The last differences, the newest first.
    pub differences: Vec<DifferenceLine>,
}

/// A hit that was not as the origin's answer, while no data behind it had changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DifferenceLine {
    /// Host and path. A long address is cut.
    pub address: String,
    /// When it was found.
    pub at_unix_ms: u64,
    /// What differs.
    pub what: String,
}

/// How often a configuration was read again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reloads {
    /// The new one is in force.
    pub taken: u64,
    /// The new one could not be used, and the old one stayed in force.
    pub refused: u64,
    /// Why the last one was refused, if it was.
    pub error: Option<String>,
}

/// What is known of an address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AtAddress {
    /// The address, as it was understood.
    pub address: String,
    /// A route of the recipe takes it.
    pub has_route: bool,
    /// The answers of the route that are stored: one for each host, and for each value of a field by which they vary.
    pub entries: Vec<EntryLine>,
    /// Those that were dropped lately, the newest first.
    pub dropped: Vec<DropLine>,
    /// Answers that are stored as the origin says, without a route.
    pub others: Vec<Stored>,
    /// Other hosts whose answers of this path are stored.
    pub other_hosts: Vec<String>,
}

/// An answer that is stored as the origin says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stored {
    /// Its status.
    pub status: u16,
    /// What it takes of the memory.
    pub bytes: u64,
}

/// An answer of a route that is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntryLine {
    /// The host of its requests.
    pub host: String,
    /// The path, with the query.
    pub path: String,
    /// The fields of the request by which it varies.
    pub variant: String,
    /// Its status.
    pub status: u16,
    /// What it takes of the memory.
    pub bytes: u64,
    /// How often it was served.
    pub hits: u64,
    /// The keys on which it rests: `everything` if it rests on each change.
    pub dependencies: Vec<String>,
    /// The next request gets it, as things are.
    pub is_served: bool,
    /// Why not: `changed`, `open`, `behind`, `keeper_away` or `keeper_new`.
    pub reason: Option<String>,
    /// The key that has changed, or that an update is changing.
    pub key: Option<String>,
    /// That update.
    pub update: Option<UpdateLine>,
}

/// An answer of a route that was dropped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DropLine {
    /// The host of its requests.
    pub host: String,
    /// The path, with the query.
    pub path: String,
    /// The fields of the request by which it varied.
    pub variant: String,
    /// When: at the first request after the change.
    pub at_unix_ms: u64,
    /// How often it was served.
    pub hits: u64,
    /// Why: `changed`, or `keeper_new` if the keeper began anew and may have missed something.
    pub reason: String,
    /// The key that changed.
    pub key: Option<String>,
    /// The update that changed it. None: the keeper has not told it yet, or has forgotten it.
    pub update: Option<UpdateLine>,
}

/// An update of the source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpdateLine {
    /// What it is at its source: `xid` and `position` of a transaction; the keeper's number of a `request`; or `home` and `log_position` of a
    /// commit at a Thorp home.
    #[serde(flatten)]
    pub cause: Cause,
    /// When the keeper had it. None: its source does not say.
    pub at_unix_ms: Option<u64>,
    /// Its first keys. None: nobody can say what it changes, so it ended all answers.
    pub keys: Option<Vec<String>>,
    /// How many keys it has beside those.
    pub more_keys: usize,
}
