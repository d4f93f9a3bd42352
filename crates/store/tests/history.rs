//! Whether a start continues the newest history (rule R9).
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::{batch, get, open, put};
use std::fs;
use std::path::Path;
use std::process::Command;
use thorp_model::records::{self, NextRecord};
use thorp_model::{
    Closed, Engine as _, HowOpened, Incarnation, LifeEnd, LifeId, Mark, Met, NameId, Operator,
    Point, Position, Reader as _, Registration, SegmentId, Table,
};
use thorp_store::{OpenError, Opening, Options, Reopening, Store, check};

fn open_as(dir: &Path, opening: Opening) -> Store {
    let options = Options {
        create: false,
        opening,
        ..Options::default()
    };
    Store::open(dir, options).unwrap()
}

fn closed(dir: &Path) -> Option<Closed> {
    open_as(dir, Opening::Prove).history().closed()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

fn life(counter: u32) -> LifeId {
    LifeId { counter, random: 5 }
}

/// A store with one commit, in a directory of its own.
fn filled(dir: &Path) {
    let store = open(dir);
    store
        .commit(&[batch(1, vec![put(Table::Log, "a", "1")])])
        .unwrap();
}

#[test]
fn a_new_store_goes_on_and_keeps_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let history = store.history();
    assert_eq!((history.incarnation().get(), history.closed()), (0, None));
    assert!(history.lives().is_empty());
    drop(store);
    let again = open(dir.path()).history();
    assert_eq!(again, history);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(open(other.path()).history().key(), history.key());
}

#[test]
fn a_start_without_the_note_is_closed_and_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    fs::remove_file(dir.path().join("thorp-note")).unwrap();
    for _ in 0..3 {
        assert_eq!(closed(dir.path()), Some(Closed::NoNote));
    }
    // The directory was not moved: that is not what is wrong.
    let moved = open_as(dir.path(), Opening::Moved).history();
    assert_eq!(moved.closed(), Some(Closed::NoNote));
    let report = check(dir.path()).unwrap();
    assert!(report.is_good(), "{report}");
    assert!(report.to_string().contains("it is closed"), "{report}");
    let opened = open_as(dir.path(), Opening::Restored { apart: false });
    let history = opened.history();
    assert_eq!((history.incarnation().get(), history.closed()), (1, None));
    assert_eq!(get(&opened, Table::Log, "a").as_deref(), Some("1"));
    drop(opened);
    assert_eq!(closed(dir.path()), None);
}

#[test]
fn a_copy_is_closed_and_a_renamed_directory_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there, copied) = (
        dir.path().join("here"),
        dir.path().join("there"),
        dir.path().join("copy"),
    );
    filled(&here);
    copy(&here, &copied);
    fs::rename(&here, &there).unwrap();
    assert_eq!(closed(&there), None);
    assert_eq!(closed(&copied), Some(Closed::OtherOrigin));
    assert_eq!(closed(&copied), Some(Closed::OtherOrigin), "it stays so");
    let moved = open_as(&copied, Opening::Moved).history();
    assert_eq!((moved.incarnation().get(), moved.closed()), (0, None));
    assert_eq!(closed(&copied), None);
}

#[test]
fn a_directory_may_be_told_not_to_prove_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (here, copied) = (dir.path().join("here"), dir.path().join("copy"));
    filled(&here);
    copy(&here, &copied);
    let options = Options {
        origin_proof: false,
        ..Options::default()
    };
    let store = Store::open(&copied, options).unwrap();
    assert_eq!(store.history().closed(), None);
}

#[test]
fn a_copy_for_a_test_has_a_key_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let key = open(dir.path()).history().key().clone();
    let restored = open_as(dir.path(), Opening::Restored { apart: false }).history();
    assert_eq!(restored.key(), &key);
    let apart = open_as(dir.path(), Opening::Restored { apart: true }).history();
    assert_ne!(apart.key(), &key);
    assert_eq!(apart.incarnation().get(), 2);
}

