//! A session of any preset: what it has read, what it writes, and what it asks its member for.

use super::ledger::Expected;
use super::plan::{HOME, SEGMENT};
use super::preset::{BOUND, is_locking};
use super::token::Token;
use thorp_cache::Overlay;
use thorp_model::{CallRequest, Consistency, Fence, LockMode, SessionKind};
use thorp_protocol::Request;
use thorp_session::{Commit, Transaction};

/// What an answer is to.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Lock(Expected),
    Pull(Expected),
    Commit,
    Update,
    Unlock,
    Fetch,
}

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
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
    pub(super) consistency: Consistency,
    /// Its record in the ledger.
    pub(super) record: usize,
    pub(super) phase: Phase,
    pub(super) view: Transaction<()>,
    pub(super) overlay: Overlay,
    /// What a pull or a lock has promised to be there.
    pub(super) expected: Option<Expected>,
    pub(super) fence: Option<Fence>,
    pub(super) to_read: Vec<u16>,
    pub(super) to_write: Vec<u16>,
    /// What is on its way.
    pub(super) leaving: Vec<Token>,
    pub(super) commit: Commit,
}

/// What a session asks its member for.
pub(super) type Asked = Option<(Told, Request)>;

impl Session {
    /// Asks for a lock, or for what was answered before.
    pub(super) fn ask(
        &mut self,
        pulled: Option<&(u64, Expected)>,
        expected: Expected,
        lease_ms: u32,
        now: u64,
    ) -> Asked {
        let is_hard = self.consistency.kind() == SessionKind::Visit && self.consistency.is_hard();
        if is_locking(&self.consistency) && self.fence.is_none() {
            self.phase = Phase::Waiting;
            let request = CallRequest::Lock {
                segments: vec![SEGMENT],
                mode: LockMode::Write,
                patience_ms: lease_ms * 2,
            };
            let home = HOME;
            return Some((Told::Lock(expected), Request::Call { home, request }));
        }
        if !is_hard {
            self.phase = Phase::Standing;
            return None;
        }
        let is_fresh = self.consistency.time() == Some(BOUND);
        if let Some((sent, known)) = pulled.filter(|_| is_fresh)
            && now - sent < BOUND.as_micros() as u64
        {
            self.expected = Some(known.clone());
            self.phase = Phase::Standing;
            return None;
        }
        self.phase = Phase::Waiting;
        Some((
            Told::Pull(expected),
            Request::Pull {
                home: HOME,
                segments: vec![SEGMENT],
                patience_ms: lease_ms * 2,
                mods: self.may_miss(),
            },
        ))
    }

    /// How many of the changes that it expects it may miss.
    pub(super) fn may_miss(&self) -> u32 {
        match self.consistency.time() {
            Some(_) => 0,
            None => self.consistency.mods().unwrap_or_default(),
        }
    }

    pub(super) fn unlock(&mut self) -> Asked {
        self.phase = Phase::Waiting;
        let fence = self.fence.take()?;
        let request = CallRequest::Unlock { fence };
        let home = HOME;
        Some((Told::Unlock, Request::Call { home, request }))
    }
}
