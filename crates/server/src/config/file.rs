//! The files as a whole.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thorp_model::limits::{
    CALLS_PER_CHILD_MAX, COMMITS_IN_FLIGHT_MAX, EXTENT_PAGES, FETCHES_PER_CHILD_MAX, LEASE_MS_MAX,
    LEASE_MS_MIN, OTHER_HOMES_MAX,
};
use thorp_net::driver::PARENTS_MAX;
use thorp_net::{ADDRESSES_MAX, Address, LANES_MAX};
use thorp_protocol::AliveLimitsError;
use thorp_store::Opening;

use super::error::ConfigError;
use super::parts::{
    ChildDelay, HomeLimits, HttpFor, LinkLimits, LogConfig, NameShares, OtherHome, ParentEntry,
    SiteLimits, StoreConfig, THREADS_MAX,
};
use super::values::{http_at, texts};

/// What a home is told. Every field has a default but `name` and `data_dir`; a command line sets fields after the file was
/// read.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HomeConfigFile {
    /// The home's name, as references say it.
    pub name: Option<String>,
    /// Where it keeps everything; made if it is not there.
    pub data_dir: Option<PathBuf>,
    /// Its certificate and key; `identity` in the data directory by default.
    pub identity_dir: Option<PathBuf>,
    /// What its operator states about the store at this start, and at no other. Not in the file.
    #[serde(skip)]
    pub opening: Opening,
    /// Where it listens.
    #[serde(deserialize_with = "texts::deserialize")]
    pub listen: Vec<Address>,
    /// Where `/metrics`, `/health` and `/status` are served, and `thorp status` asks; on this machine only by default. None:
    /// nowhere; in the file, `"off"`.
    #[serde(deserialize_with = "http_at")]
    pub http: Option<SocketAddr>,
    /// Whether only operators, and whom they name, make segments, and a new segment is its maker's alone (rule R3). A home
    /// that was open closes so at its next start.
    pub closed: bool,
    /// Whether it writes a table of what changes, for web caches on its machine (`thorp web --home`).
    pub web_table: bool,
    /// Whom it answers there.
    pub http_for: HttpFor,
    /// `[[other_home]]`.
    pub other_home: Vec<OtherHome>,
    /// `[log]`.
    pub log: LogConfig,
    /// `[store]`.
    pub store: StoreConfig,
    /// `[limits]`.
    pub limits: HomeLimits,
    /// `[shares]`.
    pub shares: NameShares,
    /// `[link]`.
    pub link: LinkLimits,
    /// `[[child_delay]]`.
    pub child_delay: Vec<ChildDelay>,
}

/// What a site is told. Every field has a default but `name`, `data_dir` and at least one `[[parent]]`; a command line sets
/// fields after the file was read.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteConfigFile {
    /// The site's name.
    pub name: Option<String>,
    /// Where it keeps its identity and its log; nothing else of a site needs to survive (rule 13).
    pub data_dir: Option<PathBuf>,
    /// Its certificate and key; `identity` in the data directory by default.
    pub identity_dir: Option<PathBuf>,
    /// An authority on the same machine that may issue the identity if there is none yet.
    pub authority_dir: Option<PathBuf>,
    /// The certificate and key of the member that keeps the log of the site (rule C6). None: the site has no log.
    pub log_identity_dir: Option<PathBuf>,
    /// Where it listens.
    #[serde(deserialize_with = "texts::deserialize")]
    pub listen: Vec<Address>,
    /// Where `/metrics`, `/health` and `/status` are served, and `thorp status` asks; on this machine only by default. None:
    /// nowhere; in the file, `"off"`.
    #[serde(deserialize_with = "http_at")]
    pub http: Option<SocketAddr>,
    /// Whom it answers there.
    pub http_for: HttpFor,
    /// `[[parent]]`.
    pub parent: Vec<ParentEntry>,
    /// `[log]`.
    pub log: LogConfig,
    /// `[limits]`.
    pub limits: SiteLimits,
    /// `[link]`.
    pub link: LinkLimits,
    /// `[[child_delay]]`.
    pub child_delay: Vec<ChildDelay>,
}

