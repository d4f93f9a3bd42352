//! Files that are not as they were written: always a clear error or intact
//! data, never a panic, never silently less than was acknowledged.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{batch, delete, open, put};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use thorp_model::records::{self, Modified, QuarantineRecord};
use thorp_model::{
    Engine as _, Op, PageChange, PageId, PageSlots, Position, Reader as _, Scan, Stamp,
    StorageError, Table,
};
use thorp_store::{OpenError, Options, Store, check};

const BATCHES: u64 = 40;

#[test]
fn a_good_store_is_checked_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let before = contents(dir.path());
    let report = check(dir.path()).unwrap();
    assert!(report.is_good(), "{report}");
    // And the group that began its history.
    assert_eq!(report.groups, BATCHES + 1);
    assert_eq!(report.tables[1].found.records, BATCHES);
    assert_eq!(report.tables[2].found.records, BATCHES);
    assert!(contents(dir.path()) == before, "check changed a file");
}

#[test]
fn a_journal_damaged_in_the_middle_is_missed_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let journal = dir.path().join("thorp-engine/0.jnl");
    for at in [0, 20_000, 100_000, 200_000] {
        let good = flip(&journal, at);
        let before = contents(dir.path());
        let error = Store::open(dir.path(), Options::default()).err().unwrap();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert!(contents(dir.path()) == before, "what is left was changed");
        let report = check(dir.path()).unwrap();
        assert!(!report.is_good(), "{report}");
        fs::write(&journal, good).unwrap();
    }
    all_is_there(&open(dir.path()));
}

#[test]
fn a_check_tells_of_changes_kept_beside_a_damaged_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = PageId::new(1, 4);
    let changes = [7, 9].map(|position| Modified {
        position: Position(position),
        stamp: Stamp::default(),
        change: PageChange {
            page,
            slots: PageSlots::Whole,
        },
    });
    let changes = changes.to_vec();
    let key = records::quarantine_key(page);
    let op = records::put(Table::Meta, key.clone(), &QuarantineRecord { changes });
    open(dir.path()).commit(&[batch(1, vec![op])]).unwrap();
    let report = check(dir.path()).unwrap();
    assert!(report.is_good() && report.remarks.len() == 1, "{report}");
    let remark = &report.remarks[0];
    let says = |words: &str| assert!(remark.contains(words), "{remark}");
    says(&format!("page {page} was found damaged"));
    says("last 2 changes, up to position 9,");
    // A record that is not one is damage, and is told once.
    let op = Op::Put {
        table: Table::Meta,
        key: key.clone(),
        value: vec![0xff; 3],
    };
    open(dir.path()).commit(&[batch(2, vec![op])]).unwrap();
    let report = check(dir.path()).unwrap();
    assert_eq!(report.damage_count, 1, "{report}");
    assert!(report.remarks.is_empty(), "{report}");
}

#[test]
fn a_last_write_cut_short_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    // As a power failure may leave it: the last group was never
    // acknowledged, and a piece in its middle never reached the disk.
    let note = dir.path().join("thorp-note");
    let acknowledged = fs::read(&note).unwrap();
    let store = open(dir.path());
    let value = "y".repeat(20_000);
    store
        .commit(&[batch(BATCHES + 1, vec![put(Table::Pages, "torn", &value)])])
        .unwrap();
    drop(store);
    fs::write(&note, acknowledged).unwrap();
    let journal = dir.path().join("thorp-engine/0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    let at = bytes.windows(4).rposition(|four| four == b"yyyy").unwrap();
    bytes[at - 8000..at - 4000].fill(0);
    fs::write(&journal, bytes).unwrap();
    let report = check(dir.path()).unwrap();
    assert!(report.is_good() && report.remarks.len() == 1, "{report}");
    let store = open(dir.path());
    assert_eq!(common::get(&store, Table::Pages, "torn"), None);
    all_is_there(&store);
}

#[test]
fn a_lost_journal_table_or_engine_is_missed() {
    for lost in [
        "thorp-engine/0.jnl",
        "thorp-engine/keyspaces/3",
        "thorp-engine",
    ] {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path());
        let path = dir.path().join(lost);
        let aside = dir.path().join("thorp-making");
        fs::rename(&path, &aside).unwrap();
        let report = check(dir.path()).unwrap();
        assert!(!report.is_good(), "{lost}: {report}");
        let error = Store::open(dir.path(), Options::default()).err().unwrap();
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "{lost}: {error}"
        );
    }
}

