//! How a program joins, and how its transactions behave.

use crate::due::due_after;
use crate::{Conflicts, Given, JoinError, LockNumber, SiteOfMembers, Whereabouts};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thorp_model::limits::{MEMBER_CACHE_BYTES, STAGE_PAGES_MAX};
use thorp_net::{Congestion, Identity};
use thorp_protocol::AliveLimits;

/// How a program joins a village: the addresses of its site (or home), its identity, and its limits.
///
/// ```
/// use thorp_client::{JoinConfig, Member};
/// use std::time::Duration;
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let (address, identity) = (home.address(), village.member("me"));
///
/// // For example "unix:/run/thorp/site.sock" and "/var/lib/myprogram/thorp".
/// let member = Member::join(
///     JoinConfig::new(address)
///         .identity(identity)
///         .join_timeout(Duration::from_secs(30))
///         .cache_bytes(64 << 20),
/// )?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct JoinConfig {
    pub(crate) parents: Vec<Vec<String>>,
    pub(crate) among: Option<SiteOfMembers>,
    pub(crate) identity: Option<PathBuf>,
    pub(crate) ready_identity: Option<Identity>,
    pub(crate) name: String,
    pub(crate) cache_bytes: usize,
    pub(crate) link_delay: Duration,
    pub(crate) join_timeout: Duration,
    pub(crate) leave_timeout: Duration,
    pub(crate) alive: AliveLimits,
    pub(crate) fetch_ahead: usize,
    pub(crate) congestion: Congestion,
    pub(crate) record_trace: Option<PathBuf>,
    pub(crate) under: Vec<LockNumber>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) keeps_for_neighbours: bool,
    pub(crate) conflicts: Conflicts,
    pub(crate) session: Session,
}

impl JoinConfig {
    /// Joins at a site, or at a home directly: `tcp://host:port`, `host:port` or `unix:/path.sock`.
    pub fn new(address: impl Into<String>) -> Self {
        Self::at(vec![vec![address.into()]])
    }

    /// Joins at a site without a server of its own: its members carry the redirector (rule 13).
    pub fn among(site: SiteOfMembers) -> Self {
        Self::at(Vec::new()).or_among(site)
    }

    /// Joins as the command `thorp` does: the variables `THORP_VIA` and `THORP_IDENTITY` go before the context that
    /// `THORP_CONTEXT` names, and that goes before the user's current [context](crate::Context).
    ///
    /// ```
    /// use thorp_client::{JoinConfig, Member};
    /// # let village = thorp_testing::Village::new();
    /// # // SAFETY: no other thread runs yet.
    /// # unsafe {
    /// #     std::env::set_var("THORP_VIA", String::from(&village.socket("alps")));
    /// #     std::env::set_var("THORP_IDENTITY", village.member("me"));
    /// # }
    /// # let home = village.home("alps");
    ///
    /// // In a shell, `thorp dev` runs. Or the variables are set.
    /// let member = Member::join(JoinConfig::from_env()?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JoinError::Context`]: nothing says where to join, or as whom, or a context is not as it should be.
    pub fn from_env() -> Result<Self, JoinError> {
        let found = Whereabouts::find(Given::default()).map_err(JoinError::Context)?;
        Ok(Self::found(found))
    }

    /// Joins where flags, variables or a context have said.
    pub fn found(found: Whereabouts) -> Self {
        Self::at(vec![found.via]).identity(found.identity)
    }

    fn at(parents: Vec<Vec<String>>) -> Self {
        JoinConfig {
            parents,
            among: None,
            identity: None,
            ready_identity: None,
            name: format!("member-{}", std::process::id()),
            cache_bytes: MEMBER_CACHE_BYTES,
            link_delay: Duration::ZERO,
            join_timeout: JOIN_TIMEOUT,
            leave_timeout: LEAVE_TIMEOUT,
            alive: AliveLimits::default(),
            fetch_ahead: FETCH_AHEAD_PAGES,
            congestion: Congestion::default(),
            record_trace: None,
            under: Vec::new(),
            log: None,
            keeps_for_neighbours: false,
            conflicts: Conflicts::Keep,
            session: Session::default(),
        }
    }

    /// Another address of the same site or home, or of another site that takes its place. The member tries it when the
    /// ones before do not answer. A member that has lost its site turns to another one at once, and keeps its pages. It
    /// stays there until that site is gone, also when the first one is back.
    pub fn or_at(mut self, address: impl Into<String>) -> Self {
        if let Some(addresses) = self.parents.last_mut() {
            addresses.push(address.into());
        }
        self
    }

    /// While no address of the site answers, its members carry the redirector themselves, until one of the addresses
    /// answers again.
    pub fn or_among(mut self, site: SiteOfMembers) -> Self {
        self.among = Some(site);
        self
    }

