//! What a visit reads from: a view that stands where it is, until it moves (rules C2, C3, C6 and C12).

use super::built::is_optimistic;
use crate::runtime::{Followed, HeldLock, Pull};
use crate::{Error, ErrorKind, Member, Reference, Result, Segment, Session, Transaction};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_cache::Overlay;
use thorp_model::limits::LOCK_SEGMENTS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{AccessMode, Consistency, Failures, HomeId, LockMode, Place, SegmentId, planted};
use thorp_net::driver::uptime;

/// What a visit reads from.
pub(super) struct View {
    pub(super) member: Member,
    pub(super) consistency: Consistency,
    pub(super) session: Session,
    pub(super) segments: Vec<Segment>,
    /// It only reads. None: the visit is not open yet.
    tx: Option<Transaction>,
    /// Whether something was read as of the view.
    has_read: bool,
    /// Whether it has moved since the visit looked.
    has_moved: bool,
    /// Updates over the view that their homes have not executed (rule C6).
    overlay: Overlay,
    pub(super) left_out: BTreeSet<HomeId>,
    /// One for each home; dropped, they are given back (rule C5).
    pub(super) locks: Vec<HeldLock>,
    /// Dropped, the member follows no more.
    followed: Vec<Followed>,
}

impl View {
    /// A view that stands nowhere yet.
    pub(super) fn new(member: &Member, consistency: Consistency, segments: &[&Segment]) -> Self {
        View {
            member: member.clone(),
            consistency,
            // Its bounds are its own: what is older than they allow is asked for, or never read.
            session: member.session().optimistic_reads(true),
            segments: segments.iter().map(|segment| (*segment).clone()).collect(),
            tx: None,
            has_read: false,
            has_moved: false,
            overlay: Overlay::default(),
            left_out: BTreeSet::new(),
            locks: Vec::new(),
            followed: Vec::new(),
        }
    }

    /// Whether it has moved since this was asked last.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// Moves the view to what is there now, after asking the homes if the bounds want it.
    pub(super) async fn look_again(&mut self) -> Result<()> {
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
                self.tx = Some(view);
                (self.has_read, self.has_moved) = (false, true);
                self.overlay = overlay;
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// An object as its home has it, as of this visit's view. A view in which nothing was read yet may move on, if the object
    /// is not kept as of it.
    pub(super) async fn read_committed(
        &mut self,
        whole: &Reference,
        may_move: bool,
    ) -> Result<Vec<u8>> {
        for attempt in 0.. {
            let view = self.tx.as_mut().ok_or_else(Error::closed)?;
            let read = view.read_async(whole).await.map(<[u8]>::to_vec);
            let may_move = !self.has_read || may_move;
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

    /// An object with the updates over it.
    pub(super) fn with_updates(
        &self,
        whole: &Reference,
        committed: Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
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

    pub(super) fn check_place(&self, reference: &Reference) -> Result<()> {
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

    /// Whether it reads and writes updates that their homes have not executed.
    pub(super) fn is_tentative(&self) -> bool {
        is_optimistic(&self.consistency)
    }

    pub(super) fn places(&self) -> Vec<(HomeId, SegmentId)> {
        let segments = self.segments.iter();
        segments
            .map(|segment| (segment.home(), segment.id()))
            .collect()
    }

    /// Takes a lock at each home, in the order of their ids: so no two visits wait for each other (rule C5).
    pub(super) async fn lock(&mut self) -> Result<()> {
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

    /// When an answer of a home is too late for this visit.
    pub(super) fn due(&self) -> Instant {
        let due = self.session.fetch_due();
        match self.consistency.failures() {
            Failures::Optimistic {
                cutoff: Some(cutoff),
            } => due.min(self.session.due(cutoff)),
            _ => due,
        }
    }

    pub(super) fn homes(&self) -> BTreeSet<HomeId> {
        self.segments.iter().map(Segment::home).collect()
    }

    /// The segments of a home that the visit is on.
    pub(super) fn segments_of(&self, home: HomeId) -> Vec<SegmentId> {
        let here = self.segments.iter();
        let here = here.filter(|segment| segment.home() == home);
        let mut segments: Vec<SegmentId> = here.map(Segment::id).collect();
        segments.sort_unstable();
        segments.dedup();
        segments
    }

    /// Whether the locks hold still.
    pub(super) fn check_locks(&self) -> Result<()> {
        self.locks.iter().try_for_each(HeldLock::check)
    }

    /// Neighbours show their updates here from now on, before their homes have them.
    pub(super) async fn follow(&mut self) -> Result<()> {
        let requests = Arc::clone(&self.member.shared().requests);
        let due = self.due();
        for (home, segment) in self.places() {
            let followed = requests.follow(home, segment, due).await?;
            self.followed.extend(followed);
        }
        Ok(())
    }

    fn streams(&self, homes: &BTreeSet<HomeId>) -> Vec<u64> {
        let pulls = &self.member.shared().pulls;
        homes.iter().map(|home| pulls.stream(*home)).collect()
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

/// How often a view moves on for one read.
const MOVES_MAX: u32 = 16;

const NOT_KEPT: &str = "an object has changed, and what it was as of this visit's view is not kept here any more: refresh, or open another visit";
