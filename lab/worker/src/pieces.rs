//! Single fetches and commits, each timed: what a traversal is made of.

use crate::Outcome;
use crate::work::{counted, join};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::Reference;
use thorp_workloads::objects::{MemberStore, Objects, Store, encoded};

/// The segment's root that lists them.
const ROOT: &str = "pieces";
/// A transaction makes no more than so many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// As OO7's objects have.
const COMMIT_BYTES: usize = 100;

/// Makes objects. Those of more than half a page each lie alone on theirs.
pub(crate) fn make(store: &MemberStore, count: usize, bytes: usize) -> Outcome<Value> {
    let begun = Instant::now();
    let mut made: Vec<Reference> = Vec::new();
    let batch = (BATCH_BYTES / bytes.max(1)).max(1);
    while made.len() < count {
        let left = batch.min(count - made.len());
        let more = store.transact(|objects| {
            let content = |number: usize| vec![number as u8; bytes];
            (0..left)
                .map(|number| objects.create(content(number)))
                .collect::<Result<Vec<_>, _>>()
        })?;
        made.extend(more);
    }
    store.transact(|objects| {
        let list = objects.create(encoded(&made)?)?;
        objects.set_root(ROOT, &list)
    })?;
    Ok(json!({"made": count, "total_s": begun.elapsed().as_secs_f64()}))
}

/// Reads some of them, each in a transaction of its own.
pub(crate) fn fetches(
    store: &MemberStore,
    first: usize,
    count: usize,
    flight: usize,
) -> Outcome<Value> {
    let list: Vec<Reference> = store.transact(|objects| match objects.root(ROOT)? {
        Some(list) => objects.get(&list),
        None => Ok(Vec::new()),
    })?;
    let wanted = list
        .get(first..first + count)
        .ok_or("so many were not made in this segment")?;
    let next = AtomicUsize::new(0);
    let one_after_the_other = || -> Among<Vec<Duration>> {
        let mut took = Vec::new();
        while let Some(object) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            store.transact(|objects| objects.read(object).map(<[u8]>::len))?;
            took.push(begun.elapsed());
        }
        Ok(took)
    };
    let (before, begun) = (store.stats(), Instant::now());
    let took = thread::scope(|scope| {
        let readers: Vec<_> = (0..flight.max(1))
            .map(|_| scope.spawn(one_after_the_other))
            .collect();
        let all = readers.into_iter().map(|reader| match reader.join() {
            Ok(took) => took,
            Err(_) => Err("a reader has panicked".into()),
        });
        all.collect::<Among<Vec<_>>>()
    });
    let (total, took) = (begun.elapsed(), took.map_err(|why| why.to_string())?);
    let mut told = timed(took.concat(), total);
    join(&mut told, counted(&store.stats().since(&before)));
    Ok(told)
}

/// Changes an object that nobody else changes.
pub(crate) fn commits(store: &MemberStore, count: usize) -> Outcome<Value> {
    let own = store.transact(|objects| objects.create(vec![0; COMMIT_BYTES]))?;
    let (before, begun) = (store.stats(), Instant::now());
    let mut took = Vec::new();
    for number in 0..count {
        let begun = Instant::now();
        store.transact(|objects| objects.write(&own, vec![number as u8; COMMIT_BYTES]))?;
        took.push(begun.elapsed());
    }
    let mut told = timed(took, begun.elapsed());
    join(&mut told, counted(&store.stats().since(&before)));
    Ok(told)
}

pub(crate) fn timed(mut took: Vec<Duration>, total: Duration) -> Value {
    took.sort_unstable();
    let seconds = |at: usize| took.get(at).map_or(0.0, Duration::as_secs_f64);
    let micros: Vec<u64> = took.iter().map(|took| took.as_micros() as u64).collect();
    json!({
        "total_s": total.as_secs_f64(),
        "count": took.len(),
        "mean_s": took.iter().sum::<Duration>().as_secs_f64() / took.len().max(1) as f64,
        "p50_s": seconds(took.len() / 2),
        "p99_s": seconds(took.len() * 99 / 100),
        "sorted_us": micros,
    })
}

/// What a thread may hand to another one.
type Among<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
