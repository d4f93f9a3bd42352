//! Whose store it is.

use thorp_model::records::{self, FORMAT_VERSION, HOME_KEY, HomeRecord};
use thorp_model::{HomeId, Reader, Table};
use thorp_store::Store;

use crate::config::HomeConfigFile;
use crate::error::ServerError;
use crate::node::random;

/// A home makes certificates only at its first start, and only if its configuration names no directory with some. Any
/// other home that made them would found a village of its own.
pub(super) fn check(config: &HomeConfigFile, is_new: bool) -> Result<(), ServerError> {
    let dir = config.identity_dir()?;
    if dir.exists() || is_new && config.identity_dir.is_none() {
        return Ok(());
    }
    let name = config.name()?.to_owned();
    Err(ServerError::NoIdentity { dir, name })
}

/// The id of the home in a store; none if the store is new.
pub(super) fn known(config: &HomeConfigFile, store: &Store) -> Result<Option<HomeId>, ServerError> {
    let (dir, wanted) = (config.store_dir()?, config.name()?.to_owned());
    let failed = |error| ServerError::Records {
        dir: dir.clone(),
        error,
    };
    let Some(record) = store.get(Table::Meta, HOME_KEY).map_err(failed)? else {
        return Ok(None);
    };
    let known: HomeRecord = records::decode(Table::Meta, HOME_KEY, &record).map_err(failed)?;
    if !records::is_known_format(known.format) {
        return Err(ServerError::OtherRecords {
            dir,
            found: known.format,
            known: FORMAT_VERSION,
        });
    }
    if known.name != wanted {
        let found = known.name;
        return Err(ServerError::OtherHome { dir, found, wanted });
    }
    Ok(Some(known.home))
}

/// A new home's id (foundation 4). Zero is left for *none*.
pub(super) fn fresh() -> Result<HomeId, ServerError> {
    loop {
        let mut bytes = [0; 4];
        random(&mut bytes)?;
        let id = u32::from_le_bytes(bytes);
        if id != 0 {
            return Ok(HomeId(id));
        }
    }
}