impl HomeConfigFile {
    /// A documented example, which `thorp home --print-config` prints.
    pub const EXAMPLE: &'static str = include_str!("../../config/home.toml");

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::File`], [`ConfigError::Toml`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        load(path.as_ref())
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Toml`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        parse(Path::new(""), text)
    }

    /// The name, or that it is missing.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn name(&self) -> Result<&str, ConfigError> {
        given(self.name.as_deref(), "name", "name = \"alps\"")
    }

    /// The data directory, or that it is missing.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn data_dir(&self) -> Result<&Path, ConfigError> {
        data_dir(self.data_dir.as_deref())
    }

    /// Where the store lies.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn store_dir(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.data_dir()?.join("store"))
    }

    /// The file that names the table for web caches, if there is one.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn web_table_file(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.data_dir()?.join("web.table"))
    }

    /// Where certificate and key lie.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn identity_dir(&self) -> Result<PathBuf, ConfigError> {
        identity_dir(self.identity_dir.as_deref(), self.data_dir.as_deref())
    }

    /// Where a home that makes its village puts the authority. It needs that only once: the authority may go elsewhere.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn authority_dir(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.data_dir()?.join("authority"))
    }

    /// Where the home that made the village puts the identity of the member `local`, for programs on its machine.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn local_identity_dir(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.identity_dir()?.join(LOCAL_MEMBER))
    }

    /// Whether a home can start with it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`], [`ConfigError::Value`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.name()?;
        self.data_dir()?;
        check_listen(&self.listen)?;
        check_http(self.http, self.http_for)?;
        self.check_other_homes()?;
        check_link(&self.link)?;
        if self.limits.outcomes_per_member < COMMITS_IN_FLIGHT_MAX as u64 {
            return Err(ConfigError::Value {
                key: "limits.outcomes_per_member",
                why: format!("at least {COMMITS_IN_FLIGHT_MAX}: as many as a member has under way"),
            });
        }
        if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&self.limits.lease_ms) {
            return Err(ConfigError::Value {
                key: "limits.lease_ms",
                why: format!("from {LEASE_MS_MIN} to {LEASE_MS_MAX} milliseconds"),
            });
        }
        self.check_shares()
    }

    /// A share with which one process of a name could not work is a mistake.
    fn check_shares(&self) -> Result<(), ConfigError> {
        let shares = &self.shares;
        let wrong = |key, why| Err(ConfigError::Value { key, why });
        if !(1..=100).contains(&shares.store_percent_max) {
            let why = "from 1 to 100 percent".to_owned();
            return wrong("shares.store_percent_max", why);
        }
        let numbers = shares.page_numbers_max as usize;
        let each = [
            ("shares.segments_max", shares.segments_max, 1),
            ("shares.page_numbers_max", numbers, EXTENT_PAGES as usize),
            (
                "shares.commits_max",
                shares.commits_max,
                COMMITS_IN_FLIGHT_MAX,
            ),
            ("shares.calls_max", shares.calls_max, CALLS_PER_CHILD_MAX),
            (
                "shares.fetches_max",
                shares.fetches_max,
                FETCHES_PER_CHILD_MAX,
            ),
        ];
        match each.iter().find(|(_, number, least)| number < least) {
            Some((key, _, least)) => {
                wrong(key, format!("at least {least}: what one member may have"))
            }
            None => Ok(()),
        }
    }

    fn check_other_homes(&self) -> Result<(), ConfigError> {
        let own = self.name()?;
        let wrong = |why: String| {
            let key = "other_home";
            Err(ConfigError::Value { key, why })
        };
        let mut names = BTreeSet::new();
        for other in &self.other_home {
            let name = other.name.to_ascii_lowercase();
            if name.is_empty() {
                return wrong(
                    "one has no name: give the one that it has in its certificate".to_owned(),
                );
            }
            if name == own.to_ascii_lowercase() {
                return wrong(format!(
                    "{name:?} is this home itself: name the other ones only"
                ));
            }
            if other.addresses.is_empty() {
                return wrong(format!("{name:?} has no address"));
            }
            check_addresses("other_home.addresses", &other.addresses)?;
            if !names.insert(name) {
                return wrong(format!(
                    "{:?} is there twice: give all of its addresses in one",
                    other.name
                ));
            }
        }
        if names.len() > OTHER_HOMES_MAX {
            return wrong(format!("more than {OTHER_HOMES_MAX}"));
        }
        Ok(())
    }
}

