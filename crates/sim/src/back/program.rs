//! A member's program: sessions that run one transaction after the other.

use super::ledger::Asked;
use super::plan::Plan;
use super::transaction::{Act, Transaction};
use crate::time::NodeNo;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thorp_cache::Cache;
use thorp_model::{CommitId, HomeId, Incarnation, Outcome, Refusal, RequestId, Stamp, Xoshiro256};
use thorp_protocol::Request;
use thorp_session::{CommitCall, Ended, OwnCommits};

/// The program of a member.
pub(super) struct Program {
    /// The page cache.
    pub(super) cache: Cache,
    /// Its sessions.
    pub(super) sessions: Vec<Session>,
    /// The incarnation of each home, as its stream began.
    pub(super) incarnations: BTreeMap<HomeId, Incarnation>,
    pub(super) requests: BTreeMap<RequestId, Waiting>,
    pub(super) last_request: RequestId,
    pub(super) own: Own,
}

/// A session.
pub(super) struct Session {
    pub(super) state: State,
    /// What it waits for is planned under this number.
    pub(super) wait: u64,
    /// Transactions that ended well.
    pub(super) progress: u64,
    /// How often it has sent commits.
    pub(super) sends: u64,
    pub(super) floor: Stamp,
    pub(super) prng: Xoshiro256,
}

pub(super) enum State {
    Resting,
    Running(Box<Transaction>),
    /// It waits for outcomes.
    Sent(Box<Transaction>),
    Stopped,
}

/// Who waits for an answer.
#[derive(Clone)]
pub(super) struct Waiting {
    pub(super) session: usize,
    /// How often that had sent commits.
    pub(super) sends: u64,
    /// Of a commit: what is to be entered when it has its id.
    pub(super) commit: Option<Asked>,
    /// Its id.
    pub(super) id: Option<CommitId>,
    /// It has gone on before the outcome.
    pub(super) is_ahead: bool,
}

/// What a program knows of its own commits.
#[derive(Default)]
pub(super) struct Own {
    pub(super) open: BTreeSet<CommitId>,
    pub(super) highest: Stamp,
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
pub(super) struct Wish {
    pub(super) requests: Vec<(Request, bool)>,
    pub(super) after_us: Option<u64>,
}

impl Wish {
    pub(super) fn after_ms(ms: u64) -> Self {
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

impl Session {
    pub(super) fn begin(&mut self, plan: &Plan) -> Transaction {
        let objects = plan.objects();
        let homes: Vec<HomeId> = plan.home_ids().collect();
        let home = homes[self.prng.index(homes.len())];
        let is_joint = self.prng.percent(plan.joint);
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
        let early = self.prng.percent(plan.early);
        let strict = self.prng.percent(20);
        Transaction::new(todo, early, strict, self.floor)
    }

    pub(super) fn rest(&mut self, think_ms_max: u64) -> Wish {
        self.state = State::Resting;
        Wish::after_ms(self.prng.below(think_ms_max + 1))
    }

    pub(super) fn send(&mut self, mut tx: Box<Transaction>, calls: Vec<CommitCall>) -> Wish {
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
    pub(super) fn asked(&self, process: (NodeNo, u32), event: u64) -> Option<Asked> {
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
    pub(super) fn gives_up(&mut self, waiting: &Waiting) {
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
    pub(super) fn ended(&mut self, id: CommitId, outcome: &Outcome) {
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
