//! Sessions that choose their consistency (rule C12).

mod lock_number;
mod own;

pub use lock_number::LockNumber;

use crate::runtime::{Followed, HeldLock, Pull, block_on};
use crate::{
    Error, ErrorKind, Member, Procedure, Reference, Result, Segment, Session, Transaction,
};
use own::{Own, Update};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_cache::Overlay;
use thorp_model::limits::{LOCK_SEGMENTS_MAX, PULL_SEGMENTS_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    AccessMode, Consistency, Failures, HomeId, LockMode, Moment, Place, SegmentId, SessionKind,
    UpdateOrder, planted,
};
use thorp_net::driver::uptime;

/// A stretch of access with a consistency that its program has chosen (the Swarm paper, section 3).
///
/// What a visit reads is as of its opening, of each access, or of the last refresh: that is its *isolation*. Its updates leave
/// at its close, at once, or when the program publishes: that is its *visibility*. It sees its own updates at once. Nobody has to
/// read what it updates, so visits that update the same objects do not conflict.
///
/// A hard bound costs a round trip to each home of the segments, unless one of this member's visits has asked that home within
/// the bound. A soft one costs nothing: the member reads what is near.
///
/// ```
/// # use thorp_client::{Consistency, JoinConfig, Member, Procedure, Visit};
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
/// # let member = Member::join(joining)?;
/// # let news = member.open_or_create("thorp://alps/news")?;
/// # let headline = member.transact(|tx| tx.create(&news, "nothing"))?;
/// let consistency: Consistency = "bounded,time=100ms,hard".parse()?;
/// let mut visit = Visit::open(&member, consistency, &[&news])?;
/// visit.apply(&headline, Procedure::Append(b" new"[..].into()))?;
/// assert_eq!(visit.read(&headline)?, b"nothing new");
/// visit.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With `failures=optimistic` updates go into the log of this member ([`JoinConfig::log`](crate::JoinConfig::log)), also while
/// their home is away. The visit sees them, and those of neighbours that do the same, before the home has executed them.
///
/// With `mode=wrlk` nobody else writes in the segments, and nobody else holds a lock there, until the visit is closed or
/// dropped. With `mode=rdlk` nobody writes. Others that write there meanwhile are told that the home is busy, and try again. A
/// member that falls silent loses its locks: the visit gets [`LockLost`](ErrorKind::LockLost) at its next access, and at its
/// close (rule C5).
///
/// **Not built yet:** stamp order, which is refused; and logs at sites. Updates leave as ordinary commits, so their order is
/// serial whatever was asked.
#[must_use = "what it updates is given up if it is dropped before its close"]
pub struct Visit {
    member: Member,
    consistency: Consistency,
    session: Session,
    segments: Vec<Segment>,
    view: Option<Transaction>,
    /// Whether something was read as of the view.
    has_read: bool,
    /// What was published, and the view does not show yet.
    published: Own,
    own: Own,
    /// Updates over the view that their homes have not executed (rule C6).
    overlay: Overlay,
    left_out: BTreeSet<HomeId>,
    /// Dropped, the member follows no more.
    followed: Vec<Followed>,
    /// One for each home; dropped, they are given back (rule C5).
    locks: Vec<HeldLock>,
}

impl Visit {
    /// Opens a visit on segments, with a consistency that the program chooses. Objects of other segments the visit neither
    /// reads nor updates.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid): the consistency contradicts itself, is that of a transaction, or is not built yet.
    /// Under a hard bound also [`HomeUnreachable`](ErrorKind::HomeUnreachable), [`Busy`](ErrorKind::Busy) and
    /// [`Closed`](ErrorKind::Closed).
    pub fn open(member: &Member, consistency: Consistency, segments: &[&Segment]) -> Result<Visit> {
        block_on(Self::open_async(member, consistency, segments))
    }

