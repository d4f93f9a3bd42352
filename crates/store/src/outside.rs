//! A store seen from outside: its engine is not opened, and a process may have it open.

use crate::dir::{ENGINE, LOCK};
use crate::error::OpenError;
use crate::options::Options;
use crate::space::{Held, Space};
use crate::volume::Volume;
use crate::{engine, journal, marker};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use thorp_model::Purpose;

/// The room on the volume of a store, and what the store needs of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The volume of its directory.
    pub volume: Volume,
    /// What has to be free before the store takes new data, in bytes, if its operator reserves nothing else. Three times
    /// of what is brought comes to that, and once what its home has still to install in pages.
    pub needed: u64,
}

impl Room {
    /// An estimate for the store in a directory, from its files. None if the system says nothing of the volume.
    pub fn of(dir: &Path) -> Option<Room> {
        let volume = Volume::of(dir)?;
        Some(Room {
            volume,
            needed: needed(dir, volume),
        })
    }
}

/// The format of the store in a directory; none if there is no store.
///
/// # Errors
///
/// [`OpenError`]: it is no store for this program.
pub fn format_of(dir: &Path) -> Result<Option<u32>, OpenError> {
    marker::read(dir)
}

/// Whether a process has the store in a directory open. Its lock is held for no longer than this looks.
///
/// # Errors
///
/// The system does not let this process look.
pub fn is_in_use(dir: &Path) -> io::Result<bool> {
    let lock = match File::open(dir.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What the store leaves alone for new data, from the files of its engine.
fn needed(dir: &Path, volume: Volume) -> u64 {
    let engine_dir = dir.join(ENGINE);
    // All that waits in memory is in the journals. More than this is written out.
    let journals = journal::bytes_taken(&engine_dir).unwrap_or_default();
    let held = Held {
        waiting: journals.min(volume.memory_max()),
        merges: engine::merges_of(&engine_dir),
        ..Held::default()
    };
    Space::new(dir, &Options::default()).left_alone(Purpose::NewData, volume, held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use std::fs;
    use thorp_model::{Batch, Engine as _, Mark, Op, Table};

    const MIB: u64 = 1 << 20;
    const LARGE: Volume = Volume {
        size: 1 << 40,
        free: 0,
    };

    /// A store with so much in its journals.
    fn store_with(dir: &Path, bytes: u64) -> Store {
        let options = Options {
            disk_reserve_bytes: Some(0),
            ..Options::default()
        };
        let store = Store::open(dir, options).unwrap();
        for number in 0..bytes / MIB {
            let op = Op::Put {
                table: Table::Pages,
                key: number.to_be_bytes().to_vec(),
                value: vec![1; MIB as usize],
            };
            let batch = Batch {
                mark: Mark(number + 1),
                purpose: Purpose::NewData,
                ops: vec![op],
            };
            store.commit(&[batch]).unwrap();
        }
        store
    }

    #[test]
    fn a_store_needs_its_share_twice_its_journals_and_its_compactions() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_with(dir.path(), 3 * MIB);
        // With a file of a table, as it is after some time.
        let tables = dir.path().join(ENGINE).join("keyspaces/3/tables");
        let file = File::create(tables.join("999")).unwrap();
        file.set_len(100 * MIB).unwrap();
        let needed = needed(dir.path(), LARGE);
        assert!((170 * MIB..180 * MIB).contains(&needed), "{needed}");
        // The store itself would leave alone no more, but for what it has to install.
        let space = Space::new(dir.path(), &Options::default());
        let held = Held {
            waiting: store.engine().waiting(),
            merges: engine::merges_of(&store.engine_dir()),
            ..Held::default()
        };
        let own = space.left_alone(Purpose::NewData, LARGE, held);
        assert!(own > 169 * MIB && own <= needed, "{own} {needed}");
    }

    #[test]
    fn a_large_store_on_a_large_volume_needs_about_a_gibibyte() {
        let dir = tempfile::tempdir().unwrap();
        for table in ["1", "2", "3"] {
            let tables = dir.path().join(ENGINE).join("keyspaces").join(table);
            fs::create_dir_all(tables.join("tables")).unwrap();
            let file = File::create(tables.join("tables/1")).unwrap();
            file.set_len(5 << 30).unwrap();
        }
        let needed = needed(dir.path(), LARGE);
        assert_eq!(needed, 64 * MIB + engine::MERGES_MAX);
        let small = Volume {
            size: 80 * MIB,
            free: 0,
        };
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(super::needed(empty.path(), small), 10 * MIB);
    }

    #[test]
    fn a_store_tells_its_format_and_whether_it_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(format_of(dir.path()).unwrap(), None);
        assert!(!is_in_use(dir.path()).unwrap());
        let store = store_with(dir.path(), 0);
        assert_eq!(format_of(dir.path()).unwrap(), Some(marker::FORMAT));
        assert!(is_in_use(dir.path()).unwrap());
        drop(store);
        assert!(!is_in_use(dir.path()).unwrap());
        let later = marker::line(marker::FORMAT + 1, "later");
        fs::write(dir.path().join(marker::NAME), later).unwrap();
        assert!(matches!(
            format_of(dir.path()),
            Err(OpenError::NewerFormat { .. })
        ));
    }
}
