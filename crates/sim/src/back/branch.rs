//! The histories of homes. A history begins with a prefix of the one that it branches from.

use crate::failure::{Checked, Failure, demand};
use crate::oracle::Oracle;
use std::collections::{BTreeMap, BTreeSet};
use thorp_model::records::{self, LogRecord, VoteRecord};
use thorp_model::{
    Batch, CommitId, HomeId, Incarnation, LifeId, Mark, Op, Receipt, ReceiptKey, Registration,
    Table,
};

/// A history, by its place in the list of all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BranchNo(pub(super) usize);

/// One history of a home: all that was durable in it, from the beginning on.
#[derive(Clone)]
pub(super) struct Branch {
    /// The home.
    pub(super) home: HomeId,
    /// The history that it branches from.
    pub(super) parent: Option<BranchNo>,
    /// What its log says.
    pub(super) oracle: Oracle,
    /// How often an operator has opened it.
    pub(super) incarnation: Incarnation,
    /// The key of its receipts.
    pub(super) key: ReceiptKey,
    /// The lives in it, and the batches of each that brought something.
    marks: BTreeSet<(u32, u64, Mark)>,
    life: Option<LifeId>,
    /// Votes that are not decided.
    open_votes: BTreeMap<(Registration, u64), CommitId>,
    /// Every commit over several homes for which it voted.
    voted: BTreeSet<CommitId>,
    /// Outcomes that were recorded.
    recorded: BTreeSet<(Registration, u64)>,
}

/// What a durable batch brought.
#[derive(Default)]
pub(super) struct Brought {
    /// Commits.
    pub(super) commits: Vec<LogRecord>,
    /// Refusals.
    pub(super) refused: Vec<CommitId>,
}

impl Branch {
    /// The first history of a home.
    pub(super) fn first(home: HomeId, key: ReceiptKey) -> Self {
        Branch {
            home,
            parent: None,
            oracle: Oracle::default(),
            incarnation: Incarnation::default(),
            key,
            marks: BTreeSet::new(),
            life: None,
            open_votes: BTreeMap::new(),
            voted: BTreeSet::new(),
            recorded: BTreeSet::new(),
        }
    }

    /// A life begins.
    pub(super) fn begin_life(&mut self, life: LifeId) {
        self.life = Some(life);
        self.marks
            .insert((life.counter, life.random, Mark::default()));
    }

    /// Whether a receipt is this home's own.
    pub(super) fn has_made(&self, receipt: &Receipt) -> bool {
        receipt.is_of(self.home, &self.key)
    }

    /// Whether what a receipt proves is in this history.
    pub(super) fn holds(&self, receipt: &Receipt) -> bool {
        let point = &receipt.point;
        let mark = (point.life.counter, point.life.random, point.mark);
        self.marks.contains(&mark)
    }

    /// Whether it has a part of a transaction: a vote that is not decided.
    pub(super) fn is_in_doubt(&self, id: CommitId) -> bool {
        self.open_votes.values().any(|voted| *voted == id)
    }

    /// Whether it has voted for a transaction, or committed it.
    pub(super) fn knows(&self, id: CommitId) -> bool {
        self.voted.contains(&id) || self.oracle.commits.contains_key(&id)
    }

    /// Takes a batch that has become durable.
    pub(super) fn take(&mut self, batch: &Batch) -> Checked<Brought> {
        if let Some(life) = self.life.filter(|_| !batch.ops.is_empty()) {
            self.marks.insert((life.counter, life.random, batch.mark));
        }
        let refused_before: BTreeSet<CommitId> = self.oracle.refused.keys().copied().collect();
        let commits = self.oracle.take(batch)?;
        self.check_left(batch)?;
        for op in &batch.ops {
            self.take_vote(op)?;
        }
        let refused = self.oracle.refused.keys();
        let refused = refused.filter(|id| !refused_before.contains(id));
        Ok(Brought {
            refused: refused.copied().collect(),
            commits: commits.into_iter().map(|(record, _)| record).collect(),
        })
    }

    /// Step 4 of a closed home: nothing new is recorded under a registration of an earlier incarnation. What was voted for
    /// before is decided all the same.
    fn check_left(&mut self, batch: &Batch) -> Checked {
        for op in &batch.ops {
            let Op::Put {
                table: Table::Outcomes,
                key,
                ..
            } = op
            else {
                continue;
            };
            let Some(pair) = records::pair_of(key) else {
                continue;
            };
            let is_new = self.recorded.insert(pair) && !self.open_votes.contains_key(&pair);
            demand!(
                !is_new || pair.0.0 >= self.incarnation.floor_64(),
                "earlier incarnations",
                "home {} of incarnation {:?} records outcome {} of registration {:?}",
                self.home,
                self.incarnation,
                pair.1,
                pair.0
            );
        }
        Ok(())
    }

    fn take_vote(&mut self, op: &Op) -> Checked {
        let (Op::Put { table, key, .. } | Op::Delete { table, key }) = op;
        let pair = records::vote_of(key).filter(|_| *table == Table::Meta);
        let Some(pair) = pair else {
            return Ok(());
        };
        let Op::Put { value, .. } = op else {
            self.open_votes.remove(&pair);
            return Ok(());
        };
        let record: VoteRecord = records::decode(Table::Meta, key, value)
            .map_err(|error| Failure::new("log", error.to_string()))?;
        self.voted.insert(record.request.id);
        self.open_votes.insert(pair, record.request.id);
        Ok(())
    }
}
