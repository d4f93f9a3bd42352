//! How a PostgreSQL database is reached, and what the keeper's things in it are called.

use super::error::PostgresError;
use pgwire_replication::{Lsn, ReplicationConfig};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_postgres::NoTls;
use tokio_postgres::config::Host;

/// A name in the database has at most 63 bytes. Some have an ending behind the keeper's name.
const NAME_BYTES_MAX: usize = 56;

/// Where Debian's server has its socket.
const SOCKET_DIR: &str = "/var/run/postgresql";

/// Events of the stream that wait for the keeper. Above that the database waits.
const EVENTS_WAITING: usize = 1_024;

/// An acknowledgement leaves at once, but for this time behind the one before. Commits wait for it.
const ACKNOWLEDGED_AFTER: Duration = Duration::from_micros(100);

/// What the owner of the database may set for all its sessions, and must not set for these: where names are looked up, and what ends or
/// holds up a session.
const OPTIONS: &str = "-c search_path=pg_catalog,pg_temp -c role=none -c standard_conforming_strings=on \
    -c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off \
    -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0";

/// The same of this version and later ones.
const SINCE_17: (u32, &str) = (17, "-c transaction_timeout=0");

/// The same of the stream. It is PostgreSQL's own value.
const STREAM_OPTIONS: &str = "-c wal_sender_timeout=60s";

/// The database behind an application.
#[derive(Clone, Debug)]
pub struct Postgres {
    config: tokio_postgres::Config,
    name: String,
    /// What the server is, as 15. The first connection asks it.
    version: Arc<OnceLock<u32>>,
}

impl Postgres {
    /// The database at an address such as `postgresql://user@host:5432/wiki`. The keeper's slot, publication and standby have this name.
    ///
    /// # Errors
    ///
    /// The address cannot be read, or the name is no lower-case word of PostgreSQL.
    pub fn new(address: &str, name: &str) -> Result<Self, PostgresError> {
        let mut config: tokio_postgres::Config = address.parse().map_err(PostgresError::Address)?;
        // What an address leaves out is as `psql` has it.
        if config.get_hosts().is_empty() {
            config.host(SOCKET_DIR);
        }
        if config.get_user().is_none() {
            config.user(std::env::var("USER").unwrap_or_else(|_| String::from("postgres")));
        }
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_word);
        match is_name {
            true => Ok(Postgres {
                config,
                name: name.to_owned(),
                version: Arc::default(),
            }),
            false => Err(PostgresError::Name(name.to_owned())),
        }
    }

    /// The name of slot, publication and standby.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is reached, as far as that tells databases apart.
    pub(crate) fn identity(&self) -> String {
        let config = &self.config;
        let (hosts, ports) = (config.get_hosts(), config.get_ports());
        let database = config.get_dbname().or(config.get_user());
        format!("{hosts:?} {ports:?} {database:?}")
    }

    /// The role that it is reached as.
    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("postgres")
    }

    /// A connection for questions. It ends when the client is dropped.
    pub(super) async fn connect(&self) -> Result<tokio_postgres::Client, PostgresError> {
        self.connect_as("thorp web").await
    }

    /// The same with a name for the program.
    pub(super) async fn connect_as(
        &self,
        program: &str,
    ) -> Result<tokio_postgres::Client, PostgresError> {
        let client = self.connect_as_any(program).await?;
        // The keeper's own commits must not wait for the keeper, but for the probe, which says so.
        client
            .batch_execute("SET synchronous_commit = local")
            .await?;
        Ok(client)
    }

    /// The same with the `synchronous_commit` that any session has.
    pub(super) async fn connect_as_any(
        &self,
        program: &str,
    ) -> Result<tokio_postgres::Client, PostgresError> {
        let mut config = self.config.clone();
        config.application_name(program).options(self.options());
        let (mut client, mut connection) = config.connect(NoTls).await?;
        if self.version.get().is_none() {
            let said = connection.parameter("server_version");
            let version = self.version.get_or_init(|| major(said.unwrap_or_default()));
            if *version >= SINCE_17.0 {
                config.options(self.options());
                (client, connection) = config.connect(NoTls).await?;
            }
        }
        tokio::spawn(connection);
        Ok(client)
    }

    /// What the address says, and what counts more.
    fn options(&self) -> String {
        let own = self.config.get_options().unwrap_or_default();
        let (since, more) = SINCE_17;
        let has_more = self.version.get().is_some_and(|version| *version >= since);
        let more = if has_more { more } else { "" };
        format!("{own} {OPTIONS} {more}")
    }

    /// How the stream of changes is asked for.
    pub(super) fn stream(&self) -> Result<ReplicationConfig, PostgresError> {
        let user = self.user();
        let password = self.config.get_password().unwrap_or_default();
        let password = String::from_utf8_lossy(password);
        let database = self.config.get_dbname().unwrap_or(user);
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::from(SOCKET_DIR),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let name = self.name.as_str();
        let stream = ReplicationConfig::new(host, user, password, database, name, name);
        Ok(stream
            .with_port(port)
            .with_start_lsn(Lsn::ZERO)
            .with_status_interval(ACKNOWLEDGED_AFTER)
            .with_buffer_size(EVENTS_WAITING)
            .with_options(format!("{} {STREAM_OPTIONS}", self.options()))
            .with_application_name(name))
    }
}

/// The first number of a version: 15 of `15.14 (Debian)`, and 17 of `17beta1`.
fn major(version: &str) -> u32 {
    let end = version.find(|char: char| !char.is_ascii_digit());
    let digits = &version[..end.unwrap_or(version.len())];
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_its_version() {
        let versions = ["15.14 (Debian 15.14-0)", "17beta1", "18", ""];
        assert_eq!(versions.map(major), [15, 17, 18, 0]);
    }
}
