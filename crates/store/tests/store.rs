//! The store from outside: what is written is read, in order, whole, again
//! after reopening, and within its limits.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{batch, delete, get, open, put, scan};
use std::fs;
use thorp_model::{Batch, Engine, Mark, Op, Purpose, Reader as _, Scan, StorageError, Table};
use thorp_store::{OpenError, Options, Store, check};

#[test]
fn what_is_written_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for table in Table::ALL {
        store
            .commit(&[batch(1, vec![put(table, "key", table.name())])])
            .unwrap();
    }
    store
        .commit(&[batch(2, vec![put(Table::Meta, "empty", "")])])
        .unwrap();
    drop(store);
    let store = open(dir.path());
    for table in Table::ALL {
        assert_eq!(get(&store, table, "key").as_deref(), Some(table.name()));
    }
    assert_eq!(get(&store, Table::Meta, "empty").as_deref(), Some(""));
    assert_eq!(get(&store, Table::Meta, "absent"), None);
    // One of them began its history.
    assert_eq!(store.usage().groups, 7);
    assert_eq!(store.usage().table(Table::Meta).records, 2);
}

#[test]
fn a_scan_is_ordered_bounded_and_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let puts = ["c", "a", "e", "b", "d"]
        .map(|key| put(Table::Log, key, key))
        .to_vec();
    store.commit(&[batch(1, puts)]).unwrap();
    store
        .commit(&[batch(2, vec![delete(Table::Log, "d")])])
        .unwrap();
    assert_eq!(scan(&store, Table::Log, "", ""), ["a", "b", "c", "e"]);
    assert_eq!(scan(&store, Table::Log, "b", "e"), ["b", "c"]);
    assert_eq!(scan(&store, Table::Log, "b", "b"), [""; 0]);
    assert_eq!(scan(&store, Table::Log, "x", "a"), [""; 0]);
    let mut seen = 0;
    let mut visit = |_: &[u8], _: &[u8]| {
        seen += 1;
        if seen == 2 { Scan::Stop } else { Scan::Go }
    };
    store.scan(Table::Log, b"", b"", &mut visit).unwrap();
    assert_eq!(seen, 2);
}

#[test]
fn the_last_change_of_a_key_in_a_group_counts() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let group = [
        batch(
            1,
            vec![put(Table::Meta, "a", "1"), put(Table::Meta, "a", "2")],
        ),
        batch(
            2,
            vec![delete(Table::Meta, "a"), put(Table::Meta, "b", "1")],
        ),
        batch(
            3,
            vec![delete(Table::Meta, "b"), put(Table::Meta, "b", "22")],
        ),
    ];
    store.commit(&group).unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(get(&store, Table::Meta, "a"), None);
    assert_eq!(get(&store, Table::Meta, "b").as_deref(), Some("22"));
    // Key, checksum and value.
    assert_eq!(store.usage().bytes(), 1 + 4 + 2);
}

#[test]
fn usage_follows_changes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store
        .commit(&[batch(1, vec![put(Table::Pages, "p", &"x".repeat(8192))])])
        .unwrap();
    assert_eq!(store.usage().bytes(), 8192 + 5);
    store
        .commit(&[batch(2, vec![put(Table::Pages, "p", "small")])])
        .unwrap();
    assert_eq!(store.usage().bytes(), 10);
    store
        .commit(&[batch(3, vec![delete(Table::Pages, "p")])])
        .unwrap();
    store
        .commit(&[batch(4, vec![delete(Table::Pages, "p")])])
        .unwrap();
    assert_eq!(store.usage().bytes(), 0);
    assert_eq!(store.usage().table(Table::Pages).records, 0);
    assert_eq!(
        store.usage().groups,
        1 + 3,
        "what changes nothing is not written"
    );
}

#[test]
fn a_full_store_refuses_reads_on_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        limit_bytes: Some(100_000),
        ..Options::default()
    };
    let store = Store::open(dir.path(), options).unwrap();
    let value = "x".repeat(1000);
    let commit = |key: usize, table| {
        let key = format!("{key:08}");
        store.commit(&[batch(
            1,
            vec![put(table, &key, &value), put(Table::Meta, &key, "")],
        )])
    };
    let full = (0..).find(|key| commit(*key, Table::Log).is_err()).unwrap();
    assert!((95..100).contains(&full), "{full}");
    let error = commit(full, Table::Log).unwrap_err();
    assert!(matches!(error, StorageError::Full { .. }), "{error}");
    // Nothing of the batch was written, and all else is still there.
    let refused = format!("{full:08}");
    assert_eq!(get(&store, Table::Meta, &refused), None);
    assert_eq!(scan(&store, Table::Log, "", "").len(), full);
    // Housekeeping goes a little further, so that it can make room.
    commit(full, Table::Pages).unwrap();
    store
        .commit(&[batch(2, vec![delete(Table::Log, "00000000")])])
        .unwrap();
    store
        .commit(&[batch(3, vec![delete(Table::Pages, &refused)])])
        .unwrap();
    commit(full, Table::Log).unwrap();
    assert!(commit(full + 1, Table::Log).is_err());
    store.set_limit(Some(200_000));
    commit(full + 1, Table::Log).unwrap();
}

