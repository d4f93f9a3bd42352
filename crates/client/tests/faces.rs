//! The async face, watches, names, sites.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use std::time::Duration;
use thorp_client::{Error, ErrorKind, Lost, Member, Reference, Result, Segment, Session};
use thorp_testing::{HomeNode, eventually};

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn everything_has_an_async_face() {
    let village = tokio::task::spawn_blocking(HomeNode::new).await.unwrap();
    let anna = Member::join_async(village.config()).await.unwrap();
    let shop = anna.create_async("thorp://alps/shop").await.unwrap();
    let again = anna.create_async("thorp://alps/shop").await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let note = anna
        .transact_async(async |tx| {
            let note = tx.create_async(&shop, "hello").await?;
            tx.create_near_async(&note, "near").await?;
            tx.set_root_async(&shop, "note", Some(note)).await?;
            Ok(note)
        })
        .await
        .unwrap();
    let bert = Member::join_async(village.config()).await.unwrap();
    let shop_of_bert = bert.open_async("thorp://alps/shop").await.unwrap();
    assert_eq!(shop_of_bert.root_async("note").await.unwrap(), Some(note));
    let mut watch = shop.watch_async().await.unwrap();
    let mut tx = bert.begin(Session::new());
    assert_eq!(tx.read_async(&note).await.unwrap(), b"hello");
    tx.patch_async(&note, 0, b"H").await.unwrap();
    assert_eq!(tx.read_at_async(&note, 0, 2).await.unwrap(), b"He");
    assert!(tx.exists_async(&note).await.unwrap());
    let mut seen = 0;
    tx.scan_async(&shop_of_bert, |_, _| {
        seen += 1;
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(seen, 2);
    tx.commit_async().await.unwrap();
    let changed = watch.next_async().await.unwrap();
    assert!(
        changed
            .changes
            .iter()
            .any(|change| change.object == note.object)
    );
    assert_eq!(anna.list_async("thorp://alps/").await.unwrap().len(), 1);
    anna.remove_async("thorp://alps/shop").await.unwrap();
    assert_eq!(anna.list_async("thorp://alps/").await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_run_in_tasks_of_any_runtime() {
    let village = tokio::task::spawn_blocking(HomeNode::new).await.unwrap();
    let anna = Member::join_async(village.config()).await.unwrap();
    let shop = anna.create_async("thorp://alps/shop").await.unwrap();
    let counter = anna
        .transact_async(async |tx| tx.create_typed_async(&shop, &0u64).await)
        .await
        .unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (anna, shop) = (anna.clone(), shop.clone());
            tokio::spawn(async move {
                for _ in 0..5 {
                    let shop = shop.clone();
                    anna.transact_async(async move |tx| {
                        let value = tx.get_async(&counter).await? + 1;
                        let note = tx.create_async(&shop, "counted").await?;
                        tx.patch_async(&note, 0, b"C").await?;
                        tx.set_root_async(&shop, "last", Some(note)).await?;
                        tx.put(&counter, &value)
                    })
                    .await
                    .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let strict = Session::new().strict(true);
    let count = anna
        .transact_with_async(strict, async |tx| tx.get_async(&counter).await)
        .await;
    assert_eq!(count.unwrap(), 40);
}

/// Tasks may be moved between threads.
#[test]
fn futures_are_send() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    fn check(member: &Member, segment: &thorp_client::Segment, reference: Reference) {
        let mut tx = member.begin(Session::new());
        drop(is_send(tx.read_async(&reference)));
        drop(is_send(tx.create_async(segment, "x")));
        drop(is_send(tx.set_root_async(segment, "x", None)));
        drop(is_send(tx.scan_async(segment, |_, _| Ok(()))));
        drop(is_send(tx.commit_async()));
        drop(is_send(member.open_async("x")));
        drop(is_send(segment.watch_async()));
    }
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Member>();
    shared::<thorp_client::Segment>();
    is_send::<fn(&Member, &thorp_client::Segment, Reference)>(check);
    is_send(None::<Error>);
}

#[test]
fn a_watch_tells_every_change_in_order() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let bert = village.member();
    let shop_of_bert = bert.open("thorp://alps/shop").unwrap();
    let mut watch = shop.watch().unwrap();
    assert_eq!(watch.next(Duration::from_millis(50)).unwrap(), None);
    let made: Vec<Reference> = (0..20u8)
        .map(|n| bert.transact(|tx| tx.create(&shop_of_bert, [n])).unwrap())
        .collect();
    let elsewhere = bert.create("thorp://alps/elsewhere").unwrap();
    bert.transact(|tx| tx.create(&elsewhere, "x")).unwrap();
    bert.transact(|tx| tx.delete(&made[0])).unwrap();
    let mut heard = Vec::new();
    while heard
        .iter()
        .filter(|object| **object == made[0].object)
        .count()
        < 2
    {
        let changed = watch.next(LONG).unwrap().expect("changes");
        assert_eq!(changed.lost, None);
        assert!(changed.changes.is_sorted_by_key(|change| change.position));
        heard.extend(changed.changes.iter().map(|change| change.object));
    }
    assert!(made.iter().all(|note| heard.contains(&note.object)));
    assert!(heard.iter().all(|object| object.page.segment == shop.id()));
    // Also what the member itself commits; and no fetch was needed.
    anna.transact(|tx| tx.write(&made[1], "mine")).unwrap();
    let changed = watch.next(LONG).unwrap().expect("changes");
    assert_eq!(changed.changes[0].object, made[1].object);
    drop(watch);
}

#[test]
fn a_program_may_be_as_patient_as_it_likes() {
    let village = HomeNode::new();
    let session = Session::new()
        .fetch_timeout(Duration::MAX)
        .commit_timeout(Duration::MAX)
        .backoff_max(Duration::MAX)
        .max_staleness(Duration::MAX);
    let config = village.config().session(session);
    let config = config
        .join_timeout(Duration::MAX)
        .leave_timeout(Duration::MAX);
    let anna = Member::join(config).unwrap();
    let shop = anna.open_or_create("thorp://alps/shop").unwrap();
    let mut watch = shop.watch().unwrap();
    let (note, pending) = anna.transact_early(|tx| tx.create(&shop, "x")).unwrap();
    let committed = pending.wait().unwrap();
    assert!(watch.next(Duration::MAX).unwrap().is_some());
    anna.transact(|tx| tx.read(&note).map(|_| ())).unwrap();
    // It was given, and this member has sent it.
    let outcome = anna.outcome(committed.id.unwrap());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::OutcomeLost);
    anna.close();
}

#[test]
fn a_watch_says_what_it_lost_and_then_goes_on() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let note = anna.transact(|tx| tx.create(&shop, "x")).unwrap();
    let mut watch = shop.watch().unwrap();
    village.stop();
    eventually("it is noticed", || !anna.homes()[0].reachable);
    village.restart();
    let changed = watch.next(LONG).unwrap().expect("something");
    assert_eq!(changed.lost, Some(Lost::Missed));
    let bert = village.member();
    bert.transact(|tx| tx.write(&note, "y")).unwrap();
    let changed = watch.next(LONG).unwrap().expect("a change");
    assert_eq!(
        (changed.lost, changed.changes[0].object),
        (None, note.object)
    );
}

#[test]
fn names_go_to_text_and_back() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("a shop/with rooms");
    let note = anna.transact(|tx| tx.create(&shop, "x")).unwrap();
    let text = anna.format(&note).unwrap();
    assert_eq!(text, "thorp://alps/a shop/with rooms#1.0.1");
    assert_eq!(shop.name(), "thorp://alps/a shop/with rooms");
    let bert = village.member();
    // One that never opened the segment.
    assert_eq!(bert.parse(&text).unwrap(), note);
    let chris = village.member();
    assert_eq!(chris.format(&note).unwrap(), text);
    let into = Reference { offset: 7, ..note };
    assert_eq!(anna.parse(&anna.format(&into).unwrap()).unwrap(), into);
    let kind = |result: Result<Reference>| result.unwrap_err().kind();
    assert_eq!(
        kind(anna.parse("thorp://alps/nothing#1.0.1")),
        ErrorKind::NotFound
    );
    assert_eq!(
        kind(anna.parse("thorp://valley/shop#1.0.1")),
        ErrorKind::NotFound
    );
    assert_eq!(kind(anna.parse("nonsense")), ErrorKind::BadName);
}

#[test]
fn segments_are_made_listed_and_removed() {
    let village = HomeNode::new();
    let anna = village.member();
    assert_eq!(
        anna.open("thorp://alps/a").unwrap_err().kind(),
        ErrorKind::NotFound
    );
    for n in 0..300 {
        anna.create(&format!("thorp://alps/many/{n:03}")).unwrap();
    }
    anna.create("thorp://alps/other").unwrap();
    let many = anna.list("thorp://alps/many/").unwrap();
    assert_eq!(many.len(), 300);
    assert_eq!(
        (many[299].name.as_str(), many[299].pages),
        ("thorp://alps/many/299", 1)
    );
    assert_eq!(anna.list("thorp://alps").unwrap().len(), 301);
    let other = anna.open("thorp://alps/other").unwrap();
    let note = anna.transact(|tx| tx.create(&other, "x")).unwrap();
    anna.remove("thorp://alps/other").unwrap();
    anna.remove("thorp://alps/other").unwrap();
    assert_eq!(
        anna.open("thorp://alps/other").unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let bert = village.member();
    let read = bert.transact(|tx| tx.read(&note).map(|_| ()));
    assert_eq!(read.unwrap_err().kind(), ErrorKind::NotFound);
    // A new one of that name is another one.
    let new = anna.create("thorp://alps/other").unwrap();
    assert_ne!(new, other);
    assert!(anna.transact(|tx| tx.write(&note, "y")).is_err());
}

#[test]
fn neighbours_at_a_site_feed_each_other_and_the_counts_say_so() {
    let village = HomeNode::new();
    let site = village.site(64 << 20);
    let at_site = || {
        let config = thorp_client::JoinConfig::new(site.address().to_string());
        let config = config.identity_of(village.identity());
        Member::join(config.name("neighbour")).unwrap()
    };
    let (anna, bert) = (at_site(), at_site());
    let shop = anna.create("thorp://alps/shop").unwrap();
    let notes: Vec<Reference> = anna
        .transact(|tx| (0..40).map(|n| tx.create(&shop, vec![n; 4000])).collect())
        .unwrap();
    let read_all = |member: &Member| {
        member.transact(|tx| {
            for (n, note) in notes.iter().enumerate() {
                assert_eq!(tx.read(note)?, vec![n as u8; 4000]);
            }
            Ok(())
        })
    };
    read_all(&anna).unwrap();
    read_all(&bert).unwrap();
    let stats = bert.stats();
    assert_eq!(stats.from_home, 0);
    // Some were fetched ahead.
    eventually("all that was asked for has come", || {
        let stats = bert.stats();
        stats.through_site + stats.from_peers == stats.fetches
    });
    assert!(stats.waits.site_fetch + stats.waits.peer_fetch > Duration::ZERO);
    // What one commits, the other has, without asking again.
    bert.transact(|tx| tx.patch(&notes[3], 0, b"new")).unwrap();
    eventually("anna has it", || {
        anna.transact(|tx| Ok(&tx.read(&notes[3])?[..3] == b"new"))
            .unwrap()
    });
    let fetched = bert.stats().fetches;
    anna.transact(|tx| tx.patch(&notes[5], 0, b"too")).unwrap();
    eventually("bert has it", || {
        bert.transact(|tx| Ok(&tx.read(&notes[5])?[..3] == b"too"))
            .unwrap()
    });
    assert_eq!(bert.stats().fetches, fetched);
}

#[test]
fn a_far_home_costs_round_trips_and_the_waits_tell_them() {
    let one_way = Duration::from_millis(20);
    let village = HomeNode::with_delay(one_way);
    // It does not say that it is alive.
    let config = village.config().alive(Duration::from_secs(3600), 15);
    let anna = Member::join(config.link_delay(one_way)).unwrap();
    let shop = anna.create("thorp://alps/shop").unwrap();
    let note = anna.transact(|tx| tx.create(&shop, "x")).unwrap();
    let sent: Vec<u64> = (0..10)
        .map(|n| {
            let before = anna.stats();
            anna.transact(|tx| tx.write(&note, format!("y{n}")))
                .unwrap();
            let spent = anna.stats().since(&before);
            assert!(spent.waits.commit >= 2 * one_way, "{:?}", spent.waits);
            spent.traffic.frames_sent
        })
        .collect();
    // A commit is one frame. Beside it an acknowledgement goes now and then; who asked twice would send more every time.
    assert!(sent.contains(&1), "{sent:?}");
    let bert = Member::join(village.config().link_delay(one_way)).unwrap();
    bert.transact(|tx| tx.read(&note).map(|_| ())).unwrap();
    assert!(bert.stats().waits.home_fetch >= 2 * one_way);
    let before = bert.stats();
    for _ in 0..100 {
        bert.transact(|tx| tx.read(&note).map(|_| ())).unwrap();
    }
    let waits = bert.stats().since(&before).waits;
    assert_eq!(
        waits.total(),
        Duration::ZERO,
        "cached reads wait for nobody"
    );
}

#[test]
fn making_much_at_a_far_home_does_not_wait_for_every_extent() {
    let one_way = Duration::from_millis(25);
    let village = HomeNode::with_delay(one_way);
    let anna = Member::join(village.config().link_delay(one_way)).unwrap();
    let shop = anna.create("thorp://alps/shop").unwrap();
    let mut tx = anna.begin(Session::new());
    for _ in 0..64 * 32 {
        tx.create(&shop, vec![0; 8160]).unwrap();
    }
    tx.abort();
    let waited = anna.stats().waits.room;
    assert!(
        waited < 64 * one_way,
        "64 round trips would be twice that: {waited:?}"
    );
}

#[test]
fn the_last_clone_that_goes_leaves() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    village.eventually_quiet();
    assert_eq!(village.size("children"), 1);
    let clone = anna.clone();
    drop(anna);
    thread::spawn(move || drop(clone)).join().unwrap();
    // The segment keeps it.
    let note = shop.member().transact(|tx| tx.create(&shop, "x")).unwrap();
    assert_eq!(note.object.slot.0, 0);
    drop(shop);
    eventually("the home sees it go", || village.size("children") == 0);
}

#[test]
fn a_watch_that_nobody_can_keep_says_so() {
    let village = HomeNode::new();
    let site = village.site(64 << 20);
    let at_site = || {
        let config = thorp_client::JoinConfig::new(site.address().to_string());
        let config = config.identity_of(village.identity());
        Member::join(config.name("neighbour")).unwrap()
    };
    let (anna, bert, carl) = (at_site(), at_site(), at_site());
    let most = thorp_model::limits::WATCHES_PER_CHILD_MAX;
    // All three have one name, which has half of what the site may watch (rule R7).
    assert_eq!(2 * most, thorp_model::limits::WATCHES_PER_SITE_MAX / 2);
    let shops = |member: &Member, from: usize, to: usize| -> Vec<Segment> {
        let names = (from..to).map(|n| format!("thorp://alps/shop{n}"));
        names
            .map(|name| member.open_or_create(&name).unwrap())
            .collect()
    };
    let of_anna = shops(&anna, 0, most);
    let mut watches: Vec<_> = of_anna.iter().map(|shop| shop.watch().unwrap()).collect();
    let of_bert = shops(&bert, most, 2 * most - 1);
    let _more: Vec<_> = of_bert.iter().map(|shop| shop.watch().unwrap()).collect();
    // The name may watch one segment more.
    let of_carl = shops(&carl, 2 * most - 1, 2 * most + 1);
    let mut first = of_carl[0].watch().unwrap();
    let refused = of_carl[1].watch().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    // The others go on, and room that is made can be had.
    assert_eq!(first.next(Duration::from_millis(10)).unwrap(), None);
    watches.pop();
    eventually("there is room", || of_carl[1].watch().is_ok());
    anna.transact(|tx| tx.create(&of_anna[0], "x")).unwrap();
    assert!(watches[0].next(LONG).unwrap().is_some());
}
