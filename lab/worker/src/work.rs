//! What can be asked for.

use crate::Outcome;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use thorp_client::Stats;
use thorp_workloads::objects::{MemberStore, Store};
use thorp_workloads::oo7::{
    self, Config, Counts, Done, Mix, Module, Query, Traversal, Turn, insert, query, remove,
    traverse_from,
};

/// What does not change from one transaction to the next: the module, once it was found.
#[derive(Default)]
pub(crate) struct Found(Option<Module>);

impl Found {
    fn module(&mut self, store: &MemberStore) -> Outcome<&Module> {
        if self.0.is_none() {
            self.0 = Module::open(store)?;
        }
        self.0
            .as_ref()
            .ok_or_else(|| "no module was built in this segment".into())
    }
}

/// Makes OO7's module.
pub(crate) fn build(store: &MemberStore, size: &str) -> Outcome<Value> {
    let config = match size {
        "tiny" => Config::tiny(),
        "small" => Config::small(),
        "medium" => Config::medium(),
        _ => return Err(format!("no size of a module: {size} (tiny, small, medium)").into()),
    };
    let begun = Instant::now();
    oo7::build(store, &config)?;
    Ok(json!({"built": size, "total_s": begun.elapsed().as_secs_f64()}))
}

/// One transaction.
pub(crate) fn run(
    store: &MemberStore,
    found: &mut Found,
    kind: &str,
    start: u32,
) -> Outcome<Value> {
    let (work, module) = (Work::named(kind)?, found.module(store)?);
    if let Work::ChangeOne = work {
        let composite = 1 + start % module.config.composites;
        return Ok(told_turn(&Turn::run_changing_one(
            store, module, composite,
        )?));
    }
    let (before, begun) = (store.stats(), Instant::now());
    let mut attempts = 0;
    let done = store.transact(|objects| {
        attempts += 1;
        let found = |found| Done {
            characters: found,
            ..Done::default()
        };
        match work {
            Work::Traversal(traversal) => traverse_from(objects, module, traversal, start),
            Work::Query(asked) => query(objects, module, asked, u64::from(start)).map(found),
            Work::Insert => {
                insert(objects, module, u64::from(start)).map(|i| found(i.len() as u64))
            }
            Work::Remove => remove(objects, module).map(|i| found(i.len() as u64)),
            Work::ChangeOne => Ok(Done::default()),
        }
    })?;
    let total = begun.elapsed();
    if let Work::Traversal(traversal) = work
        && traversal != Traversal::T7
        && done.counts != module.config.expected(traversal)
    {
        return Err(format!("{kind} counted {:?}", done.counts).into());
    }
    Ok(told(&done, attempts, total, &store.stats().since(&before)))
}

/// Several transactions, the figures added up.
pub(crate) fn runs(
    store: &MemberStore,
    found: &mut Found,
    kind: &str,
    count: u32,
) -> Outcome<Value> {
    added((0..count).map(|number| run(store, found, kind, number)))
}

/// Several, some of which change one composite, as the seed will have it.
pub(crate) fn mix(
    store: &MemberStore,
    found: &mut Found,
    count: u32,
    percent: u32,
    seed: u64,
) -> Outcome<Value> {
    let module = found.module(store)?;
    let mut mix = Mix::new(percent, seed).changing_one();
    added((0..count).map(|_| Ok(told_turn(&mix.turn(store, module)?))))
}

fn added(answers: impl Iterator<Item = Outcome<Value>>) -> Outcome<Value> {
    let (mut sum, mut transactions) = (serde_json::Map::new(), 0);
    for answer in answers {
        transactions += 1;
        for (name, value) in answer?.as_object().into_iter().flatten() {
            let before = sum.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            // Checksums are not sums of anything.
            if let Some(value) = value.as_f64().filter(|_| name != "checksum") {
                sum.insert(name.clone(), json!(before + value));
            }
        }
    }
    sum.insert("transactions".to_owned(), json!(transactions));
    Ok(Value::Object(sum))
}

#[derive(Clone, Copy)]
enum Work {
    Traversal(Traversal),
    Query(Query),
    Insert,
    Remove,
    ChangeOne,
}

impl Work {
    fn named(kind: &str) -> Outcome<Self> {
        let traversals = [
            ("T1", Traversal::T1),
            ("T2a", Traversal::T2a),
            ("T2b", Traversal::T2b),
            ("T2c", Traversal::T2c),
            ("T3a", Traversal::T3a),
            ("T3b", Traversal::T3b),
            ("T3c", Traversal::T3c),
            ("T6", Traversal::T6),
            ("T7", Traversal::T7),
            ("T8", Traversal::T8),
            ("T9", Traversal::T9),
        ];
        let traversals = traversals.map(|(name, of)| (name, Work::Traversal(of)));
        let queries = ["Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8"].into_iter();
        let queries = queries.zip(Query::ALL.map(Work::Query));
        let changes = [
            ("S1", Work::Insert),
            ("S2", Work::Remove),
            ("W", Work::ChangeOne),
        ];
        let mut all = traversals.into_iter().chain(queries).chain(changes);
        let found = all.find(|(name, _)| *name == kind);
        found
            .map(|(_, work)| work)
            .ok_or_else(|| format!("no work of OO7: {kind} (T1 to T9, Q1 to Q8, S1, S2, W)").into())
    }
}

fn told_turn(turn: &Turn) -> Value {
    told(&turn.done, turn.attempts, turn.total, &turn.stats)
}

fn told(done: &Done, attempts: u32, total: Duration, stats: &Stats) -> Value {
    let Counts {
        atomic_visits,
        swaps,
        dates,
        assemblies,
    } = done.counts;
    let mut told = json!({
        "atomic_visits": atomic_visits,
        "swaps": swaps,
        "dates": dates,
        "assemblies": assemblies,
        "found": done.characters,
        "checksum": done.checksum,
        "attempts": attempts,
        "total_s": total.as_secs_f64(),
    });
    join(&mut told, counted(stats));
    told
}

/// Puts what the second tells into the first.
pub(crate) fn join(told: &mut Value, more: Value) {
    if let (Value::Object(told), Value::Object(more)) = (told, more) {
        told.extend(more);
    }
}

/// For what was waited, and where pages came from.
pub(crate) fn counted(stats: &Stats) -> Value {
    let waits = &stats.waits;
    json!({
        "commit_s": waits.commit.as_secs_f64(),
        "home_fetch_s": waits.home_fetch.as_secs_f64(),
        "site_fetch_s": waits.site_fetch.as_secs_f64(),
        "peer_fetch_s": waits.peer_fetch.as_secs_f64(),
        "room_s": waits.room.as_secs_f64(),
        "misses": stats.misses,
        "fetches": stats.fetches,
        "from_home": stats.from_home,
        "through_site": stats.through_site,
        "from_peers": stats.from_peers,
        "ahead": stats.ahead,
        "ahead_used": stats.ahead_used,
        "bytes_received": stats.traffic.bytes_received,
        "bytes_sent": stats.traffic.bytes_sent,
    })
}
