//! `thorp site`: the redirector.

use super::node::{self, Common, NameAnd, Parts};
use super::site_log;
use super::toml::Toml;
use super::{say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use thorp_net::{Address, Identity};
use thorp_server::{ParentEntry, SiteConfigFile, SiteServer};

/// What `thorp site` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Where it keeps its certificate and its log [default: thorp-site]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Its name, as in its certificate [default: that of --identity, or else site]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A home's name and address, as alps=tcp://alps.example.org:7420; the same name again adds an address
    #[arg(long, value_name = "NAME=ADDR")]
    home: Vec<NameAnd<Address>>,
    /// An authority on this machine that may issue the certificate, if there is none yet
    #[arg(long, value_name = "DIR")]
    authority: Option<PathBuf>,
    /// Keep updates of members that have no log, in log/ of --dir: with this member's certificate, made for nothing else
    #[arg(long, value_name = "DIR")]
    log_identity: Option<PathBuf>,
    /// Delay what goes up to the homes: plays a wide-area link
    #[arg(long, value_name = "MS")]
    link_delay_ms: Option<u64>,
    #[command(flatten)]
    common: Common,
}

/// Runs until it is told to end.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let config = effective(options)?;
    if options.common.print_config {
        return say(render(&config).trim_end());
    }
    if config.parent.is_empty() {
        let todo = "give one with --home NAME=ADDR, as alps=alps.example.org:7420, or as a [[parent]] in the --config file";
        return Err(Failure::new("no home was named", todo).with(Code::Usage));
    }
    config
        .check()
        .map_err(|error| node::config_failure(&error))?;
    node::serve(
        &options.common,
        (&config.log, &config.link),
        async |shutdown| {
            let server = SiteServer::start(&config)
                .await
                .map_err(|error| node::refused(&error))?;
            let (addresses, http) = (server.addresses().to_vec(), server.http_address());
            let ready = || match options.common.json {
                true => say_json(&as_json(&config, (&addresses, http))?),
                false => welcome(&config, (&addresses, http)),
            };
            let mut result = Ok(());
            let beside = async {
                result = site_log::beside((&config, &addresses), ready, shutdown).await;
            };
            server.run(beside).await;
            result
        },
    )
}

fn effective(options: &Options) -> Result<SiteConfigFile, Failure> {
    let mut config = match &options.common.config {
        Some(file) => SiteConfigFile::load(file).map_err(|error| node::config_failure(&error))?,
        None => SiteConfigFile::default(),
    };
    let certified = options
        .identity()
        .map(|identity| identity.name().to_owned());
    let name = certified.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    node::settle(options.name.as_ref(), &mut config.name, name);
    node::settle(options.dir.as_ref(), &mut config.data_dir, DEFAULT_DIR);
    if options.authority.is_some() {
        config.authority_dir.clone_from(&options.authority);
    }
    if options.log_identity.is_some() {
        config.log_identity_dir.clone_from(&options.log_identity);
    }
    if !options.home.is_empty() {
        config.parent = parents(&options.home);
    }
    if let Some(delay) = options.link_delay_ms {
        for parent in &mut config.parent {
            parent.one_way_ms = delay;
        }
    }
    options.common.apply(Parts {
        listen: &mut config.listen,
        http: &mut config.http,
        http_for: &mut config.http_for,
        identity_dir: &mut config.identity_dir,
        cache: &mut config.limits.cache,
        child_delay: &mut config.child_delay,
        link: &mut config.link,
        log: &mut config.log,
    });
    Ok(config)
}

impl Options {
    /// The certificate that was given, if it is one: what is wrong with it is told when the site starts.
    fn identity(&self) -> Option<Identity> {
        Identity::load(self.common.identity.as_ref()?).ok()
    }
}

