//! Whose store it is.

use std::path::PathBuf;

use thorp_model::records::{self, FORMAT_VERSION, HOME_KEY, HomeRecord};
use thorp_model::{HomeId, Reader, Table};
use thorp_net::{CertificateAuthority, Identity, IdentityError, NodeRole, issue};
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
/// village also lets in the member `local`, at the start at which the authority is there and `local` is not. A village
/// that has given that name to another node does without.
pub(super) fn let_in_local_member(config: &HomeConfigFile) -> Result<(), ServerError> {
    let (authority, dir) = (authority_dir(config)?, config.local_identity_dir()?);
    if !CertificateAuthority::is_in(&authority) || Identity::load(&dir).is_ok() {
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

/// Where the authority is that this home has made; of an early home, beside its identity.
pub(super) fn authority_dir(config: &HomeConfigFile) -> Result<PathBuf, ServerError> {
    let (own, beside) = (config.authority_dir()?, config.identity_dir()?);
    Ok(match CertificateAuthority::is_in(&beside) {
        true => beside,
        false => own,
    })
}

/// A home needs no authority's key: whoever gets into its directory would let everybody in.
pub(super) fn advise_about_authority(config: &HomeConfigFile) -> Result<(), ServerError> {
    let beside = config.identity_dir()?;
    if CertificateAuthority::is_in(&beside) {
        warn!(
            "the authority's key lies beside this home's identity in {}: move it with `thorp ca init DIR --from {}`",
            beside.display(),
            beside.display()
        );
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
