//! Transactions.

mod answer_basis;
mod commit;
mod early;
mod held_slots;
mod large;
mod pending;
mod read;
mod rights;
mod roots;
mod scan;
mod send;
mod stream;
mod typed;
mod write;

pub use answer_basis::{AnswerBasis, BasisAt, EVIDENCE_FIELD, READS_FIELD};
pub(crate) use held_slots::HeldSlots;
pub use pending::Pending;
pub(crate) use typed::{decode, encode};

use crate::allocator::Allocator;
use crate::runtime::block_on;
use crate::runtime::{Ending, MemberRuntime, Shared};
use crate::trace::{Recorder, Use};
use crate::{Error, ErrorKind, Reference, Result, Segment, Session};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use stream::Streams;
use thorp_cache::Doomed;
use thorp_model::limits::PARTICIPANTS_MAX;
use thorp_model::{Fence, HomeId, Place, RightsList};
use thorp_session::{ObjectAt, Reservation, Stop, Terms};

/// A transaction: all of it happens at one moment, or nothing. It sees one state of each home, with its own writes over
/// it. When it commits it is known whether these states fit together. Dropped without [`Transaction::commit`], it has
/// no effect.
///
/// It may read and write segments of several homes, at most [`PARTICIPANTS_MAX`]. If it wrote, each home votes for its
/// part. A home refuses as a [`Conflict`](crate::ErrorKind::Conflict) what is in the way of a vote whose outcome it
/// does not know. The error has [the name of the home](Error::home).
///
/// [`Member::transact`](crate::Member::transact) is shorter: it begins a transaction, commits it, and runs it again.
///
/// While a transaction only reads, a change by another member is no conflict. It goes on with the old state, if the
/// cache keeps that, and commits as of then. The session's [`max_staleness`](Session::max_staleness) is the limit. A
/// first write is too late then, and is a conflict. The next attempt of [`Member::transact`](crate::Member::transact)
/// knows that it writes.
///
/// ```
/// # use thorp_client::{JoinConfig, Member, Session};
/// # let village = thorp_testing::Village::new();
/// # let home = village.home("alps");
/// # let joining = JoinConfig::new(home.address()).identity(village.member("me"));
/// # let member = Member::join(joining)?;
/// let shop = member.open_or_create("thorp://alps/shop")?;
/// let mut tx = member.begin(Session::new());
/// let note = tx.create(&shop, "hello")?;
/// assert_eq!(tx.read(&note)?, b"hello");
/// tx.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Every call of a transaction may fail with one of these. What else it may fail with, each call says.
///
/// - [`Conflict`](ErrorKind::Conflict): what the transaction has read is no longer so, and it can never commit.
/// - [`HomeUnreachable`](ErrorKind::HomeUnreachable): a page did not come within the session's
///   [`fetch_timeout`](Session::fetch_timeout), or a home was silent for longer than its
///   [`max_staleness`](Session::max_staleness).
/// - [`Busy`](ErrorKind::Busy): the home or the site has too much under way.
/// - [`HomeWentBack`](ErrorKind::HomeWentBack): a home continues from an older state.
/// - [`TooLarge`](ErrorKind::TooLarge): it takes in more than [`PARTICIPANTS_MAX`] homes.
/// - [`Closed`](ErrorKind::Closed): the member was closed.
pub struct Transaction {
    pub(crate) shared: Arc<Shared>,
    // Keeps the member running.
    runtime: Arc<MemberRuntime>,
    session: Session,
    inner: thorp_session::Transaction<Reserved>,
    /// Large objects that were read, put together.
    large: HashMap<ObjectAt, Vec<u8>>,
    /// Values that were staged from what the program gave to read from.
    streams: Streams,
    /// Its commit is sent and has no outcome yet. The commit goes on, also if the program does not wait for it.
    in_doubt: bool,
    /// Why its commit was not taken the last time.
    was_busy: Option<Error>,
    /// It has waited for somebody's lock as long as a commit may take.
    has_waited: bool,
    ending: Option<Ending>,
}

impl Transaction {
    pub(crate) fn begin(runtime: Arc<MemberRuntime>, session: Session) -> Self {
        let shared = Arc::clone(&runtime.shared);
        let (reads, floor) = shared.session.begin();
        let mut inner = thorp_session::Transaction::begin(terms(session), reads, floor);
        for lock in shared.under() {
            inner.run_under(lock.home, lock.fence);
        }
        Transaction {
            inner,
            shared,
            runtime,
            session,
            large: HashMap::new(),
            streams: Streams::default(),
            in_doubt: false,
            was_busy: None,
            has_waited: false,
            ending: None,
        }
    }

