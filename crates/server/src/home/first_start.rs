//! The first start of a home, which leaves nothing behind if it is refused.

use std::fs;
use std::path::PathBuf;

use super::disk::Disk;
use crate::config::HomeConfigFile;
use crate::error::ServerError;

/// What a first start makes, and was not there before it. It is undone only by whoever has got the store: then nobody else
/// makes the same.
pub(super) struct FirstStart {
    made: Vec<PathBuf>,
}

impl FirstStart {
    /// None: there is a store already.
    pub(super) fn of(config: &HomeConfigFile) -> Result<Option<Self>, ServerError> {
        let store = config.store_dir()?;
        if store.exists() {
            return Ok(None);
        }
        let data = config.data_dir()?.to_owned();
        let (own, authority) = (config.identity_dir()?, config.authority_dir()?);
        let all = [data, store, own, authority];
        let made = all.into_iter().filter(|dir| !dir.exists()).collect();
        Ok(Some(FirstStart { made }))
    }

    /// Removes it, while the store is still held: nobody else has begun there. What cannot be removed stays: the refusal
    /// that is told matters more.
    pub(super) fn undo(self, _held: &Disk) {
        for dir in self.made {
            let _ = fs::remove_dir_all(dir);
        }
    }
}
