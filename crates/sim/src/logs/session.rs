//! A session of any preset: it opens, reads, writes and closes as the client library has it do.
//!
//! The member, the page cache and the transaction are the shipped ones. What a visit does with them is told again here, since the
//! library's visits wait by means of its own.

use super::ledger::{Expected, Token};
use super::plan::{HOME, SEGMENT, place_of};
use super::preset::{BOUND, Preset, is_locking, is_tentative};
use super::program::{Scribe, Wait};
use super::record::{Read, State};
use super::scribe::append;
use super::world::World;
use super::{drive, truth};
use crate::failure::Checked;
use crate::given::Given;
use thorp_cache::{Overlay, ReadSet};
use thorp_model::{
    CallRequest, CallResponse, CommitId, Consistency, Fence, Generation, LockMode, Moment,
    ObjectId, Outcome, Procedure, Reference, Refusal, SessionKind, Slot, Stamp,
};
use thorp_protocol::{Request, Response};
use thorp_session::{Commit, CommitCall, Ended, OwnCommits, Step, Stop, Terms, Transaction};

/// What an answer is to.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Lock(Expected),
    Pull(Expected),
    Commit,
    Update,
    Unlock,
}

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It asks for what its view must have.
    Asking,
    /// It may stand where its member stands.
    Standing,
    Reading,
    Writing,
    Committing,
    Unlocking,
    /// Its member owes it an answer.
    Waiting,
    Over,
}

/// A session.
pub(super) struct Session {
    consistency: Consistency,
    /// Its record in the ledger.
    record: usize,
    phase: Phase,
    view: Transaction<()>,
    overlay: Overlay,
    /// What a pull or a lock has promised to be there.
    expected: Option<Expected>,
    fence: Option<Fence>,
    to_read: Vec<u16>,
    to_write: Vec<u16>,
    /// What is on its way.
    leaving: Vec<Token>,
    commit: Commit,
}

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

/// A session goes on.
pub(super) fn step(world: &mut World, no: usize) -> Checked {
    let expected = truth::expected(world, no);
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let Some(mut session) = scribe.session.take() else {
        return Ok(());
    };
    let command = match session.phase {
        Phase::Asking => session.ask(scribe, expected, world.plan.lease_ms, world.now),
        Phase::Standing => {
            let is_there = session.expected.as_ref();
            let is_there = is_there.map(|expected| truth::counts(world, no, expected));
            session.stand(world, no, is_there);
            None
        }
        Phase::Reading => session.read(world, no),
        Phase::Writing => session.write(world, no),
        Phase::Committing => session.send(world, no),
        Phase::Unlocking => session.unlock(),
        Phase::Waiting | Phase::Over => None,
    };
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let is_over = session.phase == Phase::Over;
    scribe.session = Some(session).filter(|_| !is_over);
    match command {
        Some((wait, request)) => {
            let command = scribe.request(wait, request);
            drive::handle(world, no, Given::Member(command))
        }
        None => Ok(()),
    }
}

type Asked = Option<(Wait, Request)>;

impl Session {
    /// Asks for a lock, or for what was answered before.
    fn ask(&mut self, scribe: &Scribe, expected: Expected, lease_ms: u32, now: u64) -> Asked {
        let is_hard = self.consistency.kind() == SessionKind::Visit && self.consistency.is_hard();
        if is_locking(&self.consistency) && self.fence.is_none() {
            self.phase = Phase::Waiting;
            let request = CallRequest::Lock {
                segments: vec![SEGMENT],
                mode: LockMode::Write,
                patience_ms: lease_ms * 2,
            };
            let home = HOME;
            return Some((
                Wait::Session(Told::Lock(expected)),
                Request::Call { home, request },
            ));
        }
        if !is_hard {
            self.phase = Phase::Standing;
            return None;
        }
        let is_fresh = self.consistency.time() == Some(BOUND);
        if let Some((sent, known)) = scribe.pulled.as_ref().filter(|_| is_fresh)
            && now - sent < BOUND.as_micros() as u64
        {
            self.expected = Some(known.clone());
            self.phase = Phase::Standing;
            return None;
        }
        self.phase = Phase::Waiting;
        Some((
            Wait::Session(Told::Pull(expected)),
            Request::Pull {
                home: HOME,
                segments: vec![SEGMENT],
                patience_ms: lease_ms * 2,
                mods: self.may_miss(),
            },
        ))
    }

