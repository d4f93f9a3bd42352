//! What the engine does on a volume without room. Needs root for a small
//! volume of its own, so it runs only when asked for:
//! `cargo test -p thorp-store --test full_disk -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{batch, delete, put};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use thorp_model::{Engine as _, StorageError, Table};
use thorp_store::{Options, Store, check};

/// So many records of 5 kB are more than the 16 MiB that the engine keeps of a
/// table in memory.
const MEMTABLE_IS_FULL: usize = 3500;

#[test]
#[ignore = "mounts a volume, which needs root"]
fn a_disk_filled_by_another_breaks_nothing_acknowledged() {
    let volume = Volume::mount("32m");
    let mut told = Vec::new();
    for round in 0..6 {
        // No reserve: the engine itself runs into the full disk.
        let store = open(volume.path(), Some(0));
        let have = common::scan(&store, Table::Log, "", "").len();
        fill_volume(volume.path(), 40_000 + 7_000 * round);
        let (done, error) = write_until_refused(&store, have);
        if round % 2 == 0 {
            // There is room again before the engine is dropped.
            fs::remove_file(volume.path().join("filler")).unwrap();
        }
        assert!(
            common::get(&store, Table::Meta, "fixed").is_some(),
            "reads go on"
        );
        let again = store.commit(&[batch(9, vec![put(Table::Meta, "again", "and again")])]);
        drop(store);
        let _ = fs::remove_file(volume.path().join("filler"));
        let report = check(volume.path().join("store")).unwrap();
        assert!(report.is_good(), "{report}");
        let store = open(volume.path(), Some(0));
        let found = common::scan(&store, Table::Log, "", "").len();
        let whole = common::scan(&store, Table::Outcomes, "", "").len();
        assert!(
            found == whole && (found == done || found == done + 1),
            "{done} {found} {whole}"
        );
        let refused = error.to_string();
        told.push(format!(
            "{done} done, {found} found, {refused}, then {again:?}"
        ));
        if matches!(error, StorageError::Full { .. }) {
            assert_eq!(found, done, "what was refused as full is not there");
        }
        clear(&store);
    }
    told.iter().for_each(|line| println!("{line}"));
}

#[test]
#[ignore = "mounts a volume, which needs root"]
fn with_a_reserve_a_full_disk_is_only_full() {
    let volume = Volume::mount("200m");
    let store = open(volume.path(), None);
    let (done, error) = write_until_refused(&store, 0);
    assert!(matches!(error, StorageError::Full { .. }), "{error}");
    println!("{done} done, {error}");
    for number in 0..done / 2 {
        let key = format!("{number:08}");
        let ops = vec![delete(Table::Log, &key), delete(Table::Outcomes, &key)];
        store.commit(&[batch(1, ops)]).unwrap();
    }
    drop(store);
    open(volume.path(), None);
}

#[test]
#[ignore = "mounts a volume, which needs root"]
fn a_background_thread_without_room_stops_commits_but_loses_none() {
    // Space for the journal of what fills a memtable, not for its table too.
    let volume = Volume::mount("28m");
    let store = open(volume.path(), Some(0));
    let (done, error) = write_until_refused(&store, 0);
    println!("{done} done, {error}");
    assert!(matches!(error, StorageError::Broken { .. }), "{error}");
    assert!(error.to_string().contains("Poisoned"), "{error}");
    drop(store);
    volume.grow("200m");
    let store = open(volume.path(), None);
    let found = common::scan(&store, Table::Log, "", "").len();
    assert_eq!(found, done);
    write_until_refused(&store, done);
}

fn open(volume: &Path, disk_reserve_bytes: Option<u64>) -> Store {
    let options = Options {
        disk_reserve_bytes,
        ..Options::default()
    };
    let store = Store::open(volume.join("store"), options).unwrap();
    store
        .commit(&[batch(1, vec![put(Table::Meta, "fixed", "value")])])
        .unwrap();
    store
}

fn write_until_refused(store: &Store, from: usize) -> (usize, StorageError) {
    let value = "v".repeat(5000);
    for number in from.. {
        let key = format!("{number:08}");
        let ops = vec![
            put(Table::Log, &key, &value),
            put(Table::Outcomes, &key, "done"),
        ];
        if number == MEMTABLE_IS_FULL {
            // The engine writes it out now. Journal and table would race for
            // the last room, and it is the table that is to meet the end.
            std::thread::sleep(Duration::from_millis(500));
        }
        if let Err(error) = store.commit(&[batch(1, ops)]) {
            return (number, error);
        }
    }
    unreachable!("a disk has an end")
}

fn clear(store: &Store) {
    for key in common::scan(store, Table::Log, "", "") {
        let ops = vec![delete(Table::Log, &key), delete(Table::Outcomes, &key)];
        store.commit(&[batch(1, ops)]).unwrap();
    }
}

/// Another program that leaves little room.
fn fill_volume(volume: &Path, leave_bytes: u64) {
    let stat = rustix::fs::statvfs(volume).unwrap();
    let free = stat.f_bavail * stat.f_frsize;
    let filler = vec![1; free.saturating_sub(leave_bytes) as usize];
    let mut file = File::create(volume.join("filler")).unwrap();
    file.write_all(&filler).unwrap();
}

struct Volume {
    dir: tempfile::TempDir,
}

impl Volume {
    fn mount(size: &str) -> Volume {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "thorp-test"])
            .arg(dir.path())
            .status()
            .unwrap();
        assert!(status.success(), "this needs root");
        Volume { dir }
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-o", &options]).arg(self.dir.path());
        assert!(mount.status().unwrap().success());
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.dir.path())
            .status();
    }
}
