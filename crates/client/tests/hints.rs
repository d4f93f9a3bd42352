//! What one member of a site has read, the next one is told it may want.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use joins::Joins;
use serde::{Deserialize, Serialize};
use thorp_client::collections::TreeMap;
use thorp_client::{Error, JoinConfig, Member, Ref, Reference, Segment, Stats, Transaction};
use thorp_testing::{HomeNode, SiteNode, eventually};

/// So many that what lies near a page is hardly ever read.
const PAGES: usize = 3_000;
const READ: usize = 200;

/// A page each, in no order of their numbers, and as many others that nobody reads with them.
struct Notes {
    walked: Vec<Reference>,
    others: Vec<Reference>,
}

impl Notes {
    fn make(village: &HomeNode) -> Notes {
        let (stranger, shop) = village.member_at("shop");
        let mut all = Vec::new();
        for _ in 0..PAGES / 100 {
            let made = stranger.transact(|tx| {
                let notes = (0..100).map(|_| tx.create(&shop, vec![7; 6000]));
                notes.collect::<Result<Vec<Reference>, _>>()
            });
            all.extend(made.unwrap());
        }
        let scattered = |from: usize| {
            let places = (from..).step_by(2).map(|n| n * 1_171 % PAGES);
            places.take(READ).map(|place| all[place]).collect()
        };
        Notes {
            walked: scattered(0),
            others: scattered(1),
        }
    }
}

fn at(village: &HomeNode, site: &SiteNode) -> Member {
    let config = JoinConfig::new(site.address().to_string()).identity_of(village.identity());
    Member::join(config).unwrap()
}

/// Reads one after the other, as a program that thinks about each: what was asked for has come when it reads on.
fn walk<'a>(member: &Member, notes: impl IntoIterator<Item = &'a Reference>) -> Stats {
    let before = member.stats();
    for note in notes {
        member.transact(|tx| tx.read(note).map(|_| ())).unwrap();
        thread::sleep(Duration::from_millis(2));
        eventually("all that was asked for has come", || {
            let stats = member.stats();
            stats.through_site + stats.from_peers == stats.fetches
        });
    }
    member.stats().since(&before)
}

#[test]
fn who_goes_the_way_of_a_neighbour_waits_seldom() {
    for memory in [0, 64 << 20] {
        let village = HomeNode::new();
        let notes = Notes::make(&village);
        let site = village.site(memory);
        let (anna, bert) = (at(&village, &site), at(&village, &site));
        let alone = walk(&anna, &notes.walked);
        assert!(alone.misses > READ as u64 * 3 / 4, "{alone:?}");
        let second = walk(&bert, &notes.walked);
        assert!(second.misses < READ as u64 / 5, "{second:?}");
        assert!(second.ahead_hinted > READ as u64 / 2, "{second:?}");
        // What lies near was guessed at in vain, a few pages for each of the few waits.
        let needed = READ as u64 + 5 * second.misses;
        assert!(second.fetches < needed, "{second:?}");
    }
}

#[test]
fn who_goes_anywhere_is_not_flooded_with_hints() {
    let village = HomeNode::new();
    let notes = Notes::make(&village);
    let site = village.site(64 << 20);
    let (anna, bert) = (at(&village, &site), at(&village, &site));
    walk(&anna, &notes.walked);
    // From each page that anna read, bert goes where she never was.
    let mixed = notes.walked.iter().zip(&notes.others);
    let stats = walk(&bert, mixed.flat_map(|(walked, other)| [walked, other]));
    assert!(stats.misses > READ as u64, "{stats:?}");
    assert!(stats.ahead_hinted < READ as u64 / 10, "{stats:?}");
}

#[test]
fn without_a_site_nobody_is_told_anything() {
    let village = HomeNode::new();
    let notes = Notes::make(&village);
    let (anna, bert) = (village.member(), village.member());
    for member in [&anna, &bert] {
        for note in &notes.walked {
            member.transact(|tx| tx.read(note).map(|_| ())).unwrap();
        }
        assert_eq!(member.stats().ahead_hinted, 0);
    }
}

