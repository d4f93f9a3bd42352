//! The member: a program's way in.

use crate::name::{SegmentName, Spot};
use crate::runtime::{LateOutcome, MemberRuntime, Shared, block_on};
use crate::trace::Recorder;
use crate::{
    CommitId, Committed, Error, ErrorKind, JoinConfig, JoinError, OutOfReach, Outcome, Reference,
    Result, Segment, SegmentEntry, Session, Stats, Transaction,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::{
    CallRequest, CallResponse, HomeId, Note, Place, Position, Refusal, SegmentId, SegmentInfo,
};
use thorp_net::driver::now;

/// A program that has joined. Cheap to clone, usable from any thread; when the last clone (and the last segment,
/// transaction and watch) is dropped, it leaves.
///
/// ```no_run
/// use thorp_client::{JoinConfig, Member};
///
/// let member = Member::join(JoinConfig::new("tcp://localhost:7070").identity("me"))?;
/// let notes = member.open_or_create("thorp://alps/notes")?;
/// let note = member.transact(|tx| tx.create(&notes, "buy cheese"))?;
/// println!("{}", member.format(&note)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Member {
    runtime: Arc<MemberRuntime>,
    session: Session,
}

/// A home as this member sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeStatus {
    /// Its id.
    pub id: HomeId,
    /// Its name, as in `thorp://NAME/..`.
    pub name: String,
    /// Whether its stream is live.
    pub reachable: bool,
    /// How far down the stream the cache is.
    pub position: Position,
    /// How long ago the stream was last heard of.
    pub silent: Duration,
}

/// Where a member has joined, and what it carries for its neighbours.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteStatus {
    /// The name of the site or home where it has joined (of several homes, of the first); none while none answers.
    pub name: Option<String>,
    /// Its address, as it was reached.
    pub address: Option<String>,
    /// Whether that is the redirector which this member carries itself.
    pub is_own: bool,
    /// Who has joined at the redirector that this member carries, itself included. Zero: another one is the site.
    pub carried: usize,
    /// Pages that the redirector which this member carries has asked of the homes.
    pub asked_homes: u64,
    /// Who is out of reach, and why: of the sites and homes that this member was told to join at, and, while it carries the
    /// redirector, of the homes. What another member carries is told there.
    pub out_of_reach: Vec<OutOfReach>,
}

impl Member {
    /// Joins, and waits until the site or home has answered.
    ///
    /// # Errors
    ///
    /// [`JoinError`] says which part of the configuration is wrong, or that nobody answered within its
    /// [`join_timeout`](JoinConfig::join_timeout).
    pub fn join(config: JoinConfig) -> Result<Member, JoinError> {
        block_on(Self::join_async(config))
    }

