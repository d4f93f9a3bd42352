//! A session: one transaction or errand after the other, each waiting for its answers.

use super::action::{self, Action, Places};
use super::transaction::{Stop, Tools, Transaction};
use super::value::Maker;
use crate::failure::Checked;
use crate::history::Asked;
use crate::prng::Prng;
use crate::time::At;
use crate::truth::{Object, Truth};
use crate::village::Habits;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use thorp_cache::{Cache, ReadError};
use thorp_core::change::Blob;
use thorp_core::door::{Answer, Ask};
use thorp_core::ids::{
    Generation, HomeId, MemberId, Millis, ObjectId, PageNo, Position, Registration, SegmentId,
};
use thorp_core::image::Overflow;
use thorp_core::limits::OVERFLOW_CHUNK_BYTES;
use thorp_core::message::{CallError, InvalidCommit, Outcome, Part, Refusal, Request, Response};

/// Transactions that each session has to end well, once the village is healed.
pub const PROGRESS_MIN: u64 = 3;

/// What a session knows of an object from an earlier transaction.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its generation.
    pub generation: Generation,
    /// Bytes of its value; none if there was no object.
    pub length: Option<usize>,
}

impl Known {
    /// What is remembered of an object.
    pub fn of(object: &Object) -> Self {
        Known {
            generation: object.generation,
            length: object.value.as_ref().map(|value| value.len()),
        }
    }
}

/// What a session is at.
pub enum Phase {
    /// It thinks.
    Resting,
    /// It runs a transaction.
    Running(Box<Transaction>),
    /// It waits for a page.
    Fetching(Box<Transaction>),
    /// It waits for the outcome of a commit.
    Committing(Box<Waiting>),
    /// It waits for the answer to a call.
    Calling(Errand),
    /// It has stopped.
    Stopped,
}

/// A commit that was asked for.
pub struct Waiting {
    /// What was asked.
    pub asked: Rc<Asked>,
    learned: Vec<(ObjectId, Known)>,
}

/// Something that a session asks of the home besides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Errand {
    /// Open the plaza.
    Plaza,
    /// Open the bank.
    Bank,
    /// Open a segment that somebody may remove.
    Passing,
    /// Remove it.
    Remove,
    /// Reserve pages of a segment.
    Reserve(SegmentId),
    /// Learn the member's registration.
    Register,
    /// Stage the next piece of a large value.
    Stage,
    /// Forget the staged value.
    Unstage,
    /// Ask for far too much at once.
    Flood,
    /// Watch the plaza, or no longer.
    Watch(bool),
}

/// A large value on its way.
struct Large {
    token: u64,
    value: Arc<[u8]>,
    /// Chunks that the home has.
    have: u32,
    overflow: Option<Overflow>,
}

/// A session.
pub struct Session {
    /// The home that it works with.
    pub home: HomeId,
    /// Whether it always validates at the home.
    pub strict: bool,
    /// What it is at.
    pub phase: Phase,
    /// Counts what it waited for.
    pub wait: u64,
    /// The highest position it has seen or was told (rule 5).
    pub floor: Position,
    /// Transactions that ended well.
    pub progress: u64,
    prng: Prng,
    maker: Maker,
    places: Places,
    known: BTreeMap<ObjectId, Known>,
    todo: VecDeque<Errand>,
    registration: Option<Registration>,
    large: Option<Large>,
    staged: BTreeMap<(SegmentId, PageNo), Arc<[u8]>>,
    tokens: u64,
    visits: u64,
}

/// What a session needs to know of the world.
pub struct Context<'a> {
    /// The time.
    pub now: At,
    /// The truth of the session's home, for checks.
    pub truth: &'a Truth,
    /// The time on the member's monotone clock.
    pub mono: Millis,
    /// What programs do here.
    pub habits: &'a Habits,
    /// Which member it is.
    pub member: MemberId,
    /// What was acknowledged to anybody so far.
    pub acknowledged: &'a BTreeMap<HomeId, Position>,
    /// Whether the faults are over: nobody loses patience any more.
    pub healed: bool,
    /// Whether to stop after what it is at.
    pub closing: bool,
}

