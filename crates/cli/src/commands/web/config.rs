//! What `thorp web` does by: a TOML file, and flags over it.

use super::ProxyOptions;
use super::homes::HomeConfig;
use super::source::REQUEST_SECONDS;
use crate::commands::node::config_failure;
use crate::commands::toml::Toml;
use crate::failure::{Code, Failure};
use serde::{Deserialize, Deserializer};
use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thorp_server::{Bytes, ConfigError, HttpAt, LogConfig};
use thorp_web::{OperatorPort, REQUEST_LIFE, Share};

/// What a proxy is told.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebConfig {
    pub(super) listen: String,
    pub(super) origins: Vec<String>,
    pub(super) recipe: Option<PathBuf>,
    pub(super) cache: Bytes,
    #[serde(deserialize_with = "http_at")]
    pub(super) status: Option<SocketAddr>,
    #[serde(deserialize_with = "text")]
    pub(super) audit: Share,
    pub(super) tls: TlsFiles,
    pub(super) postgres: PostgresConfig,
    pub(super) requests: RequestsConfig,
    pub(super) home: Vec<HomeConfig>,
    pub(super) keeper: KeeperConfig,
    pub(super) log: LogConfig,
}

/// The files by which the proxy speaks TLS to clients, in the section `[tls]`. Both or none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsFiles {
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// The database whose commits are the source, in the section `[postgres]`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PostgresConfig {
    pub(super) url: Option<String>,
}

/// Requests as the source, in the section `[requests]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RequestsConfig {
    /// Whether they are the source.
    pub(super) on: bool,
    /// The longest time in seconds that the origin works on one request.
    pub(super) seconds: u64,
    /// Where applications call `/begin` and `/end`, as `IP:PORT`.
    pub(super) calls: Option<String>,
    pub(super) calls_secret: Option<PathBuf>,
}

/// The keeper whose table the proxy reads, in the section `[keeper]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KeeperConfig {
    pub(super) name: String,
    pub(super) table: Option<PathBuf>,
    /// Whether to start one if there is none.
    pub(super) start: bool,
}

impl Default for WebConfig {
    fn default() -> Self {
        WebConfig {
            listen: String::from("127.0.0.1:8080"),
            origins: Vec::new(),
            recipe: None,
            cache: Bytes(256 << 20),
            status: None,
            audit: Share::default(),
            tls: TlsFiles::default(),
            postgres: PostgresConfig::default(),
            requests: RequestsConfig::default(),
            home: Vec::new(),
            keeper: KeeperConfig::default(),
            log: LogConfig::default(),
        }
    }
}

impl Default for RequestsConfig {
    fn default() -> Self {
        RequestsConfig {
            on: false,
            seconds: REQUEST_LIFE.as_secs(),
            calls: None,
            calls_secret: None,
        }
    }
}

impl Default for KeeperConfig {
    fn default() -> Self {
        KeeperConfig {
            name: String::from("thorp"),
            table: None,
            start: true,
        }
    }
}

impl WebConfig {
    /// What flags say over what their file says.
    pub(super) fn effective(options: &ProxyOptions) -> Result<Self, Failure> {
        let mut config = match &options.config {
            Some(path) => WebConfig::load(path)?,
            None => WebConfig::default(),
        };
        if let Some(origins) = &options.origin {
            let origins = origins.split(',').map(str::trim);
            config.origins = origins.map(str::to_owned).collect();
        }
        set(&mut config.listen, &options.listen);
        set(&mut config.cache, &options.cache_bytes);
        set(&mut config.audit, &options.audit);
        set(&mut config.keeper.name, &options.name);
        set(&mut config.requests.seconds, &options.request_seconds);
        set(&mut config.log.level, &options.log_level);
        set_some(&mut config.recipe, &options.recipe);
        set_some(&mut config.tls.certificate, &options.tls_certificate);
        set_some(&mut config.tls.key, &options.tls_key);
        set_some(&mut config.postgres.url, &options.postgres);
        set_some(&mut config.requests.calls, &options.calls);
        set_some(&mut config.requests.calls_secret, &options.calls_secret);
        set_some(&mut config.keeper.table, &options.table);
        if let Some(HttpAt(status)) = options.status {
            config.status = status;
        }
        if !options.home.is_empty() {
            config.home.clone_from(&options.home);
        }
        config.requests.on |= options.requests;
        config.keeper.start &= !options.no_keeper;
        if options.request_seconds.is_some() && !config.requests.on {
            let what = "--request-seconds is of use with requests as the source";
            return Err(wrong(what, "give --requests, too"));
        }
        Ok(config)
    }

