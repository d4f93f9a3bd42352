//! The examples do what they say.

#![allow(clippy::unwrap_used, reason = "this is a test")]

#[path = "../../crates/client/tests/joins/mod.rs"]
mod joins;

use joins::Joins;
use std::thread;
use std::time::Duration;
use thorp_client::Session;
use thorp_examples::{counter, graph, notes};
use thorp_testing::HomeNode;

#[test]
fn two_members_increment_one_counter() {
    let village = HomeNode::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (member, segment) = village.member_at("counter");
                let counter = counter::open(&member, &segment).unwrap();
                for _ in 0..20 {
                    counter::increment(&member, &counter).unwrap();
                }
            });
        }
    });
    let (member, segment) = village.member_at("counter");
    let counter = counter::open(&member, &segment).unwrap();
    let strict = Session::new().strict(true);
    assert_eq!(
        member.transact_with(strict, |tx| tx.get(&counter)).unwrap(),
        40
    );
}

#[test]
fn notes_are_seen_by_who_follows_them() {
    let village = HomeNode::new();
    let (anna, notes) = village.member_at("notes");
    let (bert, notes_of_bert) = village.member_at("notes");
    let writer = thread::spawn(move || {
        for text in ["buy cheese", "milk the goats", "mend the roof"] {
            notes::write(&bert, &notes_of_bert, text).unwrap();
        }
    });
    let mut seen = Vec::new();
    notes::follow(&anna, &notes, Duration::from_secs(20), |notes| {
        seen = notes.to_vec();
        notes.len() < 3
    })
    .unwrap();
    writer.join().unwrap();
    assert_eq!(seen, ["buy cheese", "milk the goats", "mend the roof"]);
}

#[test]
fn a_family_grows_and_lies_together() {
    let village = HomeNode::new();
    let (member, segment) = village.member_at("family");
    let eve = graph::found(&member, &segment, "Eve").unwrap();
    let abel = graph::born(&member, &eve, "Abel").unwrap();
    graph::born(&member, &eve, "Seth").unwrap();
    graph::born(&member, &abel, "Noah").unwrap();
    let everybody = graph::everybody(&member, &segment).unwrap();
    assert_eq!(everybody, ["Eve", "Abel", "Noah", "Seth"]);
    assert_eq!(abel.reference().object.page, eve.reference().object.page);
}
