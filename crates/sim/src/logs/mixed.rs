//! Sessions of all presets: each opens, reads, writes and closes as the client library has it do.
//!
//! The member, the page cache and the transaction are the shipped ones. What a visit does with them is told again here, since the
//! library's visits wait by means of its own.

use super::ledger::{Expected, append};
use super::plan::{HOME, SEGMENT, place_of};
use super::preset::{Preset, is_tentative};
use super::program::Wait;
use super::record::{Read, State};
use super::session::{Asked, Phase, Session, Told};
use super::token::Token;
use super::world::World;
use super::{drive, truth};
use crate::failure::Checked;
use crate::given::Given;
use thorp_cache::{Overlay, ReadSet};
use thorp_model::{
    CallResponse, CommitId, Consistency, Generation, Moment, ObjectId, Outcome, Procedure,
    Reference, Refusal, SessionKind, Slot, Stamp,
};
use thorp_protocol::{NotKept, Request, Response};
use thorp_session::{Commit, CommitCall, Ended, OwnCommits, Step, Stop, Terms, Transaction};

/// Its program makes one commit after the other, and waits for each.
struct NoneOpen;

impl OwnCommits for NoneOpen {
    fn is_open(&self, _: CommitId) -> bool {
        false
    }

    fn stamp(&self, _: CommitId) -> Stamp {
        Stamp::default()
    }
}

fn transaction(consistency: &Consistency, floor: Stamp) -> Transaction<()> {
    let terms = Terms {
        strict: consistency.kind() == SessionKind::Strict,
        optimistic: false,
        staleness_ms_max: u64::MAX,
    };
    Transaction::begin(terms, ReadSet::new(), floor)
}

fn reference(slot: u16, pages: u16) -> Reference {
    let page = place_of(slot, pages).page;
    Reference {
        home: HOME,
        object: ObjectId {
            page,
            slot: Slot(slot),
        },
        generation: Generation(1),
        offset: 0,
    }
}

/// A scribe begins a session of some preset, on some of the objects.
pub(super) fn begin(world: &mut World, no: usize) -> Checked {
    let prng = &mut world.prng;
    let preset = Preset::drawn(prng.below(9));
    let consistency = preset.consistency(prng.percent(50));
    let objects = u64::from(world.plan.objects);
    let first = prng.below(objects);
    let second = (first + 1 + prng.below(objects - 1)) % objects;
    let mut both = vec![first as u16, second as u16];
    let to_write = match prng.below(4) {
        0 => Vec::new(),
        1 => both.clone(),
        _ => vec![both[prng.index(2)]],
    };
    if prng.percent(20) {
        both.pop();
    }
    let record = world
        .ledger
        .begin(preset, (no, world.nodes[no].life), world.now);
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    scribe.session = Some(Session {
        view: transaction(&consistency, scribe.floor),
        consistency,
        record,
        phase: Phase::Asking,
        overlay: Overlay::default(),
        expected: None,
        fence: None,
        to_read: both,
        to_write,
        leaving: Vec::new(),
        commit: Commit::new(),
    });
    Ok(())
}

/// Where the session of a scribe stands.
fn phase(world: &World, no: usize) -> Option<Phase> {
    let session = world.nodes[no].scribe.as_ref()?.session.as_ref()?;
    Some(session.phase)
}

/// A session goes on.
pub(super) fn step(world: &mut World, no: usize) -> Checked {
    let expected = match phase(world, no) {
        Some(Phase::Asking) => truth::expected(world, no),
        _ => Expected::default(),
    };
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let Some(mut session) = scribe.session.take() else {
        return Ok(());
    };
    let command = match session.phase {
        Phase::Asking => session.ask(
            scribe.pulled.as_ref(),
            expected,
            world.plan.lease_ms,
            world.now,
        ),
        Phase::Standing => {
            let is_there = session.expected.as_ref();
            let is_there = is_there.map(|expected| truth::counts(world, no, expected));
            stand(&mut session, world, no, is_there);
            None
        }
        Phase::Reading => read(&mut session, world, no),
        Phase::Writing => write(&mut session, world, no),
        Phase::Committing => send(&mut session, world, no),
        Phase::Unlocking => session.unlock(),
        Phase::Waiting | Phase::Over => None,
    };
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let is_over = session.phase == Phase::Over;
    scribe.session = Some(session).filter(|_| !is_over);
    match command {
        Some((told, request)) => {
            let command = scribe.request(Wait::Session(told), request);
            drive::handle(world, no, Given::Member(command))
        }
        None => Ok(()),
    }
}

