//! The promise: a request that begins after an update was acknowledged, or shown to anybody, is answered as of that update or later.

use crate::database::Row;
use crate::pages::{Answer, Page};
use crate::time::At;
use std::collections::BTreeMap;

/// What clients know, and what was found wrong.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    /// The newest value of each row that somebody knows of.
    known: Vec<u64>,
    failure: Option<String>,
    /// Fills of each page that are under way.
    fills: BTreeMap<Page, u64>,
    pub(crate) counts: Counts,
}

/// What happened in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests that were answered.
    pub answers: u64,
    /// Those of them that were hits.
    pub hits: u64,
    /// Those of them that shared the fill of another.
    pub joined: u64,
    /// Fills that became entries.
    pub kept: u64,
    /// Fills that did not.
    pub not_kept: u64,
    /// Updates that were acknowledged.
    pub updates: u64,
    /// The most fills of one page at a time.
    pub fills_at_once: u64,
}

impl Counts {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Counts) {
        self.answers += other.answers;
        self.hits += other.hits;
        self.joined += other.joined;
        self.kept += other.kept;
        self.not_kept += other.not_kept;
        self.updates += other.updates;
        self.fills_at_once = self.fills_at_once.max(other.fills_at_once);
    }
}

impl Checker {
    pub(crate) fn new(rows: usize) -> Self {
        Checker {
            known: vec![0; rows],
            failure: None,
            fills: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Somebody learns that a row has this value.
    pub(crate) fn learn(&mut self, row: Row, value: u64) {
        if let Some(known) = self.known.get_mut(row) {
            *known = value.max(*known);
        }
    }

    /// A request for these rows begins: what its answer must show at least.
    pub(crate) fn least(&self, rows: &[Row]) -> Vec<(Row, u64)> {
        let known = |row: &Row| (*row, self.known.get(*row).copied().unwrap_or_default());
        rows.iter().map(known).collect()
    }

    /// An answer has come.
    pub(crate) fn answered(&mut self, at: At, how: &str, least: &[(Row, u64)], answer: &Answer) {
        self.counts.answers += 1;
        for ((row, least), (_, value)) in least.iter().zip(&answer.0) {
            if value < least {
                self.fail(format!(
                    "stale: at {at:?}, {how} shows {value} in row {row}; {least} was known before the request"
                ));
            }
            self.learn(*row, *value);
        }
    }

    /// A fill is over. Whether it became an entry.
    pub(crate) fn filled(&mut self, is_kept: bool) {
        match is_kept {
            true => self.counts.kept += 1,
            false => self.counts.not_kept += 1,
        }
    }

    /// A proxy asks the origin for a page.
    pub(crate) fn fill_begins(&mut self, page: Page) {
        *self.fills.entry(page).or_default() += 1;
        let most = self.fills.values().copied().max().unwrap_or_default();
        self.counts.fills_at_once = most.max(self.counts.fills_at_once);
    }

    /// The origin has answered.
    pub(crate) fn fill_ends(&mut self, page: Page) {
        if let Some(fills) = self.fills.get_mut(&page) {
            *fills = fills.saturating_sub(1);
        }
    }

    /// The first failure is kept.
    pub(crate) fn fail(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }

    pub(crate) fn failure(&self) -> Option<&String> {
        self.failure.as_ref()
    }
}
