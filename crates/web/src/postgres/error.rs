//! What can be wrong with a database as a source, and what to do about it.

use pgwire_replication::PgWireError;
use std::fmt;
use tokio_postgres::error::SqlState;

/// What to do about rights.
const RIGHTS_TODO: &str = "`thorp web setup --postgres URL --recipe FILE --apply` grants what is needed, with a URL of a superuser of the database";

/// Why a keeper cannot follow a database.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// The address cannot be read.
    Address(tokio_postgres::Error),
    /// It is no name for a slot: lower-case letters, digits and `_`, at most 56 bytes.
    Name(String),
    /// The database refused a question, or the connection ended.
    Database(tokio_postgres::Error),
    /// The stream of changes ended.
    Stream(PgWireError),
    /// `wal_level` is not `logical`, but this.
    WalLevel(String),
    /// There is no publication of this name.
    NoPublication(String),
    /// The publication of this name leaves changes out.
    Publication(String),
    /// `synchronous_standby_names` has another value already.
    Names(String),
    /// A watchdog is letting commits go on without a keeper.
    BeingLetGo,
    /// The database does not wait for the keeper, although it has its name.
    NotWaitedFor,
    /// Sessions have had transactions open since before commits waited, for too long: which.
    Awaits(Vec<String>),
    /// The slot of this name is of another database or program, or the log that it needs is gone.
    Slot(String),
    /// Another process reads the slot: its name, and the process of the database that serves it.
    SlotInUse(String, i32),
    /// Nothing can be taken back while a keeper runs: the process of the database that serves it.
    KeeperRuns(i32),
    /// The role lacks these rights.
    Rights(Vec<String>),
    /// Only a superuser can set a database up, and this role is none.
    NoSuperuser(String),
    /// The schema in which set-up notes what it does is not set-up's own: its name, and what is wrong with it.
    Strangers(String, Vec<String>),
    /// A statement of set-up failed: which, and why.
    Step(String, Box<PostgresError>),
    /// The database wants TLS.
    Tls,
    /// The database wants a password, and the address has none.
    NoPassword,
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
                "{name:?} is no name for a slot: use lower-case letters, digits and _, at most 56"
            ),
            PostgresError::Database(error) => match error.as_db_error() {
                Some(refused) if *refused.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
                    write!(f, "the database says: {}. {RIGHTS_TODO}", refused.message())
                }
                Some(refused) => write!(f, "the database says: {}", refused.message()),
                None => write!(f, "the database: {}", with_cause(error)),
            },
            PostgresError::Stream(error) => write!(
                f,
                "the stream of changes: {error}. If this comes again and again, drop the slot, and a keeper makes it again: SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
            ),
            PostgresError::WalLevel(found) => write!(
                f,
                "wal_level is {found}: set it to logical, and restart the database"
            ),
            PostgresError::NoPublication(name) => write!(
                f,
                "there is no publication {name}: `thorp web setup --postgres URL --recipe FILE --apply` makes it, with a URL of a superuser of the database"
            ),
            PostgresError::Publication(name) => write!(
                f,
                "publication {name} leaves changes out, as when a partition is emptied: `thorp web setup --postgres URL --recipe FILE --apply` mends it, with a URL of a superuser of the database. If that does not help, drop it first: DROP PUBLICATION {name}"
            ),
            PostgresError::Names(found) => write!(
                f,
                "synchronous_standby_names is {found:?}: another standby could stand in for the keeper. Set it to '' if no other standby is needed, or use no web cache here"
            ),
            PostgresError::BeingLetGo => write!(
                f,
                "a watchdog lets commits go on without a keeper, which takes four seconds. If no watchdog runs, set synchronous_standby_names to ''"
            ),
            PostgresError::NotWaitedFor => write!(
                f,
                "the database does not wait for the keeper, although it has its name: look whether the database reloads its configuration"
            ),
            PostgresError::Awaits(sessions) => write!(
                f,
                "{} transactions are open since before commits waited. End these sessions, or wait for them: {}",
                sessions.len(),
                sessions.join("; ")
            ),
            PostgresError::Slot(name) => write!(
                f,
                "slot {name} is of another database or program, or the log that it needs is gone. If nobody else needs it, drop it, and a keeper makes it again: SELECT pg_drop_replication_slot('{name}')"
            ),
            PostgresError::SlotInUse(name, process) => write!(
                f,
                "slot {name} is in use by process {process} of the database: another keeper of this name runs, or has just been stopped. Stop that one, or give this one another --name"
            ),
            PostgresError::KeeperRuns(process) => write!(
                f,
                "a keeper still follows the database (process {process} there). Stop all proxies first: each one stops the keeper that it started. Then stop a keeper of your own, and then the watchdog"
            ),
            PostgresError::Rights(lacking) => {
                write!(f, "the role lacks {}. {RIGHTS_TODO}", lacking.join(", "))
            }
            PostgresError::NoSuperuser(role) => write!(
                f,
                "role {role} is no superuser of the database: give the URL of one, as `sudo -u postgres thorp web setup --postgres postgresql:///shop`"
            ),
            PostgresError::Strangers(schema, found) => write!(
                f,
                "set-up cannot trust schema {schema}, whose statements run as a superuser: {}. If a keeper was never set up here, drop it: DROP SCHEMA {schema} CASCADE. Else look who has changed it",
                found.join("; ")
            ),
            PostgresError::Step(statement, error) => write!(
                f,
                "{error} (statement: {statement}). What was done before stays: mend that, and run it again"
            ),
            PostgresError::Tls => write!(
                f,
                "the database wants TLS, which the keeper does not speak: connect by a socket on its machine, or through a tunnel (stunnel, ssh)"
            ),
            PostgresError::NoPassword => write!(
                f,
                "the database wants a password: put it into the URL, or connect by a socket with peer authentication: postgresql:///shop"
            ),
            PostgresError::NoLongerWaitedFor => write!(
                f,
                "the database no longer waits for the keeper alone: look at synchronous_standby_names, and for a standby of the same name"
            ),
            PostgresError::TooManyOpen => write!(
                f,
                "too many transactions wait to become visible: look for a standby that holds commits up"
            ),
        }
    }
}

impl std::error::Error for PostgresError {}

/// The words of an error of the connection, with the reason behind it.
fn with_cause(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        if error.to_string().contains("TLS") {
            return PostgresError::Tls;
        }
        match with_cause(&error).contains("password missing") {
            true => PostgresError::NoPassword,
            false => PostgresError::Database(error),
        }
    }
}

impl From<PgWireError> for PostgresError {
    fn from(error: PgWireError) -> Self {
        PostgresError::Stream(error)
    }
}