    /// As [`Visit::open`].
    ///
    /// # Errors
    ///
    /// As [`Visit::open`].
    pub async fn open_async(
        member: &Member,
        consistency: Consistency,
        segments: &[&Segment],
    ) -> Result<Visit> {
        Visit::check(&consistency)?;
        let mut visit = Visit {
            member: member.clone(),
            consistency,
            // Its bounds are its own: what is older than they allow is asked for, or never read.
            session: member.session().optimistic_reads(true),
            segments: segments.iter().map(|segment| (*segment).clone()).collect(),
            view: None,
            has_read: false,
            published: Own::default(),
            own: Own::default(),
            overlay: Overlay::default(),
            left_out: BTreeSet::new(),
            followed: Vec::new(),
            locks: Vec::new(),
        };
        if visit.segments.len() > PULL_SEGMENTS_MAX {
            return Err(Error::invalid(format!(
                "a visit is opened on at most {PULL_SEGMENTS_MAX} segments"
            )));
        }
        if consistency.is_causal() && visit.homes().len() > 1 {
            return Err(Error::invalid(
                "causal order over several homes is not built yet: open the visit on segments of one home",
            ));
        }
        visit.lock().await?;
        if visit.is_tentative() {
            visit.follow().await?;
        }
        visit.look_again().await?;
        Ok(visit)
    }

    /// Whether visits of a consistency can be opened.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid): it contradicts itself, is that of a transaction, or is not built yet.
    pub fn check(consistency: &Consistency) -> Result<()> {
        let checked = consistency.check();
        checked.map_err(|wrong| Error::invalid(wrong.to_string()))?;
        check_built(consistency)
    }

    /// What was chosen.
    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// The names of the homes that did not answer when the view moved last, with `failures=optimistic`. What was read of them
    /// may be older than the bound allows (rule C10). Also of those that have granted no lease for an update that was given out
    /// since: whoever reads there with a hard bound does not wait for it.
    pub fn left_out(&self) -> Vec<String> {
        let homes = &self.member.shared().homes;
        let names = self.left_out.iter().filter_map(|home| homes.name(*home));
        names.collect()
    }

    /// The locks that this visit holds, one for each home: with [`JoinConfig::under`](crate::JoinConfig::under) other programs of
    /// the same name write under them.
    pub fn locks(&self) -> Vec<LockNumber> {
        let locks = self.locks.iter();
        let number = |lock: &HeldLock| LockNumber {
            home: lock.home(),
            fence: lock.fence(),
        };
        locks.map(number).collect()
    }

    /// Whether the locks of this visit hold still.
    ///
    /// # Errors
    ///
    /// [`LockLost`](ErrorKind::LockLost): one of them is over.
    pub fn check_locks(&self) -> Result<()> {
        self.locks.iter().try_for_each(HeldLock::check)
    }

    /// An object's bytes, from the reference's offset on, with this visit's own updates.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`]; [`Invalid`](ErrorKind::Invalid) if the visit was not opened on the object's segment.
    /// [`Conflict`](ErrorKind::Conflict): the object has changed, and what it was as of this visit's view is not here any more
    /// (rule C12). [`Visit::refresh`], or another visit, reads on.
    pub fn read(&mut self, reference: &Reference) -> Result<Vec<u8>> {
        block_on(self.read_async(reference))
    }

    /// As [`Visit::read`].
    ///
    /// # Errors
    ///
    /// As [`Visit::read`].
    pub async fn read_async(&mut self, reference: &Reference) -> Result<Vec<u8>> {
        self.check_place(reference)?;
        if self.consistency.isolation() == Moment::Access {
            self.look_again().await?;
        }
        let whole = Reference {
            offset: 0,
            ..*reference
        };
        let read = self.read_committed(&whole).await;
        let read = self.with_updates(&whole, read);
        let read = self.published.over(&whole, read);
        let bytes = self.own.over(&whole, read)?;
        // What was read is of a moment at which nobody else could write.
        self.check_locks()?;
        let from = usize::try_from(reference.offset).unwrap_or(usize::MAX);
        let rest = bytes.get(from..).map(<[u8]>::to_vec);
        rest.ok_or_else(|| Error::invalid("the reference points beyond the end of its object"))
    }

