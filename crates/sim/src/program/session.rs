//! A session: one transaction or errand after the other, each waiting for its answers.

use super::action::{self, Operation, Places};
use super::errand::{Errand, Large};
use super::guest::Guest;
use super::tools::{Stop, Tools};
use super::transaction::{Positions, Transaction};
use super::value::{Known, Maker};
use crate::checks::watches::Watches;
use crate::failure::Checked;
use crate::freshness::FreshnessByHome;
use crate::history::{Asked, History};
use crate::oracle::Oracle;
use crate::time::At;
use crate::village::Habits;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use thorp_cache::Cache;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::snapshot::Lagging;
use thorp_model::{
    CommitId, HomeId, MemberId, Millis, ObjectId, PageNo, Position, Registration, SegmentId, Stamp,
    Xoshiro256,
};
use thorp_protocol::{Request, Response};
use thorp_session::{CommitCall, Terms};

/// Transactions that each session has to end well, once the village is healed.
pub const PROGRESS_MIN: u64 = 3;

/// Of a hundred times between transactions, those at which a session goes on where its neighbours are.
const HEARS_PERCENT: u64 = 15;

/// What a session is at.
pub enum Phase {
    /// It thinks.
    Resting,
    /// It runs a transaction.
    Running(Box<Transaction>),
    /// It waits for a page.
    Fetching(Box<Transaction>),
    /// It waits for homes to promise more, one after the other (rule 5).
    Promising(Box<Transaction>, Lagging),
    /// It waits for the outcome of a commit.
    Committing(Box<Waiting>),
    /// It waits for the answer to a call.
    Calling(Errand),
    /// It takes part in the transaction of the session of this number.
    Visiting(u32),
    /// It has stopped.
    Stopped,
}

/// A commit that was asked for.
pub struct Waiting {
    /// What was asked.
    pub asked: Rc<Asked>,
    /// Where its session had been when the transaction began, and its guests at their homes.
    pub floors: Positions,
    pub(super) learned: BTreeMap<HomeId, Vec<(ObjectId, Known)>>,
    /// The transaction, if it may go on: to be sent again to a home that is busy, or to other homes that validate it.
    pub(super) transaction: Option<Box<Transaction>>,
    /// What other homes are to validate yet; none if the commit is no validation of one home among several.
    pub(super) validations: Option<VecDeque<CommitCall>>,
}

impl Waiting {
    /// What the session of a home learns if it is committed.
    pub fn learned(&self, home: HomeId) -> &[(ObjectId, Known)] {
        self.learned.get(&home).map_or(&[], Vec::as_slice)
    }

    /// Whether one home is asked to validate what a transaction over several has read there.
    pub fn is_validation(&self) -> bool {
        self.validations.is_some()
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
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
    /// The highest stamp at which it stood (rule 5).
    pub stamp_floor: Stamp,
    /// Transactions that ended well.
    pub progress: u64,
    pub(super) prng: Xoshiro256,
    pub(super) maker: Maker,
    pub(super) places: Places,
    pub(super) known: BTreeMap<ObjectId, Known>,
    pub(super) todo: VecDeque<Errand>,
    pub(super) registration: Option<Registration>,
    pub(super) large: Option<Large>,
    pub(super) staged: BTreeMap<(SegmentId, PageNo), Arc<[u8]>>,
    /// How its last commit ended.
    pub(super) earlier: Option<(CommitId, bool)>,
    /// What its last commit wrote without having read it, if it went on before that was answered. Whatever comes last
    /// there stays, and no home could tell which was meant to.
    written_blind: Vec<ObjectId>,
    /// Other sessions that take part in its transaction.
    pub guests: Vec<Guest>,
    pub(super) tokens: u64,
    pub(super) visits: u64,
    /// Which session it is, and how often it has asked to commit.
    pub(super) asker: (u32, u64),
}

/// What a session needs to know of the world.
pub struct Context<'a> {
    /// The time.
    pub now: At,
    /// What each home has made durable, for checks.
    pub oracles: &'a BTreeMap<HomeId, Oracle>,
    /// The time on the member's monotone clock.
    pub mono: Millis,
    /// What programs do here.
    pub habits: &'a Habits,
    /// Which member it is.
    pub member: MemberId,
    /// What its member's program watches.
    pub watches: Option<&'a Watches>,
    /// What its member last heard of each home.
    pub news: &'a FreshnessByHome,
    /// What became of this program's commits.
    pub history: &'a History,
    /// The homes whose streams are live at its member.
    pub live: BTreeSet<HomeId>,
    /// What was acknowledged to anybody so far.
    pub acknowledged: &'a BTreeMap<HomeId, Position>,
    /// Whether the faults are over: nobody loses patience any more.
    pub healed: bool,
    /// Whether its member is to commit a write soon.
    pub awaited: bool,
    /// Whether its member has done that, and lets others.
    pub steps_aside: bool,
    /// Whether to stop after what it is at.
    pub closing: bool,
}

