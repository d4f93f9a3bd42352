//! What a scribe does: it appends tokens by the log, reads what is shown, and pulls.

use super::ledger::append;
use super::plan::{HOME, SEGMENT, place_of};
use super::program::Wait;
use super::token::Token;
use super::world::{Local, World};
use super::{drive, mixed, truth};
use crate::failure::Checked;
use crate::given::Given;
use crate::node::Machine;
use thorp_model::{CallError, CallResponse, Outcome, Part, Position, RequestId, Stamp};
use thorp_protocol::{MemberCommand, Request, Response};

/// Tokens that are written to one object.
const TOKENS_MAX: usize = 500;

/// A scribe does the next thing.
pub(super) fn step(world: &mut World, no: usize) -> Checked {
    let pause = world.prng.below(world.plan.think_ms_max * 1000 + 1);
    let at = world.now + 500 + pause;
    world.plan_local(no, at, Local::Step);
    world.counts.operations += 1;
    let objects = u64::from(world.plan.objects);
    let (drawn, slot) = (world.prng.below(100), world.prng.below(objects) as u16);
    let is_wrong = world.prng.per_mille(world.plan.wrong);
    look(world, no, slot)?;
    let is_healed = world.is_healed;
    // All objects stay in their page.
    let is_full = truth::tokens(world, slot) >= TOKENS_MAX;
    let lease_ms = world.plan.lease_ms;
    let is_mixed = world.plan.is_mixed;
    let is_commit = world.prng.percent(world.plan.commits);
    let position = match &world.nodes[no].machine {
        Some(Machine::Member(member)) => member.position(HOME).unwrap_or_default(),
        _ => Position(0),
    };
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let is_first = !std::mem::replace(&mut scribe.follows, true);
    let command = match drawn {
        _ if is_first => {
            let (home, segment, on) = (HOME, SEGMENT, true);
            scribe.request(Wait::Other, Request::Follow { home, segment, on })
        }
        0..80 if is_mixed => return go_on(world, no, is_healed || is_full),
        0..40 if !is_healed && !is_full && is_commit => {
            let token = scribe.token(slot);
            let command = scribe.request(Wait::Commit(token), commit(position, token, is_wrong));
            truth::asked(world, no, token, is_wrong);
            command
        }
        0..40 if !is_healed && !is_full => {
            let token = scribe.token(slot);
            let update = append(&[token], 1, is_wrong);
            let patience_ms = u32::try_from(drawn * 10).unwrap_or(0);
            let command = scribe.request(
                Wait::Update(token),
                Request::Update {
                    home: HOME,
                    writes: update,
                    patience_ms,
                },
            );
            truth::asked(world, no, token, is_wrong);
            command
        }
        40..55 => {
            let expected = truth::expected(world, no);
            let patience_ms = lease_ms * (drawn as u32 % 3);
            let Some(scribe) = &mut world.nodes[no].scribe else {
                return Ok(());
            };
            scribe.request(
                Wait::Pull(expected),
                Request::Pull {
                    home: HOME,
                    segments: vec![SEGMENT],
                    patience_ms,
                    mods: 0,
                },
            )
        }
        55..60 if !is_healed => MemberCommand::Evict(vec![place_of(slot, scribe.pages)]),
        60..62 => scribe.request(Wait::Other, Request::Leave),
        _ => return Ok(()),
    };
    drive::handle(world, no, Given::Member(command))
}

/// The same as a commit, which goes by no log.
fn commit(evidence: Position, token: Token, is_wrong: bool) -> Request {
    let part = Part {
        home: HOME,
        evidence,
        reads: Vec::new(),
        writes: append(&[token], 1, is_wrong),
        under: None,
    };
    Request::Commit {
        parts: vec![part],
        histories: vec![0],
        depends_on: Vec::new(),
        after: Stamp::default(),
        early: false,
    }
}

/// A session goes on, or another one begins.
fn go_on(world: &mut World, no: usize, is_ending: bool) -> Checked {
    let scribe = world.nodes[no].scribe.as_ref();
    match scribe.is_some_and(|scribe| scribe.session.is_none()) {
        true if is_ending => Ok(()),
        true => mixed::begin(world, no),
        false => mixed::step(world, no),
    }
}

/// Reads an object, and judges what is seen. What is not cached is asked for.
fn look(world: &mut World, no: usize, slot: u16) -> Checked {
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    match scribe.read(slot) {
        Some(seen) => {
            let expected = scribe.expected.take_if(|expected| expected.has(slot));
            truth::judge(world, no, slot, &seen)?;
            match expected.filter(|expected| truth::counts(world, no, expected)) {
                Some(expected) => truth::judge_pull(world, no, &expected, &seen),
                None => Ok(()),
            }
        }
        None => {
            let command = {
                let place = place_of(slot, scribe.pages);
                scribe.request(Wait::Other, Request::Fetch(place))
            };
            drive::handle(world, no, Given::Member(command))
        }
    }
}

/// A member has answered.
pub(super) fn answered(world: &mut World, no: usize, request: RequestId) -> Checked {
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let (Some(wait), Some(response)) = (
        scribe.waits.remove(&request),
        scribe.answers.remove(&request),
    ) else {
        return Ok(());
    };
    match (wait, response) {
        (Wait::Update(token), Response::Kept { id, is_leased }) => {
            truth::kept(world, no, token, (id, is_leased));
        }
        (Wait::Update(_), Response::NotKept(_)) => world.counts.answered("updates not kept"),
        (Wait::Commit(token), Response::Outcome(_, Outcome::Committed { .. }, _)) => {
            truth::committed(world, token);
        }
        (Wait::Pull(expected), Response::Called(Ok(CallResponse::Pulled))) => {
            world.counts.answered("pulls answered");
            let expected = truth::still_expected(world, expected);
            if let Some(scribe) = &mut world.nodes[no].scribe {
                scribe.expected = Some(expected);
            }
        }
        (Wait::Pull(_), Response::Called(Err(CallError::Awaits { .. }))) => {
            world.counts.answered("pulls that awaited somebody");
        }
        (Wait::Session(told), response) => return mixed::answered(world, no, told, response),
        (Wait::Pull(_), _) => world.counts.answered("pulls that nobody answered for"),
        _ => {}
    }
    Ok(())
}
