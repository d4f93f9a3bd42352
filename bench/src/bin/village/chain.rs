//! How many transactions a second a program makes that build on each other, over a link with a round trip of 40 ms.
//!
//! Of one kind each waits for its answer, as in the paper. Of the other none does (rule 14), and all are answered in
//! the end. The home is another process, and both ends delay what they send by 20 ms. Both kinds go in turn: a few of
//! the first and many of the second.

use std::time::{Duration, Instant};
use thorp_bench::Result;
use thorp_bench::figure::Figure;
use thorp_bench::village::{HOME, Village};
use thorp_client::{Member, Ref, Transaction};

const ROUNDS: u32 = 5;
/// Transactions of a round that wait.
const WAITING: u32 = 10;
/// And of those that do not.
const CHAINED: u32 = 400;
const ONE_WAY_MS: u64 = 20;

/// With so many in a chain.
pub(crate) fn measure(count: Option<u32>) -> Result<()> {
    let chained = count.unwrap_or(CHAINED);
    let village = Village::new(&[("far", ONE_WAY_MS)])?;
    let config = village.config(HOME, "far")?;
    let member = Member::join(config.link_delay(Duration::from_millis(ONE_WAY_MS)))?;
    let segment = member.create("thorp://alps/small")?;
    let object = member.transact(|tx| tx.create_typed(&segment, &0u64))?;
    let (mut waiting, mut ahead) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        waiting.push(rate(WAITING, || wait_for_each(&member, &object))?);
        ahead.push(rate(chained, || wait_for_none(&member, &object, chained))?);
    }
    let made = member.transact(|tx| tx.get(&object))?;
    if made != u64::from(ROUNDS * (WAITING + chained)) {
        return Err(format!("{made} increments were made").into());
    }
    let (waiting, ahead) = (median(waiting), median(ahead));
    Figure::new("chain")
        .with(
            "figure",
            "dependent writing transactions, none waiting for its answer, in terms of each waiting",
        )
        .with("waiting_per_s", waiting)
        .with("ahead_per_s", ahead)
        .with("conflicts", member.stats().conflicts as f64)
        .at_least("ratio", ahead / waiting, 20.0);
    Ok(())
}

fn increment(tx: &mut Transaction, object: &Ref<u64>) -> thorp_client::Result<()> {
    let count = tx.get(object)? + 1;
    tx.put(object, &count)
}

fn wait_for_each(member: &Member, object: &Ref<u64>) -> Result<()> {
    for _ in 0..WAITING {
        member.transact(|tx| increment(tx, object))?;
    }
    Ok(())
}

fn wait_for_none(member: &Member, object: &Ref<u64>, count: u32) -> Result<()> {
    let mut pending = Vec::new();
    for _ in 0..count {
        pending.push(member.transact_early(|tx| increment(tx, object))?.1);
    }
    for commit in pending {
        commit.wait()?;
    }
    Ok(())
}

/// So many in a second.
fn rate(count: u32, what: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    what()?;
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
