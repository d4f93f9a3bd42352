//! Named roots: an ordered map over objects, of which programs see only names and references.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::collections::BTreeMap;
use std::time::Duration;
use thorp_client::{
    ErrorKind, Generation, Member, PageId, PageNo, Reference, Segment, Session, Slot,
};
use thorp_model::limits::{INLINE_VALUE_BYTES_MAX, OVERFLOW_CHUNK_BYTES, STAGE_PAGES_MAX};
use thorp_model::{
    Blob, CallRequest, CallResponse, NewValue, Outcome, Overflow, SegmentId, WriteOp,
};
use thorp_testing::{HomeNode, MemberNode};

fn name_of(number: usize) -> String {
    format!("root number {number:06}")
}

/// Sets the roots of these numbers, many in each transaction.
fn set_all(member: &Member, shop: &Segment, numbers: impl Iterator<Item = usize>, to: Reference) {
    let numbers: Vec<usize> = numbers.collect();
    for some in numbers.chunks(2_000) {
        member
            .transact(|tx| {
                some.iter()
                    .try_for_each(|number| tx.set_root(shop, &name_of(*number), Some(to)))
            })
            .unwrap();
    }
}

/// Bytes that a member sends and its home writes for 20 changes of each kind: of roots that are there, of new ones, and
/// of those when they go.
fn cost(home: &HomeNode, member: &Member, shop: &Segment, to: Reference) -> [[u64; 2]; 3] {
    let steps = [
        ("", Some(to)),
        (" and a half", Some(to)),
        (" and a half", None),
    ];
    steps.map(|(end, reference)| {
        home.eventually_quiet();
        let (stats, written) = (member.stats(), home.written_bytes());
        for number in 0..20 {
            let name = name_of(1_000 * number) + end;
            shop.set_root(&name, reference).unwrap();
        }
        home.eventually_quiet();
        let sent = member.stats().since(&stats).traffic.bytes_sent;
        [sent, home.written_bytes() - written]
    })
}

#[test]
fn a_root_among_many_costs_what_one_among_few_does() {
    let home = HomeNode::new();
    let (anna, shop) = home.member_at("shop");
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    // Every tenth first: later names go between these.
    set_all(&anna, &shop, (0..10_000).map(|n| 10 * n), one);
    let few = cost(&home, &anna, &shop, one);
    set_all(&anna, &shop, (0..100_000).filter(|n| n % 10 > 0), one);
    let many = cost(&home, &anna, &shop, one);
    println!("sent and written of 20 changes, among 10,000: {few:?}, among 100,000: {many:?}");
    for (few, many) in few.concat().into_iter().zip(many.concat()) {
        assert!(many <= 2 * few, "{many} bytes, among few {few}");
    }
    let roots = home.member().open("thorp://alps/shop").unwrap().roots();
    let roots = roots.unwrap();
    assert_eq!(roots.len(), 100_000);
    assert!(roots.is_sorted() && roots.iter().all(|(_, reference)| *reference == one));
}

#[test]
fn members_that_set_different_roots_do_not_conflict() {
    let home = HomeNode::new();
    let (anna, shop) = home.member_at("shop");
    let bert = home.member();
    let shop_of_bert = bert.open("thorp://alps/shop").unwrap();
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    let two = anna.transact(|tx| tx.create(&shop, "2")).unwrap();
    set_all(&anna, &shop, 0..100, one);

    let before = (anna.stats(), bert.stats());
    for round in 0..50 {
        let mut of_anna = anna.begin(Session::new());
        let mut of_bert = bert.begin(Session::new());
        let names = [name_of(2 * round), name_of(2 * round + 1)];
        of_anna.set_root(&shop, &names[0], Some(two)).unwrap();
        of_bert
            .set_root(&shop_of_bert, &names[1], Some(two))
            .unwrap();
        of_anna.commit().unwrap();
        of_bert.commit().unwrap();
    }
    let conflicts = [
        anna.stats().since(&before.0).conflicts,
        bert.stats().since(&before.1).conflicts,
    ];
    assert_eq!(conflicts, [0, 0]);
    assert!(shop.roots().unwrap().iter().all(|(_, to)| *to == two));
}

