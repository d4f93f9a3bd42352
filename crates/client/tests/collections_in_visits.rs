//! Tree maps, typed calls and new objects in visits (rule C12, record 0026).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use joins::Joins;
use std::thread;
use thorp_client::collections::TreeMap;
use thorp_client::{Consistency, ErrorKind, Member, Procedure, Ref, Segment, Visit};
use thorp_testing::{HomeNode, eventually};

type Index = TreeMap<u32, String>;

/// Anna and Ben at one home, and a map with some entries.
struct Scene {
    _home: HomeNode,
    anna: Member,
    ben: Member,
    map: Index,
}

/// Enough for a tree of several levels.
const ENTRIES: u32 = 500;

fn scene() -> Scene {
    let home = HomeNode::new();
    let anna = home.member();
    let ben = Member::join(home.config().name("ben")).unwrap();
    let segment = shop(&anna);
    let map = anna
        .transact(|tx| {
            let map = Index::create(tx, &segment)?;
            for key in (0..ENTRIES).map(|n| 2 * n) {
                map.insert(tx, key, text(key))?;
            }
            Ok(map)
        })
        .unwrap();
    Scene {
        _home: home,
        anna,
        ben,
        map,
    }
}

fn text(key: u32) -> String {
    format!("the value of {key}")
}

fn shop(member: &Member) -> Segment {
    member.open_or_create("thorp://alps/shop").unwrap()
}

fn visit(member: &Member, consistency: &str) -> Visit {
    let consistency: Consistency = consistency.parse().unwrap();
    Visit::open(member, consistency, &[&shop(member)]).unwrap()
}

#[test]
fn every_visit_reads_a_map() {
    let scene = scene();
    let map = scene.map;
    for consistency in [
        "close-to-open,mode=rd",
        "bounded,time=1h,hard,mode=rd",
        "bounded,mods=5,hard,mode=rd",
        "snapshot,mode=rd",
        "stream,mode=rd",
        "eventual,mode=rd",
        "master-slave,mode=rd",
        "mode=rdlk",
        "locking",
    ] {
        let mut visit = visit(&scene.ben, consistency);
        let value = map.get(&mut visit, &14).unwrap();
        assert_eq!(value, Some(text(14)), "{consistency}");
        assert!(!map.contains(&mut visit, &15).unwrap(), "{consistency}");
        let few = map.range(&mut visit, 10..15).unwrap();
        let keys: Vec<u32> = few.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, [10, 12, 14], "{consistency}");
        assert_eq!(map.len(&mut visit).unwrap(), u64::from(ENTRIES));
        let last = map.last(&mut visit).unwrap().unwrap();
        assert_eq!(last.0, 2 * (ENTRIES - 1), "{consistency}");
    }
}

/// A visit sees its changes at once, over a view that stays where it is. Others see them when they have left.
#[test]
fn a_visit_sees_its_changes_and_others_see_them_when_it_publishes() {
    let scene = scene();
    let map = scene.map;
    let seen = |key: u32| scene.anna.transact(|tx| map.get(tx, &key)).unwrap();
    let mut visit = visit(&scene.ben, "close-to-open,visibility=manual");
    // Many, so that nodes are split and joined.
    let new = "new".repeat(10);
    for key in 0..300 {
        let old = map.insert(&mut visit, key, new.clone()).unwrap();
        assert_eq!(old, key.is_multiple_of(2).then(|| text(key)));
    }
    for key in 0..100 {
        assert_eq!(map.remove(&mut visit, &key).unwrap().as_ref(), Some(&new));
    }
    let all = u64::from(ENTRIES) + 150 - 100;
    assert_eq!(map.len(&mut visit).unwrap(), all);
    assert_eq!(map.first(&mut visit).unwrap().unwrap().0, 100);
    assert_eq!(seen(120), Some(text(120)), "it has not left");
    visit.publish().unwrap();
    assert_eq!(map.len(&mut visit).unwrap(), all, "it stays what it was");
    eventually("it is there", || seen(120).as_ref() == Some(&new));
    assert_eq!(seen(4), None);
    let len = scene.anna.transact(|tx| map.len(tx)).unwrap();
    assert_eq!(len, all);
    map.clear(&mut visit).unwrap();
    assert!(map.is_empty(&mut visit).unwrap());
    drop(visit);
    assert_eq!(scene.anna.transact(|tx| map.len(tx)).unwrap(), all);
}