/// What a session wants done.
pub enum Wish {
    /// To go on after so many microseconds.
    Rest(u64),
    /// An answer to this; after so many milliseconds it has no patience left.
    Ask(Ask, Option<u64>),
    /// The same for a transaction's commit.
    Commit(Box<Transaction>, Rc<Asked>, Ask, Option<u64>),
    /// To have committed a read-only transaction here.
    ReadOnly(Box<Transaction>, Position),
    /// To have ended a transaction without a commit.
    Ended(Box<Transaction>, &'static str),
    /// Many answers, none of which it waits for.
    Flood(Vec<Ask>),
    /// No longer the answer it waits for.
    Forget,
    /// Nothing.
    Nothing,
}

impl Session {
    /// A session that has done nothing yet.
    pub fn new(home: HomeId, number: u32, strict: bool, prng: Prng) -> Self {
        Session {
            home,
            strict,
            phase: Phase::Resting,
            wait: 0,
            floor: Position(0),
            progress: 0,
            prng,
            maker: Maker::new(number),
            places: Places::default(),
            known: BTreeMap::new(),
            todo: VecDeque::from([Errand::Plaza]),
            registration: None,
            large: None,
            staged: BTreeMap::new(),
            tokens: u64::from(number) << 32,
            visits: 0,
        }
    }

    /// Goes on by itself.
    pub fn go_on(&mut self, cache: &Cache, context: &Context<'_>) -> Checked<Wish> {
        match std::mem::replace(&mut self.phase, Phase::Resting) {
            Phase::Resting if context.closing => {
                self.phase = Phase::Stopped;
                Ok(Wish::Nothing)
            }
            Phase::Resting => Ok(self.begin(context)),
            Phase::Running(transaction) => self.run(transaction, cache, context),
            // Whoever is called while waiting has lost patience.
            Phase::Fetching(_) | Phase::Committing(_) => Ok(Wish::Forget),
            Phase::Calling(errand) => {
                self.todo.push_front(errand);
                Ok(Wish::Forget)
            }
            Phase::Stopped => {
                self.phase = Phase::Stopped;
                Ok(Wish::Nothing)
            }
        }
    }

    fn begin(&mut self, context: &Context<'_>) -> Wish {
        // Whoever has shown its progress steps aside for the slower ones.
        if context.healed && self.progress >= PROGRESS_MIN {
            return Wish::Rest(200_000);
        }
        self.plan_errands(context);
        if let Some(errand) = self.todo.pop_front() {
            return self.set_out(errand, context);
        }
        let habits = context.habits;
        let mut read_only = self.prng.percent(habits.read_only);
        let mut actions = VecDeque::new();
        let overflow = self.large.as_ref().and_then(|large| large.overflow);
        if let (Some(overflow), Some(segment)) = (overflow, self.places.plaza) {
            read_only = false;
            let object = self.draw_object(habits, segment);
            actions.push_back(Action::Large(object, overflow));
            self.large = None;
        }
        actions.extend(action::draw(
            &mut self.prng,
            habits,
            &self.places,
            &self.known,
            read_only,
        ));
        let mut transaction = Transaction::new(self.home, actions, context.now);
        transaction.acknowledged = context.acknowledged.clone();
        if !context.healed {
            transaction.slow = self.prng.percent(habits.slow);
            transaction.given_up = self.prng.percent(habits.given_up);
        }
        self.phase = Phase::Running(Box::new(transaction));
        Wish::Rest(self.prng.below(300))
    }

    fn draw_object(&mut self, habits: &Habits, segment: SegmentId) -> ObjectId {
        let page = self.prng.range(1, u64::from(habits.pages));
        let slot = self.prng.below(u64::from(habits.slots));
        ObjectId {
            page: thorp_core::ids::PageId {
                segment,
                page: PageNo(page as u32),
            },
            slot: thorp_core::ids::Slot(slot as u16),
        }
    }

    /// Now and then a session does something else than transactions.
    fn plan_errands(&mut self, context: &Context<'_>) {
        if !self.todo.is_empty() || context.healed {
            return;
        }
        let habits = context.habits;
        if self.places.passing.is_some() {
            self.visits += 1;
            if self.visits > 3 {
                self.visits = 0;
                if self.prng.percent(60) {
                    self.todo.push_back(Errand::Remove);
                }
                self.leave_passing();
            }
        } else if self.prng.per_mille(habits.passing) {
            self.todo.push_back(Errand::Passing);
        }
        if self.large.is_none() && self.prng.percent(habits.large) {
            self.begin_large();
        }
        if self.prng.per_mille(habits.flood) {
            self.todo.push_back(Errand::Flood);
        }
        if self.prng.per_mille(10) {
            let on = self.prng.percent(60);
            self.todo.push_back(Errand::Watch(on));
        }
    }

