//! What a transaction promises: its own writes, isolation, retries, and reading without messages.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::Duration;
use thorp_client::collections::TreeMap;
use thorp_client::{Error, ErrorKind, Member, Ref, Reference, Session};
use thorp_testing::{HomeNode, eventually};

/// A read that asks the home: what others have committed before is seen at once, not a moment later.
fn newest(member: &Member, reference: &Reference) -> Vec<u8> {
    let session = Session::new().strict(true);
    member
        .transact_with(session, |tx| Ok(tx.read(reference)?.to_vec()))
        .unwrap()
}

#[test]
fn a_transaction_reads_its_own_writes_and_others_see_them_after_the_commit() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let bert = village.member();
    let shop_of_bert = bert.open("thorp://alps/shop").unwrap();

    let mut tx = anna.begin(Session::new());
    let note = tx.create(&shop, "hello world").unwrap();
    assert_eq!(tx.read(&note).unwrap(), b"hello world");
    tx.patch(&note, 6, b"there").unwrap();
    assert_eq!(tx.read(&note).unwrap(), b"hello there");
    tx.set_root(&shop, "note", Some(note)).unwrap();
    assert_eq!(tx.root(&shop, "note").unwrap(), Some(note));
    assert_eq!(shop_of_bert.root("note").unwrap(), None);
    let committed = tx.commit().unwrap();
    assert!(committed.id.is_some() && committed.stamp.is_some());

    eventually("bert hears of it", || {
        shop_of_bert.root("note").unwrap().is_some()
    });
    let found = shop_of_bert.root("note").unwrap().unwrap();
    assert_eq!(found, note);
    let read = bert.transact(|tx| Ok(tx.read(&found)?.to_vec())).unwrap();
    assert_eq!(read, b"hello there");
    // And a patch of what was only read.
    bert.transact(|tx| {
        tx.patch(&found, 0, b"H")?;
        assert_eq!(tx.read(&found)?, b"Hello there");
        tx.patch(&found, 8, b"E")?;
        assert_eq!(tx.read(&found)?, b"Hello thEre");
        Ok(())
    })
    .unwrap();
    assert_eq!(newest(&anna, &found), b"Hello thEre");
}

#[test]
fn nothing_of_an_aborted_transaction_remains() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let note = anna.transact(|tx| tx.create(&shop, "before")).unwrap();
    let before = anna.stats();

    let mut tx = anna.begin(Session::new());
    tx.write(&note, "after").unwrap();
    let other = tx.create(&shop, "other").unwrap();
    assert_eq!(tx.read(&note).unwrap(), b"after");
    tx.abort();
    let failed: Result<(), Error> = anna.transact(|tx| {
        tx.delete(&note)?;
        assert!(!tx.exists(&note)?);
        Err(Error::aborted("not today"))
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Aborted);

    let mut tx = anna.begin(Session::new());
    assert_eq!(tx.read(&note).unwrap(), b"before");
    assert!(!tx.exists(&other).unwrap());
    tx.commit().unwrap();
    let spent = anna.stats().since(&before);
    assert_eq!((spent.aborts, spent.commits), (2, 1));
    // The slot is free again.
    let again = anna.transact(|tx| tx.create(&shop, "again")).unwrap();
    assert_eq!(again, other);
}

#[test]
fn reading_what_is_cached_and_committing_that_sends_nothing() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let notes: Vec<_> = anna
        .transact(|tx| {
            (0..500u32)
                .map(|n| tx.create(&shop, n.to_le_bytes()))
                .collect()
        })
        .unwrap();
    let sum = |tx: &mut thorp_client::Transaction| {
        let mut sum = 0u32;
        for note in &notes {
            sum += u32::from_le_bytes(tx.read(note)?.try_into().unwrap());
        }
        Ok(sum)
    };
    assert_eq!(anna.transact(sum).unwrap(), 499 * 500 / 2);
    // Acknowledgements go up now and then, whatever the program does.
    let quiet = (0..20).any(|_| {
        let before = anna.stats();
        for _ in 0..100 {
            assert_eq!(anna.transact(sum).unwrap(), 499 * 500 / 2);
        }
        let spent = anna.stats().since(&before);
        assert_eq!(
            (spent.cached_reads, spent.misses, spent.fetches),
            (50_000, 0, 0)
        );
        assert_eq!((spent.commits, spent.free_commits), (100, 100));
        spent.traffic.frames_sent == 0
    });
    assert!(quiet, "every hundred transactions sent something");
}