#[test]
fn numbers_of_a_next_incarnation_lie_above_all_that_were_lost() {
    let dir = tempfile::tempdir().unwrap();
    let next = NextRecord {
        segment: SegmentId(3),
        registration: Registration(4),
        life: 2,
    };
    let store = open(dir.path());
    let op = records::put(Table::Meta, records::NEXT_KEY.to_vec(), &next);
    store.commit(&[batch(1, vec![op])]).unwrap();
    let before = store.usage();
    drop(store);
    let store = open_as(dir.path(), Opening::Restored { apart: false });
    let stored = store.get(Table::Meta, records::NEXT_KEY).unwrap().unwrap();
    let raised: NextRecord = records::decode(Table::Meta, records::NEXT_KEY, &stored).unwrap();
    assert_eq!(raised.segment.0, 1 << 20);
    assert_eq!(raised.registration.0, 1 << 52);
    assert_eq!(raised.life, 1 << 20);
    // The ceiling of the clock is there, too.
    assert_eq!(store.usage().table(Table::Meta).records, 2);
    assert!(store.usage().bytes() > before.bytes(), "it is counted");
    drop(store);
    assert!(check(dir.path()).unwrap().is_good());
}

/// The clock begins above what the home promised in the history that it met, and the incarnation above its.
#[test]
fn a_store_that_met_another_history_is_opened_above_it() {
    let met = || {
        let point = Point {
            life: life(9),
            mark: Mark(1),
            position: Position(50),
            clock: 7_000,
        };
        Closed::OtherHistory(Met {
            by: "anna".to_owned(),
            incarnation: Incarnation::new(4).unwrap(),
            point,
        })
    };
    let closed_store = |dir: &Path| {
        let store = open(dir);
        let next = records::put(
            Table::Meta,
            records::NEXT_KEY.to_vec(),
            &NextRecord::default(),
        );
        store.commit(&[batch(1, vec![next])]).unwrap();
        store.close(met()).unwrap();
        store
    };
    let assert_above = |store: &Store, how: HowOpened| {
        let history = store.history();
        assert_eq!((history.incarnation().get(), history.closed()), (5, None));
        assert_eq!(history.openings()[0].how, how);
        let clock = store.get(Table::Meta, records::CLOCK_KEY).unwrap().unwrap();
        let clock: u64 = records::decode(Table::Meta, records::CLOCK_KEY, &clock).unwrap();
        assert_eq!(clock, 7_000);
    };
    let dir = tempfile::tempdir().unwrap();
    drop(closed_store(dir.path()));
    let store = open_as(dir.path(), Opening::Restored { apart: false });
    assert_above(&store, HowOpened::Restored);

    // The same while its home runs.
    let dir = tempfile::tempdir().unwrap();
    let store = closed_store(dir.path());
    let by = Operator {
        id: NameId::of("olga"),
        name: "olga".to_owned(),
    };
    let reopening = Reopening {
        apart: false,
        by: Some(by.clone()),
    };
    assert_eq!(store.reopen(reopening).unwrap().get(), 5);
    assert_above(&store, HowOpened::Confirmed);
    drop(store);
    let store = open_as(dir.path(), Opening::Prove);
    assert_above(&store, HowOpened::Confirmed);
    assert_eq!(store.history().openings()[0].by, Some(by));
    drop(store);
    assert!(check(dir.path()).unwrap().is_good());
}

#[test]
fn a_group_carries_its_last_mark_until_the_next_life() {
    let dir = tempfile::tempdir().unwrap();
    let at = |mark, key: &str| batch(mark, vec![put(Table::Log, key, "x")]);
    let end = |mark| LifeEnd {
        mark: Mark(mark),
        position: Position(9),
        ceiling: 70,
    };
    let store = open(dir.path());
    store.begin_life(life(1), LifeEnd::default()).unwrap();
    store.commit(&[at(1, "a"), at(2, "b")]).unwrap();
    store.commit(&[at(3, "c")]).unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.usage().mark, Mark(3));
    store.begin_life(life(2), end(3)).unwrap();
    assert_eq!(store.usage().mark, Mark(0));
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.usage().mark, Mark(0));
    let history = store.history();
    assert_eq!(history.lives().last(), Some(life(2)));
    let point = |mark| Point {
        life: life(1),
        mark: Mark(mark),
        position: Position(9),
        clock: 70,
    };
    assert!(history.lives().hold(&point(3), &LifeEnd::default()));
    assert!(!history.lives().hold(&point(4), &LifeEnd::default()));
}

#[test]
fn a_damaged_history_is_no_open_store() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let marker = dir.path().join("thorp-store");
    let line = fs::read_to_string(&marker).unwrap();
    assert!(line.contains("format=2"), "{line}");
    // A cut that ends before the history: the note tells.
    let journal = dir.path().join("thorp-engine/0.jnl");
    let length = fs::metadata(&journal).unwrap().len();
    fs::write(&journal, vec![0; usize::try_from(length).unwrap()]).unwrap();
    let error = Store::open(dir.path(), Options::default()).err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}