    /// As [`Member::join`].
    ///
    /// # Errors
    ///
    /// As [`Member::join`].
    pub async fn join_async(config: JoinConfig) -> Result<Member, JoinError> {
        let runtime = MemberRuntime::start(&config).await?;
        runtime.joined(config.join_timeout).await?;
        Ok(Member {
            runtime: Arc::new(runtime),
            session: config.session,
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.runtime.shared
    }

    // --- Segments ---

    /// Opens a segment: `thorp://HOME/path`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) if the name is none, [`NotFound`](ErrorKind::NotFound) if there is no such home
    /// or segment, [`HomeUnreachable`](ErrorKind::HomeUnreachable), [`Busy`](ErrorKind::Busy), and
    /// [`Closed`](ErrorKind::Closed).
    pub fn open(&self, name: &str) -> Result<Segment> {
        block_on(self.open_async(name))
    }

    /// As [`Member::open`].
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub async fn open_async(&self, name: &str) -> Result<Segment> {
        let name = SegmentName::parse(name)?;
        let home = self.home(name.home).await?;
        self.open_at(home, name.path, false).await
    }

    /// Makes a segment; fails with [`AlreadyExists`](ErrorKind::AlreadyExists) if there is one. (Two members that make it at
    /// the same moment may both get it.)
    ///
    /// # Errors
    ///
    /// As [`Member::open_or_create`]; [`AlreadyExists`](ErrorKind::AlreadyExists).
    pub fn create(&self, name: &str) -> Result<Segment> {
        block_on(self.create_async(name))
    }

    /// As [`Member::create`].
    ///
    /// # Errors
    ///
    /// As [`Member::create`].
    pub async fn create_async(&self, name: &str) -> Result<Segment> {
        let parsed = SegmentName::parse(name)?;
        let home = self.home(parsed.home).await?;
        match self.open_at(home, parsed.path, false).await {
            Ok(_) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a segment {name} already"),
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.open_at(home, parsed.path, true).await
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a segment, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// As [`Member::open`]; [`Full`](ErrorKind::Full) and [`TooLarge`](ErrorKind::TooLarge) if its home takes no more
    /// segments.
    pub fn open_or_create(&self, name: &str) -> Result<Segment> {
        block_on(self.open_or_create_async(name))
    }

    /// As [`Member::open_or_create`].
    ///
    /// # Errors
    ///
    /// As [`Member::open_or_create`].
    pub async fn open_or_create_async(&self, name: &str) -> Result<Segment> {
        let name = SegmentName::parse(name)?;
        let home = self.home(name.home).await?;
        self.open_at(home, name.path, true).await
    }

    /// The segments whose names begin so: `thorp://HOME/beginning-of-path`.
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub fn list(&self, prefix: &str) -> Result<Vec<SegmentEntry>> {
        block_on(self.list_async(prefix))
    }

    /// As [`Member::list`].
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub async fn list_async(&self, prefix: &str) -> Result<Vec<SegmentEntry>> {
        let name = SegmentName::parse_prefix(prefix)?;
        let home = self.home(name.home).await?;
        let infos = self.infos(home, name.path).await?;
        let entry = |info: SegmentInfo| SegmentEntry {
            name: SegmentName::format(name.home, &info.path),
            pages: info.extent.0,
        };
        Ok(infos.into_iter().map(entry).collect())
    }

    /// Removes a segment with all its objects. Removing what is not there is no error.
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub fn remove(&self, name: &str) -> Result<()> {
        block_on(self.remove_async(name))
    }

    /// As [`Member::remove`].
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub async fn remove_async(&self, name: &str) -> Result<()> {
        let name = SegmentName::parse(name)?;
        let home = self.home(name.home).await?;
        let open = CallRequest::Open {
            path: name.path.to_owned(),
            create: false,
        };
        let segment = match self.call(home, open).await {
            Ok(CallResponse::Segment(info)) => info.id,
            Ok(_) => return Err(other_answer()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let answer = self.call(home, CallRequest::Remove { segment }).await?;
        self.shared().allocators.forget_path(home, name.path);
        match answer {
            CallResponse::Removed => Ok(()),
            _ => Err(other_answer()),
        }
    }

    // --- Transactions ---

    /// Begins a transaction in a session of its own. [`Session::default`] is not what the member was joined with:
    /// [`Member::session`] is.
    pub fn begin(&self, session: Session) -> Transaction {
        Transaction::begin(self.clone(), session)
    }

    /// How transactions of [`Member::transact`] behave: as the member was told when it joined.
    pub fn session(&self) -> Session {
        self.session
    }

    /// What became of a commit that ended with [`OutcomeUnknown`](ErrorKind::OutcomeUnknown). Waits for it as long as a commit
    /// would; then the outcome is unknown still. Outcomes are remembered for a while (the last 256 of this kind).
    ///
    /// # Errors
    ///
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) still, [`NotFound`](ErrorKind::NotFound) if this member does not
    /// wait for that commit, and [`Closed`](ErrorKind::Closed).
    pub fn outcome(&self, id: CommitId) -> Result<Outcome> {
        block_on(self.outcome_async(id))
    }

    /// As [`Member::outcome`].
    ///
    /// # Errors
    ///
    /// As [`Member::outcome`].
    pub async fn outcome_async(&self, id: CommitId) -> Result<Outcome> {
        let due = Instant::now() + self.session.commit_timeout;
        let mut outcomes = self.shared().waits.outcomes();
        loop {
            outcomes.mark_unchanged();
            match self.shared().waits.late(id) {
                Some(LateOutcome::Ended(outcome, by)) => {
                    if let thorp_model::Outcome::Committed { stamp, .. } = outcome {
                        self.shared().raise_floor(stamp);
                    }
                    return Ok(told(id, outcome, by));
                }
                Some(LateOutcome::Pending) => {}
                None => {
                    let words = format!("commit {id} is none that this member waits for");
                    return Err(Error::new(ErrorKind::NotFound, words));
                }
            }
            if self.shared().is_closed() {
                return Err(Error::closed());
            }
            if !self.shared().changed(&mut outcomes, due).await? {
                let words = format!("the outcome of commit {id} is not known yet: ask again later");
                return Err(Error::new(ErrorKind::OutcomeUnknown(id), words));
            }
        }
    }

    // --- Besides ---

    /// Asks for the pages of these objects, which will be read soon, and does not wait: for who knows the structure of its
    /// objects, and reads what one refers to. They may be of several homes.
    ///
    /// It never fails, and promises nothing. What is in the cache, or on its way, is not asked for; what was never heard of (a home), or is no
    /// more, is left out; and so is what there is no room for: at most half of the requests that a member may have under way
    /// ([`FETCHES_MAX`](thorp_model::limits::FETCHES_MAX)) are ones that nobody waits for, and a busy parent refuses these first.
    /// Whoever reads then waits as ever. Too much of it pushes out of the cache what is read; [`Stats::ahead_wasted`] tells.
    pub fn prefetch(&self, references: &[Reference]) {
        let mut last = None;
        for reference in references {
            let place = Place {
                home: reference.home,
                page: reference.object.page,
            };
            // References that are neighbours are often of one page.
            if last != Some(place) {
                self.shared().prefetch_named(place);
                last = Some(place);
            }
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        let (totals, mut stats) = (shared.cache.totals(), Stats::default());
        shared.counters.fill(&mut stats);
        stats.cached_reads = totals.reads;
        stats.misses = totals.misses;
        (stats.old_images, stats.behind) = (totals.old_images, totals.behind);
        stats.doomed = totals.doomed;
        stats.not_recorded = shared.recorder.as_ref().map_or(0, Recorder::lost);
        stats.cached_pages = shared.cache.pages() as u64;
        stats.cached_bytes = shared.cache.bytes() as u64;
        let ahead = shared.ahead.counts();
        (stats.ahead, stats.ahead_used, stats.ahead_wasted) =
            (ahead.requested, ahead.used, ahead.wasted);
        stats.ahead_hinted = ahead.hinted;
        if let Some(handle) = shared.handle() {
            stats.traffic = handle.totals().up;
            stats.fetches = handle.notes().get(Note::FetchSent);
        }
        stats
    }

    /// Where this member has joined, and what it carries for its neighbours ([`SiteOfMembers`](crate::SiteOfMembers)).
    pub fn site(&self) -> SiteStatus {
        self.runtime.site()
    }

    /// The homes this member has heard of.
    pub fn homes(&self) -> Vec<HomeStatus> {
        let cache = &self.shared().cache;
        let homes = self.shared().homes.all().into_iter();
        let status = |home: crate::runtime::KnownHome| HomeStatus {
            id: home.id,
            reachable: home.edge.is_some(),
            position: cache.position(home.id),
            silent: Duration::from_millis(
                now().mono.since(cache.heard(home.id).unwrap_or_default()),
            ),
            name: home.name,
        };
        homes.map(status).collect()
    }

    /// A reference as text: `thorp://HOME/path#PAGE.SLOT.GENERATION[+OFFSET]`. Asks the home, if this member has not met the
    /// segment yet.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if its home or segment is not known, and as [`Member::open`].
    pub fn format(&self, reference: &Reference) -> Result<String> {
        block_on(self.format_async(reference))
    }

    /// As [`Member::format`].
    ///
    /// # Errors
    ///
    /// As [`Member::format`].
    pub async fn format_async(&self, reference: &Reference) -> Result<String> {
        let id = reference.object.page.segment;
        let home = self.shared().homes.name(reference.home).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("home {} was never heard of", reference.home),
            )
        })?;
        let path = self.path(reference.home, id).await?;
        Ok(Spot::format(&SegmentName::format(&home, &path), reference))
    }

    /// The reference that a text names. Whether there is such an object, reading it tells.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) if the text is no reference, and as [`Member::open`].
    pub fn parse(&self, text: &str) -> Result<Reference> {
        block_on(self.parse_async(text))
    }

    /// As [`Member::parse`].
    ///
    /// # Errors
    ///
    /// As [`Member::parse`].
    pub async fn parse_async(&self, text: &str) -> Result<Reference> {
        let (name, spot) = Spot::parse(text)?;
        let home = self.home(name.home).await?;
        let allocator = match self.shared().allocators.by_path(home, name.path) {
            Some(allocator) => allocator,
            None => Arc::clone(self.open_at(home, name.path, false).await?.allocator()),
        };
        Ok(spot.reference(home, allocator.segment))
    }

    /// Leaves, and waits for that. Every later call on any clone fails with [`Closed`](ErrorKind::Closed). What was sent and
    /// not answered goes on at the home. It takes some milliseconds, in which the thread is blocked; so does dropping the
    /// last clone. Where a transaction over several homes has just ended it takes the round trip more until all of them know,
    /// and three seconds at most; a process that ends without either leaves that to the homes, which ask each other.
    pub fn close(&self) {
        self.runtime.stop();
    }

    // --- How ---

    async fn call(&self, home: HomeId, request: CallRequest) -> Result<CallResponse> {
        let due = Instant::now() + self.session.fetch_timeout;
        self.shared().call(home, request, due).await
    }

    /// A home by its name. It is waited for: perhaps its stream has not begun.
    async fn home(&self, name: &str) -> Result<HomeId> {
        let shared = self.shared();
        let mut changes = shared.homes.changes();
        let begun = Instant::now();
        loop {
            changes.mark_unchanged();
            if let Some(home) = shared.homes.by_name(name) {
                return Ok(home);
            }
            let is_any_live = shared.homes.is_any_live();
            let patience = match is_any_live {
                true => UNKNOWN_HOME_PATIENCE.min(self.session.fetch_timeout),
                false => self.session.fetch_timeout,
            };
            if !shared.changed(&mut changes, begun + patience).await? {
                return Err(match is_any_live {
                    true => self.no_such_home(name),
                    false => Error::unreachable(format!("home {name} cannot be reached")),
                });
            }
        }
    }

    /// A site tells of the homes that it reaches, not of those that it should.
    fn no_such_home(&self, name: &str) -> Error {
        let known = self.shared().homes.all().into_iter().map(|home| home.name);
        let known = known.collect::<Vec<_>>().join(", ");
        match self.runtime.is_below_a_site() {
            true => Error::unreachable(format!(
                "no home called {name} is reached by way of this site, only {known}: it is down, or its name is another one"
            )),
            false => Error::new(
                ErrorKind::NotFound,
                format!("there is no home called {name}; known are: {known}"),
            ),
        }
    }

    async fn open_at(&self, home: HomeId, path: &str, create: bool) -> Result<Segment> {
        let path = path.to_owned();
        let answer = self.call(home, CallRequest::Open { path, create }).await;
        match answer {
            Ok(CallResponse::Segment(info)) => {
                let allocator = self.shared().allocators.named(home, info.id, &info.path);
                Ok(Segment::new(self.clone(), allocator))
            }
            Ok(_) => Err(other_answer()),
            Err(error) => Err(error),
        }
    }

    /// The path of a segment that only a reference told of.
    async fn path(&self, home: HomeId, id: SegmentId) -> Result<String> {
        if let Some(path) = self.shared().allocators.get(home, id).path() {
            return Ok(path.to_owned());
        }
        for info in self.infos(home, "").await? {
            self.shared().allocators.named(home, info.id, &info.path);
        }
        let allocator = self.shared().allocators.get(home, id);
        let path = allocator.path().map(str::to_owned);
        path.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("segment {id} does not exist (any more)"),
            )
        })
    }