#[test]
fn every_wait_for_a_page_is_one_miss() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    // One fills its page: ten objects, ten pages.
    let notes: Vec<Reference> = anna
        .transact(|tx| (0..10).map(|_| tx.create(&shop, vec![7; 8000])).collect())
        .unwrap();
    let read_all = |member: &Member| {
        let before = member.stats();
        member
            .transact(|tx| notes.iter().try_for_each(|note| tx.read(note).map(|_| ())))
            .unwrap();
        let spent = member.stats().since(&before);
        (spent.cached_reads, spent.misses, spent.fetches)
    };
    let join = || Member::join(village.config().fetch_ahead(0)).unwrap();
    let bert = join();
    assert_eq!(read_all(&bert), (10, 10, 10));
    assert_eq!(read_all(&bert), (10, 0, 0));
    // Every way of reading waits once.
    let conny = join();
    let mut tx = conny.begin(Session::new());
    tx.read_at(&notes[0], 10, 10).unwrap();
    tx.size(&notes[1]).unwrap();
    tx.exists(&notes[2]).unwrap();
    tx.patch(&notes[3], 0, b"new").unwrap();
    tx.commit().unwrap();
    let stats = conny.stats();
    assert_eq!((stats.misses, stats.fetches), (4, 4));
    // So does a visit: once a page, and once for the segment's extent; pages are asked for ahead of it.
    let dora = join();
    let shop = dora.open("thorp://alps/shop").unwrap();
    let mut tx = dora.begin(Session::new());
    tx.scan(&shop, |_, _| Ok(())).unwrap();
    tx.commit().unwrap();
    let stats = dora.stats();
    assert_eq!(stats.fetches, 11);
    assert!((1..=11).contains(&stats.misses), "{}", stats.misses);
}

#[test]
fn pages_that_lie_near_one_that_is_waited_for_come_with_it() {
    const PAGES: u64 = 100;
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let notes: Vec<Reference> = anna
        .transact(|tx| {
            (0..PAGES)
                .map(|_| tx.create(&shop, vec![7; 8000]))
                .collect()
        })
        .unwrap();
    // Here and there, each once.
    let order: Vec<Reference> = (0..PAGES)
        .map(|n| notes[(n * 37 % PAGES) as usize])
        .collect();
    for order in [&notes, &order] {
        let bert = village.member();
        bert.transact(|tx| order.iter().try_for_each(|note| tx.read(note).map(|_| ())))
            .unwrap();
        let stats = bert.stats();
        assert!(stats.misses < PAGES / 3, "{stats:?}");
        assert!(stats.ahead_used > PAGES / 2, "{stats:?}");
        // None that is not there, and none twice.
        assert!(stats.fetches <= PAGES + 1, "{stats:?}");
    }
}

#[test]
fn two_members_count_together_and_lose_nothing() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let counter = anna.transact(|tx| tx.create_typed(&shop, &0u64)).unwrap();
    let members = [
        anna.clone(),
        anna.clone(),
        village.member(),
        village.member(),
    ];
    thread::scope(|scope| {
        for member in members {
            scope.spawn(move || {
                for _ in 0..25 {
                    member
                        .transact(|tx| {
                            let value = tx.get(&counter)? + 1;
                            tx.put(&counter, &value)
                        })
                        .unwrap();
                }
            });
        }
    });
    let strict = Session::new().strict(true);
    assert_eq!(
        anna.transact_with(strict, |tx| tx.get(&counter)).unwrap(),
        100
    );
}

#[test]
fn a_conflict_is_told_and_its_kind_says_what_to_do() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let bert = village.member();
    let note = anna.transact(|tx| tx.create(&shop, "one")).unwrap();

    let mut tx = anna.begin(Session::new());
    tx.read(&note).unwrap();
    bert.transact(|tx| tx.write(&note, "two")).unwrap();
    tx.write(&note, "three").unwrap();
    let error = tx.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.is_retryable());

    // What a program concludes from what is no longer so counts for nothing.
    let mut attempts = 0;
    let result = anna.transact(|tx| {
        attempts += 1;
        let value = tx.read(&note)?.to_vec();
        if attempts == 1 {
            bert.transact(|tx| tx.write(&note, "four"))?;
            // Long enough for the change to come.
            thread::sleep(Duration::from_millis(100));
        }
        if value == b"two" {
            return Err(Error::aborted("it says two"));
        }
        Ok(value)
    });
    assert_eq!((result.unwrap(), attempts), (b"four".to_vec(), 2));
}

