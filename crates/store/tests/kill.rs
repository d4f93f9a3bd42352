//! A process that commits is killed at random moments: whatever it has said
//! to be durable is there afterwards, and every batch is whole or absent.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{batch, open, put};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thorp_model::{Batch, Reader as _, Scan, Table};
use thorp_store::{Committer, Store, check};

const DIR: &str = "THORP_STORE_KILL_DIR";
const ROUNDS: u32 = 10;
const KEYS: u64 = 5;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .subsec_nanos();
    let (mut acknowledged, mut found) = (0, 0);
    for round in 0..ROUNDS {
        let wait_ms = u64::from(seed.wrapping_mul(round * 2 + 1) >> 8) % 150;
        acknowledged = run_and_kill(dir.path(), wait_ms).max(acknowledged);
        // The tables, now and then, without the engine's own opening first.
        if round % 4 == 0 {
            let report = check(dir.path()).unwrap();
            assert!(report.is_good(), "round {round}, seed {seed}: {report}");
        }
        let highest = highest_whole(&open(dir.path()));
        assert!(
            highest >= acknowledged,
            "round {round}, seed {seed}: {highest} < {acknowledged}"
        );
        assert!(
            highest >= found,
            "round {round}, seed {seed}: what was seen is gone"
        );
        found = highest;
    }
    assert!(
        acknowledged > 10,
        "{acknowledged} batches are too few to tell"
    );
    println!("{acknowledged} acknowledged, {found} found, in {ROUNDS} rounds");
}

/// The process to be killed: only in a run of its own.
#[test]
fn commits_until_killed() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let store = Arc::new(open(Path::new(&dir)));
    let from = highest_whole(&store) + 1;
    let tell = |result: Result<thorp_model::Mark, _>| {
        let line = format!("durable {}\n", result.unwrap().0);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    };
    let committer = Committer::start(store, tell).unwrap();
    for mark in from.. {
        while committer.stats().queued_batches > 20 {
            std::thread::yield_now();
        }
        committer.submit(numbered(mark)).unwrap();
    }
}

/// Lets the other process commit for a while, kills it, and returns the last mark
/// that it told.
fn run_and_kill(dir: &Path, wait_ms: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "commits_until_killed", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = |line: String| -> Option<u64> { line.split_once("durable ")?.1.parse().ok() };
    let mut last = loop {
        if let Some(mark) = told(lines.next().unwrap().unwrap()) {
            break mark;
        }
    };
    std::thread::scope(|scope| {
        // Read on meanwhile, or the other process waits for us.
        let reader = scope.spawn(|| lines.map_while(Result::ok).filter_map(told).last());
        std::thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        last = reader.join().unwrap().unwrap_or(last);
    });
    child.wait().unwrap();
    last
}

/// Five keys in three tables, one of them now and then a page's size.
fn numbered(mark: u64) -> Batch {
    let page = format!("{mark:016}").repeat(if mark.is_multiple_of(8) { 512 } else { 16 });
    let mut ops: Vec<_> = (1..KEYS)
        .map(|key| {
            let table = if key % 2 == 0 {
                Table::Log
            } else {
                Table::Outcomes
            };
            put(table, &format!("{mark:08}/{key}"), &mark.to_string())
        })
        .collect();
    ops.push(put(Table::Pages, &format!("{mark:08}/0"), &page));
    batch(mark, ops)
}

/// The highest batch, having seen that all up to it are whole.
fn highest_whole(store: &Store) -> u64 {
    let mut keys = BTreeMap::<u64, u64>::new();
    for table in [Table::Log, Table::Outcomes, Table::Pages] {
        let mut visit = |key: &[u8], _: &[u8]| {
            let mark = std::str::from_utf8(&key[..8]).unwrap().parse().unwrap();
            *keys.entry(mark).or_default() += 1;
            Scan::Go
        };
        store.scan(table, b"", b"", &mut visit).unwrap();
    }
    for (expected, (mark, count)) in (1..).zip(&keys) {
        assert_eq!((expected, KEYS), (*mark, *count), "a batch is not whole");
    }
    keys.len() as u64
}