/// Stands where its member does, if what was asked for is there.
fn stand(session: &mut Session, world: &mut World, no: usize, is_there: Option<bool>) {
    let held = truth::is_held(world, no);
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return;
    };
    if is_there == Some(false) {
        if !held {
            // Another stream may be behind the answer: it is asked again.
            session.expected = None;
            scribe.pulled = None;
            session.phase = Phase::Asking;
        }
        return;
    }
    session.view.end(&scribe.cache);
    session.view = transaction(&session.consistency, scribe.floor);
    let is_visit = session.consistency.kind() == SessionKind::Visit;
    if is_visit && !session.view.stand_at(&scribe.cache, [HOME]) {
        return;
    }
    if is_tentative(&session.consistency) {
        session.overlay = scribe.cache.updates_of(&[(HOME, SEGMENT)]);
    }
    session.phase = Phase::Reading;
    let stood = world.now;
    world.ledger.records[session.record].stood = stood;
}

/// Reads the next object, or asks for its page.
fn read(session: &mut Session, world: &mut World, no: usize) -> Asked {
    let pages = world.plan.pages;
    let scribe = world.nodes[no].scribe.as_mut()?;
    let Some(slot) = session.to_read.last().copied() else {
        session.phase = Phase::Writing;
        return None;
    };
    let reference = reference(slot, pages);
    let found = session.view.find(&scribe.cache, &reference);
    let bytes = match found {
        Ok(found) => session.view.bytes(&reference, found).map(<[u8]>::to_vec),
        Err(Stop::Miss(place)) => return Some((Told::Fetch, Request::Fetch(place))),
        Err(_) => None,
    };
    let Some(committed) = bytes else {
        fail(session, world);
        return None;
    };
    let over = Some((Generation(1), committed.clone()));
    let place = place_of(slot, pages);
    let shown = session.overlay.over(place, Slot(slot), over);
    let shown = shown.map_or_else(Vec::new, |(_, bytes)| bytes);
    let tokens = session
        .expected
        .iter()
        .flat_map(|expected| &expected.tokens);
    let expected = tokens.filter(|token| token.slot() == slot).copied();
    let read = Read {
        slot,
        committed: Token::all(slot, &committed),
        shown: Token::all(slot, &shown),
        expected: expected.collect(),
    };
    let record = &mut world.ledger.records[session.record];
    record.may_miss = session.may_miss() as usize;
    record.reads.push(read);
    session.to_read.pop();
    if session.consistency.isolation() == Moment::Access && !session.to_read.is_empty() {
        session.expected = None;
        session.phase = Phase::Asking;
    }
    None
}

/// Writes: all at once, or one after the other where each access counts.
fn write(session: &mut Session, world: &mut World, no: usize) -> Asked {
    let is_visit = session.consistency.kind() == SessionKind::Visit;
    if session.to_write.is_empty() && is_visit {
        session.phase = match session.fence {
            Some(_) => Phase::Unlocking,
            None => end(session, world, State::Done),
        };
        return None;
    }
    let slots = match session.consistency.visibility() {
        Moment::Access => vec![session.to_write.remove(0)],
        _ => std::mem::take(&mut session.to_write),
    };
    let pages = world.plan.pages;
    let scribe = world.nodes[no].scribe.as_mut()?;
    session.leaving = slots.iter().map(|slot| scribe.token(*slot)).collect();
    let floor = scribe.floor;
    for token in session.leaving.clone() {
        truth::asked(world, no, token, false);
    }
    let record = &mut world.ledger.records[session.record];
    record.units.push(session.leaving.clone());
    if is_tentative(&session.consistency) {
        session.phase = Phase::Waiting;
        return Some((
            Told::Update,
            Request::Update {
                home: HOME,
                writes: append(&session.leaving, pages, false),
                patience_ms: 100,
            },
        ));
    }
    if is_visit {
        // A visit gives out what it has written as a transaction that has read nothing.
        session.view = transaction(&session.consistency, floor);
        let fence = session.fence.into_iter();
        fence.for_each(|fence| session.view.run_under(HOME, fence));
    }
    let mut writes = session.leaving.iter().map(|token| {
        let procedure = Procedure::Append(token.bytes()[..].into());
        session
            .view
            .apply(&reference(token.slot(), pages), procedure)
    });
    if writes.any(|written| written.is_err()) {
        fail(session, world);
        return None;
    }
    session.commit = Commit::new();
    session.phase = Phase::Committing;
    None
}