#[test]
fn attempts_are_bounded() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let bert = village.member();
    let note = anna.transact(|tx| tx.create(&shop, "0")).unwrap();
    let mut attempts = 0u32;
    let session = Session::new().attempts_max(3);
    let result = anna.transact_with(session, |tx| {
        attempts += 1;
        tx.read(&note)?;
        bert.transact(|tx| tx.write(&note, attempts.to_string()))?;
        tx.write(&note, "mine")
    });
    assert_eq!(
        (result.unwrap_err().kind(), attempts),
        (ErrorKind::Conflict, 3)
    );
}

#[test]
fn strict_sessions_ask_the_home_also_when_they_only_read() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let note = anna.transact(|tx| tx.create(&shop, "x")).unwrap();
    anna.transact(|tx| tx.read(&note).map(|_| ())).unwrap();
    let before = anna.stats();
    let mut tx = anna.begin(Session::new().strict(true));
    tx.read(&note).unwrap();
    let committed = tx.commit().unwrap();
    assert!(committed.id.is_some() && committed.stamp.is_none());
    let spent = anna.stats().since(&before);
    assert_eq!((spent.commits, spent.free_commits), (1, 0));
    assert!(spent.traffic.frames_sent >= 1);
}

#[test]
fn deleted_objects_are_gone_for_every_reference() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let bert = village.member();
    let note = anna.transact(|tx| tx.create(&shop, "x")).unwrap();
    assert!(bert.transact(|tx| tx.exists(&note)).unwrap());
    bert.transact(|tx| {
        tx.delete(&note)?;
        assert_eq!(tx.write(&note, "y").unwrap_err().kind(), ErrorKind::Gone);
        assert_eq!(tx.delete(&note).unwrap_err().kind(), ErrorKind::Gone);
        Ok(())
    })
    .unwrap();
    eventually("anna hears of it", || {
        !anna.transact(|tx| tx.exists(&note)).unwrap()
    });
    for member in [&anna, &bert] {
        let kind = |result: Result<(), Error>| result.unwrap_err().kind();
        assert_eq!(
            kind(member.transact(|tx| tx.read(&note).map(|_| ()))),
            ErrorKind::Gone
        );
        assert_eq!(
            kind(member.transact(|tx| tx.write(&note, "y"))),
            ErrorKind::Gone
        );
        assert_eq!(
            kind(member.transact(|tx| tx.patch(&note, 0, b"y"))),
            ErrorKind::Gone
        );
        assert!(!member.transact(|tx| tx.exists(&note)).unwrap());
    }
}

#[test]
fn what_was_created_and_deleted_in_one_transaction_never_was() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let before = anna.stats();
    let mut tx = anna.begin(Session::new());
    let note = tx.create(&shop, "x").unwrap();
    tx.delete(&note).unwrap();
    assert!(!tx.exists(&note).unwrap());
    tx.commit().unwrap();
    assert_eq!(anna.stats().since(&before).free_commits, 1);
    let make = |tx: &mut thorp_client::Transaction| {
        let gone = tx.create(&shop, "x")?;
        let holder = tx.create_typed(&shop, &gone)?;
        tx.delete(&gone)?;
        Ok((holder, tx.create(&shop, "y")?))
    };
    let (holder, next) = anna.transact(make).unwrap();
    let stored = anna.transact(|tx| tx.get(&holder)).unwrap();
    assert!(stored.object != next.object && stored.object != note.object);
    assert!(!anna.transact(|tx| tx.exists(&stored)).unwrap());
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Person {
    name: String,
    friends: Vec<Ref<Person>>,
}

