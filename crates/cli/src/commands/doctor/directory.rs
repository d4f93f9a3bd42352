//! The directory of a home on this machine.

use super::Check;
use crate::commands::home::store_in;
use crate::text::bytes;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use thorp_server::HOME_VOLUME_MIN;
use thorp_store::{OpenError, Room, readable_by_others};

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
    checks.extend(Room::of(&store).map(|found| room(&store, found)));
    checks.extend(private(dir));
    checks
}

/// The format of the store, as its marker says.
fn format_of(store: &Path) -> Check {
    let shown = store.display();
    match thorp_store::format_of(store) {
        Ok(Some(format)) => {
            let check = Check::ok(STORE, format!("{shown} has format {format}"));
            check.with("format", format)
        }
        Ok(None) => Check::problem(
            STORE,
            format!("{shown} is no store: it has no marker"),
            "give the --dir of a home, or of `thorp dev`",
        ),
        Err(OpenError::NewerFormat { found, known, .. }) => Check::problem(
            STORE,
            format!("{shown} has format {found}, and this program knows up to {known}"),
            "take the later version of Thorp that has written it",
        ),
        Err(error) => Check::problem(
            STORE,
            error.to_string(),
            "`thorp check DIR` tells what is damaged; restore it from a copy",
        ),
    }
}

/// Whether a process has it open.
fn in_use(store: &Path) -> Check {
    match thorp_store::is_in_use(store) {
        Ok(false) => Check::ok(
            "lock",
            "no process has the store open: `thorp check DIR` reads all of it",
        ),
        Ok(true) => Check::ok("lock", "a process has the store open: its home runs"),
        Err(error) => Check::warning(
            "lock",
            format!("whether a process has the store open is not known: {error}"),
            "look at it as the user that runs the home",
        ),
    }
}

/// The room on the volume, against what the store needs before it takes commits.
fn room(store: &Path, room: Room) -> Check {
    let Room { volume, needed } = room;
    let (size, free) = (bytes(volume.size), bytes(volume.free));
    let found = format!(
        "{free} of {size} are free on the volume of {}",
        store.display()
    );
    let below = bytes(needed);
    let check = if volume.size < HOME_VOLUME_MIN {
        let least = bytes(HOME_VOLUME_MIN);
        Check::problem(
            ROOM,
            format!("{found}, and a home needs a volume of {least}"),
            "move the home to a larger volume: docs/how-to/moving-a-home.md",
        )
    } else if volume.free < needed {
        Check::problem(
            ROOM,
            format!("{found}, and this home takes no commits below {below}"),
            "free some room, or remove what is not needed with `thorp rm`: docs/how-to/full-disk.md",
        )
    } else if volume.free < SOON_FULL * needed {
        Check::warning(
            ROOM,
            format!("{found}; below {below} this home takes no commits"),
            "free some room before it is full: docs/how-to/full-disk.md",
        )
    } else {
        Check::ok(ROOM, found)
    };
    check
        .with("free_bytes", volume.free)
        .with("needed_bytes", needed)
}

fn private(dir: &Path) -> Option<Check> {
    let readable = match readable_by_others(dir) {
        Ok(readable) => readable,
        Err(error) => {
            let found = format!("{}: {error}", dir.display());
            return Some(Check::warning(
                STORE_FILES,
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
    Some(Check::warning(STORE_FILES, found, keep_others_out(dir)))
}

/// What keeps others out of a directory. The mode of one that others share, or own, is not a node's to change.
pub(super) fn keep_others_out(dir: &Path) -> String {
    let shown = dir.display();
    let own = Path::new("/proc/self").metadata().map(|own| own.uid());
    let is_others = dir
        .metadata()
        .is_ok_and(|found| found.mode() & STICKY != 0 || own.is_ok_and(|own| own != found.uid()));
    match is_others {
        true => {
            format!("move its files into a directory of their own: {shown} is shared with others")
        }
        false => format!("chmod 700 {shown}"),
    }
}

/// The mode of a directory in which all may make files, as /tmp.
const STICKY: u32 = 0o1000;

const DIRECTORY: &str = "directory";
const STORE: &str = "store";
/// Those of the certificate are `files`.
const STORE_FILES: &str = "store_files";
const ROOM: &str = "room";
/// A home that has so many times of what it needs is not full before long.
const SOON_FULL: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_store::{Options, Store, Volume};

    #[test]
    fn a_home_is_full_by_what_its_store_needs() {
        let word = |size: u64, free: u64, needed: u64| {
            let volume = Volume {
                size: size << 20,
                free: free << 20,
            };
            let needed = needed << 20;
            let check = room(Path::new("/"), Room { volume, needed });
            check.first_word()
        };
        assert_eq!(word(16, 16, 3), "problem");
        // The example of docs/how-to/full-disk.md.
        assert_eq!(word(100, 48, 52), "problem");
        assert_eq!(word(100, 80, 52), "warning");
        // Far more than an eighth of the volume is needed for what the engine has to do.
        assert_eq!(word(1 << 20, 500, 1000), "problem");
        assert_eq!(word(1 << 20, 1 << 11, 1000), "ok");
        assert_eq!(word(80, 50, 10), "ok");
    }

    #[test]
    fn a_store_is_known_by_its_marker_and_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("store");
        let store = Store::open(&at, Options::default()).unwrap();
        assert!(format_of(&at).lines()[0].contains("has format"));
        assert!(in_use(&at).lines()[0].contains("its home runs"));
        drop(store);
        assert!(in_use(&at).lines()[0].contains("no process"));
        std::fs::write(at.join("thorp-store"), "thorp-store format=9").unwrap();
        assert!(format_of(&at).lines()[0].contains("is damaged"));
        assert_eq!(format_of(dir.path()).first_word(), "problem");
    }
}
