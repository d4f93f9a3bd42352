//! A village's directory that goes with it.

use crate::failure::Failure;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use tempfile::TempDir;

/// The directory of a village that is for one run only. Dropped, it is removed.
pub(super) struct Temporary {
    dir: TempDir,
    /// Locked as long as the village runs.
    _mark: File,
}

impl Temporary {
    pub(super) fn make() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::file(&std::env::temp_dir(), &error);
        let mut builder = tempfile::Builder::new();
        let dir = builder.prefix("thorp-dev-").tempdir().map_err(failed)?;
        let mark = File::create_new(dir.path().join(MARK)).map_err(failed)?;
        mark.lock().map_err(failed)?;
        Ok(Temporary { dir, _mark: mark })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes a directory whose village was to go with it, and was killed. Whether that is what it was.
pub(super) fn remove_left_over(dir: &Path) -> bool {
    let Ok(mark) = File::open(dir.join(MARK)) else {
        return false;
    };
    match mark.try_lock() {
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        // What cannot be removed stays, and is in nobody's way.
        Ok(()) => {
            let _ = fs::remove_dir_all(dir);
            true
        }
    }
}

/// Removes the directory of a village that still runs, and is about to be ended at once.
pub(super) fn remove_running(dir: &Path) {
    // Whoever is still writing may make a directory again that was just removed.
    for _ in 0..TRIES {
        if fs::remove_dir_all(dir).is_ok() || !dir.exists() {
            return;
        }
    }
}

const TRIES: usize = 100;
const MARK: &str = "dev-temporary";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_left_over_is_removed() {
        let runs = Temporary::make().unwrap();
        assert!(!remove_left_over(runs.path()) && runs.path().exists());
        let lasting = tempfile::tempdir().unwrap();
        assert!(!remove_left_over(lasting.path()) && lasting.path().exists());
        let Temporary { dir, _mark } = runs;
        drop(_mark);
        let path = dir.keep();
        assert!(remove_left_over(&path) && !path.exists());
    }
}
