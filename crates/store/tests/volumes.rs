//! A store on a small volume: it refuses before the volume is full, takes what frees room, and gives the room back.
//!
//! The volumes are in memory and need root; without root the tests skip.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;
// The crate of tests stands above this one, so its file is built once more.
#[allow(unreachable_pub, reason = "it is public in its own crate")]
#[path = "../../testkit/src/skipped.rs"]
mod skipped;

use skipped::report_skipped;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use thorp_model::{
    Batch, Engine as _, Mark, Op, Purpose, Reader as _, SplitMix64, StorageError, Table,
};
use thorp_store::{Options, Store, Volume, check};

/// A page of the home that plays here, and what one commit brings.
const PAGE_BYTES: usize = 8000;
const PAGES_PER_COMMIT: u64 = 12;
/// Commits that wait in the log until they are installed.
const INSTALLED_AT_ONCE: u64 = 8;
/// How often a home tries what has to fit.
const TRIES: usize = 500;
/// How often it is filled and emptied.
const ROUNDS: u64 = 3;

#[test]
fn a_store_fills_no_volume_and_gives_room_back() {
    for mib in [24, 48, 96] {
        let Some(mount) = Mount::new(mib) else {
            return;
        };
        let watched = Watched::new(mount.path());
        let mut held = Vec::new();
        for round in 0..ROUNDS {
            let mut home = Home::open(mount.path(), round);
            home.fill();
            held.push(home.commits);
            home.assert_whole();
            home.remove_all();
            home.reclaim();
            drop(home);
            let report = check(mount.path().join("store")).unwrap();
            assert!(report.is_good(), "{mib} MiB: {report}");
        }
        let lowest = watched.lowest();
        let commit_bytes = PAGES_PER_COMMIT * PAGE_BYTES as u64;
        let percent = |commits: &u64| commits * commit_bytes * 100 / (mib << 20);
        let percents: Vec<u64> = held.iter().map(percent).collect();
        println!("{mib} MiB: held {percents:?} % of it, {lowest} bytes free at the lowest");
        assert!(lowest > 512 << 10, "{mib} MiB: {lowest} bytes were free");
        assert!(
            percents.iter().all(|percent| *percent >= 15),
            "{mib} MiB: {percents:?}"
        );
        // Each time as much as the first time: nothing leaks.
        let (least, most) = (percents.iter().min(), percents.iter().max());
        assert!(
            least.unwrap() * 3 >= most.unwrap() * 2,
            "{mib} MiB: {percents:?}"
        );
    }
}

/// Does to its store what a home does.
struct Home {
    store: Store,
    random: SplitMix64,
    /// Commits that were taken, and how many of them are installed.
    commits: u64,
    installed: u64,
    marks: u64,
    round: u64,
}

impl Home {
    fn open(volume: &Path, round: u64) -> Home {
        let store = Store::open(volume.join("store"), Options::default()).unwrap();
        Home {
            store,
            random: SplitMix64::new(round),
            commits: 0,
            installed: 0,
            marks: 0,
            round,
        }
    }