#[test]
fn typed_objects_name_one_another() {
    let village = HomeNode::new();
    let (anna, people) = village.member_at("people");
    let person = |name: &str, friends: Vec<Ref<Person>>| Person {
        name: name.to_owned(),
        friends,
    };
    let first = anna
        .transact(|tx| {
            let ida = tx.create_typed(&people, &person("Ida", vec![]))?;
            let max = tx.create_typed_near(ida.as_ref(), &person("Max", vec![ida]))?;
            tx.put(&ida, &person("Ida", vec![max]))?;
            Ok(ida)
        })
        .unwrap();
    let bert = village.member();
    let names = bert.transact(|tx| {
        let ida = tx.get(&first)?;
        let max = tx.get(&ida.friends[0])?;
        assert_eq!(max.friends, [first]);
        Ok((ida.name, max.name))
    });
    assert_eq!(names.unwrap(), ("Ida".to_owned(), "Max".to_owned()));
    let wrong = bert.transact(|tx| tx.get(&first.cast::<u8>()));
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::DataDamaged);
}

#[test]
fn roots_are_named_set_and_taken_away() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    assert_eq!(shop.root("a").unwrap(), None);
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    let two = anna.transact(|tx| tx.create(&shop, "2")).unwrap();
    shop.set_root("b", Some(two)).unwrap();
    shop.set_root("a", Some(one)).unwrap();
    assert_eq!(
        shop.roots().unwrap(),
        [("a".to_owned(), one), ("b".to_owned(), two)]
    );
    shop.set_root("b", None).unwrap();
    let bert = village.member().open("thorp://alps/shop").unwrap();
    assert_eq!(
        (bert.root("a").unwrap(), bert.root("b").unwrap()),
        (Some(one), None)
    );
}

#[test]
fn two_members_that_set_the_first_root_at_once_both_succeed() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let one = anna.transact(|tx| tx.create(&shop, "1")).unwrap();
    let names = ["a", "b", "c", "d"];
    thread::scope(|scope| {
        for name in names {
            let member = village.member();
            scope.spawn(move || {
                let shop = member.open("thorp://alps/shop").unwrap();
                shop.set_root(name, Some(one)).unwrap();
            });
        }
    });
    let roots = shop.roots().unwrap();
    assert_eq!(
        roots
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        names
    );
}