    /// An object as its home has it, as of this visit's view. A view in which nothing was read yet may move on, if the object
    /// is not kept as of it.
    async fn read_committed(&mut self, whole: &Reference) -> Result<Vec<u8>> {
        for attempt in 0.. {
            let view = self.view.as_mut().ok_or_else(Error::closed)?;
            let read = view.read_async(whole).await.map(<[u8]>::to_vec);
            let may_move = !self.has_read || self.consistency.isolation() == Moment::Access;
            match read {
                Err(error) if error.kind() != ErrorKind::Conflict => {
                    self.has_read |= error.kind() == ErrorKind::Gone;
                    return Err(error);
                }
                Err(_) if may_move && attempt < MOVES_MAX => self.look_again().await?,
                Err(_) => break,
                Ok(bytes) => {
                    self.has_read = true;
                    return Ok(bytes);
                }
            }
        }
        Err(Error::new(ErrorKind::Conflict, NOT_KEPT))
    }

    /// Replaces an object's bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid): the visit only reads, or was not opened on the object's segment. With
    /// `visibility=access` also those of [`Visit::publish`].
    pub fn write(&mut self, reference: &Reference, bytes: impl Into<Vec<u8>>) -> Result<()> {
        block_on(self.update(reference, Update::Put(bytes.into())))
    }

