//! Futures that are dropped before they are ready: the table in the head of the crate says what happens then.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Waker};
use thorp_client::{Member, Outcome, Ref, Session};
use thorp_testing::{HomeNode, eventually};

/// Begins a future, and drops it while it waits. What it has begun is seen by `is_begun`.
fn begin_and_drop(future: impl Future, is_begun: impl Fn() -> bool) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    eventually("it is begun", || {
        assert!(future.as_mut().poll(&mut context).is_pending());
        is_begun()
    });
}

/// A member, and a counter that stands at 1.
fn counter(village: &HomeNode) -> (Member, Ref<u64>) {
    let (member, segment) = village.member_at("notes");
    let counter = member.transact(|tx| tx.create_typed(&segment, &1u64));
    (member, counter.unwrap())
}

fn newest(member: &Member, counter: &Ref<u64>) -> u64 {
    let session = Session::new().strict(true);
    member.transact_with(session, |tx| tx.get(counter)).unwrap()
}

fn is_reached(member: &Member) -> bool {
    let homes = member.homes();
    !homes.is_empty() && homes.iter().all(|home| home.reachable)
}

#[test]
fn a_commit_that_was_sent_goes_on() {
    let village = HomeNode::new();
    let (member, counter) = counter(&village);
    village.hold_disk();
    let mut tx = member.begin(Session::new());
    tx.put(&counter, &2).unwrap();
    begin_and_drop(tx.commit_async(), || village.has_waiting());
    village.release_disk();
    eventually("it is committed", || newest(&member, &counter) == 2);
}

#[test]
fn a_commit_that_was_not_sent_has_no_effect() {
    let village = HomeNode::new();
    let (member, counter) = counter(&village);
    village.stop();
    eventually("the member notices", || !is_reached(&member));
    let mut tx = member.begin(Session::new());
    tx.put(&counter, &2).unwrap();
    begin_and_drop(tx.commit_async(), || true);
    village.restart();
    assert_eq!(newest(&member, &counter), 1);
}

#[test]
fn an_early_commit_has_an_outcome_although_nobody_waited_for_it() {
    let village = HomeNode::new();
    let (member, counter) = counter(&village);
    village.hold_disk();
    let work = |tx: &mut thorp_client::Transaction| tx.put(&counter, &2);
    let ((), pending) = member.transact_early(work).unwrap();
    let id = pending.id().unwrap();
    begin_and_drop(pending.wait_async(), || true);
    village.release_disk();
    let outcome = member.outcome(id).unwrap();
    assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
    assert_eq!(newest(&member, &counter), 2);
}

#[test]
fn a_transaction_goes_on_after_a_read_that_was_dropped() {
    let village = HomeNode::new();
    let (_anna, counter) = counter(&village);
    let bert = village.member();
    let mut tx = bert.begin(Session::new());
    begin_and_drop(tx.get_async(&counter), || true);
    assert_eq!(tx.get(&counter).unwrap(), 1);
    tx.put(&counter, &2).unwrap();
    tx.commit().unwrap();
    assert_eq!(newest(&bert, &counter), 2);
}

#[test]
fn the_head_of_the_crate_names_every_call() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let head = fs::read_to_string(source.join("lib.rs")).unwrap();
    let (_, after) = head.split_once("//! # Cancellation\n").unwrap();
    let (table, _) = after.split_once("//! # ").unwrap();
    let calls = public_futures(&source);
    assert!(calls.len() > 40, "{calls:?}");
    for call in calls {
        let words = [format!("::{call}`"), format!("`{call}`")];
        let is_named = words.iter().any(|word| table.contains(word));
        assert!(is_named, "lib.rs, Cancellation: {call} is missing");
    }
}

/// The names of all public async functions below a directory.
fn public_futures(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(public_futures(&path));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let after = text.split("    pub async fn ").skip(1);
        let name = after.map(|after| after.split(['(', '<']).next().unwrap().to_owned());
        names.extend(name);
    }
    names
}
