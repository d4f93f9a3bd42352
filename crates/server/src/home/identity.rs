//! Whose store it is.

use thorp_model::records::{self, FORMAT_VERSION, HOME_KEY, HomeRecord};
use thorp_model::{HomeId, Reader, Table};
use thorp_net::{Identity, IdentityError, NodeRole, issue};
use thorp_store::Store;
use tracing::{info, warn};

use crate::config::{HomeConfigFile, LOCAL_MEMBER};
use crate::error::ServerError;
use crate::node::random;

/// A home makes certificates only at its first start, and only if its configuration names no directory with some. Any
/// other home that made them would found a village of its own.
pub(super) fn check(config: &HomeConfigFile, is_new: bool) -> Result<(), ServerError> {
    let dir = config.identity_dir()?;
    if dir.exists() || is_new && config.identity_dir.is_none() {
        return Ok(());
    }
    let (role, name) = (NodeRole::Home, config.name()?.to_owned());
    Err(ServerError::NoIdentity { dir, role, name })
}

/// A program on this machine needs an identity of its own: the home's is no member's (rule R1). So the home that made the
/// village also lets in the member `local`. A village that has given that name to another node does without.
pub(super) fn let_in_local_member(config: &HomeConfigFile) -> Result<(), ServerError> {
    let (authority, dir) = (config.identity_dir()?, config.local_identity_dir()?);
    if !Identity::may_invite(&authority) {
        return Ok(());
    }
    match issue(&authority, dir, NodeRole::Member, LOCAL_MEMBER) {
        Ok(_) => {}
        Err(error @ (IdentityError::NameTaken { .. } | IdentityError::OwnHome { .. })) => {
            info!("there is no member {LOCAL_MEMBER}: {error}");
        }
        // A home does not stop because a member's certificate is too old.
        Err(error) => warn!("the member {LOCAL_MEMBER} has no identity: {error}"),
    }
    Ok(())
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