    fn load(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        WebConfig::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|error| {
            config_failure(&ConfigError::Toml {
                path: path.to_owned(),
                error: Box::new(error),
            })
        })
    }

    /// Whether a proxy can start with it, as far as that can be seen without the files that it names.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.origins.is_empty() {
            return Err(wrong(
                "nothing was named to stand in front of",
                "give the application's address with --origin http://HOST:PORT, or `origins` in the file of --config",
            ));
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            let what = "a certificate is of use with its key, and a key with its certificate";
            let todo = "give both, with --tls-certificate and --tls-key or in [tls], or none";
            return Err(wrong(what, todo));
        }
        self.requests.check()?;
        self.check_source()?;
        let status = self.status.map(OperatorPort::check).transpose();
        status.map_err(|error| {
            wrong(
                error.to_string(),
                "to see it from elsewhere, use a tunnel (`ssh -L`)",
            )
        })?;
        Ok(())
    }

    /// Whether at most one source was named, and a recipe for it.
    fn check_source(&self) -> Result<(), Failure> {
        let sources = [
            self.postgres.url.is_some(),
            self.requests.on,
            !self.home.is_empty(),
        ];
        match sources.iter().filter(|is_named| **is_named).count() {
            0 => return Ok(()),
            1 => {}
            _ => {
                let what = "there are two sources of changes";
                let todo = "give one of --postgres, --requests and --home";
                return Err(wrong(what, todo));
            }
        }
        if self.recipe.is_none() {
            let what = "a source of changes was named, and no recipe says which answers rest on it";
            return Err(wrong(what, "name a recipe with --recipe"));
        }
        Ok(())
    }

    /// Whether a proxy that runs with this can go on with another one.
    pub(super) fn may_become(&self, next: &WebConfig) -> Result<(), Failure> {
        let fixed = [
            ("listen", self.listen == next.listen),
            ("status", self.status == next.status),
            ("tls", self.tls.key.is_some() == next.tls.key.is_some()),
            ("postgres", self.postgres == next.postgres),
            ("requests", self.requests == next.requests),
            ("home", self.home == next.home),
            ("keeper", self.keeper == next.keeper),
            ("log", self.log == next.log),
        ];
        match fixed.iter().find(|(_, is_same)| !is_same) {
            Some((key, _)) => Err(wrong(
                format!("`{key}` cannot change while the proxy runs"),
                "restart it, or take that change back",
            )),
            None => Ok(()),
        }
    }

    /// The same as TOML.
    pub(super) fn render(&self) -> String {
        let mut toml = Toml(String::new());
        toml.text("listen", &self.listen);
        toml.texts("origins", &self.origins);
        toml.path("recipe", self.recipe.as_deref());
        toml.size("cache", self.cache);
        toml.text("status", &HttpAt(self.status).to_string());
        toml.text("audit", &self.audit.to_string());
        toml.table("[tls]");
        toml.path("certificate", self.tls.certificate.as_deref());
        toml.path("key", self.tls.key.as_deref());
        toml.table("[postgres]");
        if let Some(url) = &self.postgres.url {
            toml.text("url", url);
        }
        toml.table("[requests]");
        toml.flag("on", self.requests.on);
        toml.number("seconds", self.requests.seconds);
        if let Some(calls) = &self.requests.calls {
            toml.text("calls", calls);
        }
        toml.path("calls_secret", self.requests.calls_secret.as_deref());
        for home in &self.home {
            toml.table("[[home]]");
            toml.text("name", &home.name);
            toml.path("table", Some(&home.table));
        }
        toml.table("[keeper]");
        toml.text("name", &self.keeper.name);
        toml.path("table", self.keeper.table.as_deref());
        toml.flag("start", self.keeper.start);
        toml.log(&self.log);
        toml.0
    }
}

impl RequestsConfig {
    fn check(&self) -> Result<(), Failure> {
        if !REQUEST_SECONDS.contains(&self.seconds) {
            let what = format!(
                "the application works for {} seconds on a request",
                self.seconds
            );
            let todo = format!(
                "give {} to {} with --request-seconds, or `seconds` in [requests]",
                REQUEST_SECONDS.start(),
                REQUEST_SECONDS.end()
            );
            return Err(wrong(what, &todo));
        }
        let has_calls = self.calls.is_some();
        if has_calls != self.calls_secret.is_some() {
            let what = "calls need an address and a secret";
            let todo = "give both, with --calls and --calls-secret or in [requests], or none";
            return Err(wrong(what, todo));
        }
        if has_calls && !self.on {
            let what = "calls say what changes where requests are the source";
            let todo = "give --requests, or `on = true` in [requests], or no calls";
            return Err(wrong(what, todo));
        }
        Ok(())
    }
}

fn set<T: Clone>(value: &mut T, flag: &Option<T>) {
    if let Some(flag) = flag {
        value.clone_from(flag);
    }
}

fn set_some<T: Clone>(value: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        value.clone_from(flag);
    }
}

fn wrong(what: impl Into<String>, todo: &str) -> Failure {
    Failure::new(what, todo).with(Code::Usage)
}

fn http_at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let HttpAt(at) = text(deserializer)?;
    Ok(at)
}

