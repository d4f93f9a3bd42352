//! A member's program: transactions driven by hand over the real page cache.

use super::names::{self, Homes};
use super::node::HOME;
use super::text;
use std::collections::{BTreeMap, BTreeSet};
use thorp_cache::{Cache, Doomed, ReadError, ReadSet};
use thorp_model::snapshot::{Lagging, ReadPoint};
use thorp_model::{
    CommitId, Content, HomeId, ObjectId, Outcome, Overflow, PageId, PageWrites, Part, Place,
    Publish, RequestId, Slot, Stamp, WriteOp, snapshot,
};
use thorp_protocol::Request;

/// The program of one member.
pub(crate) struct Program {
    pub(crate) cache: Cache,
    pub(crate) homes: Homes,
    transactions: BTreeMap<String, Transaction>,
    pub(crate) waiting: BTreeMap<RequestId, Waiting>,
    last_ticket: RequestId,
    /// How commits ended, in the order in which they were asked for.
    pub(crate) commits: Vec<Option<Outcome>>,
    /// Where large values were staged, by token.
    pub(crate) staged: BTreeMap<u64, Overflow>,
    /// The last answer to a call.
    pub(crate) called: String,
    watermarks: BTreeMap<HomeId, Stamp>,
    /// Commits that are shown and not answered (rule 14).
    ahead_of: BTreeSet<CommitId>,
    /// Transactions that commit as soon as something is answered.
    patient: Vec<String>,
    /// Where its session has been (rule 5).
    pub(crate) floor: Stamp,
}

/// A transaction, open or just ended.
#[derive(Default)]
pub(crate) struct Transaction {
    reads: ReadSet,
    writes: BTreeMap<PageId, BTreeMap<Slot, WriteOp>>,
    /// The last value read.
    saw: String,
    /// Homes were asked to promise more, for it to stand (rule 5).
    promised: bool,
    ended: Option<String>,
}

/// What an answer is waited for.
#[derive(Clone)]
pub(crate) enum Waiting {
    /// A page, to read an object of it then.
    Read(String, ObjectId),
    /// A page, and no more.
    Fetch(PageId),
    /// The outcome of a commit, by its place in the list, of a transaction.
    Commit(usize, String),
    /// That a home promises more, to commit a transaction then.
    Promise(String),
    /// Anything else. A staged value has a token.
    Call(Option<u64>),
}

/// How a transaction commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// As most do.
    Plainly,
    /// Its homes validate it, also if it only read.
    Strictly,
    /// It goes on before it is answered (rule 14).
    Early,
    /// As most do, and again with each answer that it has to wait for.
    OnceAnswered,
}

/// What came of a step of a transaction.
pub(crate) enum Did {
    /// Only this.
    Said(String),
    /// This page has to be fetched first.
    Misses(PageId),
    /// These homes have to promise so much first.
    Lags(Lagging),
    /// This has to be asked of the member.
    Asks(Request),
}

impl Program {
    pub(crate) fn new(homes: Homes) -> Self {
        Program {
            homes,
            cache: Cache::new(usize::MAX),
            transactions: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last_ticket: RequestId(0),
            commits: Vec::new(),
            staged: BTreeMap::new(),
            called: String::new(),
            watermarks: BTreeMap::new(),
            ahead_of: BTreeSet::new(),
            patient: Vec::new(),
            floor: Stamp::default(),
        }
    }

    /// Gives a ticket for something that is waited for.
    pub(crate) fn ticket(&mut self, waiting: Waiting) -> RequestId {
        self.last_ticket = self.last_ticket.next();
        self.waiting.insert(self.last_ticket, waiting);
        self.last_ticket
    }

    /// Takes a publication into the cache; says what it is.
    pub(crate) fn publish(&mut self, publish: &Publish) -> String {
        let mut said = vec![format!("at {}", publish.position)];
        let known = self.watermarks.entry(publish.home).or_default();
        // Steps and images bring their own: that is not told with each of them.
        let is_news = publish.touched.is_empty() && publish.images.is_empty();
        if is_news && publish.watermark != *known {
            *known = publish.watermark;
            said.push(format!("watermark {}", names::stamp(publish.watermark)));
        }
        if let Some(missed) = &publish.missed {
            let missed: Vec<String> = missed.iter().map(|page| names::page(*page)).collect();
            said.push(match &missed[..] {
                [] => String::from("the stream was broken"),
                missed => format!("the stream was broken, missed {}", missed.join(" ")),
            });
        }
        for (page, slots) in &publish.touched {
            said.push(format!("touched {}", text::slot_set(*page, slots)));
        }
        for (page, slots) in &publish.overlay.shown {
            said.push(format!("own {}", text::slot_set(*page, slots)));
        }
        for page in &publish.evicted {
            said.push(format!("evicted {}", names::page(*page)));
        }
        for (page, image) in &publish.images {
            said.push(match image {
                Some(image) => text::image(*page, image),
                None => format!("{} dropped", names::page(*page)),
            });
        }
        self.cache.publish(publish);
        said.join(", ")
    }