    /// How many of the changes that it expects it may miss.
    fn may_miss(&self) -> u32 {
        match self.consistency.time() {
            Some(_) => 0,
            None => self.consistency.mods().unwrap_or_default(),
        }
    }

    /// Stands where its member does, if what was asked for is there.
    fn stand(&mut self, world: &mut World, no: usize, is_there: Option<bool>) {
        let held = truth::is_held(world, no);
        let Some(scribe) = &mut world.nodes[no].scribe else {
            return;
        };
        if is_there == Some(false) {
            if !held {
                // Another stream may be behind the answer: it is asked again.
                self.expected = None;
                scribe.pulled = None;
                self.phase = Phase::Asking;
            }
            return;
        }
        self.view.end(&scribe.cache);
        self.view = transaction(&self.consistency, scribe.floor);
        let is_visit = self.consistency.kind() == SessionKind::Visit;
        if is_visit && !self.view.stand_at(&scribe.cache, [HOME]) {
            return;
        }
        if is_tentative(&self.consistency) {
            self.overlay = scribe.cache.updates_of(&[(HOME, SEGMENT)]);
        }
        self.phase = Phase::Reading;
        let stood = world.now;
        world.ledger.records[self.record].stood = stood;
    }

    /// Reads the next object, or asks for its page.
    fn read(&mut self, world: &mut World, no: usize) -> Asked {
        let pages = world.plan.pages;
        let scribe = world.nodes[no].scribe.as_mut()?;
        let Some(slot) = self.to_read.last().copied() else {
            self.phase = Phase::Writing;
            return None;
        };
        let reference = reference(slot, pages);
        let found = self.view.find(&scribe.cache, &reference);
        let bytes = match found {
            Ok(found) => self.view.bytes(&reference, found).map(<[u8]>::to_vec),
            Err(Stop::Miss(place)) => return Some((Wait::Other, Request::Fetch(place))),
            Err(_) => None,
        };
        let Some(committed) = bytes else {
            self.fail(world);
            return None;
        };
        let over = Some((Generation(1), committed.clone()));
        let place = place_of(slot, pages);
        let shown = self.overlay.over(place, Slot(slot), over);
        let shown = shown.map_or_else(Vec::new, |(_, bytes)| bytes);
        let tokens = self.expected.iter().flat_map(|expected| &expected.tokens);
        let expected = tokens.filter(|token| token.slot() == slot).copied();
        let read = Read {
            slot,
            committed: Token::all(slot, &committed),
            shown: Token::all(slot, &shown),
            expected: expected.collect(),
        };
        let record = &mut world.ledger.records[self.record];
        record.may_miss = self.may_miss() as usize;
        record.reads.push(read);
        self.to_read.pop();
        if self.consistency.isolation() == Moment::Access && !self.to_read.is_empty() {
            self.expected = None;
            self.phase = Phase::Asking;
        }
        None
    }