fn text<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A documented example, which names all that there is.
    const EXAMPLE: &str = include_str!("../../../config/web.toml");

    fn parse(text: &str) -> WebConfig {
        let config = WebConfig::parse(Path::new("web.toml"), text);
        config.unwrap_or_else(|failure| panic!("{}", failure.what()))
    }

    #[test]
    fn the_example_says_what_the_defaults_are() {
        let mut config = parse(EXAMPLE);
        config.check().expect("a proxy can start with it");
        assert_eq!(config.origins.len(), 1);
        config.origins.clear();
        assert_eq!(config, WebConfig::default());
    }

    #[test]
    fn what_is_commented_out_in_the_example_is_right_too() {
        let bare = |line: &'static str| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest,
            _ => line,
        };
        let all: Vec<&str> = EXAMPLE.lines().map(bare).collect();
        let all = parse(&all.join("\n"));
        let (tls, requests) = (&all.tls, &all.requests);
        assert!(all.recipe.is_some() && tls.key.is_some() && tls.certificate.is_some());
        assert!(all.keeper.table.is_some());
        assert!(all.postgres.url.is_some() && all.home.len() == 1);
        assert!(requests.calls.is_some() && requests.calls_secret.is_some());
        // There is one source.
        let with = |change: &dyn Fn(&mut WebConfig)| {
            let mut config = all.clone();
            config.postgres.url = None;
            config.requests = RequestsConfig::default();
            config.home.clear();
            change(&mut config);
            config.check().expect("a proxy can start with it");
        };
        with(&|config| config.postgres = all.postgres.clone());
        with(&|config| config.home.clone_from(&all.home));
        with(&|config| {
            config.requests = all.requests.clone();
            config.requests.on = true;
        });
    }

    #[test]
    fn what_is_printed_is_read_as_the_same() {
        for text in [
            EXAMPLE,
            "status = \"127.0.0.1:1\"\naudit = \"0.5%\"\n[postgres]\nurl = \"a\"\n[keeper]\nstart = false",
            "[[home]]\nname = \"a\"\ntable = \"b\"\n[[home]]\nname = \"c\"\ntable = \"d\"",
            "[requests]\non = true\nseconds = 7\ncalls = \"127.0.0.1:1\"\ncalls_secret = \"b\"",
        ] {
            let config = parse(text);
            assert_eq!(parse(&config.render()), config);
        }
    }

    #[test]
    fn what_cannot_be_right_is_refused_with_the_reason() {
        let origin = "origins = [\"http://a\"]\n";
        for (text, words) in [
            ("", "nothing was named"),
            ("[tls]\nkey = \"a\"", "a certificate is of use"),
            ("[postgres]\nurl = \"a\"", "no recipe"),
            ("[requests]\non = true", "no recipe"),
            ("[[home]]\nname = \"a\"\ntable = \"b\"", "no recipe"),
            (
                "recipe = \"r\"\n[requests]\non = true\n[postgres]\nurl = \"a\"",
                "two sources",
            ),
            ("[requests]\nseconds = 0", "works for 0 seconds"),
            ("[requests]\ncalls = \"a\"", "an address and a secret"),
            (
                "[requests]\ncalls_secret = \"a\"",
                "an address and a secret",
            ),
            (
                "[requests]\ncalls = \"a\"\ncalls_secret = \"a\"",
                "where requests are the source",
            ),
            ("status = \"0.0.0.0:1\"", "other machines"),
        ] {
            let text = if text.is_empty() {
                String::new()
            } else {
                format!("{origin}{text}")
            };
            let failure = parse(&text).check().expect_err(&text);
            assert!(failure.what().contains(words), "{}", failure.what());
        }
        for (text, words) in [
            ("origin = \"http://a\"", "unknown field"),
            ("[tls]\ncert = \"a\"", "unknown field"),
            ("audit = \"1\"", "no share"),
            ("status = \"here\"", "is not IP:PORT"),
        ] {
            let failure = WebConfig::parse(Path::new("web.toml"), text).expect_err(text);
            assert!(
                failure.what().contains(words) && failure.what().contains("web.toml"),
                "{}",
                failure.what()
            );
        }
    }

    #[test]
    fn what_is_bound_when_it_starts_cannot_change_later() {
        let running = parse(EXAMPLE);
        for text in [
            "listen = \"127.0.0.1:1\"",
            "status = \"127.0.0.1:1\"",
            "[tls]\nkey = \"a\"",
            "[postgres]\nurl = \"b\"",
            "[requests]\non = true",
            "[[home]]\nname = \"a\"\ntable = \"b\"",
            "[keeper]\nname = \"b\"",
            "[log]\nlevel = \"warn\"",
        ] {
            assert!(running.may_become(&parse(text)).is_err(), "{text}");
        }
        let text = "origins = [\"http://b\"]\nrecipe = \"b\"\ncache = 7\naudit = \"1%\"";
        assert!(running.may_become(&parse(text)).is_ok());
    }
}