#[test]
fn a_volume_without_room_refuses_before_writing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        disk_reserve_bytes: Some(u64::MAX),
        ..Options::default()
    };
    let store = Store::open(dir.path(), options).unwrap();
    let error = store
        .commit(&[batch(1, vec![put(Table::Log, "k", "v")])])
        .unwrap_err();
    assert!(matches!(error, StorageError::Full { .. }), "{error}");
    assert_eq!(get(&store, Table::Log, "k"), None);
    drop(store);
    open(dir.path())
        .commit(&[batch(1, vec![put(Table::Log, "k", "v")])])
        .unwrap();
}

#[test]
fn only_one_may_use_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let error = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(matches!(check(dir.path()), Err(OpenError::InUse { .. })));
    drop(store);
    open(dir.path());
}

#[test]
fn only_a_store_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |path: &std::path::Path, create: bool| {
        let options = Options {
            create,
            ..Options::default()
        };
        Store::open(path, options).err().unwrap()
    };
    let missing = dir.path().join("missing");
    assert!(matches!(refuse(&missing, false), OpenError::Missing { .. }));
    assert!(matches!(check(&missing), Err(OpenError::Missing { .. })));
    assert!(
        matches!(refuse(dir.path(), false), OpenError::Missing { .. }),
        "empty"
    );
    fs::write(dir.path().join("letter.txt"), "dear all").unwrap();
    assert!(matches!(
        refuse(dir.path(), true),
        OpenError::NotAStore { .. }
    ));
    assert!(matches!(
        refuse(&dir.path().join("letter.txt"), true),
        OpenError::NotAStore { .. }
    ));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing was added"
    );
    // A nested directory is made.
    open(&dir.path().join("a/b/c"));
}

#[test]
fn a_store_of_a_later_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let marker = dir.path().join("thorp-store");
    let good = fs::read_to_string(&marker).unwrap();
    let told = "thorp-store format=3 engine=other";
    let sum = crc32fast::hash(told.as_bytes());
    fs::write(&marker, format!("{told} crc={sum:08x}\n")).unwrap();
    let error = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(
        matches!(
            error,
            OpenError::NewerFormat {
                found: 3,
                known: 2,
                ..
            }
        ),
        "{error}"
    );
    fs::write(&marker, good.replace("fjall", "fjord")).unwrap();
    let error = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(error, OpenError::DamagedMarker { .. }), "{error}");
    fs::write(&marker, good).unwrap();
    open(dir.path());
}

#[test]
fn a_making_that_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    // As if the process had ended before the marker, then before the engine
    // had its name.
    fs::remove_file(dir.path().join("thorp-store")).unwrap();
    fs::remove_file(dir.path().join("thorp-note")).unwrap();
    drop(open(dir.path()));
    fs::remove_file(dir.path().join("thorp-store")).unwrap();
    fs::remove_file(dir.path().join("thorp-note")).unwrap();
    fs::rename(
        dir.path().join("thorp-engine"),
        dir.path().join("thorp-making"),
    )
    .unwrap();
    let store = open(dir.path());
    store
        .commit(&[batch(1, vec![put(Table::Log, "k", "v")])])
        .unwrap();
    drop(store);
    // But never once something was committed.
    fs::remove_file(dir.path().join("thorp-store")).unwrap();
    let error = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(error, OpenError::DamagedMarker { .. }), "{error}");
}

#[test]
fn a_scan_sees_one_moment_while_commits_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let keys: Vec<String> = (0..50).map(|key| format!("{key:03}")).collect();
    let round = |value: usize| -> Batch {
        let puts = keys
            .iter()
            .map(|key| put(Table::Pages, key, &format!("{value}")));
        Batch {
            mark: Mark(value as u64),
            purpose: Purpose::Housekeeping,
            ops: puts.collect(),
        }
    };
    store.commit(&[round(0)]).unwrap();
    std::thread::scope(|scope| {
        let writer =
            scope.spawn(|| (1..200).for_each(|value| store.commit(&[round(value)]).unwrap()));
        while !writer.is_finished() {
            let mut values = Vec::new();
            let mut visit = |_: &[u8], value: &[u8]| {
                values.push(value.to_vec());
                Scan::Go
            };
            store.scan(Table::Pages, b"", b"", &mut visit).unwrap();
            assert_eq!(values.len(), 50);
            values.dedup();
            assert_eq!(values.len(), 1, "a half of a batch was seen");
        }
    });
}

/// So much that journals are rotated, and tables written out and compacted.
#[test]
fn a_store_larger_than_its_journals_is_whole() {
    const PAGES: u64 = 4000;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let page = |round: u64, number: u64| -> Vec<u8> {
        let seed = (round * PAGES + number) as u8;
        vec![seed; 8000 + usize::from(seed)]
    };
    for round in 0..4 {
        for first in (0..PAGES).step_by(100) {
            let puts = (first..first + 100).map(|number| Op::Put {
                table: Table::Pages,
                key: number.to_be_bytes().to_vec(),
                value: page(round, number),
            });
            store.commit(&[batch(1, puts.collect())]).unwrap();
        }
    }
    assert_eq!(store.usage().table(Table::Pages).records, PAGES);
    drop(store);
    let report = check(dir.path()).unwrap();
    assert!(report.is_good(), "{report}");
    let store = open(dir.path());
    for number in 0..PAGES {
        let found = store.get(Table::Pages, &number.to_be_bytes()).unwrap();
        assert!(found == Some(page(3, number)), "page {number}");
    }
}
