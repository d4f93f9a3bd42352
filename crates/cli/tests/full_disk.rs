//! A home without room takes no commits and says why, goes on serving reads, and takes commits again when there is room.
//!
//! The volume needs root; without root that test skips (see [`skip`]).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::{skip, thorp};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{Error, ErrorKind, JoinConfig, Member, Reference, Segment};
use thorp_testing::{HomeProcess, PATIENCE};

const OBJECT_BYTES: usize = 7000;
const OBJECTS_PER_COMMIT: usize = 20;
/// More than that never fits in what these homes have.
const COMMITS_MAX: usize = 20_000;

/// A small volume, gone with the test.
struct Volume(tempfile::TempDir);

/// What was acknowledged.
struct Shop {
    segment: Segment,
    objects: Vec<(Reference, u8)>,
}

#[test]
fn a_full_volume_stops_commits_and_no_reads() {
    let Some(volume) = Volume::mount("256m") else {
        return;
    };
    let home = home_for_one_name(volume.path(), &[]);
    let member = join(&home, "writer");
    let mut shop = Shop::open(&member);
    shop.fill(&member, 5);
    // Another program takes nearly all that is left.
    let filler = volume.fill_up_to(60 << 20);
    let error = shop.fill_until_refused(&member);
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    shop.assert_whole(&home, &member);
    shop.delete_one(&member);
    fs::remove_file(filler).unwrap();
    shop.eventually_takes_more(&member);
    shop.assert_whole(&home, &member);
}

#[test]
fn a_limit_stops_commits_and_no_reads() {
    let dir = tempfile::tempdir().unwrap();
    let home = home_with_limit(dir.path(), "8 MiB");
    let member = join(&home, "writer");
    let mut shop = Shop::open(&member);
    let error = shop.fill_until_refused(&member);
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    shop.assert_whole(&home, &member);
    shop.delete_one(&member);
    let told = thorp().run(&["status", &home.http]);
    assert_eq!(told.code, 3, "{}{}", told.out, told.err);
    assert!(told.out.contains("no room"), "{}", told.out);
    // It stays full for who starts it again as it was, and takes commits for who gives it more.
    drop(home);
    let home = home_with_limit(dir.path(), "8 MiB");
    let refused = shop.fill_until_refused(&member);
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    shop.assert_whole(&home, &member);
    drop(home);
    let home = home_with_limit(dir.path(), "64 MiB");
    shop.eventually_takes_more(&member);
    shop.assert_whole(&home, &member);
}

fn home_with_limit(dir: &Path, limit: &str) -> HomeProcess {
    home_for_one_name(dir, &["--limit-bytes", limit])
}

/// A home that one name may fill (rule R7).
fn home_for_one_name(dir: &Path, flags: &[&str]) -> HomeProcess {
    let file = dir.join("one-name.toml");
    fs::write(&file, "[shares]\nstore_percent_max = 100\n").unwrap();
    let config = ["--config", file.to_str().unwrap()];
    thorp().home_with(dir, &[&config, flags].concat())
}

fn join(home: &HomeProcess, name: &str) -> Member {
    let config = JoinConfig::new(&home.via).identity(&home.identity);
    Member::join(config.name(name).join_timeout(PATIENCE)).unwrap()
}

impl Shop {
    fn open(member: &Member) -> Self {
        Shop {
            segment: member.create("thorp://alps/shop").unwrap(),
            objects: Vec::new(),
        }
    }

    /// One commit that brings something.
    fn add(&mut self, member: &Member) -> Result<(), Error> {
        let byte = self.objects.len() as u8;
        let made = member.transact(|tx| {
            let made = 0..OBJECTS_PER_COMMIT;
            let made = made.map(|_| tx.create(&self.segment, [byte; OBJECT_BYTES]));
            made.collect::<Result<Vec<_>, _>>()
        })?;
        self.objects
            .extend(made.into_iter().map(|object| (object, byte)));
        Ok(())
    }

    fn fill(&mut self, member: &Member, commits: usize) {
        for _ in 0..commits {
            self.add(member).unwrap();
        }
    }

    fn fill_until_refused(&mut self, member: &Member) -> Error {
        let mut refused = (0..COMMITS_MAX).filter_map(|_| self.add(member).err());
        // While it is opened again it cannot be reached.
        let mut refused = refused.by_ref().filter(|error| !is_passing(error));
        refused.next().expect("it is never full")
    }

    /// A full home deletes an object (before, it refused that as full).
    fn delete_one(&mut self, member: &Member) {
        let (object, _) = self.objects.pop().unwrap();
        let end = Instant::now() + PATIENCE;
        while let Err(error) = member.transact(|tx| tx.delete(&object)) {
            assert!(is_passing(&error) && Instant::now() < end, "{error}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn eventually_takes_more(&mut self, member: &Member) {
        let end = Instant::now() + PATIENCE;
        while let Err(error) = self.add(member) {
            let kind = error.kind();
            assert!(kind == ErrorKind::Full || is_passing(&error), "{error}");
            assert!(Instant::now() < end, "it stays full: {error}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything acknowledged can be read: by who has it in its cache, and by who has nothing.
    fn assert_whole(&self, home: &HomeProcess, member: &Member) {
        for reader in [member, &join(home, "reader")] {
            for (object, byte) in &self.objects {
                let read = reader.transact(|tx| Ok(tx.read(object)? == [*byte; OBJECT_BYTES]));
                assert!(read.unwrap(), "{object:?}");
            }
        }
    }
}

fn is_passing(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::HomeUnreachable | ErrorKind::Busy { .. } | ErrorKind::Conflict
    )
}

impl Volume {
    /// None: that needs root.
    fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "thorp-test"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Volume(dir));
        }
        skip("root to mount a small volume");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills it with a file until so many bytes are left.
    fn fill_up_to(&self, left: u64) -> PathBuf {
        let stat = rustix::fs::statvfs(self.path()).unwrap();
        let free = stat.f_bavail * stat.f_frsize;
        let file = self.path().join("filler");
        fs::write(&file, vec![1; free.saturating_sub(left) as usize]).unwrap();
        file
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Even with a process that still has a file open there.
        let unmount = Command::new("umount").arg("-l").arg(self.path()).status();
        if !unmount.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.path().display());
        }
    }
}