    /// The open transaction of a name; begins one if there is none.
    fn open(&mut self, name: &str) -> &mut Transaction {
        let known = self.transactions.entry(String::from(name)).or_default();
        if known.ended.is_some() {
            *known = Transaction::default();
        }
        known
    }

    /// What became of a transaction.
    pub(crate) fn state(&self, name: &str) -> String {
        match self.transactions.get(name).map(|t| &t.ended) {
            None => String::from("none"),
            Some(None) => String::from("open"),
            Some(Some(ended)) => ended.clone(),
        }
    }

    /// The last value that a transaction read.
    pub(crate) fn saw(&self, name: &str) -> String {
        let transaction = self.transactions.get(name);
        transaction.map_or_else(String::new, |t| t.saw.clone())
    }

    /// Reads an object, all of it.
    pub(crate) fn read(&mut self, name: &str, object: ObjectId) -> Did {
        self.open(name);
        let Some(transaction) = self.transactions.get_mut(name) else {
            return Did::Said(String::from("has no transaction"));
        };
        match transaction.read(&self.cache, &self.homes, object) {
            Ok(value) => {
                transaction.saw.clone_from(&value);
                Did::Said(format!("reads {} = {value}", names::object(object)))
            }
            Err(ReadError::Miss(place)) => Did::Misses(place.page),
            Err(ReadError::Doomed(why)) => Did::Said(transaction.doom(why)),
        }
    }

    /// A transaction that goes on as of before what changes beneath it, until it writes (rule 5).
    pub(crate) fn only_reads(&mut self, name: &str) {
        self.open(name).reads.only_reads();
    }

    /// Writes, as nobody else sees yet; or says that it cannot.
    pub(crate) fn write(&mut self, name: &str, object: ObjectId, op: WriteOp) -> Option<String> {
        let transaction = self.open(name);
        if let Err(why) = transaction.reads.writes() {
            return Some(transaction.doom(why));
        }
        let of_page = transaction.writes.entry(object.page).or_default();
        of_page.insert(object.slot, op);
        None
    }

    /// Forgets a transaction.
    pub(crate) fn give_up(&mut self, name: &str) {
        self.transactions.remove(name);
    }

    /// Commits: with evidence for all that was read, or not at all.
    pub(crate) fn commit(&mut self, name: &str, how: How) -> Did {
        self.open(name);
        let (Some(transaction), cache) = (self.transactions.get_mut(name), &self.cache) else {
            return Did::Said(String::from("has no transaction"));
        };
        let parts = match transaction.parts(cache, &self.homes) {
            Ok(parts) => parts,
            Err(why) => return Did::Said(transaction.doom(why)),
        };
        let writes = parts.iter().any(|part| !part.writes.is_empty());
        let seen = parts.iter().map(|part| transaction.reads.stamp(part.home));
        let floor = match is_of_own_session(name) {
            true => Stamp::default(),
            false => self.floor,
        };
        let after = seen.fold(floor, Stamp::max);
        let mut own = transaction.reads.built_on().iter();
        if !writes && how != How::Strictly && own.any(|(_, id)| self.ahead_of.contains(id)) {
            if how == How::OnceAnswered {
                self.patient.push(String::from(name));
            }
            return Did::Said(String::from("waits for what it has read"));
        }
        if !writes && how != How::Strictly {
            match transaction.stand(cache, floor) {
                Ok((at, stamp)) => {
                    let ended = format!("committed at {at} without a message");
                    if !is_of_own_session(name) {
                        self.floor = self.floor.max(stamp);
                    }
                    transaction.ended = Some(ended.clone());
                    return Did::Said(format!("has {ended}"));
                }
                Err(Ok(lagging)) if !transaction.promised => {
                    transaction.promised = true;
                    return Did::Lags(lagging);
                }
                // It is validated at its homes.
                Err(Ok(_)) => {}
                Err(Err(why)) => return Did::Said(transaction.doom(why)),
            }
        }
        transaction.ended = Some(String::from("waits for its outcome"));
        Did::Asks(Request::Commit {
            parts,
            depends_on: transaction.reads.built_on().to_vec(),
            after,
            early: how == How::Early,
        })
    }

