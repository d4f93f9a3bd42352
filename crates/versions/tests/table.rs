//! Tables in files, and what a reader makes of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use thorp_versions::{
    Address, BEAT_MS_MAX, Denied, Evidence, Followed, Kept, Mapped, Memory, Place, Reader, Store,
    TableError, Terms, Versions, Word, Writer,
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

const TERMS: Terms = Terms(7);

/// A directory, the path of an address in it, and a keeper that beats.
struct Host {
    _directory: TempDir,
    path: PathBuf,
}

impl Host {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("wiki.table");
        Host {
            _directory: directory,
            path,
        }
    }

    fn keeper(&self, id: u64) -> Writer<Kept> {
        let mut writer = Writer::new(Kept::make(&self.path, TERMS, id).expect("a new table"));
        writer.restart(id, &[]);
        writer.beat(NOW_MS);
        writer
    }

    fn open(&self) -> Result<Mapped, TableError> {
        Mapped::open(&self.path, TERMS)
    }
}

fn passes(reader: &impl Versions<Evidence = Evidence>, evidence: Evidence) -> Result<(), Denied> {
    let passed = reader.check(&evidence, &[Place::of("a")], NOW_MS);
    passed.map(|_| ())
}

#[test]
fn a_reader_of_a_file_sees_what_its_keeper_stores() {
    let host = Host::new();
    assert!(matches!(host.open(), Err(TableError::NotThere(_))));
    let mut writer = host.keeper(1);
    let second = Kept::make(&host.path, TERMS, 2);
    assert!(matches!(second, Err(TableError::InUse(_))));
    let reader = Reader::new(host.open().expect("a table"));
    let evidence = reader.evidence();
    assert_eq!(passes(&reader, evidence), Ok(()));
    writer.restart(9, &[]);
    assert_eq!(passes(&reader, evidence), Err(Denied::OtherGeneration));
    drop(writer);
    assert!(matches!(host.open(), Err(TableError::NotThere(_))));
    // It reads on, and nothing there changes any more.
    assert_eq!(passes(&reader, evidence), Err(Denied::OtherGeneration));
}

#[test]
fn a_reader_goes_on_to_the_table_of_the_next_keeper() {
    let host = Host::new();
    let reader = Followed::new(host.path.clone(), TERMS);
    assert!(reader.look().is_err());
    let nothing = reader.evidence();
    assert_eq!(passes(&reader, nothing), Err(Denied::NoBeat));
    let writer = host.keeper(1);
    let first = reader.look().expect("a table");
    assert_eq!(passes(&reader, nothing), Err(Denied::OtherGeneration));
    let evidence = reader.evidence();
    let passed = reader.check(&evidence, &[], NOW_MS).expect("it passes");
    assert!(reader.still(passed, &evidence, NOW_MS));
    let left = fs::read(&host.path).expect("an address");
    drop(writer);
    assert!(reader.look().is_err());
    // A keeper that is killed leaves its address.
    fs::write(&host.path, left).expect("an address");
    assert!(matches!(reader.look(), Err(TableError::Gone(_))));
    assert_eq!(passes(&reader, evidence), Ok(()), "its beat is young");
    let _writer = host.keeper(2);
    assert_ne!(reader.look().expect("a table"), first);
    assert_eq!(passes(&reader, evidence), Err(Denied::OtherGeneration));
    assert!(!reader.still(passed, &evidence, NOW_MS));
    assert_eq!(passes(&reader, reader.evidence()), Ok(()));
}

/// Whoever has the rights can open the memory. Nobody can cut it short, and no reader dies of it.
#[test]
fn nobody_cuts_a_table_short_or_writes_it() {
    let host = Host::new();
    let _writer = host.keeper(1);
    let table = host.open().expect("a table");
    let Address {
        process,
        descriptor,
        ..
    } = table.address();
    let memory = format!("/proc/{process}/fd/{descriptor}");
    let mut options = OpenOptions::new();
    let mut memory = options.write(true).open(memory).expect("the memory");
    for length in [0, 4096, 1 << 30] {
        assert!(memory.set_len(length).is_err(), "{length}");
    }
    assert!(memory.write_all(&[0; 64]).is_err());
    let reader = Reader::new(table);
    assert_eq!(passes(&reader, reader.evidence()), Ok(()));
}

#[test]
fn a_file_that_is_damaged_while_its_table_is_read_ends_nothing() {
    let host = Host::new();
    let mut writer = host.keeper(1);
    let reader = Followed::new(host.path.clone(), TERMS);
    reader.look().expect("a table");
    let evidence = reader.evidence();
    let whole = fs::read(&host.path).expect("an address");
    let damages: [fn(&Path) -> io::Result<()>; 4] = [
        |path| fs::write(path, ""),
        |path| fs::write(path, "thorp table 1: 7"),
        |path| fs::write(path, "thorp table 2: 7 8 9\n"),
        |path| fs::remove_file(path),
    ];
    for damage in damages {
        damage(&host.path).expect("a damaged file");
        assert!(reader.look().is_err());
        assert!(host.open().is_err());
        assert_eq!(passes(&reader, evidence), Ok(()));
    }
    fs::write(&host.path, whole).expect("the address");
    reader.look().expect("the same table");
    writer.restart(2, &[]);
    assert_eq!(passes(&reader, evidence), Err(Denied::OtherGeneration));
}

#[test]
fn an_address_of_another_process_is_refused() {
    let host = Host::new();
    let _writer = host.keeper(1);
    let Address {
        process,
        descriptor,
        ..
    } = host.open().expect("a table").address();
    // The same numbers, but another table; then memory that is none; then nobody.
    let notes = File::open("/proc/self/maps").expect("a file");
    for (descriptor, id) in [(descriptor, 2), (notes.as_raw_fd() as u32, 1), (9_999, 1)] {
        let line = format!("thorp table 1: {process} {descriptor} {id:x}\n");
        fs::write(&host.path, line).expect("an address");
        let refused = host.open().expect_err("no table");
        let is_right = matches!(refused, TableError::Gone(_) | TableError::OtherFormat(_));
        assert!(is_right, "{refused}");
    }
}

#[test]
fn a_reader_with_another_recipe_is_refused() {
    let host = Host::new();
    let _writer = host.keeper(1);
    let other = Mapped::open(&host.path, Terms::of("another recipe"));
    let refused = other.expect_err("other terms").to_string();
    assert!(refused.contains("recipe"), "{refused}");
}

#[test]
fn a_file_that_is_no_address_is_refused_and_stays() {
    let host = Host::new();
    fs::write(&host.path, "somebody's notes").expect("a file");
    let refused = Kept::make(&host.path, TERMS, 1).expect_err("it is no address");
    assert!(refused.to_string().contains("delete the file"), "{refused}");
    assert!(matches!(host.open(), Err(TableError::OtherFormat(_))));
    let notes = fs::read(&host.path).expect("a file");
    assert_eq!(notes, b"somebody's notes");
    // A keeper that was killed while it wrote leaves a half.
    fs::write(&host.path, "thorp table 1: 7 1").expect("a file");
    drop(host.keeper(1));
}