/// Two visits and transactions change one map at once: blind writes of nodes would lose entries of each other.
#[test]
fn visits_that_change_one_map_at_once_lose_nothing() {
    let scene = scene();
    let map = scene.map;
    let (mut first, mut second) = (
        visit(&scene.anna, "close-to-open"),
        visit(&scene.ben, "close-to-open"),
    );
    for key in (0..400).map(|n| 2 * n + 1) {
        map.insert(&mut first, key, "first".to_owned()).unwrap();
        map.insert(&mut second, key + 1000, "second".to_owned())
            .unwrap();
    }
    let removed = map.remove(&mut second, &0).unwrap();
    assert!(removed.is_some());
    scene
        .anna
        .transact(|tx| map.insert(tx, 5000, "third".to_owned()))
        .unwrap();
    let closing = thread::spawn(move || first.close());
    second.close().unwrap();
    closing.join().unwrap().unwrap();
    let all = scene.ben.transact(|tx| map.range(tx, ..)).unwrap();
    let of = |value: &str| all.iter().filter(|(_, other)| other == value).count();
    assert_eq!((of("first"), of("second"), of("third")), (400, 400, 1));
    assert_eq!(all.len(), ENTRIES as usize - 1 + 400 + 400 + 1);
    assert!(all.iter().is_sorted_by_key(|(key, _)| *key));
}

#[test]
fn a_moving_view_shows_changes_of_others_and_keeps_its_own() {
    let scene = scene();
    let map = scene.map;
    for (consistency, by_hand) in [
        ("mode=wr,isolation=access", false),
        ("mode=wr,isolation=manual", true),
    ] {
        let mut visit = visit(&scene.ben, consistency);
        map.insert(&mut visit, 1, "mine".to_owned()).unwrap();
        scene
            .anna
            .transact(|tx| map.insert(tx, 3, consistency.to_owned()))
            .unwrap();
        eventually("the other one is seen", || {
            if by_hand {
                visit.refresh().unwrap();
            }
            map.get(&mut visit, &3).unwrap().as_deref() == Some(consistency)
        });
        assert_eq!(map.get(&mut visit, &1).unwrap().as_deref(), Some("mine"));
        let seen = scene.anna.transact(|tx| map.get(tx, &1)).unwrap();
        assert_eq!(seen, None, "it has not left");
    }
}

#[test]
fn changes_of_a_map_leave_at_once_or_under_a_lock() {
    let scene = scene();
    let map = scene.map;
    let seen = |key: u32| scene.anna.transact(|tx| map.get(tx, &key)).unwrap();
    let mut at_once = visit(&scene.ben, "mode=wr,visibility=access");
    map.insert(&mut at_once, 1, "at once".to_owned()).unwrap();
    eventually("it is there", || seen(1).as_deref() == Some("at once"));
    let mut locked = visit(&scene.ben, "locking");
    map.insert(&mut locked, 3, "locked".to_owned()).unwrap();
    assert_eq!(map.get(&mut locked, &3).unwrap().as_deref(), Some("locked"));
    locked.close().unwrap();
    eventually("it is there", || seen(3).as_deref() == Some("locked"));
}

