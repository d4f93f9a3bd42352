//! What can be read of a damaged store is copied, and what is lost is named (threat 31).
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::{batch, open};
use std::fs;
use std::path::{Path, PathBuf};
use thorp_model::records;
use thorp_model::{
    Closed, Engine as _, LifeEnd, LifeId, Mark, Op, PageId, Position, Reader as _, Table,
};
use thorp_store::{Lost, OpenError, Opening, Options, Salvaged, Store, check, salvage};

const COMMITS: u64 = 40;

/// Commits of one page and one log record each.
fn fill(dir: &Path) -> Store {
    let store = open(dir);
    let life = LifeId {
        counter: 1,
        random: 7,
    };
    store.begin_life(life, LifeEnd::default()).unwrap();
    for number in 1..=COMMITS {
        let put = |table, key| Op::Put {
            table,
            key,
            value: vec![number as u8; 2_000],
        };
        let page = PageId::new(1, number as u32);
        let ops = vec![
            put(Table::Log, records::log_key(Position(number))),
            put(Table::Pages, records::page_key(page)),
        ];
        store.commit(&[batch(number, ops)]).unwrap();
    }
    store
}

fn journal(dir: &Path) -> PathBuf {
    dir.join("thorp-engine/0.jnl")
}

fn flip(file: &Path, part: usize) {
    let mut bytes = fs::read(file).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end * part / 100] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

fn pages(store: &Store) -> u64 {
    let page = |number: &u64| records::page_key(PageId::new(1, *number as u32));
    let there = |number: &u64| store.get(Table::Pages, &page(number)).unwrap().is_some();
    let numbers: Vec<u64> = (1..=COMMITS).filter(there).collect();
    let count = numbers.len() as u64;
    assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "no gap");
    count
}

#[test]
fn all_before_the_first_damaged_group_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let (damaged, new) = (dir.path().join("damaged"), dir.path().join("new"));
    let key = fill(&damaged).history().key().clone();
    flip(&journal(&damaged), 60);
    let refused = Store::open(&damaged, Options::default()).err().unwrap();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    let before = contents(&damaged);
    let salvaged = salvage(&damaged, &new).unwrap();
    assert!(
        contents(&damaged) == before,
        "the damaged store was changed"
    );

    let store = open(&new);
    let last = pages(&store);
    assert!((10..COMMITS).contains(&last), "{last}");
    assert_eq!(salvaged.position, Position(last));
    // The history and the life before the first commit are groups as well.
    assert_eq!(salvaged.groups, Some(last + 3..=COMMITS + 2));
    assert_eq!((salvaged.lost_count, salvaged.records), (0, 2 * last));
    assert!(!salvaged.is_whole());
    let history = store.history();
    assert_eq!(history.closed(), Some(Closed::Salvaged));
    assert_eq!((history.key(), history.lives().len()), (&key, 1));
    assert_eq!(store.usage().mark, Mark(last), "how far its life came");
    drop(store);
    assert!(check(&new).unwrap().is_good());
    let moved = Options {
        opening: Opening::Moved,
        ..Options::default()
    };
    let history = Store::open(&new, moved).unwrap().history();
    assert_eq!(history.closed(), Some(Closed::Salvaged), "it stays closed");
}

#[test]
fn a_store_without_damage_is_copied_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (here, new) = (dir.path().join("here"), dir.path().join("new"));
    drop(fill(&here));
    let salvaged = salvage(&here, &new).unwrap();
    assert!(salvaged.is_whole(), "{salvaged:?}");
    assert_eq!(pages(&open(&new)), COMMITS);
    let again = salvage(&here, &new).err().unwrap();
    assert!(matches!(again, OpenError::NotAStore { .. }), "{again}");
    let nothing = salvage(dir.path().join("nothing"), dir.path().join("newer"));
    assert!(matches!(nothing, Err(OpenError::Missing { .. })));
}

#[test]
fn what_is_lost_is_named() {
    let page = Lost::Page(PageId::new(3, 9));
    assert_eq!(page.to_string(), "page 3/9");
    assert_eq!(Lost::Position(Position(7)).to_string(), "position 7");
    let between = Lost::Between {
        table: Table::Log,
        after: Some(records::log_key(Position(4))),
        before: None,
    };
    let words = "table log: all between position 4 and its end";
    assert_eq!(between.to_string(), words);
    assert!(Salvaged::default().is_whole());
}
