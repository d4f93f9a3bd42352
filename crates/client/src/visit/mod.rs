//! Sessions that choose their consistency (rule C12).

mod collection;
mod creating;
mod leaving;
mod lock_number;
mod own;
mod scratch;
mod typed;
mod view;

pub use lock_number::LockNumber;

use crate::runtime::{Followed, HeldLock, block_on};
use crate::{
    Error, Member, ObjectUpdate, Procedure, Reference, Result, Segment, Session, Transaction,
};
use own::{Own, Update};
use scratch::Scratch;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use thorp_cache::Overlay;
use thorp_model::limits::{LOCK_SEGMENTS_MAX, PULL_SEGMENTS_MAX};
use thorp_model::{
    AccessMode, Consistency, Failures, HomeId, LockMode, Moment, SegmentId, SessionKind,
    UpdateOrder,
};

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
/// A [`TreeMap`](crate::collections::TreeMap) works in a visit as in a transaction: each of its calls reads one moment. A visit that
/// publishes its changes of a map makes them anew, in the commit that it publishes, on what the map is by then. So visits that
/// change one map at once lose nothing, and neither do transactions. What a call gives back, for example the value that a key
/// had, is as of the visit's view. A log keeps no such changes, and no new objects.
///
/// ```
/// # use thorp_client::collections::TreeMap;
/// # use thorp_client::{Consistency, JoinConfig, Member, Visit};
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
/// # let member = Member::join(joining)?;
/// # let shop = member.open_or_create("thorp://alps/shop")?;
/// # let by_price: TreeMap<u64, String> = member.transact(|tx| TreeMap::create(tx, &shop))?;
/// let mut visit = Visit::open(&member, Consistency::CLOSE_TO_OPEN, &[&shop])?;
/// by_price.insert(&mut visit, 12, "a cheese".to_owned())?;
/// assert_eq!(by_price.range(&mut visit, ..100)?.len(), 1);
/// visit.close()?;
/// # assert_eq!(member.transact(|tx| by_price.len(tx))?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// What changes of collections do to their nodes, over the view.
    scratch: Scratch,
    /// The node that a collection has read last.
    node: Vec<u8>,
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
            scratch: Scratch::default(),
            node: Vec::new(),
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
        let may_move = self.consistency.isolation() == Moment::Access;
        let bytes = self.read_whole(&whole, may_move).await?;
        let from = usize::try_from(reference.offset).unwrap_or(usize::MAX);
        let rest = bytes.get(from..).map(<[u8]>::to_vec);
        rest.ok_or_else(|| Error::invalid("the reference points beyond the end of its object"))
    }

    /// Replaces an object's bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid): the visit only reads, or was not opened on the object's segment. With
    /// `visibility=access` also those of [`Visit::publish`].
    pub fn write(&mut self, reference: &Reference, bytes: impl Into<Vec<u8>>) -> Result<()> {
        block_on(self.update(reference, ObjectUpdate::Write(bytes.into())))
    }

    /// Has the home run a procedure on an object (rule C8). This visit sees what it does to what it reads.
    ///
    /// # Errors
    ///
    /// As [`Visit::write`].
    pub fn apply(&mut self, reference: &Reference, procedure: Procedure) -> Result<()> {
        block_on(self.update(reference, ObjectUpdate::Run(procedure)))
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// As [`Visit::write`].
    pub fn delete(&mut self, reference: &Reference) -> Result<()> {
        block_on(self.update(reference, ObjectUpdate::Delete))
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

    async fn update(&mut self, reference: &Reference, update: ObjectUpdate) -> Result<()> {
        self.check_writes(reference)?;
        if reference.offset != 0 {
            return Err(Error::invalid(
                "a whole object is updated, and the reference points into one",
            ));
        }
        self.add(reference, Update::Object(update)).await
    }

    /// One more update, which leaves now if that is the visibility.
    async fn add(&mut self, reference: &Reference, update: Update) -> Result<()> {
        self.own.add(reference, update);
        match self.consistency.visibility() {
            Moment::Access => self.publish_async().await,
            Moment::Session | Moment::Manual => Ok(()),
        }
    }

    /// Whether the visit may update what is there.
    fn check_writes(&self, reference: &Reference) -> Result<()> {
        self.check_place(reference)?;
        match self.consistency.mode().writes() {
            true => Ok(()),
            false => Err(Error::invalid(
                "this visit only reads: open it with mode=wr to update",
            )),
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

    /// The segments of a home that the visit is on.
    fn segments_of(&self, home: HomeId) -> Vec<SegmentId> {
        let here = self.segments.iter();
        let here = here.filter(|segment| segment.home() == home);
        let mut segments: Vec<SegmentId> = here.map(Segment::id).collect();
        segments.sort_unstable();
        segments.dedup();
        segments
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