/// What a session wants done.
pub enum Wish {
    /// To go on after so many microseconds.
    Rest(u64),
    /// An answer to this; after so many milliseconds it has no patience left.
    Request(Request, Option<u64>),
    /// The same for a transaction's commit.
    Commit(Box<Transaction>, Rc<Asked>, Request, Option<u64>),
    /// The same for what one home is to validate of a transaction over several.
    Validate(Box<Transaction>, Rc<Asked>, Request),
    /// To take other sessions along in the transaction that it has begun.
    Invite,
    /// To have committed a transaction that only read, as of these positions and this stamp.
    Read(Box<Transaction>, Positions, Stamp),
    /// To have committed one that its homes have validated.
    Validated(Box<Transaction>),
    /// To have ended a transaction without a commit.
    Ended(Box<Transaction>, &'static str),
    /// Many answers, none of which it waits for.
    Flood(Vec<Request>),
    /// No longer the answer it waits for.
    Forget,
    /// Nothing.
    Nothing,
}

impl Session {
    /// A session that has done nothing yet.
    pub fn new(home: HomeId, number: u32, strict: bool, prng: Xoshiro256) -> Self {
        Session {
            home,
            strict,
            phase: Phase::Resting,
            wait: 0,
            floor: Position(0),
            stamp_floor: Stamp::default(),
            progress: 0,
            prng,
            maker: Maker::new(number),
            places: Places::default(),
            known: BTreeMap::new(),
            todo: VecDeque::from([Errand::Plaza]),
            registration: None,
            large: None,
            staged: BTreeMap::new(),
            earlier: None,
            written_blind: Vec::new(),
            guests: Vec::new(),
            tokens: u64::from(number) << 32,
            visits: 0,
            asker: (number, 0),
        }
    }

    /// Between transactions it now and then takes up a program's work where the other sessions of the
    /// program have got to, also at other homes: it stands no earlier than they.
    pub fn hear_from_neighbours(&mut self, floors: impl Iterator<Item = Stamp>) {
        if matches!(self.phase, Phase::Resting) && self.prng.percent(HEARS_PERCENT) {
            self.stamp_floor = floors.fold(self.stamp_floor, Stamp::max);
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
            // It is validated at its home then.
            Phase::Promising(transaction, _) => {
                self.phase = Phase::Running(transaction);
                Ok(Wish::Forget)
            }
            Phase::Calling(errand) => {
                self.todo.push_front(errand);
                Ok(Wish::Forget)
            }
            phase @ (Phase::Visiting(_) | Phase::Stopped) => {
                self.phase = phase;
                Ok(Wish::Nothing)
            }
        }
    }