    fn fill(&mut self) {
        // A home looks before it takes a commit. A compaction that begins in between may take the room: then it looks again.
        let mut refused = 0;
        while self.store.ask_space(1 << 20).is_ok() || self.reclaims() {
            let number = self.commits;
            let pages = (0..PAGES_PER_COMMIT)
                .map(|_| self.value())
                .collect::<Vec<_>>();
            let value = pages.concat();
            let batch = self.batch(
                Purpose::NewData,
                vec![put(Table::Log, key(number, 0), value)],
            );
            match self.store.commit(&batch) {
                Ok(()) => refused = 0,
                Err(StorageError::Full { .. }) if refused < TRIES => {
                    refused += 1;
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
                Err(error) => panic!("round {}, commit {number}: {error}", self.round),
            }
            self.commits += 1;
            if self.commits - self.installed >= INSTALLED_AT_ONCE {
                self.install();
            }
        }
        self.install();
    }

    /// Whether reclaiming made room, as a home that is full finds out.
    fn reclaims(&self) -> bool {
        self.store.reclaim().unwrap() && self.store.ask_space(2 << 20).is_ok()
    }

    fn install(&mut self) {
        for number in self.installed..self.commits {
            let log = self
                .store
                .get(Table::Log, &key(number, 0))
                .unwrap()
                .unwrap();
            let pages = log.chunks(PAGE_BYTES).zip(0..);
            let mut ops: Vec<Op> = pages
                .map(|(page, at)| put(Table::Pages, key(number, at), page.to_vec()))
                .collect();
            ops.push(delete(Table::Log, key(number, 0)));
            self.commit(Purpose::Housekeeping, ops);
        }
        self.installed = self.commits;
    }

    fn remove_all(&mut self) {
        for number in 0..self.commits {
            let pages = 0..PAGES_PER_COMMIT;
            let ops = pages.map(|at| delete(Table::Pages, key(number, at)));
            self.commit(Purpose::Removal, ops.collect());
        }
    }

    fn batch(&mut self, purpose: Purpose, ops: Vec<Op>) -> [Batch; 1] {
        self.marks += 1;
        [Batch {
            mark: Mark(self.marks),
            purpose,
            ops,
        }]
    }

    /// What a full home does when something does not fit that has to: it reclaims, and tries again until it fits.
    fn commit(&mut self, purpose: Purpose, ops: Vec<Op>) {
        let batch = self.batch(purpose, ops);
        for _ in 0..TRIES {
            match self.store.commit(&batch) {
                Ok(()) => return,
                Err(StorageError::Full { .. }) => {}
                Err(error) => panic!("round {}, commit {}: {error}", self.round, self.commits),
            }
            self.store.reclaim().unwrap();
            // A compaction of the engine may have to end first.
            thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "round {}, commit {}: it never fits",
            self.round, self.commits
        );
    }

    fn reclaim(&self) {
        self.store.reclaim().unwrap();
        assert_eq!(self.store.ask_space(2 << 20), Ok(()));
    }

    fn assert_whole(&mut self) {
        for number in 0..self.commits {
            for at in 0..PAGES_PER_COMMIT {
                let page = self.store.get(Table::Pages, &key(number, at)).unwrap();
                assert_eq!(page.unwrap().len(), PAGE_BYTES);
            }
        }
    }

    /// Bytes that no engine makes smaller.
    fn value(&mut self) -> Vec<u8> {
        let words = (0..PAGE_BYTES / 8).map(|_| self.random.bits().to_le_bytes());
        words.flatten().collect()
    }
}

fn key(number: u64, at: u64) -> Vec<u8> {
    [number.to_be_bytes(), at.to_be_bytes()].concat()
}

fn put(table: Table, key: Vec<u8>, value: Vec<u8>) -> Op {
    Op::Put { table, key, value }
}

fn delete(table: Table, key: Vec<u8>) -> Op {
    Op::Delete { table, key }
}

/// Watches what is free on a volume.
struct Watched {
    lowest: std::sync::Arc<AtomicU64>,
    done: std::sync::Arc<AtomicBool>,
}

impl Watched {
    fn new(volume: &Path) -> Watched {
        let watched = Watched {
            lowest: std::sync::Arc::new(AtomicU64::new(u64::MAX)),
            done: std::sync::Arc::default(),
        };
        let (lowest, done) = (watched.lowest.clone(), watched.done.clone());
        let volume = volume.to_path_buf();
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if let Some(volume) = Volume::of(&volume) {
                    lowest.fetch_min(volume.free, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_micros(200));
            }
        });
        watched
    }

    fn lowest(self) -> u64 {
        self.lowest.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

struct Mount {
    dir: tempfile::TempDir,
}

impl Mount {
    /// None: that needs root.
    fn new(mib: u64) -> Option<Mount> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={mib}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "thorp-test"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Mount { dir });
        }
        report_skipped(env!("CARGO_CRATE_NAME"), "root to mount a small volume");
        None
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmount = Command::new("umount").arg("-l").arg(self.path()).status();
        if !unmount.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.path().display());
        }
    }
}
