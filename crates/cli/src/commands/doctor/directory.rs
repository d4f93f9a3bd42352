//! The directory of a home on this machine.

use super::Check;
use crate::commands::home::store_in;
use crate::text::bytes;
use std::fs::{File, TryLockError};
use std::path::Path;
use thorp_store::{Volume, readable_by_others};

/// Looks from outside: the store is not opened, and may be in use.
pub(super) fn check(dir: &Path) -> Vec<Check> {
    if !dir.is_dir() {
        let found = format!("{} is no directory", dir.display());
        return vec![Check::problem(
            DIRECTORY,
            found,
            "give the --dir of a home, or of `thorp dev`",
        )];
    }
    let store = store_in(dir);
    let mut checks = vec![format_of(&store), in_use(&store)];
    checks.extend(Volume::of(&store).map(|volume| room(&store, volume)));
    checks.extend(private(dir));
    checks
}

/// The first line of the store's marker.
fn format_of(store: &Path) -> Check {
    let shown = store.display();
    let marker = match std::fs::read_to_string(store.join(MARKER)) {
        Ok(marker) => marker,
        Err(error) => {
            let found = format!("{shown} is no store: {MARKER}: {error}");
            return Check::problem(
                "store",
                found,
                "give the --dir of a home, or of `thorp dev`",
            );
        }
    };
    let mut words = marker.split_whitespace();
    let format = words.find_map(|word| word.strip_prefix("format=")?.parse::<u32>().ok());
    match format {
        Some(format) if format > KNOWN_FORMAT => Check::problem(
            "store",
            format!("{shown} has format {format}, and this program knows up to {KNOWN_FORMAT}"),
            "take the later version of Thorp that has written it",
        ),
        Some(format) => {
            let check = Check::ok("store", format!("{shown} has format {format}"));
            check.with("format", format)
        }
        None => Check::problem(
            "store",
            format!("{shown}: its marker {MARKER} cannot be read"),
            "`thorp check DIR` tells what is damaged; restore it from a copy",
        ),
    }
}

/// Whether a process has it open. Its lock is held for no longer than this looks.
fn in_use(store: &Path) -> Check {
    let lock = match File::open(store.join(LOCK)) {
        Ok(lock) => lock,
        Err(_) => return Check::ok("lock", "no process has the store open"),
    };
    match lock.try_lock_shared() {
        Ok(()) => Check::ok(
            "lock",
            "no process has the store open: `thorp check DIR` reads all of it",
        ),
        Err(TryLockError::WouldBlock) => {
            Check::ok("lock", "a process has the store open: its home runs")
        }
        Err(TryLockError::Error(error)) => Check::warning(
            "lock",
            format!("whether a process has the store open is not known: {error}"),
            "look at it as the user that runs the home",
        ),
    }
}

/// The room on the volume, against what a home needs.
fn room(store: &Path, volume: Volume) -> Check {
    let (size, free) = (bytes(volume.size), bytes(volume.free));
    let share = (volume.size / 8).clamp(SHARE_MIN, SHARE_MAX);
    let found = format!(
        "{free} of {size} are free on the volume of {}",
        store.display()
    );
    let check = if volume.size < VOLUME_MIN {
        Check::problem(
            "room",
            format!(
                "{found}, and a home needs a volume of {}",
                bytes(VOLUME_MIN)
            ),
            "move the home to a larger volume: docs/how-to/moving-a-home.md",
        )
    } else if volume.free < share {
        Check::problem(
            "room",
            format!(
                "{found}, and a home takes no commits below {}",
                bytes(share)
            ),
            "free some room, or remove what is not needed with `thorp rm`: docs/how-to/full-disk.md",
        )
    } else if volume.free < 4 * share {
        Check::warning(
            "room",
            format!("{found}; below {} a home takes no commits", bytes(share)),
            "free some room before it is full: docs/how-to/full-disk.md",
        )
    } else {
        Check::ok("room", found)
    };
    check
        .with("free_bytes", volume.free)
        .with("needed_bytes", share)
}

fn private(dir: &Path) -> Option<Check> {
    let readable = match readable_by_others(dir) {
        Ok(readable) => readable,
        Err(error) => {
            let found = format!("{}: {error}", dir.display());
            return Some(Check::warning(
                "files",
                found,
                "look at it as the user that runs the home",
            ));
        }
    };
    let first = readable.first()?;
    let found = format!(
        "others can read {} files, as {}",
        readable.len(),
        first.display()
    );
    Some(Check::warning(
        "files",
        found,
        format!("chmod 700 {}", dir.display()),
    ))
}

const DIRECTORY: &str = "directory";
const MARKER: &str = "thorp-store";
const LOCK: &str = "thorp-lock";
/// The highest format of a store that this program reads.
const KNOWN_FORMAT: u32 = 2;
/// The least volume of a home.
const VOLUME_MIN: u64 = 24 << 20;
/// What a home leaves alone of its volume: an eighth, between these.
const SHARE_MIN: u64 = 3 << 20;
const SHARE_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_store::{Options, Store};

    #[test]
    fn the_room_of_a_home_is_an_eighth_of_its_volume() {
        let word = |size: u64, free: u64| {
            let volume = Volume {
                size: size << 20,
                free: free << 20,
            };
            room(Path::new("/"), volume).first_word()
        };
        assert_eq!(word(16, 16), "problem");
        assert_eq!(word(80, 9), "problem");
        assert_eq!(word(80, 20), "warning");
        assert_eq!(word(80, 50), "ok");
        assert_eq!(word(1 << 20, 60), "problem");
        assert_eq!(word(1 << 20, 1 << 10), "ok");
    }

    /// The store writes these names and this format; it does not say so otherwise.
    #[test]
    fn a_store_is_known_by_its_marker_and_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("store");
        let store = Store::open(&at, Options::default()).unwrap();
        let known = format!("has format {KNOWN_FORMAT}");
        assert!(format_of(&at).lines()[0].ends_with(&known));
        assert!(in_use(&at).lines()[0].contains("its home runs"));
        drop(store);
        assert!(in_use(&at).lines()[0].contains("no process"));
        std::fs::write(at.join(MARKER), "thorp-store format=9 engine=x crc=0").unwrap();
        assert_eq!(format_of(&at).first_word(), "problem");
        assert_eq!(format_of(dir.path()).first_word(), "problem");
    }
}