    fn begin(&mut self, context: &Context<'_>) -> Wish {
        // Whoever has shown its progress steps aside for the slower ones.
        if context.steps_aside || context.healed && self.progress >= PROGRESS_MIN {
            return Wish::Rest(200_000);
        }
        self.plan_errands(context);
        if let Some(errand) = self.todo.pop_front() {
            return self.set_out(errand, context);
        }
        let habits = context.habits;
        let read_only = self.prng.percent(habits.read_only) && !context.awaited;
        let (actions, is_over) = self.draw_actions(read_only, habits, context.now);
        let actions = actions.into_iter().map(|action| (self.home, action));
        let terms = Terms {
            strict: self.strict,
            optimistic: false,
            staleness_ms_max: habits.staleness_ms_max,
        };
        let begins = (terms, self.stamp_floor);
        let mut transaction = Transaction::new(self.home, begins, actions.collect(), context.now);
        transaction.acknowledged = context.acknowledged.clone();
        transaction.floors.insert(self.home, self.floor);
        transaction.news = context.news.clone();
        if !context.healed {
            // What it writes over may be shown no more before it asks.
            let slow = if is_over { 50 } else { habits.slow };
            transaction.slow = self.prng.percent(slow);
            transaction.given_up = self.prng.percent(habits.given_up);
        }
        self.phase = Phase::Running(Box::new(transaction));
        if self.prng.percent(habits.joint) {
            return Wish::Invite;
        }
        Wish::Rest(self.prng.below(300))
    }

    /// What its next transaction does at its home, and whether that writes over what is not answered yet.
    pub(super) fn draw_actions(
        &mut self,
        mut read_only: bool,
        habits: &Habits,
        now: At,
    ) -> (VecDeque<Operation>, bool) {
        self.places.left_behind = left_behind(habits, now);
        let mut actions = VecDeque::new();
        let overflow = self.large.as_ref().and_then(|large| large.overflow);
        if let (Some(overflow), Some(segment)) = (overflow, self.places.plaza) {
            read_only = false;
            let object = self.draw_object(habits, segment);
            actions.push_back(Operation::Large(object, overflow));
            self.large = None;
        }
        let over = self.draw_written_over(habits);
        match over {
            Some(object) => actions.push_back(Operation::BlindWrite(object)),
            None => actions.extend(action::draw(
                &mut self.prng,
                habits,
                &self.places,
                &self.known,
                read_only,
            )),
        }
        (actions, over.is_some())
    }

    /// An object that it has just written without looking, and has not heard of yet.
    fn draw_written_over(&mut self, habits: &Habits) -> Option<ObjectId> {
        let written = std::mem::take(&mut self.written_blind);
        let is_over = !written.is_empty() && self.prng.percent(habits.over);
        self.prng.pick(&written).copied().filter(|_| is_over)
    }

    fn draw_object(&mut self, habits: &Habits, segment: SegmentId) -> ObjectId {
        let page = u64::from(self.places.left_behind) + self.prng.range(1, u64::from(habits.pages));
        let slot = self.prng.below(u64::from(habits.slots));
        ObjectId {
            page: thorp_model::PageId {
                segment,
                page: PageNo(page as u32),
            },
            slot: thorp_model::Slot(slot as u16),
        }
    }

    // --- Transactions ---