    /// One more home, for a member that has no site and knows several homes.
    pub fn and_home(mut self, address: impl Into<String>) -> Self {
        self.parents.push(vec![address.into()]);
        self
    }

    /// The directory of this member's certificate and key (`thorp invite` makes one; where the directory holds the
    /// village's authority, a missing certificate is made here).
    pub fn identity(mut self, dir: impl AsRef<Path>) -> Self {
        self.identity = Some(dir.as_ref().to_owned());
        self
    }

    /// An identity that is loaded already, for several members of one process.
    pub fn identity_of(mut self, identity: Identity) -> Self {
        self.ready_identity = Some(identity);
        self
    }

    /// What the program calls itself in a recorded trace, and in a certificate that [`JoinConfig::identity`] makes. The
    /// village knows the program by the name in its certificate.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Bytes of pages to keep in memory.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Delays everything that this member sends, one way. So a wide-area link can be simulated on one machine. In a
    /// site of members it delays the link from their redirector to the homes.
    pub fn link_delay(mut self, one_way: Duration) -> Self {
        self.link_delay = one_way;
        self
    }

    /// How long [`Member::join`](crate::Member::join) waits for a site or home to answer.
    pub fn join_timeout(mut self, timeout: Duration) -> Self {
        self.join_timeout = timeout;
        self
    }

    /// How long [`Member::close`](crate::Member::close), and dropping the last [`Member`](crate::Member), waits until
    /// the homes know how its transactions over several of them have ended, and which large values are given up. After that
    /// the homes ask each other, and keep such values for a while.
    pub fn leave_timeout(mut self, timeout: Duration) -> Self {
        self.leave_timeout = timeout;
        self
    }

    /// How often this member shows its site that it is alive, and after how many silent periods it turns to another
    /// site. Both must lie within what the site and the homes are configured for, and are usually the same. The default
    /// is fifteen periods of one second.
    pub fn alive(mut self, every: Duration, missed_max: u32) -> Self {
        self.alive = AliveLimits {
            every_ms: u64::try_from(every.as_millis()).unwrap_or(u64::MAX),
            missed_max,
        };
        self
    }

    /// How many pages at most the member prefetches when a transaction waits for a page; zero turns that off. It
    /// prefetches pages that neighbours at the site read next, pages to which a value refers ([`Ref`](crate::Ref)), and
    /// pages nearby. It prefetches fewer where they are not read afterwards, and never more than an eighth of the cache
    /// ([`JoinConfig::cache_bytes`]).
    pub fn fetch_ahead(mut self, pages_max: usize) -> Self {
        self.fetch_ahead = pages_max;
        self
    }

    /// How TCP decides how fast this member sends. The default is BBR where the system lets programs choose it.
    pub fn congestion(mut self, congestion: Congestion) -> Self {
        self.congestion = congestion;
        self
    }

    /// Records a trace that `thorp plan replay` can play against other cache sizes and other neighbours. When a
    /// transaction ends, the member writes one line for each page that it has read or written. The file is made if it
    /// is not there. Several members may append to one trace. [`Stats::not_recorded`](crate::Stats::not_recorded)
    /// counts the lines that could not be written.
    pub fn record_trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.record_trace = Some(file.into());
        self
    }

    /// Keeps updates in a directory until their homes have them (rule C6), so that the program can write while a home is away:
    /// by a [`Visit`](crate::Visit) with `failures=optimistic`. The directory is made if it is not there. It belongs to one
    /// name, and to one process at a time; what an earlier process left there, this one sends.
    pub fn log(mut self, dir: impl Into<PathBuf>) -> Self {
        self.log = Some(dir.into());
        self
    }

    /// The log ([`JoinConfig::log`]) also keeps updates of neighbours that have none. The site has to name this member as the keeper
    /// of its log: `thorp site --log-identity` does both. A home checks who has written each of them (rules C6 and C7).
    pub fn keeps_for_neighbours(mut self) -> Self {
        self.keeps_for_neighbours = true;
        self
    }

    /// What becomes of updates in the log ([`JoinConfig::log`]) that their home refuses. By default they stay there, on a list for
    /// a person. Updates that an earlier process put on that list stay there; `thorp updates retry` sends them again.
    pub fn on_conflict(mut self, conflicts: Conflicts) -> Self {
        self.conflicts = conflicts;
        self
    }

    /// What this member writes at the home of a lock, it writes under that: [`Visit::locks`](crate::Visit::locks) of a program of
    /// the same name tells the number. When the lock is over, the home refuses it all as
    /// [`LockLost`](crate::ErrorKind::LockLost) (rule C5).
    pub fn under(mut self, lock: LockNumber) -> Self {
        self.under.push(lock);
        self
    }

    /// How this member's transactions behave unless they get a session of their own.
    pub fn session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }
}