#[test]
fn threads_of_one_member_create_beside_each_other() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4u8)
            .map(|thread| {
                let (anna, shop) = (&anna, &shop);
                scope.spawn(move || {
                    let mut made = Vec::new();
                    for n in 0..50u8 {
                        made.push(anna.transact(|tx| tx.create(shop, [thread, n])).unwrap());
                    }
                    made
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let unique: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), 200);
    assert_eq!(anna.stats().conflicts, 0, "creators never compete");
    let bert = village.member();
    bert.transact(|tx| {
        for (index, reference) in all.iter().enumerate() {
            assert_eq!(
                tx.read(reference)?,
                [(index / 50) as u8, (index % 50) as u8]
            );
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn near_means_the_same_page() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let (first, second) = anna
        .transact(|tx| {
            let first = tx.create(&shop, vec![1; 100])?;
            let second = tx.create(&shop, vec![2; 8160])?;
            assert_ne!(first.object.page, second.object.page);
            for _ in 0..20 {
                let near = tx.create_near(&first, vec![3; 100])?;
                assert_eq!(near.object.page, first.object.page);
            }
            Ok((first, second))
        })
        .unwrap();
    // Somebody else's neighbourhood is a page of one's own.
    let bert = village.member();
    bert.transact(|tx| {
        let near = tx.create_near(&first, "b")?;
        assert_ne!(near.object.page, first.object.page);
        assert_eq!(tx.create_near(&first, "c")?.object.page, near.object.page);
        assert_eq!(near.object.page.segment, second.object.page.segment);
        Ok(())
    })
    .unwrap();
}

#[test]
fn wrong_calls_are_told_so() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let note = anna.transact(|tx| tx.create(&shop, "abc")).unwrap();
    let mut tx = anna.begin(Session::new().fetch_timeout(Duration::from_millis(50)));
    let kind = |result: Result<(), Error>| result.unwrap_err().kind();
    assert_eq!(kind(tx.patch(&note, 2, b"xy")), ErrorKind::Invalid);
    assert_eq!(kind(tx.patch(&note, u64::MAX, b"xy")), ErrorKind::Invalid);
    let into = thorp_client::Reference { offset: 1, ..note };
    assert_eq!(kind(tx.write(&into, "x")), ErrorKind::Invalid);
    assert_eq!(tx.read(&into).unwrap(), b"bc");
    tx.patch(&into, 1, b"C").unwrap();
    assert_eq!(tx.read(&note).unwrap(), b"abC");
    let beyond = thorp_client::Reference { offset: 9, ..note };
    assert_eq!(kind(tx.read(&beyond).map(|_| ())), ErrorKind::Invalid);
    let mut elsewhere = note;
    elsewhere.home = thorp_client::HomeId(99);
    // Its stream may begin yet: it is waited for. It has no part in the commit.
    let error = tx.read(&elsewhere).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HomeUnreachable);
    assert!(
        error.to_string().contains("never heard of") && !error.to_string().contains("99"),
        "{error}"
    );
    assert_eq!(tx.read_at(&note, 1, 100).unwrap(), b"bC");
    assert_eq!(tx.size(&note).unwrap(), 3);
    tx.commit().unwrap();
}

#[test]
fn an_object_that_is_written_blindly_needs_no_page() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let note = anna.transact(|tx| tx.create(&shop, "abc")).unwrap();
    let bert = village.member();
    bert.transact(|tx| tx.write(&note, "xyz")).unwrap();
    assert_eq!(bert.stats().fetches, 0);
    assert_eq!(newest(&anna, &note), b"xyz");
}

#[test]
fn what_was_read_grows_old_when_the_cache_could_not_keep_it() {
    let village = HomeNode::new();
    let (bert, shop) = village.member_at("shop");
    let made: Vec<Reference> = bert
        .transact(|tx| {
            (0..100u8)
                .map(|n| tx.create(&shop, vec![n; 8000]))
                .collect()
        })
        .unwrap();
    let anna = Member::join(village.config().cache_bytes(256 << 10)).unwrap();
    let session = Session::new().max_staleness(Duration::from_millis(1500));
    let mut early = anna.begin(session);
    early.read(&made[0]).unwrap();
    // Holds more pages than the cache does.
    let mut greedy = anna.begin(session);
    for note in &made[1..] {
        greedy.read(note).unwrap();
    }
    // The cache spares a page once that was read since it looked last.
    for _ in 0..2 {
        let again = anna.transact(|tx| made[1..].iter().try_for_each(|n| tx.read(n).map(drop)));
        again.unwrap();
    }
    eventually("the cache is within its limit", || {
        anna.stats().cached_bytes <= 256 << 10
    });
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(early.commit().unwrap_err().kind(), ErrorKind::Conflict);
    drop(greedy);
    // The home was there all the time.
    anna.transact_with(session, |tx| tx.read(&made[0]).map(|_| ()))
        .unwrap();
}

#[test]
fn who_inserts_into_different_leaves_of_a_map_does_not_conflict() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let bert = village.member();
    let map = anna.transact(|tx| {
        let map: TreeMap<u64, String> = TreeMap::create(tx, &shop)?;
        for key in 0..500 {
            map.insert(tx, 10 * key, format!("number {key}"))?;
        }
        tx.set_root(&shop, "map", Some(map.reference()))?;
        Ok(map)
    });
    let map = map.unwrap();
    let mut ends = Vec::new();
    for keys in [[11, 4_001], [21, 22]] {
        let begin = |member: &Member, key| {
            let mut tx = member.begin(Session::new());
            map.insert(&mut tx, key, String::from("new")).unwrap();
            tx
        };
        let [anna, bert] = [begin(&anna, keys[0]), begin(&bert, keys[1])];
        anna.commit().unwrap();
        ends.push(bert.commit().map(drop).map_err(|error| error.kind()));
    }
    assert_eq!(ends, [Ok(()), Err(ErrorKind::Conflict)]);
    let found = bert.transact(|tx| {
        let map: TreeMap<u64, String> = TreeMap::at(tx.root(&shop, "map")?.unwrap());
        map.range(tx, 11..=22)
    });
    let keys: Vec<u64> = found.unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [11, 20, 21]);
}

/// Pages that were asked for ahead may have been refused long ago.
#[test]
fn a_refusal_of_before_does_not_fail_a_creation() {
    let village = HomeNode::new();
    let (anna, shop) = village.member_at("shop");
    let alone = || anna.transact(|tx| tx.create(&shop, vec![1; 8_000]));
    // Grants have their full size then, and are asked for ahead.
    for _ in 0..100 {
        alone().unwrap();
    }
    village.set_space(false);
    let refused = std::iter::repeat_with(alone).find_map(Result::err).unwrap();
    assert!(matches!(refused.kind(), ErrorKind::Full), "{refused}");
    village.set_space(true);
    for _ in 0..50 {
        alone().unwrap();
    }
}