/// Flips bits all over the files of a store whose tables have been written
/// out, and looks at what comes of each.
#[test]
fn flipped_bits_are_found_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    fill_and_flush(dir.path());
    let (mut refused, mut read_errors, mut harmless) = (0, 0, 0);
    for file in files(dir.path()) {
        let length = fs::metadata(&file).unwrap().len().min(400_000);
        for step in 0..6 {
            let work = tempfile::tempdir().unwrap();
            copy_tree(dir.path(), work.path());
            let file = work.path().join(file.strip_prefix(dir.path()).unwrap());
            flip(&file, (length.saturating_sub(1) * step / 5) as usize);
            let what = format!("{} step {step}", file.display());
            let report = check(work.path());
            match Store::open(work.path(), Options::default()).map(|store| read_all(&store)) {
                Err(_) => refused += 1,
                Ok(Err(StorageError::Damaged { .. })) => read_errors += 1,
                Ok(Err(error)) => panic!("{what}: {error}"),
                Ok(Ok(found)) => {
                    assert_eq!(found, expected(), "{what}");
                    harmless += 1;
                    continue;
                }
            }
            assert!(
                report.is_err() || !report.as_ref().unwrap().is_good(),
                "{what}: {report:?}"
            );
        }
    }
    assert!(
        refused > 10 && read_errors > 2,
        "{refused} {read_errors} {harmless}"
    );
}

#[test]
fn what_is_damaged_can_be_written_over_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    fill_and_flush(dir.path());
    let tables = dir.path().join("thorp-engine/keyspaces/1/tables");
    let table = files(&tables).remove(0);
    flip(&table, 300);
    let store = open(dir.path());
    let get = |key: &str| store.get(Table::Meta, key.as_bytes());
    let is_damaged = |key: &String| matches!(get(key), Err(StorageError::Damaged { .. }));
    let keys = (1..=BATCHES).map(|number| format!("{number:06}"));
    let damaged: Vec<String> = keys.filter(is_damaged).collect();
    let [first, second, ..] = &damaged[..] else {
        panic!("a block was to be damaged: {damaged:?}");
    };
    let held = store.usage().bytes();
    let ops = vec![
        delete(Table::Meta, first),
        put(Table::Meta, second, "mended"),
    ];
    store.commit(&[batch(1, ops)]).unwrap();
    assert!(store.usage().bytes() <= held, "the new value is as long");
    drop(store);
    let store = open(dir.path());
    assert_eq!(common::get(&store, Table::Meta, first), None);
    let mended = common::get(&store, Table::Meta, second);
    assert_eq!(mended.as_deref(), Some("mended"));
}

/// Each batch puts a log record and a page, so that it is more than a block.
fn fill(dir: &Path) {
    let store = open(dir);
    for number in 1..=BATCHES {
        store.commit(&[numbered(number)]).unwrap();
    }
}

fn numbered(number: u64) -> thorp_model::Batch {
    let key = format!("{number:06}");
    let page = format!("{number:08}").repeat(1024);
    let ops = vec![
        put(Table::Log, &key, "record"),
        put(Table::Pages, &key, &page),
        put(Table::Meta, &key, "meta"),
    ];
    batch(number, ops)
}

/// Enough is overwritten that the first table is written out to a file.
fn fill_and_flush(dir: &Path) {
    fill(dir);
    let store = open(dir);
    let big = "z".repeat(1 << 20);
    for _ in 0..5 {
        store
            .commit(&[batch(0, vec![put(Table::Meta, "big", &big)])])
            .unwrap();
    }
    let tables = dir.join("thorp-engine/keyspaces/1/tables");
    for _ in 0..200 {
        if fs::read_dir(&tables).unwrap().count() > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    store
        .commit(&[batch(0, vec![put(Table::Meta, "big", "small")])])
        .unwrap();
}

fn expected() -> BTreeMap<(Table, String), usize> {
    let mut all = BTreeMap::new();
    for number in 1..=BATCHES {
        all.insert((Table::Log, format!("{number:06}")), 6);
        all.insert((Table::Meta, format!("{number:06}")), 4);
        all.insert((Table::Pages, format!("{number:06}")), 8192);
    }
    all.insert((Table::Meta, "big".to_string()), 5);
    all
}

fn read_all(store: &Store) -> Result<BTreeMap<(Table, String), usize>, StorageError> {
    let mut all = BTreeMap::new();
    for table in Table::ALL {
        let mut visit = |key: &[u8], value: &[u8]| {
            all.insert(
                (table, String::from_utf8_lossy(key).into_owned()),
                value.len(),
            );
            Scan::Go
        };
        store.scan(table, b"", b"", &mut visit)?;
    }
    for (table, key) in all.keys() {
        store.get(*table, key.as_bytes())?;
    }
    Ok(all)
}

fn all_is_there(store: &Store) {
    let mut found = read_all(store).unwrap();
    found.insert((Table::Meta, "big".to_string()), 5);
    assert_eq!(found, expected());
}

/// Flips a bit and gives back what the file was.
fn flip(file: &Path, at: usize) -> Vec<u8> {
    let good = fs::read(file).unwrap();
    let mut bad = good.clone();
    if let Some(byte) = bad.get_mut(at) {
        *byte ^= 0x10;
    }
    fs::write(file, bad).unwrap();
    good
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn contents(dir: &Path) -> Vec<(PathBuf, u32)> {
    let sum = |file: PathBuf| {
        let sum = crc32fast::hash(&fs::read(&file).unwrap());
        (file, sum)
    };
    files(dir).into_iter().map(sum).collect()
}

fn copy_tree(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
    // Directories without files count as well.
    for keyspace in 1..=6 {
        let tables = format!("thorp-engine/keyspaces/{keyspace}/tables");
        fs::create_dir_all(to.join(tables)).unwrap();
    }
}