impl SiteConfigFile {
    /// A documented example, which `thorp site --print-config` prints.
    pub const EXAMPLE: &'static str = include_str!("../../config/site.toml");

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::File`], [`ConfigError::Toml`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        load(path.as_ref())
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Toml`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        parse(Path::new(""), text)
    }

    /// The name, or that it is missing.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn name(&self) -> Result<&str, ConfigError> {
        given(self.name.as_deref(), "name", "name = \"valley\"")
    }

    /// Where certificate and key lie.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn identity_dir(&self) -> Result<PathBuf, ConfigError> {
        identity_dir(self.identity_dir.as_deref(), self.data_dir.as_deref())
    }

    /// Where the log of the site lies, if it has one.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`].
    pub fn log_dir(&self) -> Result<PathBuf, ConfigError> {
        Ok(data_dir(self.data_dir.as_deref())?.join("log"))
    }

    /// Whether a site can start with it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Missing`], [`ConfigError::Value`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.name()?;
        self.identity_dir()?;
        if self.log_identity_dir.is_some() {
            self.log_dir()?;
        }
        check_listen(&self.listen)?;
        check_http(self.http, self.http_for)?;
        check_link(&self.link)?;
        if self.parent.iter().any(|parent| parent.addresses.is_empty()) {
            return Err(ConfigError::Missing {
                key: "parent.addresses",
                example: "addresses = [\"tcp://alps.example.org:7420\"]",
            });
        }
        let example = "[[parent]]\nname = \"alps\"\naddresses = [\"tcp://alps.example.org:7420\"]";
        given(self.parent.first(), "parent", example)?;
        self.check_parents()
    }

    /// One home has one stream down here: a second entry of it would be closed and dialed for ever.
    fn check_parents(&self) -> Result<(), ConfigError> {
        if self.parent.len() > PARENTS_MAX {
            let why = format!("{}: {PARENTS_MAX} are the most", self.parent.len());
            return Err(ConfigError::Value { key: "parent", why });
        }
        for parent in &self.parent {
            check_addresses("parent.addresses", &parent.addresses)?;
        }
        let mut names = BTreeSet::new();
        for name in self.parent.iter().filter_map(|parent| parent.name.as_ref()) {
            if !names.insert(name.to_ascii_lowercase()) {
                let why = format!("{name:?} is there twice: give all of its addresses in one");
                return Err(ConfigError::Value { key: "parent", why });
            }
        }
        Ok(())
    }
}

impl Default for HomeConfigFile {
    fn default() -> Self {
        Self {
            name: None,
            data_dir: None,
            identity_dir: None,
            opening: Opening::default(),
            listen: vec![anywhere(HOME_PORT)],
            http: Some(here(HOME_HTTP_PORT)),
            closed: false,
            web_table: false,
            http_for: HttpFor::default(),
            other_home: Vec::new(),
            log: LogConfig::default(),
            store: StoreConfig::default(),
            limits: HomeLimits::default(),
            shares: NameShares::default(),
            link: LinkLimits::default(),
            child_delay: Vec::new(),
        }
    }
}

impl Default for SiteConfigFile {
    fn default() -> Self {
        Self {
            name: None,
            data_dir: None,
            identity_dir: None,
            authority_dir: None,
            log_identity_dir: None,
            listen: vec![anywhere(SITE_PORT)],
            http: Some(here(SITE_HTTP_PORT)),
            http_for: HttpFor::default(),
            parent: Vec::new(),
            log: LogConfig::default(),
            limits: SiteLimits::default(),
            link: LinkLimits::default(),
            child_delay: Vec::new(),
        }
    }
}

/// Where a home listens if not told otherwise.
pub const HOME_PORT: u16 = 7420;
/// Where a site listens if not told otherwise.
pub const SITE_PORT: u16 = 7421;
/// Where a home serves HTTP, on this machine only, if not told otherwise.
pub const HOME_HTTP_PORT: u16 = 7430;
/// Where a site serves HTTP, on this machine only, if not told otherwise.
pub const SITE_HTTP_PORT: u16 = 7431;

