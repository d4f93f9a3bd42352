//! A member's program: sessions that run one transaction after the other.

use super::ledger::{Asked, Reading};
use super::transaction::{Act, Transaction};
use super::world::World;
use crate::failure::{Checked, demand};
use crate::time::{Local, NodeNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thorp_cache::Cache;
use thorp_model::{
    CallRequest, CommitId, HomeId, Incarnation, Outcome, Refusal, RequestId, Stamp, Xoshiro256,
};
use thorp_protocol::{Request, Response};
use thorp_session::{
    CommitCall, Committed, Ended, OwnCommits, Step, Stop, Wait, World as CommitWorld,
};

/// Milliseconds that a transaction waits for a page.
const FETCH_MS_MAX: u64 = 1_500;

/// The program of a member.
pub(super) struct Program {
    /// The page cache.
    pub(super) cache: Cache,
    /// Its sessions.
    pub(super) sessions: Vec<Session>,
    /// The incarnation of each home, as its stream began.
    pub(super) incarnations: BTreeMap<HomeId, Incarnation>,
    requests: BTreeMap<RequestId, Waiting>,
    last_request: RequestId,
    own: Own,
}

/// A session.
pub(super) struct Session {
    state: State,
    /// What it waits for is planned under this number.
    wait: u64,
    /// Transactions that ended well.
    pub(super) progress: u64,
    /// How often it has sent commits.
    sends: u64,
    floor: Stamp,
    prng: Xoshiro256,
}

enum State {
    Resting,
    Running(Box<Transaction>),
    /// It waits for outcomes.
    Sent(Box<Transaction>),
    Stopped,
}

/// Who waits for an answer.
#[derive(Clone)]
struct Waiting {
    session: usize,
    /// How often that had sent commits.
    sends: u64,
    /// Of a commit: what is to be entered when it has its id.
    commit: Option<Asked>,
    /// Its id.
    id: Option<CommitId>,
    /// It has gone on before the outcome.
    is_ahead: bool,
}

/// What a program knows of its own commits.
#[derive(Default)]
struct Own {
    open: BTreeSet<CommitId>,
    highest: Stamp,
}

impl OwnCommits for Own {
    fn is_open(&self, id: CommitId) -> bool {
        self.open.contains(&id)
    }

    fn stamp(&self, _: CommitId) -> Stamp {
        self.highest
    }
}

/// What a session wants: requests, and to go on after so many microseconds.
#[derive(Default)]
struct Wish {
    requests: Vec<(Request, bool)>,
    after_us: Option<u64>,
}

impl Wish {
    fn after_ms(ms: u64) -> Self {
        Wish {
            after_us: Some(ms * 1000),
            ..Wish::default()
        }
    }
}

impl Program {
    /// A program with a session for each source of chance.
    pub(super) fn new(sessions: Vec<Xoshiro256>) -> Self {
        let session = |prng| Session {
            state: State::Resting,
            wait: 0,
            progress: 0,
            sends: 0,
            floor: Stamp::default(),
            prng,
        };
        Program {
            cache: Cache::new(usize::MAX),
            sessions: sessions.into_iter().map(session).collect(),
            incarnations: BTreeMap::new(),
            requests: BTreeMap::new(),
            last_request: RequestId(0),
            own: Own::default(),
        }
    }

    /// Whether all have stopped, and no outcome is missing but of these commits.
    pub(super) fn is_at_rest(&self, in_doubt: impl Fn(CommitId) -> bool) -> bool {
        let stopped = |session: usize| {
            let is_stopped = matches!(self.sessions[session].state, State::Stopped);
            is_stopped || self.waits_for(session).any(&in_doubt)
        };
        let mut missing = self.requests.values();
        let is_answered =
            !missing.any(|waiting| waiting.commit.is_some() && !waiting.id.is_some_and(&in_doubt));
        (0..self.sessions.len()).all(stopped) && is_answered
    }

    /// The commits whose outcomes a session waits for.
    pub(super) fn waits_for(&self, session: usize) -> impl Iterator<Item = CommitId> {
        let waiting = self.requests.values();
        let waiting = waiting.filter(move |waiting| waiting.session == session);
        waiting.filter_map(|waiting| waiting.id)
    }

    /// What each session is at.
    pub(super) fn describe(&self) -> String {
        let sessions = self.sessions.iter().map(|session| match &session.state {
            State::Resting => String::from("rests"),
            State::Running(tx) => format!("runs {:?}", tx.todo),
            State::Sent(tx) => format!("waits for {} outcomes", tx.unanswered),
            State::Stopped => String::from("has stopped"),
        });
        sessions.collect::<Vec<_>>().join(", ")
    }
}

/// A commit has got its id.
pub(super) fn named(world: &mut World, no: NodeNo, request: RequestId, id: CommitId) {
    let Some(program) = &mut world.nodes[no.0].program else {
        return;
    };
    let Some(waiting) = program.requests.get_mut(&request) else {
        return;
    };
    waiting.id = Some(id);
    if let Some(asked) = waiting.commit.clone() {
        world.ledger.asked.insert(id, asked);
    }
}

/// A member answers its program.
pub(super) fn answered(world: &mut World, no: NodeNo, request: RequestId, response: Response) {
    let now = world.now;
    let Some(program) = &mut world.nodes[no.0].program else {
        return;
    };
    let Some(waiting) = program.requests.get(&request).cloned() else {
        return;
    };
    if !matches!(response, Response::Shown(_)) {
        program.requests.remove(&request);
    }
    let session = &mut program.sessions[waiting.session];
    match response {
        Response::Shown(id) => {
            program.own.open.insert(id);
            if let Some(waiting) = program.requests.get_mut(&request) {
                waiting.is_ahead = true;
            }
            if waiting.sends == session.sends && matches!(session.state, State::Sent(_)) {
                session.state = State::Resting;
            }
        }
        Response::Outcome(id, outcome, _) => {
            program.own.open.remove(&id);
            if let Outcome::Committed { stamp, .. } = outcome {
                program.own.highest = program.own.highest.max(stamp);
                session.floor = session.floor.max(stamp);
            }
            world.counts.answered(match &outcome {
                Outcome::Committed { .. } => "outcomes: committed",
                Outcome::Refused(Refusal::Lost | Refusal::Forgotten) => "outcomes: lost",
                Outcome::Refused(Refusal::WentBack) => "outcomes: home went back",
                Outcome::Refused(_) => "outcomes: refused",
            });
            if let Outcome::Refused(refusal) = &outcome {
                world.counts.refused(refusal.kind());
            }
            if waiting.is_ahead {
                session.progress += u64::from(matches!(outcome, Outcome::Committed { .. }));
                return;
            }
            if waiting.sends == session.sends {
                session.ended(id, &outcome);
            }
        }
        Response::Busy | Response::NotFetched(_) => session.gives_up(&waiting),
        _ => {}
    }
    session.wait += 1;
    let (wait, session) = (session.wait, waiting.session);
    let pause_us = world.prng.below(3_000);
    world.plan_local(no, now.plus_us(pause_us), Local::Step { session, wait });
}

/// A session goes on: what its program asks the member.
pub(super) fn step(
    world: &mut World,
    no: NodeNo,
    index: usize,
    wait: u64,
) -> Checked<Vec<(RequestId, Request)>> {
    let Some(mut program) = world.node(no).program.take() else {
        return Ok(Vec::new());
    };
    let result = match program.sessions[index].wait == wait {
        true => go_on(world, no, &mut program, index),
        false => Ok(Wish::default()),
    };
    let asked = result.map(|wish| grant(world, no, &mut program, index, wish));
    world.node(no).program = Some(program);
    asked
}

fn grant(
    world: &mut World,
    no: NodeNo,
    program: &mut Program,
    index: usize,
    wish: Wish,
) -> Vec<(RequestId, Request)> {
    let asked = program.sessions[index].asked((no, world.nodes[no.0].life), world.counts.events);
    let mut requests = Vec::new();
    for (request, is_commit) in wish.requests {
        program.last_request = program.last_request.next();
        let waiting = Waiting {
            session: index,
            sends: program.sessions[index].sends,
            commit: asked.clone().filter(|_| is_commit),
            id: None,
            is_ahead: false,
        };
        program.requests.insert(program.last_request, waiting);
        requests.push((program.last_request, request));
    }
    if let Some(us) = wish.after_us {
        let session = &mut program.sessions[index];
        session.wait += 1;
        let (at, wait) = (world.now.plus_us(us), session.wait);
        let session = index;
        world.plan_local(no, at, Local::Step { session, wait });
    }
    requests
}

fn go_on(world: &mut World, no: NodeNo, program: &mut Program, index: usize) -> Checked<Wish> {
    let session = &mut program.sessions[index];
    match std::mem::replace(&mut session.state, State::Resting) {
        State::Stopped => {
            session.state = State::Stopped;
            Ok(Wish::default())
        }
        State::Resting if world.is_closing => {
            session.state = State::Stopped;
            Ok(Wish::default())
        }
        State::Resting => {
            world.counts.transactions += 1;
            session.state = State::Running(Box::new(session.begin(world)));
            Ok(Wish::after_ms(0))
        }
        State::Sent(tx) if tx.unanswered > 0 => {
            session.state = State::Sent(tx);
            Ok(Wish::default())
        }
        State::Running(tx) | State::Sent(tx) => run(world, no, program, index, tx),
    }
}

/// Reads, writes, and commits in the end.
fn run(
    world: &mut World,
    no: NodeNo,
    program: &mut Program,
    index: usize,
    mut tx: Box<Transaction>,
) -> Checked<Wish> {
    while !tx.todo.is_empty() {
        let session = &mut program.sessions[index];
        let acted = tx.act(&program.cache, &program.incarnations, &mut session.prng);
        match acted {
            Ok(()) => world.counts.operations += 1,
            Err(Stop::Miss(place)) => {
                session.state = State::Running(tx);
                return Ok(Wish {
                    requests: vec![(Request::Fetch(place), false)],
                    after_us: Some(FETCH_MS_MAX * 1000),
                });
            }
            Err(_) => return Ok(doomed(world, &mut program.sessions[index])),
        }
        if session.prng.percent(30) {
            let us = session.prng.below(20_000);
            session.state = State::Running(tx);
            return Ok(Wish {
                after_us: Some(us),
                ..Wish::default()
            });
        }
    }
    commit(world, no, program, index, tx)
}

fn doomed(world: &mut World, session: &mut Session) -> Wish {
    world.counts.doomed += 1;
    session.rest(world.plan.think_ms_max)
}

fn commit(
    world: &mut World,
    no: NodeNo,
    program: &mut Program,
    index: usize,
    mut tx: Box<Transaction>,
) -> Checked<Wish> {
    let commit_world = CommitWorld {
        cache: &program.cache,
        now: world.nodes[no.0].now(world.now).mono,
        own: &program.own,
    };
    let step = match tx.commit.step(&mut tx.core, &commit_world) {
        Ok(step) => step,
        Err(_) => return Ok(doomed(world, &mut program.sessions[index])),
    };
    let session = &mut program.sessions[index];
    match step {
        Step::Committed(committed) => {
            session.progress += 1;
            if let Committed::Locally { stamp, .. } = committed {
                world.counts.read_only += 1;
                let stamp = stamp.unwrap_or_default();
                session.floor = session.floor.max(stamp);
                reading(world, no, &program.cache, &mut tx, stamp)?;
            }
            Ok(program.sessions[index].rest(world.plan.think_ms_max))
        }
        Step::Wait(wait) => {
            session.state = State::Running(tx);
            Ok(waits(wait))
        }
        Step::Stage(_) => Ok(Wish::after_ms(0)),
        Step::Send(call) => Ok(session.send(tx, vec![call])),
        Step::Validate(calls) => Ok(session.send(tx, calls)),
    }
}

fn waits(wait: Wait) -> Wish {
    match wait {
        Wait::OwnOutcome => Wish::after_ms(5),
        Wait::Reach(_) => Wish::after_ms(20),
        Wait::Pause(ms) => Wish::after_ms(u64::from(ms)),
        Wait::Promises(lagging) => {
            let at_least = lagging.stamp;
            let call = |home| Request::Call {
                home,
                request: CallRequest::Watermark { at_least },
            };
            let requests = lagging.homes.into_iter().map(|home| (call(home), false));
            Wish {
                requests: requests.collect(),
                after_us: Some(100_000),
            }
        }
    }
}

/// It has committed without a message: what it saw is in the histories that its member follows, as of its evidence.
fn reading(
    world: &mut World,
    no: NodeNo,
    cache: &Cache,
    tx: &mut Transaction,
    stamp: Stamp,
) -> Checked {
    let mut seen = Vec::new();
    for ((home, object), value) in &tx.content.seen {
        let (Ok(evidence), Some(branch)) = (
            tx.core.evidence(cache, *home),
            world.streams.followed(no, *home),
        ) else {
            continue;
        };
        let is = world.branch(branch).oracle.object(*object, evidence);
        demand!(
            is == *value,
            "reads",
            "{} saw {object} of home {home} as {value:?}; in {branch:?} as of {evidence} it is {is:?}",
            world.nodes[no.0].name
        );
        seen.push((branch, *object, evidence));
    }
    world.ledger.readings.push(Reading { seen, stamp });
    Ok(())
}

impl Session {
    fn begin(&mut self, world: &World) -> Transaction {
        let objects = world.plan.objects();
        let homes: Vec<HomeId> = world.plan.home_ids().collect();
        let home = homes[self.prng.index(homes.len())];
        let is_joint = self.prng.percent(world.plan.joint);
        let only_reads = self.prng.percent(30);
        let mut todo = VecDeque::new();
        let mut chosen = BTreeSet::new();
        for of in homes {
            if of != home && !is_joint {
                continue;
            }
            for _ in 0..self.prng.range(1, 3) {
                let object = objects[self.prng.index(objects.len())];
                let act = match self.prng.below(100) {
                    _ if only_reads => Act::Read,
                    0..30 => Act::Read,
                    30..75 => Act::Write,
                    75..90 => Act::Turn,
                    _ => Act::TurnUnaware,
                };
                if chosen.insert((of, object)) {
                    todo.push_back((of, object, act));
                }
            }
        }
        let early = self.prng.percent(world.plan.early);
        let strict = self.prng.percent(20);
        Transaction::new(todo, early, strict, self.floor)
    }

    fn rest(&mut self, think_ms_max: u64) -> Wish {
        self.state = State::Resting;
        Wish::after_ms(self.prng.below(think_ms_max + 1))
    }

    fn send(&mut self, mut tx: Box<Transaction>, calls: Vec<CommitCall>) -> Wish {
        self.sends += 1;
        tx.unanswered = calls.len();
        let early = tx.early && calls.len() == 1;
        let requests = calls.into_iter().map(|call| {
            let request = Request::Commit {
                parts: call.parts,
                histories: call.histories,
                depends_on: call.depends_on,
                after: call.after,
                early,
            };
            (request, true)
        });
        self.state = State::Sent(tx);
        Wish {
            requests: requests.collect(),
            after_us: None,
        }
    }

    /// What is entered of the commit that it sends.
    fn asked(&self, process: (NodeNo, u32), event: u64) -> Option<Asked> {
        let State::Sent(tx) = &self.state else {
            return None;
        };
        let seen = tx.content.seen.keys();
        Some(Asked {
            process,
            content: tx.content.clone(),
            homes: seen.map(|(home, _)| *home).collect(),
            event,
        })
    }

    /// Its member cannot do what it asked for.
    fn gives_up(&mut self, waiting: &Waiting) {
        let is_own = match self.state {
            State::Running(_) => waiting.commit.is_none(),
            State::Sent(_) => waiting.commit.is_some() && waiting.sends == self.sends,
            State::Resting | State::Stopped => false,
        };
        if is_own {
            self.state = State::Resting;
        }
    }

    /// An outcome that it waits for has come.
    fn ended(&mut self, id: CommitId, outcome: &Outcome) {
        let mut tx = match std::mem::replace(&mut self.state, State::Resting) {
            State::Sent(tx) => tx,
            other => {
                self.state = other;
                return;
            }
        };
        let ended = match outcome {
            Outcome::Committed { position, stamp } => Ended::Committed {
                id,
                position: (position.0 > 0).then_some(*position),
                stamp: *stamp,
            },
            Outcome::Refused(Refusal::Busy { retry_after_ms }) => Ended::Busy(*retry_after_ms),
            Outcome::Refused(_) => return,
        };
        tx.unanswered = tx.unanswered.saturating_sub(1);
        tx.commit.ended(ended);
        self.state = State::Sent(tx);
    }
}