    async fn infos(&self, home: HomeId, prefix: &str) -> Result<Vec<SegmentInfo>> {
        let (mut infos, mut after) = (Vec::<SegmentInfo>::new(), String::new());
        loop {
            let prefix = prefix.to_owned();
            match self.call(home, CallRequest::List { prefix, after }).await? {
                CallResponse::Segments { segments, more } => {
                    infos.extend(segments);
                    after = infos
                        .last()
                        .map(|info| info.path.clone())
                        .unwrap_or_default();
                    if !more {
                        return Ok(infos);
                    }
                }
                _ => return Err(other_answer()),
            }
        }
    }
}

fn told(id: CommitId, outcome: thorp_model::Outcome, by: Option<HomeId>) -> Outcome {
    match outcome {
        thorp_model::Outcome::Committed { position, stamp } => Outcome::Committed(Committed {
            id: Some(id),
            position: by.map(|_| position),
            stamp: Some(stamp),
        }),
        thorp_model::Outcome::Refused(refusal @ Refusal::Busy { .. }) => {
            Outcome::Refused(Error::new(ErrorKind::Conflict, refusal.to_string()))
        }
        thorp_model::Outcome::Refused(refusal) => Outcome::Refused(refusal.into()),
    }
}

fn other_answer() -> Error {
    Error::invalid("the home answered something else")
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("homes", &self.homes())
            .finish_non_exhaustive()
    }
}

/// How long a home that nobody has told of is waited for, while another one is there.
const UNKNOWN_HOME_PATIENCE: Duration = Duration::from_secs(2);