    /// It goes on without the outcome of a commit.
    pub(crate) fn goes_ahead(&mut self, name: &str, id: CommitId) {
        self.ahead_of.insert(id);
        if let Some(transaction) = self.transactions.get_mut(name) {
            transaction.ended = Some(String::from("shown"));
        }
    }

    /// Who has waited for an answer.
    pub(crate) fn take_patient(&mut self) -> Vec<String> {
        std::mem::take(&mut self.patient)
    }

    /// Takes the outcome of a commit.
    pub(crate) fn ended(&mut self, at: usize, name: &str, id: CommitId, outcome: &Outcome) {
        self.ahead_of.remove(&id);
        if let Some(commit) = self.commits.get_mut(at) {
            *commit = Some(outcome.clone());
        }
        if let Outcome::Committed { stamp, .. } = outcome {
            self.floor = self.floor.max(*stamp);
        }
        if let Some(transaction) = self.transactions.get_mut(name) {
            transaction.ended = Some(text::outcome(outcome));
        }
    }
}

impl Transaction {
    /// What it did at each of its homes; at the first one if it did nothing.
    fn parts(&mut self, cache: &Cache, homes: &Homes) -> Result<Vec<Part>, Doomed> {
        let written = self.writes.keys().map(|page| homes.of(page.segment));
        let mut touched: BTreeSet<HomeId> = self.reads.homes().chain(written).collect();
        if touched.is_empty() {
            touched.insert(HOME);
        }
        let mut parts = Vec::new();
        for home in touched {
            let writes = self.writes.iter();
            let here = writes.filter(|(page, _)| homes.of(page.segment) == home);
            parts.push(Part {
                home,
                evidence: self.reads.evidence(cache, home)?,
                reads: self.reads.reads(home).collect(),
                writes: here
                    .map(|(page, slots)| PageWrites {
                        page: *page,
                        slots: slots.iter().map(|(slot, op)| (*slot, op.clone())).collect(),
                    })
                    .collect(),
            });
        }
        Ok(parts)
    }

    /// Where it stands, if it only read: position and stamp; or which homes lag.
    fn stand(
        &mut self,
        cache: &Cache,
        floor: Stamp,
    ) -> Result<(String, Stamp), Result<Lagging, Doomed>> {
        let homes: Vec<HomeId> = self.reads.homes().collect();
        let sights = homes.iter().map(|home| self.reads.read_point(cache, *home));
        let sights: Vec<ReadPoint> = sights.collect::<Result<_, _>>().map_err(Err)?;
        let stamp = snapshot::place(&sights, floor).map_err(Ok)?;
        let at = match &sights[..] {
            [] => cache.position(HOME).to_string(),
            [one] => one.position.to_string(),
            several => {
                let each = several
                    .iter()
                    .map(|s| format!("H{}:{}", s.home, s.position));
                each.collect::<Vec<_>>().join(" ")
            }
        };
        Ok((at, stamp))
    }

    fn doom(&mut self, why: Doomed) -> String {
        let place = |place: Place| names::page(place.page);
        let why = match why {
            Doomed::Changed(p) => format!("doomed: what it read on {} has changed", place(p)),
            Doomed::Newer(p) => format!("doomed: {} is newer than its evidence", place(p)),
            Doomed::Behind(p) => format!(
                "doomed: what it read on {} has changed, and it would write",
                place(p)
            ),
            Doomed::Outrun(_) => String::from("doomed: outrun"),
        };
        self.ended = Some(why.clone());
        format!("is {why}")
    }

    fn read(
        &mut self,
        cache: &Cache,
        homes: &Homes,
        object: ObjectId,
    ) -> Result<String, ReadError> {
        let place = homes.place(object.page);
        let found = self.reads.read(cache, place, object.slot)?;
        let overflow = match found.content {
            Content::Free => return Ok(String::from("nothing")),
            Content::Hole => return Ok(String::from("a hole!")),
            Content::Value(bytes) => return Ok(names::value_of(object.page, object.slot, bytes)),
            Content::Overflow(overflow) => overflow,
        };
        let mut bytes = Vec::new();
        for page in overflow.page_numbers() {
            let segment = object.page.segment;
            let page = PageId { segment, page };
            let place = homes.place(page);
            match self.reads.read(cache, place, Slot(0))?.content {
                Content::Value(chunk) => bytes.extend_from_slice(chunk),
                _ => return Ok(format!("torn: nothing in {}", names::page(page))),
            }
        }
        Ok(names::value(&bytes))
    }
}

/// A transaction with a capital name is of a session of its own: it knows nothing of where the
/// others of its program have been.
fn is_of_own_session(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}
