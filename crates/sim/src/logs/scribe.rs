//! The program of a member: it appends tokens by the log, reads what is shown, and pulls.

use super::founding::{PAGE, SEGMENT};
use super::ledger::{self, Token};
use super::world::{HOME, Local, World};
use super::{drive, ledger::Expected};
use crate::failure::Checked;
use std::collections::BTreeMap;
use thorp_cache::{Cache, ReadError, ReadSet};
use thorp_model::{
    CallError, CallRequest, CallResponse, Content, Generation, PageWrites, Place, Procedure,
    RequestId, Slot, WriteOp,
};
use thorp_protocol::{MemberCommand, Request, Response};

/// The page of the shared objects.
pub(super) const PLACE: Place = Place {
    home: HOME,
    page: PAGE,
};

/// Tokens that are written to one object.
const TOKENS_MAX: usize = 500;

/// A scribe. It does one thing after the other.
pub(super) struct Scribe {
    pub(super) cache: Cache,
    pub(super) answers: BTreeMap<RequestId, Response>,
    waits: BTreeMap<RequestId, Wait>,
    last_request: RequestId,
    next_token: u16,
    of: (usize, u32),
    /// It has asked for updates of others.
    follows: bool,
    /// What a pull has promised to be there, until it was read.
    expected: Option<Expected>,
}

/// What an answer is for.
#[derive(Clone)]
enum Wait {
    Update(Token),
    Pull(Expected),
    Other,
}

/// What a scribe has read of one object.
pub(super) struct Seen {
    pub(super) committed: Vec<Token>,
    pub(super) shown: Vec<Token>,
}

impl Scribe {
    pub(super) fn new(no: usize, life: u32) -> Self {
        Scribe {
            cache: Cache::new(usize::MAX),
            answers: BTreeMap::new(),
            waits: BTreeMap::new(),
            last_request: RequestId(0),
            next_token: 0,
            of: (no, life),
            follows: false,
            expected: None,
        }
    }

    /// Whether an update is not answered.
    pub(super) fn is_writing(&self) -> bool {
        let mut waits = self.waits.values();
        waits.any(|wait| matches!(wait, Wait::Update(_)))
    }

    fn request(&mut self, wait: Wait, request: Request) -> MemberCommand {
        self.last_request = self.last_request.next();
        let id = self.last_request;
        self.waits.insert(id, wait);
        MemberCommand::Request { id, request }
    }

    fn token(&mut self, slot: u16) -> Token {
        self.next_token += 1;
        let (no, life) = self.of;
        Token::new(slot, no as u8, life as u8, self.next_token)
    }

    /// Reads an object as committed, and with the updates over it, as of one moment. None: it is not cached.
    pub(super) fn read(&self, slot: u16) -> Option<Seen> {
        let version = self.cache.tentative_version()?;
        let mut reads = ReadSet::new();
        let committed = match reads.read(&self.cache, PLACE, Slot(slot)) {
            Ok(read) => match read.content {
                Content::Value(bytes) => bytes.to_vec(),
                _ => return None,
            },
            Err(ReadError::Miss(_) | ReadError::Doomed(_)) => return None,
        };
        let overlay = self.cache.updates_of(&[(HOME, SEGMENT)]);
        let over = overlay.over(PLACE, Slot(slot), Some((Generation(1), committed.clone())));
        if self.cache.tentative_version() != Some(version) {
            return None;
        }
        let (_, shown) = over?;
        Some(Seen {
            committed: Token::all(slot, &committed),
            shown: Token::all(slot, &shown),
        })
    }
}

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
    let is_full = ledger::tokens(world, slot) >= TOKENS_MAX;
    let lease_ms = world.plan.lease_ms;
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    let is_first = !std::mem::replace(&mut scribe.follows, true);
    let command = match drawn {
        _ if is_first => {
            let (home, segment, on) = (HOME, SEGMENT, true);
            scribe.request(Wait::Other, Request::Follow { home, segment, on })
        }
        0..40 if !is_healed && !is_full => {
            let token = scribe.token(slot);
            let update = update(token, is_wrong);
            let patience_ms = u32::try_from(drawn * 10).unwrap_or(0);
            let command = scribe.request(
                Wait::Update(token),
                Request::Update {
                    home: HOME,
                    writes: update,
                    patience_ms,
                },
            );
            ledger::asked(world, no, token, is_wrong);
            command
        }
        40..55 => {
            let expected = ledger::expected(world, no);
            let patience_ms = lease_ms * (drawn as u32 % 3);
            let Some(scribe) = &mut world.nodes[no].scribe else {
                return Ok(());
            };
            let request = CallRequest::Pull {
                segments: vec![SEGMENT],
                patience_ms,
            };
            scribe.request(
                Wait::Pull(expected),
                Request::Call {
                    home: HOME,
                    request,
                },
            )
        }
        55..60 if !is_healed => MemberCommand::Evict(vec![PLACE]),
        _ => return Ok(()),
    };
    drive::of_member(world, no, command)
}

/// One update: a token is appended. A wrong one is for another object of the slot, which never was.
fn update(token: Token, is_wrong: bool) -> Vec<PageWrites> {
    let generation = Generation(if is_wrong { 9 } else { 1 });
    let op = WriteOp::Apply {
        generation,
        procedures: vec![Procedure::Append(token.bytes()[..].into())],
    };
    vec![PageWrites {
        page: PAGE,
        slots: vec![(Slot(token.slot()), op)],
    }]
}

/// Reads an object, and judges what is seen. What is not cached is asked for.
fn look(world: &mut World, no: usize, slot: u16) -> Checked {
    let Some(scribe) = &mut world.nodes[no].scribe else {
        return Ok(());
    };
    match scribe.read(slot) {
        Some(seen) => {
            let expected = scribe.expected.take_if(|expected| expected.has(slot));
            ledger::judge(world, no, slot, &seen)?;
            match expected.filter(|expected| expected.counts(world, no)) {
                Some(expected) => ledger::judge_pull(world, no, &expected, &seen),
                None => Ok(()),
            }
        }
        None => {
            let command = scribe.request(Wait::Other, Request::Fetch(PLACE));
            drive::of_member(world, no, command)
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
            ledger::kept(world, no, token, (id, is_leased));
        }
        (Wait::Update(_), Response::NotKept(_)) => world.counts.answered("updates not kept"),
        (Wait::Pull(expected), Response::Called(Ok(CallResponse::Pulled))) => {
            world.counts.answered("pulls answered");
            let expected = ledger::still_expected(world, expected);
            if let Some(scribe) = &mut world.nodes[no].scribe {
                scribe.expected = Some(expected);
            }
        }
        (Wait::Pull(_), Response::Called(Err(CallError::Awaits { .. }))) => {
            world.counts.answered("pulls that awaited somebody");
        }
        (Wait::Pull(_), _) => world.counts.answered("pulls that nobody answered for"),
        _ => {}
    }
    Ok(())
}
