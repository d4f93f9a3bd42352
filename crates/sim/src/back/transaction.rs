//! A transaction of a program: what it is going to do, and what it has done.

use super::ledger::Content;
use crate::oracle::Object;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use thorp_cache::{Cache, ReadSet};
use thorp_model::{
    Content as SlotContent, Generation, HomeId, Incarnation, NewValue, ObjectId, Place, Stamp,
    WriteOp, Xoshiro256,
};
use thorp_session::{Commit, ObjectAt, Stop, Terms};

/// What it is going to do with an object that it has read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// No more.
    Read,
    /// Write it; make it if there is none.
    Write,
    /// Delete it, or make it.
    Turn,
    /// The same as a program that knows no incarnations.
    TurnUnaware,
}

/// A transaction.
pub(super) struct Transaction {
    /// What the shipped client knows of it.
    pub(super) core: thorp_session::Transaction<()>,
    /// How it commits.
    pub(super) commit: Commit,
    /// What it saw and wrote.
    pub(super) content: Content,
    /// What is still to be done.
    pub(super) todo: VecDeque<(HomeId, ObjectId, Act)>,
    /// Whether its program goes on before it is answered.
    pub(super) early: bool,
    /// Answers that it waits for.
    pub(super) unanswered: usize,
}

impl Transaction {
    /// A transaction that begins where its session has been.
    pub(super) fn new(
        todo: VecDeque<(HomeId, ObjectId, Act)>,
        early: bool,
        strict: bool,
        floor: Stamp,
    ) -> Self {
        let terms = Terms {
            strict,
            optimistic: false,
            staleness_ms_max: u64::MAX,
        };
        Transaction {
            core: thorp_session::Transaction::begin(terms, ReadSet::new(), floor),
            commit: Commit::new(),
            content: Content::default(),
            todo,
            early,
            unanswered: 0,
        }
    }

    /// Does the next thing.
    pub(super) fn act(
        &mut self,
        cache: &Cache,
        incarnations: &BTreeMap<HomeId, Incarnation>,
        prng: &mut Xoshiro256,
    ) -> Result<(), Stop> {
        let Some((home, object, act)) = self.todo.front().copied() else {
            return Ok(());
        };
        let place = Place {
            home,
            page: object.page,
        };
        let read = self.core.read_slot(cache, place, object.slot)?;
        let value = match read.content {
            SlotContent::Value(bytes) => Some(Arc::from(bytes)),
            _ => None,
        };
        let seen = Object {
            generation: read.generation,
            value,
        };
        let incarnation = incarnations.get(&home).copied().unwrap_or_default();
        let op = op(&seen, act, incarnation, prng);
        self.content.seen.insert((home, object), seen);
        if let Some(op) = op {
            let written = written(&op);
            self.core.prepare(ObjectAt { home, object }, op)?;
            self.content.written.insert((home, object), written);
        }
        self.todo.pop_front();
        Ok(())
    }
}

/// What is written to an object that was seen so. No two values are the same.
fn op(seen: &Object, act: Act, incarnation: Incarnation, prng: &mut Xoshiro256) -> Option<WriteOp> {
    let value = NewValue::Inline(prng.bits().to_be_bytes().to_vec().into());
    let generation = seen.generation;
    match (act, seen.value.is_some()) {
        (Act::Read, _) => None,
        (Act::Write, true) => Some(WriteOp::Write { generation, value }),
        (Act::Turn | Act::TurnUnaware, true) => Some(WriteOp::Delete { generation }),
        (Act::TurnUnaware, false) => Some(WriteOp::Create {
            generation: Generation(generation.0 + 1),
            value,
        }),
        (Act::Write | Act::Turn, false) => Some(WriteOp::Create {
            generation: incarnation.generation_after(generation)?,
            value,
        }),
    }
}

fn written(op: &WriteOp) -> Option<Arc<[u8]>> {
    match op {
        WriteOp::Create { value, .. } | WriteOp::Write { value, .. } => match value {
            NewValue::Inline(bytes) => Some(Arc::from(bytes.bytes())),
            NewValue::Staged(_) => None,
        },
        WriteOp::Patch { .. } | WriteOp::Delete { .. } | WriteOp::Apply { .. } => None,
    }
}
