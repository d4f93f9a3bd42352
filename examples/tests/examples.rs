//! The examples do what they say.

#![allow(clippy::unwrap_used, reason = "this is a test")]

#[path = "../../crates/client/tests/joins/mod.rs"]
mod joins;

use joins::Joins;
use std::thread;
use std::time::Duration;
use thorp_client::Session;
use thorp_examples::{AtHome, Request, answer, counter, graph, notes};
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

#[test]
fn an_auction_takes_higher_bids_and_says_what_each_page_has_read() {
    let village = HomeNode::new();
    let (member, segment) = village.member_at("auction");
    let mut house = AtHome::open(&member, &segment).unwrap();
    let mut ask = |method: &str, path: &str, body: &str| {
        let [method, path, body] = [method, path, body].map(str::to_owned);
        answer(&mut house, &Request { method, path, body })
    };
    let bid = |bidder: &str, cents: u64| format!("bidder={bidder}&cents={cents}");
    assert_eq!(ask("POST", "/lots/7/bid", &bid("anna", 120)).status, 201);
    assert_eq!(ask("POST", "/lots/7/bid", &bid("bert", 120)).status, 409);
    assert_eq!(ask("POST", "/lots/700/bid", &bid("bert", 1)).status, 404);
    assert_eq!(ask("POST", "/lots/7/bid", "cents=1").status, 400);
    for (path, objects) in [("/lots/7", 1), ("/lots/7/bid", 1), ("/shelves/0", 10)] {
        let page = ask("GET", path, "");
        assert!(page.body.contains("data-lot=\"7\">120<"), "{}", page.body);
        let field = |name| page.fields.iter().find(|(field, _)| *field == name);
        let (_, reads) = field("Thorp-Reads").unwrap();
        assert_eq!(reads.split(' ').count(), 1 + objects, "{reads}");
        assert!(field("Thorp-Evidence").is_some());
    }
    for path in ["/lots/700", "/lots/x", "/shelves/99", "/"] {
        assert_eq!(ask("GET", path, "").status, 404, "{path}");
    }
}
