//! Where a store is: an empty file, whose inode number and birth time a copy of the directory does not have.
//!
//! Tried on ext4: `cp -a` and `tar` change both, `mv` within a file system changes neither. A file that is overwritten in
//! place keeps both, too.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The file system's own names for the file of one directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Origin {
    inode: u64,
    /// Nanoseconds since 1970; none where the file system knows no birth times.
    born: Option<u64>,
}

impl Origin {
    /// The origin of a directory; none if its file is missing.
    pub(crate) fn of(dir: &Path) -> io::Result<Option<Origin>> {
        let data = match fs::symlink_metadata(dir.join(NAME)) {
            Ok(data) => data,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let since = |born| std::time::SystemTime::duration_since(&born, UNIX_EPOCH).ok();
        let born = data.created().ok().and_then(since);
        Ok(Some(Origin {
            inode: data.ino(),
            born: born.and_then(|born| u64::try_from(born.as_nanos()).ok()),
        }))
    }

    /// The same; the file is made if it is missing, durably.
    pub(crate) fn of_or_made(dir: &Path) -> io::Result<Option<Origin>> {
        if Origin::of(dir)?.is_none() {
            File::create_new(dir.join(NAME))?.sync_all()?;
            File::open(dir)?.sync_all()?;
        }
        Origin::of(dir)
    }

    /// Whether two are of one file, as far as their file systems can say.
    pub(crate) fn is_same(self, other: Origin) -> bool {
        let born = self.born.zip(other.born);
        self.inode == other.inode && born.is_none_or(|(one, other)| one == other)
    }
}

/// The name of the file.
pub(crate) const NAME: &str = "thorp-origin";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_another_origin_and_a_renamed_directory_has_not() {
        let dir = tempfile::tempdir().unwrap();
        let (here, moved, copied) = (
            dir.path().join("a"),
            dir.path().join("b"),
            dir.path().join("c"),
        );
        fs::create_dir(&here).unwrap();
        assert_eq!(Origin::of(&here).unwrap(), None);
        let origin = Origin::of_or_made(&here).unwrap().unwrap();
        assert!(Origin::of(&here).unwrap().unwrap().is_same(origin));
        fs::create_dir(&copied).unwrap();
        fs::copy(here.join(NAME), copied.join(NAME)).unwrap();
        assert!(!Origin::of(&copied).unwrap().unwrap().is_same(origin));
        fs::rename(&here, &moved).unwrap();
        assert!(Origin::of(&moved).unwrap().unwrap().is_same(origin));
    }

    #[test]
    fn without_birth_times_the_inode_number_decides() {
        let at = |inode, born| Origin { inode, born };
        assert!(at(5, None).is_same(at(5, Some(9))));
        assert!(!at(5, None).is_same(at(6, None)));
        assert!(!at(5, Some(8)).is_same(at(5, Some(9))), "it was reused");
    }
}
