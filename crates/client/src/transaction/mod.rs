//! Transactions.

mod commit;
mod early;
mod homes;
mod large;
mod read;
mod roots;
mod scan;
mod send;
mod stand;
mod typed;
mod write;
mod writes;

pub(crate) use send::ended;
pub(crate) use typed::{decode, encode};

use crate::link::{Ending, Link};
use crate::member::Member;
use crate::trace::{Recorder, Use};
use crate::{Error, ErrorKind, Reference, Result, Session};
use homes::Homes;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use thorp_cache::{Doomed, ReadSet};
use thorp_model::limits::PARTICIPANTS_MAX;
use thorp_model::{HomeId, ObjectId, Place, Stamp};
use writes::Writes;

/// A transaction: all of it happens, at one moment, or nothing. It sees one state of each home, with its own writes over
/// it; that these fit together is known when it commits. Dropped without [`Transaction::commit`], it has no effect.
///
/// It may read and write segments of several homes (at most [`PARTICIPANTS_MAX`]). If it wrote, each of them votes for its part; what
/// is in the way of a vote whose outcome a home does not know yet is refused as a [`Conflict`](crate::ErrorKind::Conflict),
/// and an error tells [whose](Error::home) it is.
///
/// All methods fail with [`Conflict`](crate::ErrorKind::Conflict) once the transaction is known to be hopeless. Where
/// [`Member::transact`] does what you want, it is the shorter way: it runs the transaction again.
///
/// While it only reads, what others change beneath it is no conflict: it goes on with what was there before, as long as the
/// cache keeps that, and commits as of then (its session's [`max_staleness`](Session::max_staleness) is the limit). Its first
/// write comes too late then, and is a conflict; the next attempt of [`Member::transact`] knows that it writes.
///
/// ```no_run
/// # use thorp_client::{Member, Result, Session};
/// # fn example(member: &Member) -> Result<()> {
/// let shop = member.open("thorp://alps/shop")?;
/// let mut tx = member.begin(Session::new());
/// let note = tx.create(&shop, "hello")?;
/// assert_eq!(tx.read(&note)?, b"hello");
/// tx.commit()?;
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    link: Arc<Link>,
    // Keeps it running, too.
    pub(crate) member: Member,
    session: Session,
    /// Where its program had been when it began: it stands no lower (rule 5).
    floor: Stamp,
    reads: ReadSet,
    /// It writes, or an earlier try did: what changes beneath it dooms it.
    is_writer: bool,
    writes: Writes,
    /// Large objects that were read, put together.
    large: HashMap<ObjectAt, Vec<u8>>,
    homes: Homes,
    /// It is sent and not answered: what is not waited for goes on.
    in_doubt: bool,
    ending: Option<Ending>,
}

impl Transaction {
    pub(crate) fn begin(member: Member, session: Session) -> Self {
        let link = Arc::clone(member.link());
        let (reads, floor) = link.begin();
        let mut transaction = Transaction {
            floor,
            reads,
            is_writer: false,
            link,
            member,
            session,
            writes: Writes::default(),
            large: HashMap::new(),
            homes: Homes::default(),
            in_doubt: false,
            ending: None,
        };
        transaction.begin_reading();
        transaction
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
        self.floor = self.link.floor();
        self.begin_reading();
    }

    /// Until it writes it reads on as of before what changes beneath it (rule 5). If an earlier try wrote, this one will, and
    /// had better hear at once that it is in vain; so will one that its homes validate.
    fn begin_reading(&mut self) {
        if !self.is_writer && !self.session.strict {
            self.reads.only_reads();
        }
    }

    /// It writes from now on; too late if it has read on behind a change.
    fn begin_writing(&mut self) -> Result<()> {
        self.is_writer = true;
        self.reads.writes().map_err(|doomed| self.doomed(doomed))
    }

    /// Whether what was read is no longer so. What a program concluded from it need not be true either.
    pub(crate) fn is_doomed(&mut self) -> bool {
        let mut homes = self.homes.all().iter();
        let is_doomed = homes.any(|home| self.reads.evidence(&self.link.cache, *home).is_err());
        is_doomed || self.reads.behind().is_some()
    }

    /// Ends the transaction, once.
    fn end(&mut self, ending: Ending) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(ending);
        if let Some(recorder) = &self.link.recorder {
            self.record(recorder);
        }
        match ending {
            // What may have happened keeps its slots.
            Ending::Committed | Ending::Free | Ending::Unknown | Ending::Early => {
                self.writes.clear();
            }
            Ending::Conflict | Ending::Aborted => self.writes.give_back(),
        }
        self.large.clear();
        self.homes.clear();
        self.tell_what_was_read();
        self.reads.finish(&self.link.cache);
        self.link.counters.ended(ending);
    }

    /// Writes down the pages that it used: those of each home in the order in which it first read them, then what it wrote.
    fn record(&self, recorder: &Recorder) {
        let (reads, writes) = (&self.reads, &self.writes);
        let read = reads.homes().flat_map(|home| {
            let pages = reads.pages_read(home);
            pages.map(move |page| (Place { home, page }, Use::Read))
        });
        let written = self.homes.all().iter().flat_map(|&home| {
            let pages: BTreeSet<_> = writes.pages(home).collect();
            let pages = pages.into_iter();
            pages.map(move |page| (Place { home, page }, Use::Written))
        });
        recorder.record(read.chain(written));
    }

    /// What was fetched ahead has been of use, or will not have been.
    fn tell_what_was_read(&self) {
        let reads = &self.reads;
        let pages = |home| {
            let pages = reads.reads(home);
            pages.map(move |(page, _)| Place { home, page })
        };
        let read = reads.homes().flat_map(pages);
        let is_read = |place| reads.image(place).is_some();
        self.link.ahead.ended(read, is_read);
    }

    /// Something of a home is read or written.
    fn enter(&mut self, home: HomeId) -> Result<()> {
        if self.homes.enter(home) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooLarge,
            format!("a transaction takes in at most {PARTICIPANTS_MAX} homes"),
        ))
    }

    fn doomed(&self, doomed: Doomed) -> Error {
        if self.link.is_closed() {
            return Error::closed();
        }
        doomed.into()
    }

    /// Until when a read, a creation or a call may wait.
    fn fetch_due(&self) -> Instant {
        Instant::now() + self.session.fetch_timeout
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.end(match self.in_doubt {
            true => Ending::Unknown,
            false => Ending::Aborted,
        });
        self.link.end(std::mem::take(&mut self.reads));
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("session", &self.session)
            .field("homes", &self.homes.all())
            .finish_non_exhaustive()
    }
}

/// An object of one of several homes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ObjectAt {
    home: HomeId,
    object: ObjectId,
}

impl From<&Reference> for ObjectAt {
    fn from(reference: &Reference) -> Self {
        ObjectAt {
            home: reference.home,
            object: reference.object,
        }
    }
}

fn place_of(reference: &Reference) -> Place {
    Place {
        home: reference.home,
        page: reference.object.page,
    }
}

fn gone(object: ObjectId) -> Error {
    Error::gone(object)
}

/// What a page's absence at its home means to a transaction that was told of it by a head.
fn torn(object: ObjectId) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("large object {object} was changed while it was read: run it again"),
    )
}
