//! What scribes wrote, and what they were told.

use super::plan::place_of;
use super::preset::Preset;
use super::record::Record;
use super::token::Token;
use std::collections::{BTreeMap, BTreeSet};
use thorp_model::{
    EdgeId, Generation, PageId, PageWrites, Procedure, Slot, Update, UpdateId, WriteOp,
};

/// What became of a token.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    /// Whose program wrote it: node and life.
    pub(super) of: (usize, u32),
    /// It was answered: under this name, with a lease or without.
    pub(super) kept: Option<(UpdateId, bool)>,
    /// The process that keeps it, under whose lease it was answered.
    pub(super) keeper: Option<(usize, u32)>,
    pub(super) is_rejected: bool,
    /// It was written by a commit, which was answered.
    pub(super) is_committed: bool,
    /// The home has to refuse it, and nobody ever sees it.
    pub(super) is_wrong: bool,
}

/// What a pull has to find: tokens that were answered before it left, by their homes or with a lease. It says something only of the stream in
/// which it left.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    pub(super) tokens: BTreeSet<Token>,
    pub(super) stream: Option<EdgeId>,
    /// When it left.
    pub(super) sent: u64,
}

/// All of this.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) fates: BTreeMap<Token, Fate>,
    /// How often the lease of each process has ended before it was refreshed.
    pub(super) lapses: BTreeMap<(usize, u32), u64>,
    /// Whether each process believed in its lease when it was looked at last.
    pub(super) believed: BTreeSet<(usize, u32)>,
    /// The lapses of its process when a token was answered.
    pub(super) since: BTreeMap<Token, u64>,
    pub(super) saved: BTreeSet<Token>,
    /// The sessions of mixed villages.
    pub(super) records: Vec<Record>,
}

impl Ledger {
    /// A session begins. Returns its place among the records.
    pub(super) fn begin(&mut self, preset: Preset, of: (usize, u32), now: u64) -> usize {
        self.records.push(Record::new(preset, of, now));
        self.records.len() - 1
    }
}

impl Expected {
    pub(super) fn has(&self, slot: u16) -> bool {
        self.tokens.iter().any(|token| token.slot() == slot)
    }
}

/// The tokens of an update.
pub(super) fn tokens_of(update: &Update) -> Vec<Token> {
    let slots = update.writes.iter().flat_map(|writes| &writes.slots);
    let tokens = slots.flat_map(|(slot, op)| match op {
        WriteOp::Apply { procedures, .. } => {
            let bytes = procedures.iter().filter_map(|procedure| match procedure {
                Procedure::Append(bytes) => Some(bytes.bytes()),
                _ => None,
            });
            bytes.flat_map(|bytes| Token::all(slot.0, bytes)).collect()
        }
        _ => Vec::new(),
    });
    tokens.collect()
}

/// One update: tokens are appended, each to its object. A wrong one is for another object of the slot, which never was.
pub(super) fn append(tokens: &[Token], pages: u16, is_wrong: bool) -> Vec<PageWrites> {
    let generation = Generation(if is_wrong { 9 } else { 1 });
    let mut writes: BTreeMap<PageId, BTreeMap<Slot, WriteOp>> = BTreeMap::new();
    for token in tokens {
        let procedures = vec![Procedure::Append(token.bytes()[..].into())];
        let op = WriteOp::Apply {
            generation,
            procedures,
        };
        let page = place_of(token.slot(), pages).page;
        writes
            .entry(page)
            .or_default()
            .insert(Slot(token.slot()), op);
    }
    let of_page = |(page, slots): (PageId, BTreeMap<Slot, WriteOp>)| PageWrites {
        page,
        slots: slots.into_iter().collect(),
    };
    writes.into_iter().map(of_page).collect()
}