    fn run(
        &mut self,
        mut transaction: Box<Transaction>,
        cache: &Cache,
        context: &Context<'_>,
    ) -> Checked<Wish> {
        let Some((home, action)) = transaction.actions.front().cloned() else {
            return self.finish(transaction, cache, context);
        };
        let guest = self.guests.iter().find(|guest| guest.home == home);
        let (known, staged) = match guest {
            Some(guest) => (&guest.known, &guest.staged),
            None => (&self.known, &self.staged),
        };
        let mut tools = Tools {
            cache,
            prng: &mut self.prng,
            maker: &mut self.maker,
            known,
            habits: context.habits,
            staged,
            oracle: &context.oracles[&home],
        };
        match transaction.act(home, &action, &mut tools) {
            Ok(()) => {}
            Err(Stop::Wrong(failure)) => return Err(failure),
            Err(Stop::Client(thorp_session::Stop::Miss(place))) => {
                transaction.fetches += 1;
                if transaction.fetches > 60 {
                    return Ok(Wish::Ended(transaction, "too many misses"));
                }
                self.phase = Phase::Fetching(transaction);
                return Ok(Wish::Request(Request::Fetch(place), self.patience(context)));
            }
            Err(Stop::Client(_)) => return Ok(Wish::Ended(transaction, "doomed")),
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
        // What only read may have read on behind a change: it commits as of then.
        if !transaction.commit.is_begun() && transaction.evidence(cache).is_err() {
            return Ok(Wish::Ended(transaction, "doomed"));
        }
        if transaction.given_up {
            return Ok(Wish::Ended(transaction, "given up"));
        }
        self.commit(transaction, cache, context)
    }

    pub(super) fn patience(&mut self, context: &Context<'_>) -> Option<u64> {
        let impatient = !context.healed && self.prng.percent(25);
        impatient.then(|| self.prng.range(200, 5_000))
    }

    /// An answer has come.
    pub fn answered(&mut self, answer: Response, context: &Context<'_>) -> Wish {
        let rest = self.prng.below(context.habits.think_ms_max * 1000);
        match (std::mem::replace(&mut self.phase, Phase::Resting), answer) {
            (Phase::Fetching(transaction), Response::Fetched(_)) => {
                self.phase = Phase::Running(transaction);
                // What was fetched may be gone again when the program looks.
                Wish::Rest(self.prng.below(200))
            }
            (Phase::Fetching(transaction), Response::NotFetched(refusal)) => {
                use thorp_model::FetchRefusal::{NoSuchSegment, NotCarried};
                if matches!(refusal, NoSuchSegment | NotCarried) {
                    self.leave_passing();
                }
                Wish::Ended(transaction, "no page")
            }
            (Phase::Fetching(transaction), _) => Wish::Ended(transaction, "busy"),
            (Phase::Promising(transaction, lagging), _) => self.ask_promise(transaction, lagging),
            (Phase::Calling(errand), Response::Called(result)) => self.called(errand, result),
            (Phase::Calling(errand), _) => {
                self.todo.push_front(errand);
                Wish::Rest(rest)
            }
            // What was shown is taken out before.
            (Phase::Committing(waiting), Response::Outcome(id, outcome, _)) => {
                self.commit_ended(*waiting, id, &outcome, rest)
            }
            (_, _) => Wish::Rest(rest),
        }
    }

    /// The transaction of the commit that it waits for.
    pub fn keep_for_resending(&mut self, transaction: Box<Transaction>) {
        if let Phase::Committing(waiting) = &mut self.phase {
            waiting.transaction = Some(transaction);
        }
    }

    /// What it has asked for is shown: it goes on, and hears of the outcome later (rule 14).
    pub fn go_ahead(&mut self) -> Option<Box<Waiting>> {
        match std::mem::replace(&mut self.phase, Phase::Resting) {
            Phase::Committing(waiting) => {
                // It builds on what it has written as if that stood.
                self.learn(waiting.learned(self.home));
                let asked = &waiting.asked;
                let blind = asked
                    .writes
                    .keys()
                    .filter(|key| key.0 == self.home && !asked.seen.contains_key(key));
                self.written_blind = blind.map(|(_, object)| *object).collect();
                Some(waiting)
            }
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// The commit that it waits for, with what it knew when it asked.
    pub fn waiting(&self) -> Option<&Waiting> {
        match &self.phase {
            Phase::Committing(waiting) => Some(waiting),
            _ => None,
        }
    }

    /// The watch whose promise it waits for, by its segment and number.
    pub fn fencing(&self) -> Option<(SegmentId, u64)> {
        match &self.phase {
            Phase::Calling(Errand::Fence(segment, number)) => Some((*segment, *number)),
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
            Phase::Promising(..) => "waiting for promises".into(),
            Phase::Visiting(host) => format!("taking part in the transaction of session {host}"),
            Phase::Committing(waiting) => format!("committing {:?}", waiting.asked.parts),
            Phase::Calling(errand) => format!("calling {errand:?}"),
            Phase::Stopped => "stopped".into(),
        }
    }
}

/// Milliseconds in which programs fill a page, where pages fill up.
const PAGE_FULL_MS: u64 = 3_000;

/// How many of the shared pages programs have left behind them: full ones, in which nothing has to be moved any more. So
/// far that no page is beyond the first that were granted.
fn left_behind(habits: &Habits, now: At) -> u32 {
    if !habits.full_pages {
        return 0;
    }
    let pages = now.ms_since(At(0)) / PAGE_FULL_MS;
    (pages % u64::from(EXTENT_PAGES - 1 - habits.pages)) as u32
}