#[test]
fn new_roots_of_many_members_are_all_there() {
    let home = HomeNode::new();
    let (anna, shop) = home.member_at("shop");
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let member = home.member();
            scope.spawn(move || {
                let shop = member.open("thorp://alps/shop").unwrap();
                for round in 0..50 {
                    let name = name_of(4 * round + thread);
                    shop.set_root(&name, Some(one)).unwrap();
                }
            });
        }
    });
    let names: Vec<String> = (0..200).map(name_of).collect();
    let set = shop.roots().unwrap().into_iter().map(|(name, _)| name);
    assert_eq!(set.collect::<Vec<_>>(), names);
}

#[test]
fn programs_see_no_node_of_the_roots() {
    let home = HomeNode::new();
    let (anna, shop) = home.member_at("shop");
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    let mut watch = shop.watch().unwrap();
    for count in [10, 300] {
        set_all(&anna, &shop, 0..count, one);
        let changed = watch.next(Duration::from_secs(20)).unwrap().unwrap();
        let roots = changed.changes.iter().filter(|change| change.is_roots());
        assert_eq!(
            (roots.count(), changed.changes.len()),
            (1, 1),
            "{changed:?}"
        );
    }
    let scan = |tx: &mut thorp_client::Transaction| {
        let mut seen = Vec::new();
        tx.scan(&shop, |reference, _| {
            seen.push(reference);
            Ok(())
        })?;
        Ok(seen)
    };
    assert_eq!(anna.transact(scan).unwrap(), [one]);
    // Also not what the transaction itself has made.
    let seen = anna.transact(|tx| {
        tx.set_root(&shop, "new", Some(one))?;
        scan(tx)
    });
    assert_eq!(seen.unwrap(), [one]);
    let entries = anna.list("thorp://alps/shop").unwrap();
    assert_eq!(entries[0].pages, one.object.page.page.0 + 1);

    let mut node = one;
    node.object.page.page = node.object.page.page.system();
    let written = anna.transact(|tx| tx.write(&node, "mine"));
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid);
    let deleted = anna.transact(|tx| tx.delete(&node));
    assert_eq!(deleted.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn all_roots_can_be_taken_away_and_set_again() {
    let home = HomeNode::new();
    let (anna, shop) = home.member_at("shop");
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    for _ in 0..2 {
        set_all(&anna, &shop, 0..500, one);
        assert_eq!(shop.root(&name_of(499)).unwrap(), Some(one));
        let taken = anna.transact(|tx| {
            (0..500).try_for_each(|number| tx.set_root(&shop, &name_of(number), None))
        });
        taken.unwrap();
        assert_eq!(shop.roots().unwrap(), []);
        assert_eq!(shop.root(&name_of(499)).unwrap(), None);
    }
    shop.set_root("never there", None).unwrap();
    assert_eq!(shop.roots().unwrap(), []);
}

/// Makes a segment whose roots are one list, as programs made it before they were a map.
fn shop_of_before(home: &HomeNode, roots: &BTreeMap<String, Reference>) {
    let list = postcard::to_allocvec(roots).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (identity, address) = (home.identity(), home.address());
        let old = MemberNode::start_here(identity, address, home.id(), 77).await;
        let segment = old.open_or_create("shop").await;
        let value = match list.len() {
            0..=INLINE_VALUE_BYTES_MAX => NewValue::Inline(Blob::from(&list[..])),
            _ => NewValue::Staged(stage(&old, segment, &list).await),
        };
        let page = PageId {
            segment,
            page: PageNo(0),
        };
        let generation = Generation(1);
        let create = WriteOp::Create { generation, value };
        let (_, outcome) = old.commit(page, Slot(1), create).await;
        assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
    });
}

