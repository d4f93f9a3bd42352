//! Whose store it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thorp_model::records::{self, FORMAT_VERSION, HOME_KEY, HomeRecord};
use thorp_model::{HomeId, Reader, Table};
use thorp_net::{CertificateAuthority, Grant, Identity, IdentityError, NodeRole};
use thorp_store::{Options, Store};
use tracing::{info, warn};

use crate::config::{HomeConfigFile, LOCAL_MEMBER};
use crate::error::ServerError;
use crate::node::random;

/// A home makes certificates only at its first start, and only if its configuration names no directory with some. Any
/// other home that made them would found a village of its own: also one that is told of other homes.
pub(super) fn check(config: &HomeConfigFile, is_new: bool) -> Result<(), ServerError> {
    let dir = config.identity_dir()?;
    let makes_village = is_new && config.identity_dir.is_none();
    if dir.exists() || makes_village && config.other_home.is_empty() {
        return Ok(());
    }
    let (role, name) = (NodeRole::Home, config.name()?.to_owned());
    Err(match makes_village {
        true => ServerError::NotOfTheirVillage { name },
        false => ServerError::NoIdentity { dir, role, name },
    })
}

/// A program on this machine needs an identity of its own: the home's is no member's (rule R1). So the home that made the
/// village also lets in the member `local`, at the start at which the authority is there and `local` is not. A village
/// that has given that name to another node does without.
pub(super) fn let_in_local_member(config: &HomeConfigFile) -> Result<(), ServerError> {
    let (authority, dir) = (authority_dir(config)?, config.local_identity_dir()?);
    let held = Identity::load(&dir);
    if !CertificateAuthority::is_in(&authority) || held.is_ok_and(|held| !held.is_aging()) {
        return Ok(());
    }
    let grant = Grant {
        life: Some(LOCAL_LIFE),
        ..Grant::new(NodeRole::Member, LOCAL_MEMBER)
    };
    let issued =
        CertificateAuthority::open(&authority).and_then(|authority| authority.issue(&grant, &dir));
    match issued {
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
        let from = match config.identity_dir {
            Some(_) => &beside,
            None => config.data_dir()?,
        };
        warn!(
            "the authority's key lies beside this home's identity in {}: move it with `thorp ca init DIR --from {}`",
            beside.display(),
            from.display()
        );
    }
    Ok(())
}

/// The id of a home: its certificate and its store say the same (rule R1). A new store takes the id in the certificate.
///
/// A home whose store is gone does not begin again under its id: its history would go on from nothing, and nobody would
/// notice.
pub(super) fn settle(
    config: &HomeConfigFile,
    identity: &Identity,
    known: Option<HomeId>,
) -> Result<HomeId, ServerError> {
    let dir = config.identity_dir()?;
    let Some(certified) = identity.certified().home() else {
        // Loading it has checked that.
        let certificate = dir;
        return Err(IdentityError::NoHomeId { certificate }.into());
    };
    match known {
        Some(stored) if stored != certified => Err(ServerError::OtherHomeId {
            store: config.data_dir()?.to_owned(),
            stored,
            dir,
            certified,
        }),
        None if noted_store(&dir) == Some(certified) => Err(ServerError::NoStore {
            store: config.store_dir()?,
            dir,
            name: identity.name().to_owned(),
        }),
        _ => Ok(certified),
    }
}

/// Before a store is made: a home that has had one does not begin again (rule R9).
pub(super) fn check_had_no_store(config: &HomeConfigFile) -> Result<(), ServerError> {
    let (dir, name) = (config.identity_dir()?, config.name()?);
    match Identity::load_of(&dir, NodeRole::Home, name) {
        Ok(identity) => settle(config, &identity, None).map(drop),
        // What is wrong with it is said when it is opened.
        Err(_) => Ok(()),
    }
}

/// Notes beside the certificate that there is a store of this home, once there is one.
pub(super) fn note_store(config: &HomeConfigFile, store: &Store) -> Result<(), ServerError> {
    let Some(home) = known(config, store)? else {
        return Ok(());
    };
    let dir = config.identity_dir()?;
    if noted_store(&dir) == Some(home) {
        return Ok(());
    }
    let text = format!("{:08x}\n", home.0);
    fs::write(dir.join(STORE_NOTE), text).map_err(|error| ServerError::System {
        wanted: "file beside the certificate",
        error,
    })
}

/// The home that has had a store with the certificate in this directory.
fn noted_store(dir: &Path) -> Option<HomeId> {
    let text = fs::read_to_string(dir.join(STORE_NOTE)).ok()?;
    let home = u32::from_str_radix(text.trim(), 16).ok()?;
    Some(HomeId(home))
}

/// The id and the name of the home in a store that nobody has open; none if it is new.
///
/// # Errors
///
/// [`ServerError`]; among others if its home runs.
pub fn home_in_store(data_dir: &Path) -> Result<Option<(HomeId, String)>, ServerError> {
    let dir = data_dir.join("store");
    if !dir.is_dir() {
        return Ok(None);
    }
    let store = Store::open(&dir, Options::default()).map_err(ServerError::Store)?;
    let record = record(&dir, &store)?;
    Ok(record.map(|record| (record.home, record.name)))
}

/// The id of the home in a store; none if the store is new.
pub(super) fn known(config: &HomeConfigFile, store: &Store) -> Result<Option<HomeId>, ServerError> {
    let (dir, wanted) = (config.store_dir()?, config.name()?.to_owned());
    let Some(known) = record(&dir, store)? else {
        return Ok(None);
    };
    if known.name != wanted {
        let found = known.name;
        return Err(ServerError::OtherHome { dir, found, wanted });
    }
    Ok(Some(known.home))
}

fn record(dir: &Path, store: &Store) -> Result<Option<HomeRecord>, ServerError> {
    let failed = |error| ServerError::Records {
        dir: dir.to_owned(),
        error,
    };
    let Some(record) = store.get(Table::Meta, HOME_KEY).map_err(failed)? else {
        return Ok(None);
    };
    let known: HomeRecord = records::decode(Table::Meta, HOME_KEY, &record).map_err(failed)?;
    if !records::is_known_format(known.format) {
        return Err(ServerError::OtherRecords {
            dir: dir.to_owned(),
            found: known.format,
            known: FORMAT_VERSION,
        });
    }
    Ok(Some(known))
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

/// Beside a home's certificate: the id of the home that has had a store with it.
const STORE_NOTE: &str = "store-of";
/// The key of the member `local` is on the home's machine, so its certificate lives as long as the home's: a year.
const LOCAL_LIFE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
