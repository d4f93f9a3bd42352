//! The limits of this crate, in one place (rule 15).

use std::time::Duration;

/// Outcomes kept of commits whose outcome came too late.
pub(crate) const OUTCOMES_KEPT_MAX: usize = 256;

/// While a member leaves: between looks at whether its homes know how its transactions over several of them have ended.
pub(crate) const LEAVING_LOOK: Duration = Duration::from_millis(2);

/// The longest time that a program may wait, whatever it asks for: the clock of the system has an end.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Between two tries of what was busy.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The pause between two looks whether a stream is shown: an answer of the parent is missing.
pub(crate) const HELD_LOOK: Duration = Duration::from_millis(2);

/// Pages of one large object that are requested at a time: a megabyte comes in one round trip. A larger object comes in
/// several. If it were much more, a few readers would use up all that a site may request at one time
/// ([`thorp_model::limits::FETCHES_MAX`]).
pub(crate) const LARGE_WINDOW: usize = 144;

/// Commits to one home that are shown before their outcome is known
/// ([`Transaction::commit_early`](crate::Transaction::commit_early)): most of those that a member may have in flight,
/// and not all.
pub const EARLY_PER_HOME_MAX: usize = thorp_model::limits::COMMITS_IN_FLIGHT_MAX / 4 * 3;

/// Bytes of a root's name.
pub const ROOT_NAME_BYTES_MAX: usize = thorp_model::limits::SEGMENT_PATH_BYTES_MAX;

/// Pieces of one large value that are on their way to the home at a time.
pub(crate) const STAGE_WINDOW: usize = 4;

/// Pages that a scan requests ahead of reading.
pub(crate) const SCAN_AHEAD: u32 = 32;

/// References in one value that its reader may be about to follow.
pub(crate) const REFERRED_MAX: usize = 64;

/// Read sets kept for the next transactions.
pub(crate) const IDLE_READ_SETS_MAX: usize = 16;

/// Segments that one member may watch; the parent would cut it off beyond its own limit.
pub(crate) const WATCHED_MAX: usize = thorp_model::limits::WATCHES_PER_CHILD_MAX;

/// Members of one site that may carry its redirector. Each tries all that come before it; all other members name them
/// as their site.
pub(crate) const NEIGHBOURS_MAX: usize = thorp_net::ADDRESSES_MAX;

/// Bytes of pages that an embedded site keeps itself: none. Its members have them, also the one in this process.
pub(crate) const EMBEDDED_SITE_CACHE_BYTES: usize = 0;

/// How long an embedded site without children keeps its connections to the homes: neighbours come and go.
pub(crate) const EMBEDDED_SITE_REST_MS: u64 = 10_000;