/// How a transaction behaves: consistency, staleness, patience.
///
/// ```
/// use thorp_client::Session;
/// use std::time::Duration;
///
/// let careful = Session::new().strict(true);
/// let patient = Session::new().attempts_max(100).commit_timeout(Duration::from_secs(60));
/// # let _ = (careful, patient);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Session {
    pub(crate) strict: bool,
    pub(crate) max_staleness: Duration,
    pub(crate) optimistic_reads: bool,
    pub(crate) fetch_timeout: Duration,
    pub(crate) commit_timeout: Duration,
    pub(crate) attempts_max: u32,
    pub(crate) backoff_max: Duration,
    deadline: Option<Instant>,
}

impl Session {
    /// The default: serializable, at most 10 s stale, and reads cost no message. A transaction gets no serialization
    /// point below what its program saw or wrote before, at any home. For that the member now and then asks a home.
    pub fn new() -> Self {
        Session {
            strict: false,
            max_staleness: MAX_STALENESS,
            optimistic_reads: false,
            fetch_timeout: FETCH_TIMEOUT,
            commit_timeout: COMMIT_TIMEOUT,
            attempts_max: ATTEMPTS_MAX,
            backoff_max: BACKOFF_MAX,
            deadline: None,
        }
    }

    /// Validates at the home also what was only read: the newest committed state, for one round trip.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// After this time without a heartbeat of the home, transactions that only read fail with
    /// [`HomeUnreachable`](crate::ErrorKind::HomeUnreachable). It is also the limit for a transaction that reads behind
    /// a change: if it ends later, it fails with [`Conflict`](crate::ErrorKind::Conflict).
    pub fn max_staleness(mut self, staleness: Duration) -> Self {
        self.max_staleness = staleness;
        self
    }

    /// Transactions that only read go on with what is cached, however old.
    pub fn optimistic_reads(mut self, optimistic: bool) -> Self {
        self.optimistic_reads = optimistic;
        self
    }

    /// How long a read may wait for a page, a creation for pages to create in, and a call for its response.
    pub fn fetch_timeout(mut self, timeout: Duration) -> Self {
        self.fetch_timeout = timeout;
        self
    }

    /// How long a commit may wait for its outcome.
    pub fn commit_timeout(mut self, timeout: Duration) -> Self {
        self.commit_timeout = timeout;
        self
    }

    /// How often [`Member::transact`](crate::Member::transact) runs a transaction before it gives up; at least once.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts.max(1);
        self
    }

    /// The longest pause between two attempts, also if a busy home asks for a longer one. Pauses double from a
    /// millisecond and vary at random.
    pub fn backoff_max(mut self, pause: Duration) -> Self {
        self.backoff_max = pause;
        self
    }

    /// No wait of this session lasts beyond this moment, whatever its timeouts are. A commit that was sent before goes on,
    /// and ends with [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) here.
    pub fn deadline(mut self, at: Instant) -> Self {
        self.deadline = Some(at);
        self
    }

    /// When a read, a creation or a call that begins now is given up.
    pub(crate) fn fetch_due(&self) -> Instant {
        self.due(self.fetch_timeout)
    }

    /// When a page that is asked for now is given up, if so many others of a value come before it.
    pub(crate) fn page_due(&self, ahead: usize) -> Instant {
        self.due_behind(self.fetch_timeout, ahead / STAGE_PAGES_MAX)
    }

    /// When a piece of a value that is sent now is given up, if so many others are on their way before it.
    pub(crate) fn piece_due(&self, ahead: usize) -> Instant {
        self.due_behind(self.commit_timeout, ahead)
    }

    /// Whoever waits for what comes over a narrow link, waits for what comes before it, too.
    fn due_behind(&self, patience: Duration, ahead: usize) -> Instant {
        let waits = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
        self.due(patience.saturating_mul(waits))
    }

    /// When the outcome of a commit that is sent now is not waited for any longer.
    pub(crate) fn commit_due(&self) -> Instant {
        self.due(self.commit_timeout)
    }

    /// The end of a wait that begins now and may take so long.
    pub(crate) fn due(&self, patience: Duration) -> Instant {
        let due = due_after(patience);
        self.deadline.map_or(due, |deadline| due.min(deadline))
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

/// How long joining waits by default.
pub const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long leaving waits by default: a round trip and more, or until a home that was lost in between is back.
pub const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);
/// How stale a free read may be by default.
pub const MAX_STALENESS: Duration = Duration::from_secs(10);
/// How long a fetch waits by default.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a commit waits by default.
pub const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts of a transaction by default.
pub const ATTEMPTS_MAX: u32 = 50;
/// The longest pause between attempts by default.
pub const BACKOFF_MAX: Duration = Duration::from_millis(250);
/// Pages fetched with one that is waited for, at most: [`JoinConfig::fetch_ahead`].
pub const FETCH_AHEAD_PAGES: usize = 64;
