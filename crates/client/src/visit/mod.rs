//! Sessions that choose their consistency (rule C12).

mod built;
mod collection;
mod lock_number;
mod own;
mod redo;
mod scratch;
mod view;

pub use lock_number::LockNumber;

use crate::runtime::{HeldLock, block_on};
use crate::transaction::{decode, encode};
use crate::{
    Error, ErrorKind, Member, ObjectUpdate, Procedure, Ref, Reference, Result, Segment, Transaction,
};
use built::check_built;
use own::{NOT_IN_A_LOG, Own, Update};
use scratch::Scratch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::limits::PULL_SEGMENTS_MAX;
use thorp_model::{Consistency, Failures, Moment};
use view::View;

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
/// With `failures=optimistic` updates go into the log of this member ([`JoinConfig::log`](crate::JoinConfig::log)), or of its site, also while
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
/// **Not built yet:** stamp order, which is refused. Updates leave as ordinary commits, so their order is serial whatever was
/// asked.
#[must_use = "what it updates is given up if it is dropped before its close"]
pub struct Visit {
    view: View,
    /// What was published, and the view does not show yet.
    published: Own,
    own: Own,
    /// What changes of collections do to their nodes, over the view.
    scratch: Scratch,
    /// The node that a collection has read last.
    node: Vec<u8>,
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
            view: View::new(member, consistency, segments),
            published: Own::default(),
            own: Own::default(),
            scratch: Scratch::default(),
            node: Vec::new(),
        };
        if segments.len() > PULL_SEGMENTS_MAX {
            return Err(Error::invalid(format!(
                "a visit is opened on at most {PULL_SEGMENTS_MAX} segments"
            )));
        }
        if consistency.is_causal() && visit.view.homes().len() > 1 {
            return Err(Error::invalid(
                "causal order over several homes is not built yet: open the visit on segments of one home",
            ));
        }
        visit.view.lock().await?;
        if visit.view.is_tentative() {
            visit.view.follow().await?;
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
        self.view.consistency
    }

    /// The names of the homes that did not answer when the view moved last, with `failures=optimistic`. What was read of them
    /// may be older than the bound allows (rule C10). Also of those that have granted no lease for an update that was given out
    /// since: whoever reads there with a hard bound does not wait for it.
    pub fn left_out(&self) -> Vec<String> {
        let homes = &self.view.member.shared().homes;
        let names = self
            .view
            .left_out
            .iter()
            .filter_map(|home| homes.name(*home));
        names.collect()
    }

    /// The locks that this visit holds, one for each home: with [`JoinConfig::under`](crate::JoinConfig::under) other programs of
    /// the same name write under them.
    pub fn locks(&self) -> Vec<LockNumber> {
        let locks = self.view.locks.iter();
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
        self.view.check_locks()
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
        self.view.check_place(reference)?;
        if self.view.consistency.isolation() == Moment::Access {
            self.look_again().await?;
        }
        let whole = Reference {
            offset: 0,
            ..*reference
        };
        let may_move = self.view.consistency.isolation() == Moment::Access;
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
        match self.view.consistency.isolation() {
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
        match self.view.consistency.visibility() {
            Moment::Access => self.publish_async().await,
            Moment::Session | Moment::Manual => Ok(()),
        }
    }

    /// Whether the visit may update what is there.
    fn check_writes(&self, reference: &Reference) -> Result<()> {
        self.view.check_place(reference)?;
        match self.view.consistency.mode().writes() {
            true => Ok(()),
            false => Err(Error::invalid(
                "this visit only reads: open it with mode=wr to update",
            )),
        }
    }

    /// Makes an object, next to what this member made last in the segment. Its reference is final, and the visit sees the object at
    /// once. Others see it when the update has left.
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`](crate::Transaction::create). [`Invalid`](crate::ErrorKind::Invalid): the visit only reads, was not
    /// opened on the segment, or its updates go into a log (`failures=optimistic`). With `visibility=access` also those of
    /// [`Visit::publish`].
    pub fn create(&mut self, segment: &Segment, bytes: impl Into<Vec<u8>>) -> Result<Reference> {
        block_on(self.create_async(segment, bytes))
    }

    /// As [`Visit::create`].
    ///
    /// # Errors
    ///
    /// As [`Visit::create`].
    pub async fn create_async(
        &mut self,
        segment: &Segment,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let bytes = bytes.into();
        self.check_creates(segment)?;
        let mut tx = self.view.member.begin(self.view.session);
        let (reference, slots) = tx.reserve(segment, &bytes).await?;
        drop(tx);
        self.add(&reference, Update::Create(bytes, Arc::new(slots)))
            .await?;
        Ok(reference)
    }

    fn check_creates(&self, segment: &Segment) -> Result<()> {
        if self.view.is_tentative() {
            return Err(Error::invalid(NOT_IN_A_LOG));
        }
        let mut here = self.view.segments.iter();
        let is_here = |one: &Segment| (one.home(), one.id()) == (segment.home(), segment.id());
        match (here.any(is_here), self.view.consistency.mode().writes()) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::invalid(
                "this visit was not opened on the segment: name the segment when it is opened",
            )),
            (_, false) => Err(Error::invalid(
                "this visit only reads: open it with mode=wr to make objects",
            )),
        }
    }

    /// An object's value, with this visit's own updates.
    ///
    /// # Errors
    ///
    /// As [`Visit::read`]; [`DataDamaged`](crate::ErrorKind::DataDamaged) if the bytes are no value of this type.
    pub fn get<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        block_on(self.get_async(reference))
    }

    /// As [`Visit::get`].
    ///
    /// # Errors
    ///
    /// As [`Visit::get`].
    pub async fn get_async<T: DeserializeOwned>(&mut self, reference: &Ref<T>) -> Result<T> {
        let reference = reference.as_ref();
        let bytes = self.read_async(reference).await?;
        let value = decode(&bytes);
        value.map_err(|other| other.of(self.view.member.shared().naming().object(reference)))
    }

    /// Replaces an object's value.
    ///
    /// # Errors
    ///
    /// As [`Visit::write`]; [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be encoded.
    pub fn put<T: Serialize>(&mut self, reference: &Ref<T>, value: &T) -> Result<()> {
        self.write(reference.as_ref(), encode(value)?)
    }

    /// Makes an object that holds a value.
    ///
    /// # Errors
    ///
    /// As [`Visit::create`]; [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be encoded.
    pub fn create_typed<T: Serialize>(&mut self, segment: &Segment, value: &T) -> Result<Ref<T>> {
        self.create(segment, encode(value)?).map(Ref::new)
    }

    /// As [`Visit::create_typed`].
    ///
    /// # Errors
    ///
    /// As [`Visit::create_typed`].
    pub async fn create_typed_async<T: Serialize>(
        &mut self,
        segment: &Segment,
        value: &T,
    ) -> Result<Ref<T>> {
        let bytes = encode(value)?;
        self.create_async(segment, bytes).await.map(Ref::new)
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
        if self.view.consistency.is_atomic() && self.own.homes().len() > 1 {
            return Err(Error::invalid(
                "an atomic group is of one home, and these updates are of several: use a transaction",
            ));
        }
        if self.view.is_tentative() {
            return self.keep().await;
        }
        for home in self.own.homes() {
            // They are not here while they are on their way: a future that is dropped leaves none to be sent again.
            self.check_locks()?;
            let leaving = Arc::new(self.own.take(home));
            // If the future is dropped, what was made may be there.
            leaving.keep_slots();
            let lock = self.view.locks.iter().find(|lock| lock.home() == home);
            let fence = lock.map(HeldLock::fence);
            let again = Arc::clone(&leaving);
            let redo = async move |tx: &mut Transaction| {
                fence
                    .into_iter()
                    .for_each(|fence| tx.run_under(home, fence));
                again.redo(tx).await
            };
            let published = self
                .view
                .member
                .transact_with_async(self.view.session, redo)
                .await;
            let leaving = leaving.entries();
            match may_have_happened(&published) {
                false => {
                    leaving.hold_slots();
                    self.own.put_back(leaving);
                }
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
        let due = self.view.due();
        for lock in core::mem::take(&mut self.view.locks) {
            lock.give_back(due).await?;
        }
        Ok(())
    }

    /// The log takes the updates, one for each segment. They are durable then, and shown; their homes get them when these can
    /// be reached (rule C6).
    async fn keep(&mut self) -> Result<()> {
        if !self.view.member.shared().under().is_empty() {
            // Its home would not know under which lock it was made.
            return Err(Error::invalid(
                "a log keeps no updates under a lock: write with failures=pessimistic, or outside of the lock",
            ));
        }
        let segments = self.own.segments();
        if self.view.consistency.is_atomic() && segments.len() > 1 {
            return Err(Error::invalid(
                "an atomic group that a log keeps is of one segment, and these updates are of several: use a transaction",
            ));
        }
        let patience = match self.view.consistency.failures() {
            Failures::Optimistic {
                cutoff: Some(cutoff),
            } => cutoff,
            _ => LEASE_PATIENCE,
        };
        for segment in segments {
            let writes = self.own.writes(segment)?;
            let leaving = self.own.take_of(segment);
            let requests = Arc::clone(&self.view.member.shared().requests);
            let due = self
                .view
                .session
                .due(KEEP_TIMEOUT)
                .max(Instant::now() + patience.saturating_add(KEEP_TIMEOUT));
            match requests.update((segment.0, writes), patience, due).await {
                Ok(is_leased) => {
                    self.published.append(leaving);
                    if !is_leased {
                        self.view.left_out.insert(segment.0);
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

    /// Moves the view to what is there now, after asking the homes if the bounds want it.
    async fn look_again(&mut self) -> Result<()> {
        let looked = self.view.look_again().await;
        self.view_moved();
        looked
    }

    /// The view may have moved: then the member shows what it has kept, and what the home has answered.
    fn view_moved(&mut self) {
        if self.view.take_moved() {
            self.published = Own::default();
            self.scratch.is_old();
        }
    }

    /// An object with the updates that the visit shows. The view may move before it has read something, and whenever its reader
    /// lets it.
    pub(super) async fn read_whole(
        &mut self,
        whole: &Reference,
        may_move: bool,
    ) -> Result<Vec<u8>> {
        let is_made_here = self.own.creates(whole) || self.published.creates(whole);
        let read = match is_made_here {
            true => Err(Error::new(ErrorKind::Gone, "the visit makes the object")),
            false => {
                let read = self.view.read_committed(whole, may_move).await;
                self.view_moved();
                read
            }
        };
        let read = self.view.with_updates(whole, read);
        let read = self.published.over(whole, read);
        let bytes = self.own.over(whole, read)?;
        // What was read is of a moment at which nobody else could write.
        self.check_locks()?;
        Ok(bytes)
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

/// How long an update waits for a lease, if its program has not said: with one, whoever reads with a hard bound finds it.
const LEASE_PATIENCE: Duration = Duration::from_secs(1);

/// How long a log may take.
const KEEP_TIMEOUT: Duration = Duration::from_secs(30);
