//! What programs do: their sessions ask members, and go on with the answers.

use super::ledger::Reading;
use super::program::{Program, Session, State, Waiting, Wish};
use super::transaction::Transaction;
use super::world::World;
use crate::failure::{Checked, demand};
use crate::time::{Local, NodeNo};
use thorp_cache::Cache;
use thorp_model::{CallRequest, CommitId, Outcome, Refusal, RequestId, Stamp};
use thorp_protocol::{Request, Response};
use thorp_session::{Committed, Step, Stop, Wait, World as CommitWorld};

/// Milliseconds that a transaction waits for a page.
const FETCH_MS_MAX: u64 = 1_500;

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
            session.state = State::Running(Box::new(session.begin(&world.plan)));
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
