//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::{fmt, io};

use thorp_model::{HomeId, StorageError, people_bytes};
use thorp_net::{Address, IdentityError, NodeRole};
use thorp_store::OpenError;
use thorp_versions::TableError;

use crate::config::ConfigError;

/// Why a server does not start. The message says what to do.
#[derive(Debug)]
pub enum ServerError {
    /// The configuration.
    Config(ConfigError),
    /// The certificates.
    Identity(IdentityError),
    /// There is no certificate and nobody here who may issue one.
    NoIdentity {
        /// Where it should be.
        dir: PathBuf,
        /// The role of the node that should have it.
        role: NodeRole,
        /// Its name.
        name: String,
    },
    /// The store cannot be opened.
    Store(OpenError),
    /// What is in the store is not what a home needs.
    Records {
        /// The store.
        dir: PathBuf,
        /// What is wrong.
        error: StorageError,
    },
    /// A new home is told of other homes, and has no certificate of their village.
    NotOfTheirVillage {
        /// The home's name.
        name: String,
    },
    /// The volume is too small for the home.
    SmallVolume {
        /// Where the store is, or is to be.
        dir: PathBuf,
        /// The size of its volume, in bytes.
        size: u64,
        /// The least size for this home, in bytes.
        needed: u64,
        /// What the home is told to leave alone there, in bytes.
        reserve: Option<u64>,
    },
    /// The store is another home's.
    OtherHome {
        /// The store.
        dir: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// The certificate names another home's id than the store.
    OtherHomeId {
        /// The home's directory.
        store: PathBuf,
        /// The id in the store.
        stored: HomeId,
        /// Where the certificate is.
        dir: PathBuf,
        /// The id in the certificate.
        certified: HomeId,
    },
    /// The home has had a store, and it is not there.
    NoStore {
        /// Where it should be.
        store: PathBuf,
        /// Where the certificate is.
        dir: PathBuf,
        /// The home's name.
        name: String,
    },
    /// The store's records are of another format.
    OtherRecords {
        /// The store.
        dir: PathBuf,
        /// Their format.
        found: u32,
        /// The format that this program knows.
        known: u32,
    },
    /// It cannot listen.
    Listen {
        /// Where.
        address: Address,
        /// Why not.
        error: thorp_net::Error,
    },
    /// It cannot serve HTTP.
    Http {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The system does not give what a server needs.
    System {
        /// What.
        wanted: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// The table for web caches cannot be made.
    WebTable(TableError),
}

impl From<ConfigError> for ServerError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<IdentityError> for ServerError {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Identity(error) => error.fmt(f),
            Self::NotOfTheirVillage { name } => write!(
                f,
                "the home {name} is told of other homes, and has no certificate of their village: without one it would found \
                 another"
            ),
            Self::NoIdentity { dir, role, name } => write!(
                f,
                "no certificate in {}: have one issued where the village's authority is (`thorp invite {name} --role {role}`), bring the directory \
                 here, and name it with `--identity`; a site may have `authority_dir` instead, if the authority is on this machine",
                dir.display()
            ),
            Self::Store(error) => error.fmt(f),
            Self::Records { dir, error } => {
                write!(f, "the store at {}: {error}", dir.display())
            }
            Self::SmallVolume {
                dir,
                size,
                needed,
                reserve,
            } => {
                let (size, needed) = (people_bytes(*size), people_bytes(*needed));
                write!(
                    f,
                    "the volume of {} has {size}, and this home needs {needed}: name a directory on a larger one with --dir",
                    dir.display()
                )?;
                match reserve {
                    Some(_) => f.write_str(", or lower disk_reserve in the configuration"),
                    None => Ok(()),
                }
            }
            Self::OtherHome { dir, found, wanted } => write!(
                f,
                "the store at {} is that of home {found:?}, not of {wanted:?}: check name and data directory",
                dir.display()
            ),
            Self::OtherHomeId {
                store,
                stored,
                dir,
                certified,
            } => write!(
                f,
                "the store in {0} is that of the home with the id {1:08x}, the certificate in {2} that of the home with the id {3:08x}: \
                 check both directories; if they belong together, have a certificate issued where the authority is (`thorp ca issue \
                 --role home --store {0} --out {2}`)",
                store.display(),
                stored.0,
                dir.display(),
                certified.0
            ),
            Self::NoStore { store, dir, name } => write!(
                f,
                "the home {name} has had a store, and it is not at {}: bring it back; if it is lost, have a certificate with a new \
                 id issued into its identity directory, where the authority is (`thorp ca issue --role home --name {name} --new-id \
                 --out {} --dir AUTHORITY`)",
                store.display(),
                dir.display()
            ),
            Self::OtherRecords { dir, found, known } => write!(
                f,
                "the store at {} has records of format {found}, this program knows {known}: use the thorp that wrote them",
                dir.display()
            ),
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::Http { address, error } => {
                write!(f, "cannot serve HTTP on {address}: {error}")
            }
            Self::System { wanted, error } => write!(f, "the system gives no {wanted}: {error}"),
            Self::WebTable(error) => write!(f, "the table for web caches: {error}"),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Identity(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::Records { error, .. } => Some(error),
            Self::Listen { error, .. } => Some(error),
            Self::Http { error, .. } | Self::System { error, .. } => Some(error),
            Self::WebTable(error) => Some(error),
            Self::NoIdentity { .. }
            | Self::NotOfTheirVillage { .. }
            | Self::SmallVolume { .. }
            | Self::OtherHome { .. }
            | Self::OtherHomeId { .. }
            | Self::NoStore { .. }
            | Self::OtherRecords { .. } => None,
        }
    }
}