    /// It reads all of these homes as of now. False: one of them was never heard of.
    #[must_use]
    pub(crate) fn stand_at(&mut self, homes: &BTreeSet<HomeId>) -> bool {
        self.inner
            .stand_at(&self.shared.cache, homes.iter().copied())
    }

    /// It runs under a lock of its visit (rule C5).
    pub(crate) fn run_under(&mut self, home: HomeId, fence: Fence) {
        self.inner.run_under(home, fence);
    }

    /// Whether another attempt would wait once more for what the last one has waited for.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Gives up: nothing has happened. Dropping does the same.
    pub fn abort(self) {}

    pub(crate) fn session(&self) -> Session {
        self.session
    }

    /// Ends what was tried so far and begins again, with the same session.
    pub(crate) fn restart(&mut self) {
        self.end(Ending::Conflict);
        self.ending = None;
        self.inner.restart(self.shared.session.floor());
    }

    /// It writes from now on; too late if it has read on behind a change.
    fn begin_writing(&mut self) -> Result<()> {
        let begun = self.inner.begin_writing();
        begun.map_err(|stop| self.stopped(stop))
    }

    /// Whether what was read is no longer so. What a program concluded from it need not be true either.
    pub(crate) fn is_doomed(&mut self) -> bool {
        self.inner.is_doomed(&self.shared.cache)
    }