    fn leave_passing(&mut self) {
        if let Some(segment) = self.places.passing.take() {
            self.known
                .retain(|object, _| object.page.segment != segment);
        }
    }

    fn begin_large(&mut self) {
        if self.registration.is_none() {
            self.todo.push_back(Errand::Register);
        }
        self.tokens += 1;
        let bytes = self.prng.range(100, 3 * OVERFLOW_CHUNK_BYTES as u64);
        self.large = Some(Large {
            token: self.tokens,
            value: self.maker.value_of(0, bytes as usize).into(),
            have: 0,
            overflow: None,
        });
        self.todo.push_back(Errand::Stage);
    }

    // --- Errands ---

    fn set_out(&mut self, errand: Errand, context: &Context<'_>) -> Wish {
        let open = |path: &str| Request::Open {
            path: path.into(),
            create: true,
        };
        let request = match &errand {
            Errand::Plaza => open("plaza"),
            Errand::Bank => open("bank"),
            Errand::Passing => open("passing"),
            Errand::Remove => Request::Remove {
                path: "passing".into(),
            },
            Errand::Reserve(segment) => Request::Reserve { segment: *segment },
            Errand::Register => Request::Register,
            Errand::Stage => match self.next_piece() {
                Some(request) => request,
                None => return Wish::Rest(0),
            },
            Errand::Unstage => match (self.registration, self.large.take()) {
                (Some(registration), Some(large)) => Request::Unstage {
                    registration,
                    token: large.token,
                },
                _ => return Wish::Rest(0),
            },
            Errand::Flood => return Wish::Flood(self.flood()),
            Errand::Watch(on) => match self.places.plaza {
                Some(segment) => {
                    let (home, on) = (self.home, *on);
                    return Wish::Flood(vec![Ask::Watch { home, segment, on }]);
                }
                None => return Wish::Rest(0),
            },
        };
        self.phase = Phase::Calling(errand);
        let patience = self.patience(context);
        let home = self.home;
        Wish::Ask(Ask::Call { home, request }, patience)
    }

    fn flood(&mut self) -> Vec<Ask> {
        let home = self.home;
        let list = Request::List {
            prefix: String::new(),
            after: String::new(),
        };
        let segment = self.places.plaza.unwrap_or(SegmentId(1));
        let page = |page: u32| thorp_core::ids::PageId {
            segment,
            page: PageNo(page),
        };
        if self.prng.percent(75) {
            let request = list;
            return (0..300)
                .map(|_| Ask::Call {
                    home,
                    request: request.clone(),
                })
                .collect();
        }
        let places = (0..1100).map(|n| thorp_core::ids::Place {
            home,
            page: page(1000 + n),
        });
        places.map(Ask::Fetch).collect()
    }

    fn next_piece(&mut self) -> Option<Request> {
        let (large, registration, segment) =
            (self.large.as_ref()?, self.registration?, self.places.plaza?);
        let chunks = large.value.chunks(OVERFLOW_CHUNK_BYTES);
        let count = 1 + self.prng.below(2) as usize;
        let chunks = chunks.skip(large.have as usize).take(count);
        Some(Request::Stage {
            segment,
            registration,
            token: large.token,
            bytes: large.value.len() as u64,
            index: large.have,
            chunks: chunks.map(Blob::from).collect(),
        })
    }

    fn called(&mut self, errand: Errand, result: Result<Response, CallError>) -> Wish {
        match (errand, result) {
            (Errand::Plaza, Ok(Response::Segment(info))) => {
                self.places.plaza = Some(info.id);
                self.todo.push_back(Errand::Reserve(info.id));
                self.todo.push_back(Errand::Bank);
            }
            (Errand::Bank, Ok(Response::Segment(info))) => {
                self.places.bank = Some(info.id);
                self.todo.push_back(Errand::Reserve(info.id));
            }
            (Errand::Passing, Ok(Response::Segment(info))) => {
                self.places.passing = Some(info.id);
                self.todo.push_back(Errand::Reserve(info.id));
            }
            (Errand::Reserve(segment), Ok(Response::Extent { first, .. })) => {
                if Some(segment) == self.places.plaza {
                    self.places.reserved = Some(first);
                }
            }
            (Errand::Register, Ok(Response::Registered(registration))) => {
                self.registration = Some(registration);
            }
            (Errand::Stage, Ok(Response::Staged(overflow))) => self.staged(overflow),
            (Errand::Remove, Ok(Response::Removed)) | (Errand::Unstage, Ok(_)) => {}
            (Errand::Reserve(segment), Err(CallError::NoSuchSegment)) => {
                if Some(segment) == self.places.passing {
                    self.leave_passing();
                }
            }
            (Errand::Stage, Err(CallError::NotRegistered | CallError::Invalid)) => {
                self.large = None;
                self.registration = None;
            }
            (Errand::Stage, Err(CallError::TooMany)) => self.todo.push_front(Errand::Unstage),
            (errand, _) => {
                // The home has no room or too much to do: again, a little later.
                self.todo.push_front(errand);
                return Wish::Rest(self.prng.range(50_000, 300_000));
            }
        }
        Wish::Rest(self.prng.below(20_000))
    }