#[test]
fn what_the_program_names_comes_and_is_counted() {
    let village = HomeNode::new();
    let notes = Notes::make(&village);
    let anna = village.member();
    let (named, read) = (&notes.walked[..50], &notes.walked[..40]);
    anna.prefetch(named);
    eventually("they have come", || anna.stats().cached_pages >= 50);
    for note in read {
        anna.transact(|tx| tx.read(note).map(|_| ())).unwrap();
    }
    let stats = anna.stats();
    assert_eq!((stats.misses, stats.fetches), (0, 50), "{stats:?}");
    assert_eq!((stats.ahead, stats.ahead_used), (50, 40), "{stats:?}");
    // What is here, and what is nowhere, is not asked for.
    anna.prefetch(named);
    let nowhere = thorp_client::Reference {
        home: thorp_model::HomeId(99),
        ..notes.others[0]
    };
    anna.prefetch(&[nowhere]);
    assert_eq!(anna.stats().ahead, 50);
}

#[derive(Serialize, Deserialize)]
struct Node {
    below: Vec<Ref<Node>>,
    ballast: Vec<u8>,
}

/// A tree of which each node has a page of its own, and lies near no other one.
fn tree(member: &Member, shop: &Segment, depth: u32) -> Ref<Node> {
    let below = match depth {
        0 => Vec::new(),
        _ => (0..4).map(|_| tree(member, shop, depth - 1)).collect(),
    };
    let ballast = vec![1; 6000];
    let node = Node { below, ballast };
    let made = member.transact(|tx| {
        for _ in 0..7 {
            tx.create(shop, vec![2; 8000])?;
        }
        tx.create_typed(shop, &node)
    });
    made.unwrap()
}

fn visit(tx: &mut Transaction, node: &Ref<Node>) -> Result<u64, Error> {
    let value = tx.get(node)?;
    thread::sleep(Duration::from_millis(2));
    let below = value.below.iter().map(|below| visit(tx, below));
    Ok(1 + below.sum::<Result<u64, _>>()?)
}

#[test]
fn who_follows_typed_references_waits_for_few_of_them() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let root = tree(&anna, &shop, 4);
    let bert = village.member();
    let nodes = bert.transact(|tx| visit(tx, &root)).unwrap();
    let stats = bert.stats();
    assert!(stats.misses < nodes / 5, "{nodes} {stats:?}");
    // What lies near was guessed at in vain, a few pages for each of the few waits.
    assert!(stats.fetches < nodes * 2, "{nodes} {stats:?}");
}

/// A leaf names the ones that come after it, wherever they lie.
#[test]
fn who_goes_through_a_map_waits_for_few_of_its_leaves() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let map: TreeMap<u64, Vec<u8>> = anna.transact(|tx| TreeMap::create(tx, &shop)).unwrap();
    // In no order of the keys, and others fill the pages between.
    for turn in 0..100 {
        let made = anna.transact(|tx| {
            for n in 0..10 {
                let key = (turn * 10 + n) * 373 % 1_000;
                map.insert(tx, key, vec![7; 700])?;
            }
            (0..10).try_for_each(|_| tx.create(&shop, vec![2; 8000]).map(|_| ()))
        });
        made.unwrap();
    }
    let bert = village.member();
    let mut entries = 0;
    bert.transact(|tx| {
        entries = 0;
        map.scan(tx, .., |_, _| {
            entries += 1;
            thread::sleep(Duration::from_micros(200));
            Ok(ControlFlow::Continue(()))
        })
    })
    .unwrap();
    let stats = bert.stats();
    assert_eq!(entries, 1_000);
    assert!(stats.misses * 4 < stats.ahead_used, "{stats:?}");
}