    /// Writes: all at once, or one after the other where each access counts.
    fn write(&mut self, world: &mut World, no: usize) -> Asked {
        let is_visit = self.consistency.kind() == SessionKind::Visit;
        if self.to_write.is_empty() && is_visit {
            self.phase = match self.fence {
                Some(_) => Phase::Unlocking,
                None => self.end(world, State::Done),
            };
            return None;
        }
        let slots = match self.consistency.visibility() {
            Moment::Access => vec![self.to_write.remove(0)],
            _ => std::mem::take(&mut self.to_write),
        };
        let pages = world.plan.pages;
        let scribe = world.nodes[no].scribe.as_mut()?;
        self.leaving = slots.iter().map(|slot| scribe.token(*slot)).collect();
        let floor = scribe.floor;
        for token in self.leaving.clone() {
            truth::asked(world, no, token, false);
        }
        let record = &mut world.ledger.records[self.record];
        record.units.push(self.leaving.clone());
        if is_tentative(&self.consistency) {
            self.phase = Phase::Waiting;
            return Some((
                Wait::Session(Told::Update),
                Request::Update {
                    home: HOME,
                    writes: append(&self.leaving, pages, false),
                    patience_ms: 100,
                },
            ));
        }
        if is_visit {
            // A visit gives out what it has written as a transaction that has read nothing.
            self.view = transaction(&self.consistency, floor);
            let fence = self.fence.into_iter();
            fence.for_each(|fence| self.view.run_under(HOME, fence));
        }
        let mut writes = self.leaving.iter().map(|token| {
            let procedure = Procedure::Append(token.bytes()[..].into());
            self.view.apply(&reference(token.slot(), pages), procedure)
        });
        if writes.any(|written| written.is_err()) {
            self.fail(world);
            return None;
        }
        self.commit = Commit::new();
        self.phase = Phase::Committing;
        None
    }

    /// Takes its commit one step on.
    fn send(&mut self, world: &mut World, no: usize) -> Asked {
        let now = world.nodes[no].now(world.now).mono;
        let scribe = world.nodes[no].scribe.as_mut()?;
        let stepped = self.commit.step(
            &mut self.view,
            &thorp_session::World {
                cache: &scribe.cache,
                now,
                own: &NoneOpen,
            },
        );
        match stepped {
            Ok(Step::Send(call)) => {
                self.phase = Phase::Waiting;
                Some((Wait::Session(Told::Commit), request_of(call)))
            }
            Ok(Step::Committed(_)) => {
                self.phase = self.end(world, State::Done);
                None
            }
            Ok(Step::Wait(_)) => None,
            Ok(Step::Stage(_) | Step::Validate(_)) | Err(_) => {
                self.fail(world);
                None
            }
        }
    }

    fn unlock(&mut self) -> Asked {
        self.phase = Phase::Waiting;
        let fence = self.fence.take()?;
        let request = CallRequest::Unlock { fence };
        let home = HOME;
        Some((Wait::Session(Told::Unlock), Request::Call { home, request }))
    }

    /// It is given up: what it has not given out has not happened.
    fn fail(&mut self, world: &mut World) {
        for token in std::mem::take(&mut self.leaving) {
            truth::refused(world, token);
        }
        self.phase = self.end(world, State::Failed);
        if self.fence.is_some() {
            self.phase = Phase::Unlocking;
        }
    }

    fn end(&mut self, world: &mut World, state: State) -> Phase {
        let now = world.now;
        world.ledger.records[self.record].end(state, now);
        Phase::Over
    }

    /// What it has given out is answered.
    fn given_out(&mut self, world: &mut World) {
        self.leaving.clear();
        self.phase = match (self.to_write.is_empty(), self.fence) {
            (false, _) => Phase::Writing,
            (true, Some(_)) => {
                self.end(world, State::Done);
                Phase::Unlocking
            }
            (true, None) => self.end(world, State::Done),
        };
    }
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
        (Told::Lock(_) | Told::Pull(_), _) => session.fail(world),
        (Told::Commit, Response::Outcome(_, Outcome::Committed { stamp, .. }, _)) => {
            for token in session.leaving.clone() {
                truth::committed(world, token);
            }
            if let Some(scribe) = &mut world.nodes[no].scribe {
                scribe.floor = scribe.floor.max(stamp);
            }
            session.given_out(world);
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
            session.fail(world);
        }
        (Told::Update, Response::Kept { id, is_leased }) => {
            for token in session.leaving.clone() {
                truth::kept(world, no, token, (id, is_leased));
            }
            session.given_out(world);
        }
        (Told::Update | Told::Commit, _) => session.fail(world),
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