async fn stage(old: &MemberNode, segment: SegmentId, list: &[u8]) -> Overflow {
    let registered = old.call(CallRequest::Register(None)).await.unwrap();
    let CallResponse::Registered(registration) = registered else {
        panic!("{registered:?}");
    };
    let chunks: Vec<Blob> = list.chunks(OVERFLOW_CHUNK_BYTES).map(Blob::from).collect();
    let mut staged = None;
    for (piece, chunks) in chunks.chunks(STAGE_PAGES_MAX).enumerate() {
        let stage = CallRequest::Stage {
            segment,
            registration,
            token: 1,
            bytes: list.len() as u64,
            index: (piece * STAGE_PAGES_MAX) as u32,
            chunks: chunks.to_vec(),
        };
        match old.call(stage).await.unwrap() {
            CallResponse::Staged(overflow) => staged = Some(overflow),
            other => panic!("{other:?}"),
        }
    }
    staged.unwrap()
}

#[test]
fn roots_of_a_segment_of_before_are_read_and_changed() {
    for count in [0, 100, 18_000] {
        let home = HomeNode::new();
        let (anna, other) = home.member_at("other");
        let one = anna.transact(|tx| tx.create(&other, "1")).unwrap();
        let two = anna.transact(|tx| tx.create(&other, "2")).unwrap();
        let mut roots: BTreeMap<String, Reference> =
            (0..count).map(|n| (name_of(n), one)).collect();
        shop_of_before(&home, &roots);

        let shop = anna.open("thorp://alps/shop").unwrap();
        let all = |roots: &BTreeMap<_, _>| roots.clone().into_iter().collect::<Vec<_>>();
        assert_eq!(shop.roots().unwrap(), all(&roots));
        assert_eq!(
            shop.root(&name_of(7)).unwrap(),
            roots.get(&name_of(7)).copied()
        );
        // The list stays one until a root is set.
        shop.set_root(&name_of(8), None).unwrap();
        roots.remove(&name_of(8));
        assert_eq!(shop.roots().unwrap(), all(&roots));
        shop.set_root(&name_of(7), Some(two)).unwrap();
        shop.set_root("new", Some(two)).unwrap();
        roots.extend([(name_of(7), two), ("new".to_owned(), two)]);
        let bert = home.member().open("thorp://alps/shop").unwrap();
        assert_eq!(bert.roots().unwrap(), all(&roots));
    }
}

/// What one commit cannot turn into a map stays a list.
#[test]
fn a_very_long_list_of_before_stays_one() {
    let home = HomeNode::new();
    let (anna, other) = home.member_at("other");
    let one = anna.transact(|tx| tx.create(&other, "1")).unwrap();
    let long = "long ".repeat(80);
    let roots: BTreeMap<String, Reference> = (0..3_000)
        .map(|n| (long.clone() + &name_of(n), one))
        .collect();
    shop_of_before(&home, &roots);
    let shop = anna.open("thorp://alps/shop").unwrap();
    shop.set_root("new", Some(one)).unwrap();
    let bert = home.member().open("thorp://alps/shop").unwrap();
    assert_eq!(bert.root("new").unwrap(), Some(one));
    assert_eq!(bert.roots().unwrap().len(), 3_001);
}

#[test]
fn roots_outlive_their_home() {
    let home = HomeNode::new();
    let (anna, shop) = home.member_at("shop");
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    set_all(&anna, &shop, 0..500, one);
    home.eventually_quiet();
    home.stop();
    home.restart();
    let bert = home.member();
    let shop = bert.open("thorp://alps/shop").unwrap();
    assert_eq!(shop.roots().unwrap().len(), 500);
    let two = bert.transact(|tx| tx.create(&shop, "2")).unwrap();
    set_all(&bert, &shop, 0..10, two);
    let roots = home
        .member()
        .open("thorp://alps/shop")
        .unwrap()
        .roots()
        .unwrap();
    let of_two = roots.iter().filter(|(_, reference)| *reference == two);
    assert_eq!((roots.len(), of_two.count()), (500, 10));
}
