//! The directory of a store: what may lie in it, and who may use it.

use crate::error::OpenError;
use crate::{access, ballast, engine, marker, note, origin};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A store's directory, locked for this process until it is dropped.
pub(crate) struct Locked {
    dir: PathBuf,
    lock: File,
}

impl Drop for Locked {
    /// A process that this one has just started has the file open, too, until it runs its own program. So closing the file does not end
    /// the lock.
    fn drop(&mut self) {
        // An error leaves the lock to the end of the file, as closing does.
        let _ = self.lock.unlock();
    }
}

impl Locked {
    /// Locks the directory of a store that exists.
    pub(crate) fn existing(dir: &Path) -> Result<Locked, OpenError> {
        match look(dir)? {
            Found::Store => lock(dir),
            Found::Nothing => Err(OpenError::Missing {
                dir: dir.to_path_buf(),
            }),
        }
    }

    /// Locks the directory of a store, and makes one if there is nothing.
    pub(crate) fn existing_or_new(dir: &Path) -> Result<Locked, OpenError> {
        if matches!(look(dir)?, Found::Store) {
            return lock(dir);
        }
        access::make_dir(dir).map_err(|error| OpenError::io(dir, error))?;
        let locked = lock(dir)?;
        // Once more under the lock: another process may have made it by now.
        if matches!(look(dir)?, Found::Nothing) {
            locked.make()?;
        }
        Ok(locked)
    }

    /// The engine's directory.
    pub(crate) fn engine_dir(&self) -> PathBuf {
        self.dir.join(ENGINE)
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Makes an empty store. The engine gets its name only when it is whole,
    /// and the marker comes last; cut short, it is made again from the start.
    fn make(&self) -> Result<(), OpenError> {
        let (making, engine) = (self.dir.join(MAKING), self.engine_dir());
        let failed = |error| OpenError::io(&self.dir, error);
        if !engine.exists() {
            remove_tree(&making).map_err(failed)?;
            engine::create(&making)?;
            fs::rename(&making, &engine).map_err(failed)?;
            sync_dir(&self.dir).map_err(failed)?;
        }
        marker::write(&self.dir)?;
        // The directory may be new itself.
        match self.dir.canonicalize().map_err(failed)?.parent() {
            Some(parent) => sync_dir(parent).map_err(failed),
            None => Ok(()),
        }
    }
}

/// The engine's directory in a store's.
pub(crate) const ENGINE: &str = "thorp-engine";

/// The engine's directory while it is being made.
const MAKING: &str = "thorp-making";

/// Locked while a process has the store open.
pub(crate) const LOCK: &str = "thorp-lock";

enum Found {
    Store,
    Nothing,
}

fn look(dir: &Path) -> Result<Found, OpenError> {
    let not_a_store = |found: String| OpenError::NotAStore {
        dir: dir.to_path_buf(),
        found,
    };
    match fs::metadata(dir) {
        Ok(data) if !data.is_dir() => return Err(not_a_store("no directory".to_string())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(OpenError::io(dir, error)),
    }
    if marker::read(dir)?.is_some() {
        return Ok(Found::Store);
    }
    let names = names(dir).map_err(|error| OpenError::io(dir, error))?;
    // A note is first written when something was committed.
    if names.iter().any(|name| name == note::NAME) {
        return Err(OpenError::DamagedMarker {
            file: dir.join(marker::NAME),
            detail: "it is missing".to_string(),
        });
    }
    let own = [
        ENGINE,
        MAKING,
        LOCK,
        marker::FRESH,
        origin::NAME,
        ballast::NAME,
    ];
    match names.into_iter().find(|name| !own.contains(&name.as_str())) {
        Some(name) => Err(not_a_store(format!("`{name}`"))),
        None => Ok(Found::Nothing),
    }
}

fn lock(dir: &Path) -> Result<Locked, OpenError> {
    let file = dir.join(LOCK);
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&file)
        .map_err(|error| OpenError::io(&file, error))?;
    match lock.try_lock() {
        Ok(()) => Ok(Locked {
            dir: dir.to_path_buf(),
            lock,
        }),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            dir: dir.to_path_buf(),
        }),
        Err(TryLockError::Error(error)) => Err(OpenError::io(&file, error)),
    }
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second descriptor of the file stands for a process that was just started.
    #[test]
    fn a_directory_is_free_when_its_owner_lets_it_go_whoever_has_its_files_open() {
        let dir = tempfile::tempdir().unwrap();
        let locked = Locked::existing_or_new(dir.path()).unwrap();
        let inherited = locked.lock.try_clone().unwrap();
        assert!(matches!(
            Locked::existing(dir.path()),
            Err(OpenError::InUse { .. })
        ));
        drop(locked);
        assert!(Locked::existing(dir.path()).is_ok());
        drop(inherited);
    }
}