#[test]
fn a_visit_that_cannot_change_a_map_says_what_to_do() {
    let scene = scene();
    let map = scene.map;
    let mut reader = visit(&scene.ben, "snapshot,mode=rd");
    let refused = map.insert(&mut reader, 1, text(1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("mode=wr"), "{refused}");
    let mut eventual = visit(&scene.ben, "eventual");
    for refused in [
        map.insert(&mut eventual, 1, text(1)).map(drop),
        map.clear(&mut eventual),
        eventual.create(&shop(&scene.ben), "x").map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(
            refused.to_string().contains("failures=pessimistic"),
            "{refused}"
        );
    }
    let elsewhere = scene.ben.open_or_create("thorp://alps/elsewhere").unwrap();
    let other = scene
        .ben
        .transact(|tx| Index::create(tx, &elsewhere))
        .unwrap();
    let mut writer = visit(&scene.ben, "mode=wr");
    let refused = other.insert(&mut writer, 1, text(1)).unwrap_err();
    assert!(
        refused.to_string().contains("was not opened on"),
        "{refused}"
    );
    let refused = writer.create(&elsewhere, "x").unwrap_err();
    assert!(
        refused.to_string().contains("was not opened on"),
        "{refused}"
    );
}

#[test]
fn typed_calls_read_and_write_values() {
    let scene = scene();
    let segment = shop(&scene.ben);
    let number: Ref<i64> = scene
        .ben
        .transact(|tx| tx.create_typed(&segment, &5))
        .unwrap();
    let mut visit = visit(&scene.ben, "mode=wr");
    assert_eq!(visit.get(&number).unwrap(), 5);
    visit.put(&number, &7).unwrap();
    visit.apply(number.as_ref(), Procedure::Add(1)).unwrap();
    assert_eq!(visit.get(&number).unwrap(), 8);
    let wrong = visit.get(&number.cast::<String>()).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::DataDamaged);
    visit.close().unwrap();
    eventually("it is there", || {
        scene.anna.transact(|tx| tx.get(&number)).unwrap() == 8
    });
}

#[test]
fn a_visit_makes_objects_and_others_see_them_when_it_publishes() {
    let scene = scene();
    let segment = shop(&scene.ben);
    let mut visit = visit(&scene.ben, "mode=wr,visibility=manual");
    let note = visit.create(&segment, "note").unwrap();
    let count = visit.create_typed(&segment, &1_i64).unwrap();
    let large = visit.create(&segment, vec![7; 100_000]).unwrap();
    // A map that the visit makes itself.
    let root = visit.create(&segment, Index::empty().unwrap()).unwrap();
    let map = Index::at(root);
    map.insert(&mut visit, 1, text(1)).unwrap();
    assert_eq!(visit.read(&note).unwrap(), b"note");
    visit.write(&note, "longer note").unwrap();
    visit.apply(count.as_ref(), Procedure::Add(1)).unwrap();
    assert_eq!(visit.get(&count).unwrap(), 2);
    assert_eq!(map.get(&mut visit, &1).unwrap(), Some(text(1)));
    let gone = scene.anna.transact(|tx| tx.read(&note).map(<[u8]>::to_vec));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::Gone);
    visit.publish().unwrap();
    assert_eq!(visit.read(&note).unwrap(), b"longer note");
    eventually("all is there", || {
        let found = scene.anna.transact(|tx| {
            let note = tx.read(&note)?.to_vec();
            let large = tx.read(&large)?.len();
            Ok((note, large, tx.get(&count)?, map.len(tx)?))
        });
        found.is_ok_and(|found| found == (b"longer note".to_vec(), 100_000, 2, 1))
    });
    // What is made and deleted before it leaves is nothing.
    let brief = visit.create(&segment, "brief").unwrap();
    visit.delete(&brief).unwrap();
    assert_eq!(visit.read(&brief).unwrap_err().kind(), ErrorKind::Gone);
    visit.close().unwrap();
}

/// A slot of an object that was given up is free for the next one.
#[test]
fn a_visit_that_is_dropped_makes_nothing() {
    let scene = scene();
    let segment = shop(&scene.ben);
    let mut visit = visit(&scene.ben, "mode=wr");
    let lost = visit.create(&segment, "lost").unwrap();
    drop(visit);
    let next = scene
        .ben
        .transact(|tx| tx.create(&segment, "next"))
        .unwrap();
    assert_eq!(lost, next);
    let read = scene.anna.transact(|tx| tx.read(&next).map(<[u8]>::to_vec));
    assert_eq!(read.unwrap(), b"next");
}