/// Takes its commit one step on.
fn send(session: &mut Session, world: &mut World, no: usize) -> Asked {
    let now = world.nodes[no].now(world.now).mono;
    let scribe = world.nodes[no].scribe.as_mut()?;
    let stepped = session.commit.step(
        &mut session.view,
        &thorp_session::World {
            cache: &scribe.cache,
            now,
            own: &NoneOpen,
        },
    );
    match stepped {
        Ok(Step::Send(call)) => {
            session.phase = Phase::Waiting;
            Some((Told::Commit, request_of(call)))
        }
        Ok(Step::Committed(_)) => {
            session.phase = end(session, world, State::Done);
            None
        }
        Ok(Step::Wait(_)) => None,
        Ok(Step::Stage(_) | Step::Validate(_)) | Err(_) => {
            fail(session, world);
            None
        }
    }
}

/// It is given up: what it has not given out has not happened.
fn fail(session: &mut Session, world: &mut World) {
    for token in std::mem::take(&mut session.leaving) {
        truth::refused(world, token);
    }
    session.phase = end(session, world, State::Failed);
    if session.fence.is_some() {
        session.phase = Phase::Unlocking;
    }
}

fn end(session: &mut Session, world: &mut World, state: State) -> Phase {
    let now = world.now;
    world.ledger.records[session.record].end(state, now);
    Phase::Over
}

/// What it has given out is answered.
fn given_out(session: &mut Session, world: &mut World) {
    session.leaving.clear();
    session.phase = match (session.to_write.is_empty(), session.fence) {
        (false, _) => Phase::Writing,
        (true, Some(_)) => {
            end(session, world, State::Done);
            Phase::Unlocking
        }
        (true, None) => end(session, world, State::Done),
    };
}

fn request_of(call: CommitCall) -> Request {
    Request::Commit {
        parts: call.parts,
        histories: call.histories,
        depends_on: call.depends_on,
        after: call.after,
        early: false,
    }
}

/// A member has answered a session.
pub(super) fn answered(world: &mut World, no: usize, told: Told, response: Response) -> Checked {
    let sent = world.now;
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let Some(mut session) = scribe.session.take() else {
        return Ok(());
    };
    match (told, response) {
        (Told::Lock(expected), Response::Called(Ok(CallResponse::Locked { fence, .. }))) => {
            session.fence = Some(fence);
            session.expected = Some(truth::still_expected(world, expected));
            session.phase = Phase::Standing;
        }
        (Told::Pull(expected), Response::Called(Ok(CallResponse::Pulled))) => {
            let expected = truth::still_expected(world, expected);
            if session.may_miss() == 0
                && let Some(scribe) = &mut world.nodes[no].scribe
            {
                scribe.pulled = Some((expected.sent, expected.clone()));
            }
            session.expected = Some(expected);
            session.phase = Phase::Standing;
        }
        (Told::Lock(_) | Told::Pull(_), _) => fail(&mut session, world),
        (Told::Commit, Response::Outcome(_, Outcome::Committed { stamp, .. }, _)) => {
            for token in session.leaving.clone() {
                truth::committed(world, token);
            }
            if let Some(scribe) = &mut world.nodes[no].scribe {
                scribe.floor = scribe.floor.max(stamp);
            }
            given_out(&mut session, world);
        }
        (Told::Commit, Response::Outcome(_, Outcome::Refused(Refusal::Busy { .. }), _))
        | (Told::Commit, Response::Busy) => {
            session.commit.ended(Ended::Busy(0));
            session.phase = Phase::Committing;
        }
        (Told::Commit, Response::Outcome(_, Outcome::Refused(refusal), _)) => {
            if matches!(
                refusal,
                Refusal::Unknown | Refusal::Forgotten | Refusal::Lost
            ) {
                // It may have happened.
                session.leaving.clear();
            }
            fail(&mut session, world);
        }
        (Told::Update, Response::NotKept(NotKept::InDoubt)) => {
            // The log of the site may have it.
            session.leaving.clear();
            fail(&mut session, world);
        }
        (Told::Update, Response::Kept { id, is_leased }) => {
            for token in session.leaving.clone() {
                truth::kept(world, no, token, (id, is_leased));
            }
            given_out(&mut session, world);
        }
        (Told::Update | Told::Commit, _) => fail(&mut session, world),
        // It looks again whether the page is there.
        (Told::Fetch, _) => {}
        (Told::Unlock, response) => {
            let is_kept = matches!(response, Response::Called(Ok(CallResponse::Unlocked)));
            let record = &mut world.ledger.records[session.record];
            if record.ended.is_none() {
                let state = if is_kept { State::Done } else { State::Failed };
                record.end(state, sent);
            }
            session.phase = Phase::Over;
        }
    }
    if session.phase != Phase::Over
        && let Some(scribe) = &mut world.nodes[no].scribe
    {
        scribe.session = Some(session);
    }
    Ok(())
}