    /// Ends the transaction, once.
    fn end(&mut self, ending: Ending) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(ending);
        if let Some(recorder) = &self.shared.recorder {
            self.record(recorder);
        }
        match ending {
            // What may have happened keeps its slots.
            Ending::Committed | Ending::Free | Ending::Unknown | Ending::Early => {
                self.inner.writes_mut().clear();
            }
            Ending::Conflict | Ending::Aborted => {
                for (allocator, taken) in self.inner.writes_mut().give_back().flatten() {
                    allocator.give_back(taken);
                }
            }
        }
        self.large.clear();
        self.streams.clear();
        self.shared.prefetcher.ended(self.inner.reads());
        self.inner.end(&self.shared.cache);
        self.shared.counters.ended(ending);
    }

    /// Writes down the pages that it used: those of each home in the order in which it first read them, then what it
    /// wrote.
    fn record(&self, recorder: &Recorder) {
        let (reads, writes) = (self.inner.reads(), self.inner.writes());
        let read = reads.homes().flat_map(|home| {
            let pages = reads.pages_read(home);
            pages.map(move |page| (Place { home, page }, Use::Read))
        });
        let written = self.inner.homes().iter().flat_map(|&home| {
            let pages: BTreeSet<_> = writes.pages(home).collect();
            let pages = pages.into_iter();
            pages.map(move |page| (Place { home, page }, Use::Written))
        });
        recorder.record(read.chain(written));
    }

    fn doomed(&self, doomed: Doomed) -> Error {
        if self.shared.requests.is_closed() {
            return Error::closed();
        }
        if let Doomed::WentBack(home) = doomed {
            return self.went_back(home);
        }
        let naming = self.shared.naming();
        let words = match doomed {
            Doomed::Changed(place) => {
                format!("what was read on {} has changed", naming.page(place))
            }
            Doomed::Newer(place) => {
                format!(
                    "{} is newer than an evicted page read before",
                    naming.page(place)
                )
            }
            Doomed::Behind(place) => format!(
                "what was read on {} has changed, so it is too late to write",
                naming.page(place)
            ),
            Doomed::Outrun(home) | Doomed::WentBack(home) => {
                format!(
                    "too much has changed at {} since the last read",
                    naming.home(home)
                )
            }
        };
        Error::new(ErrorKind::Conflict, format!("{words}: run it again"))
    }

    /// A home has gone back, and this transaction reports it.
    fn went_back(&self, home: HomeId) -> Error {
        self.shared.session.take_went_back(home);
        let home = self.shared.naming().home(home);
        Error::went_back(format!(
            "{home} has gone back in time, to an older state of its store: what this program knew of it may be lost"
        ))
    }

    /// Whether a home has gone back since this program was there: it learns so once (rule R9).
    fn check_went_back(&self, home: HomeId) -> Result<()> {
        match self.shared.session.take_went_back(home) {
            true => Err(self.went_back(home)),
            false => Ok(()),
        }
    }

    /// Why it does not go on, for its program.
    fn stopped(&self, stop: Stop) -> Error {
        match stop {
            Stop::Doomed(doomed) => self.doomed(doomed),
            Stop::Gone(reference) => self.gone(&reference),
            Stop::Torn(reference) => self.torn(&reference),
            Stop::NotRun(reference, why) => {
                let object = self.shared.naming().object(&reference);
                Error::invalid(format!("a procedure cannot run on {object}: {why}"))
            }
            Stop::TooManyHomes => Error::new(
                ErrorKind::TooLarge,
                format!("a transaction takes in at most {PARTICIPANTS_MAX} homes"),
            ),
            _ if self.shared.requests.is_closed() => Error::closed(),
            Stop::ReadsTooOld { silent_ms, .. } => Error::new(
                ErrorKind::Conflict,
                format!("what was read {silent_ms} ms ago is no longer followed: run it again"),
            ),
            Stop::HomeSilent { home, silent_ms } => {
                let home = self.shared.naming().home(home);
                Error::unreachable(format!(
                    "{home} was not heard of for {silent_ms} ms: what was read may be older than the session allows"
                ))
            }
            Stop::Miss(place) => {
                let page = self.shared.naming().page(place);
                Error::unreachable(format!("{page} is not here"))
            }
        }
    }

    /// There is no such object.
    fn gone(&self, reference: &Reference) -> Error {
        let name = self.shared.naming().object(reference);
        if self.streams.has(&reference.into()) {
            return Error::invalid(format!(
                "this transaction has streamed object {name}: it can be used after the commit"
            ))
            .about(name);
        }
        Error::new(
            ErrorKind::Gone,
            format!("there is no object {name}, or not any more"),
        )
        .about(name)
    }

    /// A page to which a head led is not at its home.
    fn torn(&self, reference: &Reference) -> Error {
        let name = self.shared.naming().object(reference);
        Error::new(
            ErrorKind::Conflict,
            format!("large object {name} was changed while it was read: run it again"),
        )
        .about(name)
    }

    /// Until when a read, a creation or a call may wait.
    fn fetch_due(&self) -> Instant {
        self.session.fetch_due()
    }

    // --- Rights ---

    /// A segment's rights list. A segment from before there were rights has none: every member may read and write it.
    ///
    /// # Errors
    ///
    /// As [`Transaction::read`], and [`DataDamaged`](crate::ErrorKind::DataDamaged) if the object is no list: then only
    /// operators have rights.
    pub fn rights(&mut self, segment: &Segment) -> Result<Option<RightsList>> {
        block_on(self.rights_async(segment))
    }

    /// As [`Transaction::rights`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::rights`].
    pub async fn rights_async(&mut self, segment: &Segment) -> Result<Option<RightsList>> {
        rights::read(self, segment).await
    }

    /// Sets a segment's rights list. From this transaction's position on, who is not in the list gets nothing newer of
    /// the segment. A list without an admin leaves the segment to operators.
    ///
    /// # Errors
    ///
    /// As [`Transaction::write`], and [`TooLarge`](crate::ErrorKind::TooLarge) if the list has more than 2,048 bytes. The
    /// commit fails with [`NoRight`](crate::ErrorKind::NoRight) if the member is no admin of the segment, and with
    /// [`Invalid`](crate::ErrorKind::Invalid) if the transaction touches several homes.
    pub fn set_rights(&mut self, segment: &Segment, list: &RightsList) -> Result<()> {
        block_on(self.set_rights_async(segment, list))
    }

    /// As [`Transaction::set_rights`].
    ///
    /// # Errors
    ///
    /// As [`Transaction::set_rights`].
    pub async fn set_rights_async(&mut self, segment: &Segment, list: &RightsList) -> Result<()> {
        rights::write(self, segment, list).await
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.end(match self.in_doubt {
            true => Ending::Unknown,
            false => Ending::Aborted,
        });
        self.shared
            .session
            .end(self.inner.take_reads(), &self.shared.cache);
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("session", &self.session)
            .field("homes", &self.inner.homes())
            .finish_non_exhaustive()
    }
}

/// A slot that is reserved for an object, and where. None: somebody else holds it.
type Reserved = Option<(Arc<Allocator>, Reservation)>;

fn terms(session: Session) -> Terms {
    Terms {
        strict: session.strict,
        optimistic: session.optimistic_reads,
        staleness_ms_max: u64::try_from(session.max_staleness.as_millis()).unwrap_or(u64::MAX),
    }
}

fn place_of(reference: &Reference) -> Place {
    Place {
        home: reference.home,
        page: reference.object.page,
    }
}
