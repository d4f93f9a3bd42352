//! The program of a member, and what it reads.

use super::ledger::Expected;
use super::plan::{HOME, SEGMENT, place_of};
use super::session::{Session, Told};
use super::token::Token;
use std::collections::BTreeMap;
use thorp_cache::{Cache, ReadError, ReadSet};
use thorp_model::{Content, Generation, RequestId, Slot, Stamp};
use thorp_protocol::{MemberCommand, Request, Response};

/// A scribe. It does one thing after the other.
pub(super) struct Scribe {
    pub(super) cache: Cache,
    pub(super) answers: BTreeMap<RequestId, Response>,
    pub(super) waits: BTreeMap<RequestId, Wait>,
    last_request: RequestId,
    next_token: u16,
    of: (usize, u32),
    pub(super) pages: u16,
    /// It has asked for updates of others.
    pub(super) follows: bool,
    /// What a pull has promised to be there, until it was read.
    pub(super) expected: Option<Expected>,
    /// The session that it is in.
    pub(super) session: Option<Session>,
    /// The stamp of its last commit.
    pub(super) floor: Stamp,
    /// When its last pull left, and what that has promised.
    pub(super) pulled: Option<(u64, Expected)>,
}

/// What an answer is for.
#[derive(Clone)]
pub(super) enum Wait {
    Update(Token),
    Commit(Token),
    Pull(Expected),
    /// The session that goes on then has so far got this.
    Session(Told),
    Other,
}

/// What a scribe has read of one object.
pub(super) struct Seen {
    pub(super) committed: Vec<Token>,
    pub(super) shown: Vec<Token>,
}

impl Scribe {
    /// The program of a member that starts.
    pub(super) fn new(no: usize, life: u32, pages: u16) -> Self {
        Scribe {
            cache: Cache::new(usize::MAX),
            answers: BTreeMap::new(),
            waits: BTreeMap::new(),
            last_request: RequestId(0),
            next_token: 0,
            of: (no, life),
            pages,
            session: None,
            floor: Stamp::default(),
            pulled: None,
            follows: false,
            expected: None,
        }
    }

    /// Whether an update is not answered.
    pub(super) fn is_writing(&self) -> bool {
        let mut waits = self.waits.values();
        waits.any(|wait| matches!(wait, Wait::Update(_) | Wait::Commit(_)))
    }

    /// A request to its member.
    pub(super) fn request(&mut self, wait: Wait, request: Request) -> MemberCommand {
        self.last_request = self.last_request.next();
        let id = self.last_request;
        self.waits.insert(id, wait);
        MemberCommand::Request { id, request }
    }

    /// A token that nobody has written.
    pub(super) fn token(&mut self, slot: u16) -> Token {
        self.next_token += 1;
        let (no, life) = self.of;
        Token::new(slot, no as u8, life as u8, self.next_token)
    }

    /// Reads an object as committed, and with the updates over it, as of one moment. None: it is not cached.
    pub(super) fn read(&self, slot: u16) -> Option<Seen> {
        let version = self.cache.tentative_version()?;
        let mut reads = ReadSet::new();
        let committed = match reads.read(&self.cache, place_of(slot, self.pages), Slot(slot)) {
            Ok(read) => match read.content {
                Content::Value(bytes) => bytes.to_vec(),
                _ => return None,
            },
            Err(ReadError::Miss(_) | ReadError::Doomed(_)) => return None,
        };
        let overlay = self.cache.updates_of(&[(HOME, SEGMENT)]);
        let place = place_of(slot, self.pages);
        let over = overlay.over(place, Slot(slot), Some((Generation(1), committed.clone())));
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
