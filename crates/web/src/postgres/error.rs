//! What can be wrong with a database as a source, and what to do about it.

use pgwire_replication::PgWireError;
use std::fmt;

/// Why a keeper cannot follow a database.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// The address cannot be read.
    Address(tokio_postgres::Error),
    /// It is no name for a slot: lower-case letters, digits and `_`, at most 63 bytes.
    Name(String),
    /// The database refused a question, or the connection ended.
    Database(tokio_postgres::Error),
    /// The stream of changes ended.
    Stream(PgWireError),
    /// `wal_level` is not `logical`, but this.
    WalLevel(String),
    /// There is no publication of this name.
    NoPublication(String),
    /// `synchronous_standby_names` has another value already.
    Names(String),
    /// The database does not wait for the keeper, although it has its name.
    NotWaitedFor,
    /// The database says that it no longer waits for the keeper.
    NoLongerWaitedFor,
    /// So many transactions wait to become visible that the keeper cannot count them.
    TooManyOpen,
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostgresError::Address(error) => write!(f, "the address of the database: {error}"),
            PostgresError::Name(name) => write!(
                f,
                "{name:?} is no name for a slot: use lower-case letters, digits and _, at most 63"
            ),
            PostgresError::Database(error) => match error.as_db_error() {
                Some(refused) => write!(f, "the database says: {}", refused.message()),
                None => write!(f, "the database: {error}"),
            },
            PostgresError::Stream(error) => write!(f, "the stream of changes: {error}"),
            PostgresError::WalLevel(found) => write!(
                f,
                "wal_level is {found}: set it to logical, and restart the database"
            ),
            PostgresError::NoPublication(name) => write!(
                f,
                "there is no publication {name}: CREATE PUBLICATION {name} FOR ALL TABLES"
            ),
            PostgresError::Names(found) => write!(
                f,
                "synchronous_standby_names is {found:?}: another standby could stand in for the keeper"
            ),
            PostgresError::NotWaitedFor => write!(f, "the database does not wait for the keeper"),
            PostgresError::NoLongerWaitedFor => write!(
                f,
                "the database no longer waits for the keeper alone: look at synchronous_standby_names, and for a standby of the same name"
            ),
            PostgresError::TooManyOpen => write!(f, "too many transactions wait to become visible"),
        }
    }
}

impl std::error::Error for PostgresError {}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        PostgresError::Database(error)
    }
}

impl From<PgWireError> for PostgresError {
    fn from(error: PgWireError) -> Self {
        PostgresError::Stream(error)
    }
}