    fn staged(&mut self, overflow: Overflow) {
        let Some(large) = &mut self.large else {
            return;
        };
        let chunks = large.value.chunks(OVERFLOW_CHUNK_BYTES).count() as u32;
        // The answer does not tell how much of it was new: count what was sent.
        large.have = (large.have + 1).min(chunks);
        let key = (self.places.plaza.unwrap_or_default(), overflow.first);
        self.staged.insert(key, large.value.clone());
        if large.have < chunks {
            self.todo.push_front(Errand::Stage);
        } else {
            large.overflow = Some(overflow);
        }
    }

    /// The values that this session has staged, by segment and first page.
    pub fn staged_values(&self) -> &BTreeMap<(SegmentId, PageNo), Arc<[u8]>> {
        &self.staged
    }

    // --- Transactions ---

    fn run(
        &mut self,
        mut transaction: Box<Transaction>,
        cache: &Cache,
        context: &Context<'_>,
    ) -> Checked<Wish> {
        let Some(action) = transaction.actions.front().cloned() else {
            return self.finish(transaction, cache, context);
        };
        let mut tools = Tools {
            cache,
            prng: &mut self.prng,
            maker: &mut self.maker,
            known: &self.known,
            habits: context.habits,
            staged: &self.staged,
            truth: context.truth,
        };
        match transaction.act(&action, &mut tools) {
            Ok(()) => {}
            Err(Stop::Wrong(failure)) => return Err(failure),
            Err(Stop::Read(ReadError::Doomed(_)) | Stop::Gone) => {
                return Ok(Wish::Ended(transaction, "doomed"));
            }
            Err(Stop::Read(ReadError::Miss(place))) => {
                transaction.fetches += 1;
                if transaction.fetches > 60 {
                    return Ok(Wish::Ended(transaction, "too many misses"));
                }
                self.phase = Phase::Fetching(transaction);
                return Ok(Wish::Ask(Ask::Fetch(place), self.patience(context)));
            }
        }
        transaction.actions.pop_front();
        let pause = if transaction.slow {
            self.prng.below(context.habits.dawdle_ms_max * 1000)
        } else {
            self.prng.below(300)
        };
        self.phase = Phase::Running(transaction);
        Ok(Wish::Rest(pause))
    }

    fn finish(
        &mut self,
        mut transaction: Box<Transaction>,
        cache: &Cache,
        context: &Context<'_>,
    ) -> Checked<Wish> {
        let Ok(evidence) = transaction.reads.evidence(cache, self.home) else {
            return Ok(Wish::Ended(transaction, "doomed"));
        };
        if transaction.given_up {
            return Ok(Wish::Ended(transaction, "given up"));
        }
        if transaction.is_read_only() && !self.strict {
            let heard = cache.heard(self.home).unwrap_or_default();
            if context.mono.since(heard) > context.habits.staleness_ms_max {
                return Ok(Wish::Ended(transaction, "no news"));
            }
            return Ok(Wish::ReadOnly(transaction, evidence));
        }
        let part = transaction.part(evidence);
        let wrong = !context.healed && self.prng.per_mille(context.habits.wrong);
        let part = if wrong { self.spoil(part) } else { part };
        let asked = Rc::new(Asked {
            member: context.member,
            parts: vec![part],
            seen: transaction.seen.clone(),
            acknowledged: transaction.acknowledged.clone(),
            wrong,
        });
        let ask = Ask::Commit {
            parts: asked.parts.clone(),
            builds_on: Vec::new(),
        };
        let waiting = Waiting {
            asked: asked.clone(),
            learned: transaction.learned(),
        };
        self.phase = Phase::Committing(Box::new(waiting));
        let patience = self.patience(context);
        Ok(Wish::Commit(transaction, asked, ask, patience))
    }

