//! Transactions that depend on each other: each adds one to the same number.

use crate::Outcome;
use crate::work::{counted, join};
use serde_json::{Value, json};
use std::time::Instant;
use thorp_client::{Member, Pending, Ref, Result, Transaction};
use thorp_workloads::objects::MemberStore;

/// Whether each waits until the one before is answered.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    Waiting,
    Early,
}

/// Adds one so many times, and tells how long all of it took, until the last is known to be committed.
pub(crate) fn chain(store: &MemberStore, count: u64, manner: Manner) -> Outcome<Value> {
    let (member, segment) = (store.member(), store.segment());
    let number = member.transact(|tx| tx.create_typed(segment, &0u64))?;
    let (before, begun) = (member.stats(), Instant::now());
    match manner {
        Manner::Waiting => wait_for_each(member, &number, count)?,
        Manner::Early => wait_at_the_end(member, &number, count)?,
    }
    let total_s = begun.elapsed().as_secs_f64();
    let reached = member.transact(|tx| tx.get(&number))?;
    if reached != count {
        return Err(format!("{count} transactions have added {reached}").into());
    }
    let mut told = json!({"total_s": total_s, "count": count});
    join(&mut told, counted(&member.stats().since(&before)));
    Ok(told)
}

fn wait_for_each(member: &Member, number: &Ref<u64>, count: u64) -> Result<()> {
    (0..count).try_for_each(|_| member.transact(|tx| add_one(tx, number)))
}

fn wait_at_the_end(member: &Member, number: &Ref<u64>, count: u64) -> Result<()> {
    let early = |_| Ok(member.transact_early(|tx| add_one(tx, number))?.1);
    let pending = (0..count).map(early).collect::<Result<Vec<Pending>>>()?;
    pending
        .into_iter()
        .try_for_each(|commit| commit.wait().map(drop))
}

fn add_one(tx: &mut Transaction, number: &Ref<u64>) -> Result<()> {
    let reached = tx.get(number)?;
    tx.put(number, &(reached + 1))
}