fn parents(homes: &[NameAnd<Address>]) -> Vec<ParentEntry> {
    let mut parents: Vec<ParentEntry> = Vec::new();
    for home in homes {
        let name = Some(home.name.clone());
        match parents.iter_mut().find(|parent| parent.name == name) {
            Some(parent) => parent.addresses.push(home.value.clone()),
            None => parents.push(ParentEntry {
                name,
                addresses: vec![home.value.clone()],
                one_way_ms: 0,
            }),
        }
    }
    parents
}

/// Tells how members come in.
fn welcome(
    config: &SiteConfigFile,
    (addresses, http): (&[Address], Option<SocketAddr>),
) -> Result<(), Failure> {
    let name = config.name.as_deref().unwrap_or(DEFAULT_NAME);
    let above: Vec<String> = config.parent.iter().map(called).collect();
    say(&format!("site {name}, below {}", above.join(", ")))?;
    if config.log_identity_dir.is_some() {
        say("it keeps updates of members that have no log")?;
    }
    node::say_listening(addresses)?;
    node::say_ready(addresses, None, (http, config.http_for))
}

fn as_json(
    config: &SiteConfigFile,
    (addresses, http): (&[Address], Option<SocketAddr>),
) -> Result<serde_json::Value, Failure> {
    let log = config.log_identity_dir.as_ref();
    let log = log.map(|_| config.log_dir()).transpose();
    let log = log.map_err(|error| node::config_failure(&error))?;
    let homes = config.parent.iter().map(|parent| {
        serde_json::json!({"name": parent.name, "addresses": node::each(&parent.addresses)})
    });
    Ok(serde_json::json!({
        "name": config.name,
        "village": node::village(config.identity_dir())?,
        "dir": config.data_dir.as_deref().map(node::shown),
        "log": log.as_deref().map(node::shown),
        "listen": node::each(addresses),
        "http": http.map(|at| at.to_string()),
        "homes": homes.collect::<Vec<_>>(),
    }))
}

fn called(parent: &ParentEntry) -> String {
    let address = || parent.addresses.first().map(ToString::to_string);
    parent.name.clone().or_else(address).unwrap_or_default()
}

/// The whole configuration as TOML.
fn render(config: &SiteConfigFile) -> String {
    let mut toml = Toml(String::new());
    toml.text("name", config.name.as_deref().unwrap_or(DEFAULT_NAME));
    toml.path("data_dir", config.data_dir.as_deref());
    toml.path("identity_dir", config.identity_dir.as_deref());
    toml.path("authority_dir", config.authority_dir.as_deref());
    toml.path("log_identity_dir", config.log_identity_dir.as_deref());
    toml.listen(&config.listen, (config.http, config.http_for));
    for parent in &config.parent {
        toml.table("[[parent]]");
        if let Some(name) = &parent.name {
            toml.text("name", name);
        }
        toml.addresses("addresses", &parent.addresses);
        toml.number("one_way_ms", parent.one_way_ms);
    }
    toml.log(&config.log);
    toml.table("[limits]");
    toml.size("cache", config.limits.cache);
    toml.size("kept", config.limits.kept);
    toml.link(&config.link, &config.child_delay);
    toml.0
}

const DEFAULT_NAME: &str = "site";
const DEFAULT_DIR: &str = "thorp-site";

const HELP: &str = "\
Programs that sit together join here: what one has fetched, its neighbours get from it, and what \
one commits, they have at once. It needs a certificate made by `thorp invite NAME --role site`. \
SIGTERM and SIGINT shut it down in order.

Examples:
  thorp site --dir office --identity office-identity --home dev=127.0.0.1:7420
  thorp site --identity office-identity --log-identity office-log --home dev=127.0.0.1:7420";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_used() {
        let mut config = SiteConfigFile::parse(SiteConfigFile::EXAMPLE).unwrap();
        config.authority_dir = Some("/there".into());
        config.log_identity_dir = Some("/elsewhere".into());
        config.http = Some("127.0.0.1:99".parse().unwrap());
        assert_eq!(SiteConfigFile::parse(&render(&config)).unwrap(), config);
    }
}
