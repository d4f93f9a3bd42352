//! Small volumes in memory. They need root.

use crate::common::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A small volume, gone with the test.
pub(crate) struct Volume(tempfile::TempDir);

impl Volume {
    /// None: that needs root.
    pub(crate) fn mount(size: &str) -> Option<Self> {
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

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills it with a file until so many bytes are left.
    pub(crate) fn fill_up_to(&self, left: u64) -> PathBuf {
        let free = free(self.path());
        let file = self.path().join("filler");
        let written = fs::write(&file, vec![1; free.saturating_sub(left) as usize]);
        // Others take some of it meanwhile.
        let is_full = |error: &std::io::Error| error.kind() == std::io::ErrorKind::StorageFull;
        assert!(written.is_ok() || written.is_err_and(|error| is_full(&error)));
        file
    }
}

impl Volume {
    /// Bytes that are taken.
    pub(crate) fn used(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.path()).unwrap();
        (stat.f_blocks - stat.f_bfree) * stat.f_frsize
    }

    /// Gives it another size, in bytes.
    pub(crate) fn resize(&self, bytes: u64) {
        let options = format!("remount,size={bytes}");
        let mut mount = Command::new("mount");
        mount.args(["-o", &options]).arg(self.path());
        assert!(mount.status().unwrap().success());
    }
}

/// Watches what is free on a volume.
pub(crate) struct Lowest {
    bytes: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
}

impl Lowest {
    pub(crate) fn watch(volume: &Path) -> Self {
        let lowest = Lowest {
            bytes: Arc::new(AtomicU64::new(u64::MAX)),
            done: Arc::default(),
        };
        let (bytes, done) = (Arc::clone(&lowest.bytes), Arc::clone(&lowest.done));
        let volume = volume.to_path_buf();
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                bytes.fetch_min(free(&volume), Ordering::Relaxed);
                thread::sleep(Duration::from_micros(500));
            }
        });
        lowest
    }

    /// The fewest bytes that were free.
    pub(crate) fn bytes(self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Lowest {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

fn free(volume: &Path) -> u64 {
    let stat = rustix::fs::statvfs(volume).unwrap();
    stat.f_bavail * stat.f_frsize
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