/// It answers everybody that reaches it, so only this machine does.
fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn anywhere(port: u16) -> Address {
    let host = "0.0.0.0".to_owned();
    Address::Tcp { host, port }
}

fn load<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::File {
        path: path.to_owned(),
        error,
    })?;
    parse(path, &text)
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Toml {
        path: path.to_owned(),
        error: Box::new(error),
    })
}

fn given<T>(value: Option<T>, key: &'static str, example: &'static str) -> Result<T, ConfigError> {
    value.ok_or(ConfigError::Missing { key, example })
}

fn data_dir(dir: Option<&Path>) -> Result<&Path, ConfigError> {
    given(dir, "data_dir", "data_dir = \"/var/lib/thorp\"")
}

/// The name of that member, and of its directory.
pub(crate) const LOCAL_MEMBER: &str = "local";

fn identity_dir(given: Option<&Path>, data: Option<&Path>) -> Result<PathBuf, ConfigError> {
    match given {
        Some(dir) => Ok(dir.to_owned()),
        None => Ok(data_dir(data)?.join("identity")),
    }
}

fn check_listen(listen: &[Address]) -> Result<(), ConfigError> {
    let example = "listen = [\"tcp://0.0.0.0:7420\"]";
    given(listen.first(), "listen", example)?;
    check_addresses("listen", listen)
}

fn check_addresses(key: &'static str, addresses: &[Address]) -> Result<(), ConfigError> {
    match (addresses.first(), addresses.len()) {
        (Some(first), count) if count > ADDRESSES_MAX => {
            let why = format!("{first} and others, {count}: {ADDRESSES_MAX} are the most");
            Err(ConfigError::Value { key, why })
        }
        _ => Ok(()),
    }
}

fn check_http(http: Option<SocketAddr>, whom: HttpFor) -> Result<(), ConfigError> {
    let Some(address) = http.filter(|address| !address.ip().to_canonical().is_loopback()) else {
        return Ok(());
    };
    if whom != HttpFor::Machine {
        return Ok(());
    }
    Err(ConfigError::Value {
        key: "http",
        why: format!(
            "other machines reach {address}, and it would show everybody who is in the village and where: answer operators only \
             (--http-for-operators, or http_for = \"operators\"), listen on this machine only (127.0.0.1), or say that you want it \
             (--http-open-to-everybody, or http_for = \"everybody\")"
        ),
    })
}

fn check_link(link: &LinkLimits) -> Result<(), ConfigError> {
    check_alive(link)?;
    if !(1..=LANES_MAX).contains(&link.lanes) {
        return Err(ConfigError::Value {
            key: "link.lanes",
            why: format!("1 to {LANES_MAX}"),
        });
    }
    if !(1..=THREADS_MAX).contains(&link.threads) {
        return Err(ConfigError::Value {
            key: "link.threads",
            why: format!("1 to {THREADS_MAX}"),
        });
    }
    // Nobody could get in, or stay.
    for (key, is_zero) in [
        ("link.silent_callers_max", link.silent_callers_max == 0),
        ("link.handshakes_max", link.handshakes_max == 0),
        ("link.first_byte_ms_max", link.first_byte_ms_max == 0),
        (
            "link.frame_progress_ms_max",
            link.frame_progress_ms_max == 0,
        ),
    ] {
        if is_zero {
            let why = "at least 1".to_owned();
            return Err(ConfigError::Value { key, why });
        }
    }
    link.congestion.check().map_err(|error| ConfigError::Value {
        key: "link.congestion",
        why: format!(
            "the system does not let this program use {}: {error}",
            link.congestion
        ),
    })
}

fn check_alive(link: &LinkLimits) -> Result<(), ConfigError> {
    link.alive().check().map_err(|error| ConfigError::Value {
        key: match error {
            AliveLimitsError::Period => "link.alive_ms",
            AliveLimitsError::Missed => "link.alive_missed_max",
        },
        why: error.to_string(),
    })
}
