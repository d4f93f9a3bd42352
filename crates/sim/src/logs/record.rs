//! What a session read and wrote, as its program was told.

use super::preset::Preset;
use super::token::Token;
use std::collections::BTreeSet;

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It goes on, or its program died.
    Open,
    /// It closed, and all that it wrote is answered.
    Done,
    /// It was refused, or gave up.
    Failed,
}

/// One object that it read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) slot: u16,
    pub(super) committed: Vec<Token>,
    /// The same with the updates over it.
    pub(super) shown: Vec<Token>,
    /// What must be there.
    pub(super) expected: BTreeSet<Token>,
}

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) preset: Preset,
    /// The process of its program: node and life.
    pub(super) of: (usize, u32),
    pub(super) opened: u64,
    /// When its view moved last.
    pub(super) stood: u64,
    pub(super) reads: Vec<Read>,
    /// What it gave out at once, each time.
    pub(super) units: Vec<Vec<Token>>,
    /// How many expected tokens it may miss.
    pub(super) may_miss: usize,
    pub(super) state: State,
    pub(super) ended: Option<u64>,
}

impl Record {
    pub(super) fn new(preset: Preset, of: (usize, u32), now: u64) -> Self {
        Record {
            preset,
            of,
            opened: now,
            stood: now,
            reads: Vec::new(),
            units: Vec::new(),
            may_miss: 0,
            state: State::Open,
            ended: None,
        }
    }

    /// It is over.
    pub(super) fn end(&mut self, state: State, now: u64) {
        self.state = state;
        self.ended = Some(now);
    }

    /// All that it wrote.
    pub(super) fn written(&self) -> impl Iterator<Item = Token> + '_ {
        self.units.iter().flatten().copied()
    }
}
