//! A member's program: transactions driven by hand over the real page cache.

use super::names::{self, Homes};
use super::node::HOME;
use super::text;
use std::collections::{BTreeMap, BTreeSet};
use thorp_cache::{Cache, Doomed, ReadSet};
use thorp_model::snapshot::Lagging;
use thorp_model::{
    CommitId, Content, Fence, HomeId, MemberId, Millis, ObjectId, Outcome, Overflow, PageId, Place,
    Publish, RequestId, Slot, Stamp, WriteOp,
};
use thorp_protocol::Request;
use thorp_session::{
    Commit, Committed, Ended, ObjectAt, OwnCommits, Step, Stop, Terms, Wait, World,
};

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
    /// The updates that its member has put on the list of rejected ones.
    pub(crate) rejected: Vec<String>,
    /// The locks that it has got, the last one last (rule C5).
    pub(crate) locks: Vec<(HomeId, Fence)>,
    watermarks: BTreeMap<HomeId, Stamp>,
    /// Commits that are shown and not answered (rule 14).
    ahead_of: BTreeSet<CommitId>,
    /// Transactions that commit as soon as something is answered.
    patient: Vec<String>,
    /// Where its session has been (rule 5).
    pub(crate) floor: Stamp,
    /// How often it was told to forget a home that has gone back (rule R9).
    pub(crate) went_back: u32,
    /// The homes whose streams have begun here, by name.
    pub(crate) begun: BTreeSet<String>,
    /// Those of which a site told it when their streams had not begun.
    pub(crate) lost: Vec<String>,
}

/// A transaction, open or just ended.
pub(crate) struct Transaction {
    core: thorp_session::Transaction<()>,
    commit: Commit,
    /// The last value read.
    saw: String,
    ended: Option<String>,
}

/// What a program knows of its own commits.
struct Own<'a> {
    /// Those that are not answered.
    ahead_of: &'a BTreeSet<CommitId>,
    /// Where the transaction began: it is placed above what it reads by the stamps of pages alone.
    floor: Stamp,
}

