//! Whom the permissions of a store's files let in: only the user that runs the home.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What the permissions of a store's directory were when it was opened.
///
/// The directory alone decides: nobody else gets at the files below it while it
/// lets nobody else in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// It let nobody else in.
    Private,
    /// It let others in, as the stores of earlier builds did. It does so no more.
    Closed {
        /// Its mode before.
        mode: u32,
    },
    /// It lets others in, and this process may not change that.
    Open {
        /// Its mode.
        mode: u32,
        /// What the operating system says.
        error: String,
    },
}

impl Access {
    /// Takes the directory away from everybody but its owner.
    pub(crate) fn close(dir: &Path) -> io::Result<Access> {
        let mode = fs::metadata(dir)?.mode() & MODE_BITS;
        if mode & OTHERS == 0 {
            return Ok(Access::Private);
        }
        Ok(
            match fs::set_permissions(dir, Permissions::from_mode(mode & !OTHERS)) {
                Ok(()) => Access::Closed { mode },
                Err(error) => Access::Open {
                    mode,
                    error: error.to_string(),
                },
            },
        )
    }
}

/// Makes a directory, and those above it that are missing, for this user alone.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIR)
        .create(dir)
}

/// Files below a directory that other users of this machine can read, as far as
/// the permissions from `dir` downwards say; the first
/// [`READABLE_LISTED_MAX`] of them. Certificates (`*.pem`) are left out: they
/// are public. Nothing is changed.
///
/// # Errors
///
/// What the operating system says.
pub fn readable_by_others(dir: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(dir.as_ref(), &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    // Whoever cannot enter a directory gets at nothing below it.
    if fs::metadata(dir)?.mode() & OTHERS_ENTER == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        if found.len() >= READABLE_LISTED_MAX {
            return Ok(());
        }
        let path = entry?.path();
        let data = fs::symlink_metadata(&path)?;
        if data.is_dir() {
            walk(&path, found)?;
            continue;
        }
        let is_public = path.extension().is_some_and(|ext| ext == "pem");
        if data.is_file() && data.mode() & OTHERS_READ != 0 && !is_public {
            found.push(path);
        }
    }
    Ok(())
}

/// So many readable files are listed.
pub const READABLE_LISTED_MAX: usize = 100;

const PRIVATE_DIR: u32 = 0o700;
const MODE_BITS: u32 = 0o7777;
const OTHERS: u32 = 0o077;
const OTHERS_ENTER: u32 = 0o011;
const OTHERS_READ: u32 = 0o044;

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & MODE_BITS
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_is_closed_once() {
        let dir = tempfile::tempdir().unwrap();
        set(dir.path(), 0o755);
        assert_eq!(
            Access::close(dir.path()).unwrap(),
            Access::Closed { mode: 0o755 }
        );
        assert_eq!(mode(dir.path()), 0o700);
        assert_eq!(Access::close(dir.path()).unwrap(), Access::Private);
    }

    #[test]
    fn what_is_made_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("home/store");
        make_dir(&made).unwrap();
        assert_eq!(mode(&made), 0o700);
        assert_eq!(mode(&dir.path().join("home")), 0o700);
    }

    #[test]
    fn files_are_named_that_others_get_at() {
        let dir = tempfile::tempdir().unwrap();
        let (open, closed) = (dir.path().join("open"), dir.path().join("closed"));
        for below in [&open, &closed] {
            fs::create_dir(below).unwrap();
            for (name, mode) in [("a", 0o644), ("b", 0o600), ("node.pem", 0o644)] {
                fs::write(below.join(name), "x").unwrap();
                set(&below.join(name), mode);
            }
        }
        set(dir.path(), 0o755);
        set(&open, 0o750);
        set(&closed, 0o700);
        assert_eq!(
            readable_by_others(dir.path()).unwrap(),
            [open.join("a")],
            "neither below a closed directory, nor a public certificate"
        );
        set(dir.path(), 0o700);
        assert!(readable_by_others(dir.path()).unwrap().is_empty());
    }
}