    /// Makes a request that no right program would make.
    fn spoil(&mut self, mut part: Part) -> Part {
        match self.prng.below(4) {
            0 => part.evidence = Position(part.evidence.0 + 1_000_000),
            1 => {
                let again = part.writes.clone();
                part.writes.extend(again);
            }
            2 => part
                .writes
                .iter_mut()
                .for_each(|writes| writes.page.segment = SegmentId(9_999)),
            _ => part
                .writes
                .iter_mut()
                .for_each(|writes| writes.page.page.0 |= PageNo::OVERFLOW_FIRST.0),
        }
        if part.writes.is_empty() {
            part.evidence = Position(part.evidence.0 + 1_000_000);
        }
        part
    }

    fn patience(&mut self, context: &Context<'_>) -> Option<u64> {
        let impatient = !context.healed && self.prng.percent(25);
        impatient.then(|| self.prng.range(200, 5_000))
    }

    /// An answer has come.
    pub fn answered(&mut self, answer: Answer, context: &Context<'_>) -> Wish {
        let rest = self.prng.below(context.habits.think_ms_max * 1000);
        match (std::mem::replace(&mut self.phase, Phase::Resting), answer) {
            (Phase::Fetching(transaction), Answer::Fetched) => {
                self.phase = Phase::Running(transaction);
                // What was fetched may be gone again when the program looks.
                Wish::Rest(self.prng.below(200))
            }
            (Phase::Fetching(transaction), Answer::NotFetched(refusal)) => {
                if refusal == thorp_core::message::FetchRefusal::NoSuchSegment {
                    self.leave_passing();
                }
                Wish::Ended(transaction, "no page")
            }
            (Phase::Fetching(transaction), _) => Wish::Ended(transaction, "busy"),
            (Phase::Calling(errand), Answer::Called(result)) => self.called(errand, result),
            (Phase::Calling(errand), _) => {
                self.todo.push_front(errand);
                Wish::Rest(rest)
            }
            (Phase::Committing(waiting), Answer::Outcome(_, outcome)) => {
                self.outcome(&waiting, &outcome);
                Wish::Rest(rest)
            }
            (_, _) => Wish::Rest(rest),
        }
    }

    fn outcome(&mut self, waiting: &Waiting, outcome: &Outcome) {
        match outcome {
            Outcome::Committed { position, .. } => {
                self.floor = self.floor.max(*position);
                self.progress += 1;
                self.learn(&waiting.learned);
            }
            Outcome::Refused(Refusal::Conflict { object }) => {
                self.known.remove(object);
            }
            Outcome::Refused(Refusal::Invalid { reason }) => match reason {
                InvalidCommit::NoSuchSegment => self.leave_passing(),
                InvalidCommit::Generation { object, .. } | InvalidCommit::Patch { object } => {
                    self.known.remove(object);
                }
                InvalidCommit::NotStaged => self.registration = None,
                _ => {}
            },
            Outcome::Refused(_) => {}
        }
    }

    /// A read-only transaction has committed without a message.
    pub fn read_only_done(&mut self, transaction: &Transaction, evidence: Position) {
        self.floor = self.floor.max(evidence);
        self.progress += 1;
        self.learn(&transaction.learned());
    }

    fn learn(&mut self, learned: &[(ObjectId, Known)]) {
        self.known.extend(learned.iter().copied());
        while self.known.len() > 40 {
            self.known.pop_first();
        }
    }

    /// The asked commit that it waits for.
    pub fn committing(&self) -> Option<&Rc<Asked>> {
        match &self.phase {
            Phase::Committing(waiting) => Some(&waiting.asked),
            _ => None,
        }
    }

    /// Whether it has stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped)
    }

    /// What it is at, for people.
    pub fn describe(&self) -> String {
        match &self.phase {
            Phase::Resting => "resting".into(),
            Phase::Running(_) => "running".into(),
            Phase::Fetching(transaction) => format!("fetching for {:?}", transaction.actions),
            Phase::Committing(waiting) => format!("committing {:?}", waiting.asked.parts),
            Phase::Calling(errand) => format!("calling {errand:?}"),
            Phase::Stopped => "stopped".into(),
        }
    }
}