impl OwnCommits for Own<'_> {
    fn is_open(&self, id: CommitId) -> bool {
        self.ahead_of.contains(&id)
    }

    fn stamp(&self, _: CommitId) -> Stamp {
        self.floor
    }
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
            rejected: Vec::new(),
            went_back: 0,
            begun: BTreeSet::new(),
            lost: Vec::new(),
            locks: Vec::new(),
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
        let floor = match is_of_own_session(name) {
            true => Stamp::default(),
            false => self.floor,
        };
        let known = self.transactions.entry(String::from(name));
        let known = known.or_insert_with(|| Transaction::new(floor));
        if known.ended.is_some() {
            *known = Transaction::new(floor);
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
            Err(Stop::Miss(place)) => Did::Misses(place.page),
            Err(stop) => Did::Said(transaction.stopped(&stop)),
        }
    }

    /// A transaction that goes on as of before what changes beneath it, until it writes (rule 5).
    pub(crate) fn only_reads(&mut self, name: &str) {
        self.open(name).core.only_reads();
    }

    /// A transaction that stands where the cache does now, as a visit does (rule C12). False: nothing is cached.
    pub(crate) fn stands(&mut self, name: &str) -> bool {
        self.open(name);
        let (homes, cache) = (self.homes.0.clone(), &self.cache);
        let transaction = self.transactions.get_mut(name);
        transaction.is_some_and(|transaction| transaction.core.stand_at(cache, homes))
    }

    /// Writes, as nobody else sees yet; or says that it cannot.
    pub(crate) fn write(&mut self, name: &str, object: ObjectId, op: WriteOp) -> Option<String> {
        let home = self.homes.of(object.page.segment);
        let transaction = self.open(name);
        let written = transaction.core.prepare(ObjectAt { home, object }, op);
        written.err().map(|stop| transaction.stopped(&stop))
    }

    /// A transaction runs under the locks that the program has got.
    pub(crate) fn runs_under_its_locks(&mut self, name: &str) {
        let locks = self.locks.clone();
        let transaction = self.open(name);
        for (home, fence) in locks {
            transaction.core.run_under(home, fence);
        }
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
        let is_strict = how == How::Strictly;
        transaction.core.change_terms(terms(is_strict));
        // Who goes on early never waits: its member keeps it back if that is needed.
        let nothing = BTreeSet::new();
        let own = Own {
            ahead_of: match how {
                How::Early => &nothing,
                _ => &self.ahead_of,
            },
            floor: transaction.core.floor(),
        };
        let world = World {
            cache,
            now: Millis::default(),
            own: &own,
        };
        match transaction.step(&world, how == How::Early) {
            Ok(Next::Committed(at, stamp)) => {
                if !is_of_own_session(name) {
                    self.floor = self.floor.max(stamp);
                }
                Did::Said(format!("has committed at {at} without a message"))
            }
            Ok(Next::AwaitsOwn) => {
                if how == How::OnceAnswered {
                    self.patient.push(String::from(name));
                }
                Did::Said(String::from("waits for what it has read"))
            }
            Ok(Next::Lags(lagging)) => Did::Lags(lagging),
            Ok(Next::Asks(request)) => Did::Asks(request),
            Err(stop) => Did::Said(transaction.stopped(&stop)),
        }
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
    fn new(floor: Stamp) -> Self {
        Transaction {
            core: thorp_session::Transaction::begin(terms(true), ReadSet::new(), floor),
            commit: Commit::new(),
            saw: String::new(),
            ended: None,
        }
    }

    /// Takes it on to its end, as the client does, as far as it goes without waiting.
    fn step(&mut self, world: &World<'_>, early: bool) -> Result<Next, Stop> {
        loop {
            match self.commit.step(&mut self.core, world)? {
                Step::Committed(committed) => {
                    let at = self.evidence(world.cache)?;
                    self.ended = Some(format!("committed at {at} without a message"));
                    let stamp = match committed {
                        Committed::Locally { stamp, .. } => stamp.unwrap_or_default(),
                        _ => Stamp::default(),
                    };
                    return Ok(Next::Committed(at, stamp));
                }
                Step::Wait(Wait::OwnOutcome) => return Ok(Next::AwaitsOwn),
                Step::Wait(Wait::Promises(lagging)) => {
                    // In the order in which they were read.
                    let homes = self.core.reads().homes();
                    let lags = homes.filter(|home| lagging.homes.contains(home));
                    return Ok(Next::Lags(Lagging {
                        homes: lags.collect(),
                        ..lagging
                    }));
                }
                Step::Wait(Wait::Reach(_) | Wait::Pause(_)) | Step::Stage(_) => {}
                // In stories homes vote at once for what only read.
                Step::Validate(calls) => {
                    for call in calls {
                        self.commit.ended(Ended::Committed {
                            id: NOBODY,
                            position: None,
                            stamp: Stamp {
                                clock: call.after.clock.saturating_add(1),
                                ..call.after
                            },
                        });
                    }
                }
                Step::Send(call) => {
                    self.ended = Some(String::from("waits for its outcome"));
                    return Ok(Next::Asks(Request::Commit {
                        parts: call.parts,
                        histories: call.histories,
                        depends_on: call.depends_on,
                        after: call.after,
                        early,
                    }));
                }
            }
        }
    }

    /// The positions at which all that it read is current.
    fn evidence(&mut self, cache: &Cache) -> Result<String, Stop> {
        let homes = self.core.homes().to_vec();
        let mut at = Vec::new();
        for home in &homes {
            at.push(self.core.evidence(cache, *home)?);
        }
        Ok(match &at[..] {
            [] => cache.position(HOME).to_string(),
            [one] => one.to_string(),
            several => {
                let each = homes.iter().zip(several);
                let each = each.map(|(home, position)| format!("H{home}:{position}"));
                each.collect::<Vec<_>>().join(" ")
            }
        })
    }

    fn stopped(&mut self, stop: &Stop) -> String {
        match stop {
            Stop::Doomed(why) => self.doom(*why),
            other => panic!("{other}"),
        }
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
            Doomed::WentBack(_) => String::from("doomed: its home has gone back"),
        };
        self.ended = Some(why.clone());
        format!("is {why}")
    }

    fn read(&mut self, cache: &Cache, homes: &Homes, object: ObjectId) -> Result<String, Stop> {
        let place = homes.place(object.page);
        let found = self.core.read_slot(cache, place, object.slot)?;
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
            match self.core.read_slot(cache, place, Slot(0))?.content {
                Content::Value(chunk) => bytes.extend_from_slice(chunk),
                _ => return Ok(format!("torn: nothing in {}", names::page(page))),
            }
        }
        Ok(names::value(&bytes))
    }
}

/// What a transaction came to.
enum Next {
    /// It is committed as of these positions, at this stamp.
    Committed(String, Stamp),
    /// It has read what is not answered.
    AwaitsOwn,
    /// These homes have to promise so much first.
    Lags(Lagging),
    /// This has to be asked of the member.
    Asks(Request),
}

/// A commit of no member.
const NOBODY: CommitId = CommitId {
    member: MemberId(0),
    sequence: 0,
};

/// A story knows no clock: nothing is too old.
fn terms(strict: bool) -> Terms {
    Terms {
        strict,
        optimistic: false,
        staleness_ms_max: u64::MAX,
    }
}

/// A transaction with a capital name is of a session of its own: it knows nothing of where the
/// others of its program have been.
fn is_of_own_session(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}
