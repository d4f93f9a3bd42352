//! Tables in files, and what a reader makes of them.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;
use thorp_versions::{
    BEAT_MS_MAX, Denied, Evidence, Kept, Mapped, Memory, Place, Reader, Store, TableError, Word,
    Writer,
};

const NOW_MS: u64 = 10_000;

struct Live {
    writer: Writer<Arc<Memory>>,
    reader: Reader<Arc<Memory>>,
    evidence: Evidence,
}

impl Live {
    fn new() -> Self {
        let table = Arc::new(Memory::new());
        let mut writer = Writer::new(Arc::clone(&table));
        writer.restart(1, &[]);
        writer.beat(NOW_MS);
        let reader = Reader::new(table);
        let evidence = reader.evidence();
        Live {
            writer,
            reader,
            evidence,
        }
    }

    fn store(&mut self, place: Place, word: fn(u64) -> Word) {
        let sequence = self.reader.evidence().sequence + 1;
        self.writer.store(&Store {
            words: vec![(place, word(sequence))],
            sequence,
        });
    }

    fn check(&self, keys: &[Place]) -> Result<(), Denied> {
        let passed = self.reader.check(self.evidence, keys, NOW_MS);
        passed.map(|_| ())
    }
}

#[test]
fn an_entry_is_served_until_what_it_depends_on_changes() {
    let mut live = Live::new();
    let (mine, other) = (Place::of("a"), Place::of("b"));
    live.store(other, Word::even);
    assert_eq!(live.check(&[mine]), Ok(()));
    live.store(mine, Word::odd);
    assert_eq!(live.check(&[mine]), Err(Denied::Changed(mine)));
    assert!(Denied::Changed(mine).is_for_good());
}

#[test]
fn a_fill_during_an_update_is_not_kept() {
    let mut live = Live::new();
    let mine = Place::of("a");
    live.store(mine, Word::odd);
    live.evidence = live.reader.evidence();
    assert_eq!(live.check(&[mine]), Err(Denied::Open(mine)));
    assert!(!Denied::Open(mine).is_for_good());
    live.store(mine, Word::even);
    assert_eq!(live.check(&[mine]), Err(Denied::Changed(mine)));
    live.evidence = live.reader.evidence();
    assert_eq!(live.check(&[mine]), Ok(()));
}

#[test]
fn what_no_rule_names_changes_every_entry() {
    let mut live = Live::new();
    live.store(Place::UNKNOWN, Word::even);
    let denied = Err(Denied::Changed(Place::UNKNOWN));
    assert_eq!(live.check(&[Place::of("a")]), denied);
    assert_eq!(live.check(&[]), denied);
}

#[test]
fn an_old_beat_denies_hits_and_a_new_generation_ends_entries() {
    let mut live = Live::new();
    let passed = live
        .reader
        .check(live.evidence, &[], NOW_MS)
        .expect("it passes");
    let late = NOW_MS + BEAT_MS_MAX + 1;
    assert!(live.reader.still(passed, live.evidence, late - 1));
    assert!(!live.reader.still(passed, live.evidence, late));
    let old = live.reader.check(live.evidence, &[], late);
    assert_eq!(old, Err(Denied::NoBeat));
    live.writer.restart(2, &[]);
    assert_eq!(live.check(&[]), Err(Denied::OtherGeneration));
    live.evidence = live.reader.evidence();
    assert_eq!(
        live.check(&[]),
        Err(Denied::NoBeat),
        "the source has not said that it waits"
    );
    live.writer.beat(NOW_MS);
    assert_eq!(live.check(&[]), Ok(()));
}

#[test]
fn evidence_of_a_source_that_is_ahead_of_its_table_is_no_hit_yet() {
    let mut live = Live::new();
    live.evidence.sequence += 1;
    assert_eq!(live.check(&[]), Err(Denied::Behind));
    live.store(Place::of("a"), Word::even);
    assert_eq!(live.check(&[]), Ok(()));
}

#[test]
fn a_reader_of_a_file_sees_what_its_keeper_stores() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("wiki.table");
    let mut writer = Writer::new(Kept::open(&path).expect("a new table"));
    assert!(matches!(Kept::open(&path), Err(TableError::InUse(_))));
    writer.restart(1, &[]);
    writer.beat(NOW_MS);
    let reader = Reader::new(Mapped::open(&path).expect("a table"));
    let evidence = reader.evidence();
    assert!(reader.check(evidence, &[Place::of("a")], NOW_MS).is_ok());
    drop(writer);
    let mut writer = Writer::new(Kept::open(&path).expect("the same table"));
    let sequence = writer.restart(2, &[]);
    assert!(sequence > evidence.sequence);
    let checked = reader.check(evidence, &[Place::of("a")], NOW_MS);
    assert_eq!(checked, Err(Denied::OtherGeneration));
}

#[test]
fn a_file_that_is_no_table_is_refused_and_stays() {
    let place = tempfile::tempdir().expect("a directory");
    let path: PathBuf = place.path().join("table");
    fs::write(&path, "somebody's notes").expect("a file");
    assert!(matches!(Kept::open(&path), Err(TableError::Length(_, 16))));
    assert_eq!(fs::read(&path).expect("a file"), b"somebody's notes");
    fs::remove_file(&path).expect("a file");
    drop(Kept::open(&path).expect("a new table"));
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    let whole = file.metadata().expect("a length").len();
    file.set_len(whole - 8).expect("a shorter file");
    assert!(matches!(Mapped::open(&path), Err(TableError::Length(..))));
    fs::write(&path, vec![7; whole as usize]).expect("a file");
    assert!(matches!(
        Mapped::open(&path),
        Err(TableError::OtherFormat(_))
    ));
    let error = Kept::open(&path).expect_err("another format").to_string();
    assert!(error.contains("delete the file"), "{error}");
}