    /// Has the home run a procedure on an object (rule C8). This visit sees what it does to what it reads.
    ///
    /// # Errors
    ///
    /// As [`Visit::write`].
    pub fn apply(&mut self, reference: &Reference, procedure: Procedure) -> Result<()> {
        block_on(self.update(reference, Update::Run(procedure)))
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// As [`Visit::write`].
    pub fn delete(&mut self, reference: &Reference) -> Result<()> {
        block_on(self.update(reference, Update::Delete))
    }

    /// Moves the view to what is there now, within the bounds. Only with `isolation=manual`: other views move by themselves,
    /// or not at all.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) with another isolation, and as [`Visit::open`].
    pub fn refresh(&mut self) -> Result<()> {
        block_on(self.refresh_async())
    }

    /// As [`Visit::refresh`].
    ///
    /// # Errors
    ///
    /// As [`Visit::refresh`].
    pub async fn refresh_async(&mut self) -> Result<()> {
        match self.consistency.isolation() {
            Moment::Manual => self.look_again().await,
            other => Err(Error::invalid(format!(
                "this visit has isolation={other}: only with isolation=manual a program moves its view"
            ))),
        }
    }

    /// Gives out the updates so far: one commit for each home. Those of a home that does not take them stay, and the next
    /// publication tries them again. If a home refuses them for good (`Invalid`, `NoRight`), drop the visit and open another.
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`]. The outcome may be unknown: then the updates are given up here, as they may have happened.
    pub fn publish(&mut self) -> Result<()> {
        block_on(self.publish_async())
    }

    /// As [`Visit::publish`].
    ///
    /// # Errors
    ///
    /// As [`Visit::publish`].
    pub async fn publish_async(&mut self) -> Result<()> {
        if self.consistency.is_atomic() && self.own.homes().len() > 1 {
            return Err(Error::invalid(
                "an atomic group is of one home, and these updates are of several: use a transaction",
            ));
        }
        if self.is_tentative() {
            return self.keep().await;
        }
        for home in self.own.homes() {
            // They are not here while they are on their way: a future that is dropped leaves none to be sent again.
            self.check_locks()?;
            let leaving = self.own.take(home);
            let lock = self.locks.iter().find(|lock| lock.home() == home);
            let fence = lock.map(HeldLock::fence);
            let redo = async |tx: &mut Transaction| {
                fence
                    .into_iter()
                    .for_each(|fence| tx.run_under(home, fence));
                leaving.redo(tx)
            };
            let published = self.member.transact_with_async(self.session, redo).await;
            match may_have_happened(&published) {
                false => self.own.put_back(leaving),
                true => self.published.append(leaving),
            }
            published?;
        }
        Ok(())
    }

    /// Gives out the updates, and ends the visit.
    ///
    /// # Errors
    ///
    /// As [`Visit::publish`].
    pub fn close(self) -> Result<()> {
        block_on(self.close_async())
    }

    /// As [`Visit::close`].
    ///
    /// # Errors
    ///
    /// As [`Visit::publish`].
    pub async fn close_async(mut self) -> Result<()> {
        self.publish_async().await?;
        self.check_locks()?;
        let due = self.due();
        for lock in core::mem::take(&mut self.locks) {
            lock.give_back(due).await?;
        }
        Ok(())
    }

    async fn update(&mut self, reference: &Reference, update: Update) -> Result<()> {
        self.check_place(reference)?;
        if !self.consistency.mode().writes() {
            return Err(Error::invalid(
                "this visit only reads: open it with mode=wr to update",
            ));
        }
        if reference.offset != 0 {
            return Err(Error::invalid(
                "a whole object is updated, and the reference points into one",
            ));
        }
        self.own.add(reference, update);
        match self.consistency.visibility() {
            Moment::Access => self.publish_async().await,
            Moment::Session | Moment::Manual => Ok(()),
        }
    }

    fn check_place(&self, reference: &Reference) -> Result<()> {
        let is_of = |segment: &Segment| {
            segment.home() == reference.home && segment.id() == reference.object.page.segment
        };
        match self.segments.iter().any(is_of) {
            true => Ok(()),
            false => Err(Error::invalid(
                "this visit was not opened on the object's segment: name the segment when it is opened",
            )),
        }
    }

    /// Moves the view to what is there now, after asking the homes if the bounds want it.
    async fn look_again(&mut self) -> Result<()> {
        let homes = self.homes();
        loop {
            let streams = self.streams(&homes);
            self.left_out.clear();
            for home in &homes {
                self.pull(*home).await?;
            }
            self.stand(&homes).await?;
            // Another stream may be behind the answer.
            if self.streams(&homes) == streams {
                return Ok(());
            }
        }
    }

    /// The view and the updates over it are of one moment: no update is in both, and none is missed.
    async fn stand(&mut self, homes: &BTreeSet<HomeId>) -> Result<()> {
        let cache = Arc::clone(&self.member.shared().cache);
        loop {
            let version = cache.tentative_version();
            let mut view = self.member.begin(self.session);
            if !view.stand_at(homes) {
                return Err(Error::unreachable(
                    "a home of the visit was not heard of yet",
                ));
            }
            let overlay = match self.is_tentative() {
                true => cache.updates_of(&self.places()),
                false => Overlay::default(),
            };
            let is_one_moment = version.is_some() && cache.tentative_version() == version;
            if is_one_moment || !self.is_tentative() {
                self.view = Some(view);
                self.has_read = false;
                self.overlay = overlay;
                // The member shows what it has kept, and what the home has answered.
                self.published = Own::default();
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// Whether it reads and writes updates that their homes have not executed.
    fn is_tentative(&self) -> bool {
        is_optimistic(&self.consistency)
    }

    fn places(&self) -> Vec<(HomeId, SegmentId)> {
        let segments = self.segments.iter();
        segments
            .map(|segment| (segment.home(), segment.id()))
            .collect()
    }

    /// An object with the updates over it.
    fn with_updates(&self, whole: &Reference, committed: Result<Vec<u8>>) -> Result<Vec<u8>> {
        if !self.is_tentative() {
            return committed;
        }
        let place = Place {
            home: whole.home,
            page: whole.object.page,
        };
        let (committed, gone) = match committed {
            Ok(bytes) => (Some((whole.generation, bytes)), None),
            Err(error) if error.kind() == ErrorKind::Gone => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let cache = &self.member.shared().cache;
        let of_now = planted::is(Bug::OverlayOfNow).then(|| cache.updates_of(&self.places()));
        let overlay = of_now.as_ref().unwrap_or(&self.overlay);
        let seen = overlay.over(place, whole.object.slot, committed);
        match seen.filter(|(generation, _)| *generation == whole.generation) {
            Some((_, bytes)) => Ok(bytes),
            None => Err(gone.unwrap_or_else(|| {
                Error::new(
                    ErrorKind::Gone,
                    "an update that its home has not executed yet has deleted the object",
                )
            })),
        }
    }

    /// Takes a lock at each home, in the order of their ids: so no two visits wait for each other (rule C5).
    async fn lock(&mut self) -> Result<()> {
        let mode = match self.consistency.mode() {
            AccessMode::ReadLock => LockMode::Read,
            AccessMode::WriteLock => LockMode::Write,
            AccessMode::Read | AccessMode::Write => return Ok(()),
        };
        let requests = Arc::clone(&self.member.shared().requests);
        for home in self.homes() {
            let segments = self.segments_of(home);
            if segments.len() > LOCK_SEGMENTS_MAX {
                return Err(Error::invalid(format!(
                    "a visit locks at most {LOCK_SEGMENTS_MAX} segments of one home"
                )));
            }
            let due = self.due();
            let stream = self.member.shared().pulls.stream(home);
            let lock = HeldLock::take(&requests, home, (segments, mode), stream, due).await?;
            self.locks.push(lock);
        }
        Ok(())
    }

    /// Neighbours show their updates here from now on, before their homes have them.
    async fn follow(&mut self) -> Result<()> {
        let requests = Arc::clone(&self.member.shared().requests);
        let due = self.due();
        for (home, segment) in self.places() {
            let followed = requests.follow(home, segment, due).await?;
            self.followed.extend(followed);
        }
        Ok(())
    }

    /// The log takes the updates, one for each segment. They are durable then, and shown; their homes get them when these can
    /// be reached (rule C6).
    async fn keep(&mut self) -> Result<()> {
        if !self.member.shared().under().is_empty() {
            // Its home would not know under which lock it was made.
            return Err(Error::invalid(
                "a log keeps no updates under a lock: write with failures=pessimistic, or outside of the lock",
            ));
        }
        let segments = self.own.segments();
        if self.consistency.is_atomic() && segments.len() > 1 {
            return Err(Error::invalid(
                "an atomic group that a log keeps is of one segment, and these updates are of several: use a transaction",
            ));
        }
        let patience = match self.consistency.failures() {
            Failures::Optimistic {
                cutoff: Some(cutoff),
            } => cutoff,
            _ => LEASE_PATIENCE,
        };
        for segment in segments {
            let writes = self.own.writes(segment)?;
            let leaving = self.own.take_of(segment);
            let requests = Arc::clone(&self.member.shared().requests);
            let due = self
                .session
                .due(KEEP_TIMEOUT)
                .max(Instant::now() + KEEP_TIMEOUT);
            match requests.update((segment.0, writes), patience, due).await {
                Ok(is_leased) => {
                    self.published.append(leaving);
                    if !is_leased {
                        self.left_out.insert(segment.0);
                    }
                }
                Err(error) => {
                    if !matches!(error.kind(), ErrorKind::OutcomeLost) {
                        self.own.put_back(leaving);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// When an answer of a home is too late for this visit.
    fn due(&self) -> Instant {
        let due = self.session.fetch_due();
        match self.consistency.failures() {
            Failures::Optimistic {
                cutoff: Some(cutoff),
            } => due.min(self.session.due(cutoff)),
            _ => due,
        }
    }

    fn homes(&self) -> BTreeSet<HomeId> {
        self.segments.iter().map(Segment::home).collect()
    }

    fn streams(&self, homes: &BTreeSet<HomeId>) -> Vec<u64> {
        let pulls = &self.member.shared().pulls;
        homes.iter().map(|home| pulls.stream(*home)).collect()
    }

    /// The segments of a home that the visit is on.
    fn segments_of(&self, home: HomeId) -> Vec<SegmentId> {
        let here = self.segments.iter();
        let here = here.filter(|segment| segment.home() == home);
        let mut segments: Vec<SegmentId> = here.map(Segment::id).collect();
        segments.sort_unstable();
        segments.dedup();
        segments
    }

    /// Asks a home for all that was answered before, unless that was done within the bound, or the member holds a read lease (rules C2
    /// and C3).
    async fn pull(&mut self, home: HomeId) -> Result<()> {
        let Some(within) = bound(&self.consistency) else {
            return Ok(());
        };
        let shared = self.member.shared();
        let stream = shared.pulls.stream(home);
        if self.locks.iter().any(|lock| lock.is_of(home, stream)) {
            // With the lock came all that was answered before.
            return shared.requests.shown(home, self.due()).await;
        }
        let since_sync = self.consistency.counts_since_sync();
        let segments = self.segments_of(home);
        if shared.pulls.is_fresh((home, &segments), within, since_sync) {
            return Ok(());
        }
        let sent = uptime();
        let due = self.due();
        let mods = may_miss(&self.consistency);
        let wanted = (segments.clone(), mods);
        let answer = shared.requests.pull(home, wanted, due).await;
        let answer = match answer {
            Ok(()) => shared.requests.shown(home, due).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(()) => {
                let answered = uptime();
                let pull = Pull {
                    sent,
                    answered,
                    stream,
                };
                // What a read lease lets the member miss may be older than the pull.
                if mods == 0 {
                    shared.pulls.note(home, &segments, pull);
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Closed => Err(error),
            Err(_) if self.consistency.failures() != Failures::Pessimistic => {
                self.left_out.insert(home);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// How many answered changes a view may miss when it moves. Beside a bound in time none: a change that was missed could be older.
fn may_miss(consistency: &Consistency) -> u32 {
    match consistency.time() {
        Some(_) => 0,
        None => consistency.mods().unwrap_or_default(),
    }
}

/// How old a view may be when it moves, if its home is to be asked. With a bound in changes the home is always asked: it counts them.
fn bound(consistency: &Consistency) -> Option<Duration> {
    if !consistency.is_hard() {
        return None;
    }
    match consistency.mods() {
        Some(_) => Some(Duration::ZERO),
        None => consistency.time(),
    }
}

/// Whether updates have left, or may have.
fn may_have_happened(published: &Result<()>) -> bool {
    match published {
        Ok(()) => true,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::OutcomeUnknown(_) | ErrorKind::OutcomeLost
        ),
    }
}

/// What is refused until it is built.
fn check_built(consistency: &Consistency) -> Result<()> {
    let writes = consistency.mode().writes();
    let why = if consistency.kind() != SessionKind::Visit {
        "a serializable or strict session is a transaction: use Member::transact, with Session::strict for the strict one"
    } else if writes && consistency.order() == UpdateOrder::Stamp {
        "stamp order is not built yet: take order=total or order=serial"
    } else if consistency.is_causal() && is_optimistic(consistency) {
        "causal order among updates of logs is not built yet: take failures=pessimistic, or leave causal out"
    } else if writes && is_locking(consistency) && is_optimistic(consistency) {
        "a log keeps no updates under a lock: take failures=pessimistic, or another mode"
    } else {
        return Ok(());
    };
    Err(Error::invalid(why))
}

fn is_locking(consistency: &Consistency) -> bool {
    let mode = consistency.mode();
    matches!(mode, AccessMode::ReadLock | AccessMode::WriteLock)
}

fn is_optimistic(consistency: &Consistency) -> bool {
    matches!(consistency.failures(), Failures::Optimistic { .. })
}

/// How long an update waits for a lease, if its program has not said: with one, whoever reads with a hard bound finds it.
const LEASE_PATIENCE: Duration = Duration::from_secs(1);

/// How long a log may take.
const KEEP_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a view moves on for one read.
const MOVES_MAX: u32 = 16;

const NOT_KEPT: &str = "an object has changed, and what it was as of this visit's view is not kept here any more: refresh, or open another visit";
