//! `thorp site`: the redirector.

use super::node::{self, Common, NameAnd, Parts, Toml};
use super::say;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use thorp_net::Address;
use thorp_server::{ParentEntry, SiteConfigFile, SiteServer};

/// Programs that sit together join here: what one has fetched, its neighbours get from it, and what one commits, they have
/// at once. It needs a certificate of the village, made by `thorp invite`. SIGTERM and SIGINT shut it down in order.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Where it keeps its certificate [default: thorp-site]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Its name, as in its certificate [default: site]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A home's name and address, as alps=tcp://alps.example.org:7420; the same name again adds an address
    #[arg(long, value_name = "NAME=ADDR")]
    home: Vec<NameAnd<Address>>,
    /// An authority on this machine that may issue the certificate, if there is none yet
    #[arg(long, value_name = "DIR")]
    authority: Option<PathBuf>,
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
    config
        .check()
        .map_err(|error| node::config_failure(&error))?;
    thorp_server::init_logs(&config.log).map_err(|error| node::config_failure(&error))?;
    let runtime = thorp_server::runtime()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = options.common.shutdown()?;
        let server = SiteServer::start(&config)
            .await
            .map_err(|error| node::refused(&error))?;
        say(&format!(
            "site {}",
            config.name.as_deref().unwrap_or(DEFAULT_NAME)
        ))?;
        for address in server.addresses() {
            say(&format!("  it listens on {address}"))?;
        }
        node::say_ready(server.http_address())?;
        server.run(shutdown).await;
        Ok(())
    })
}

fn effective(options: &Options) -> Result<SiteConfigFile, Failure> {
    let mut config = match &options.common.config {
        Some(file) => SiteConfigFile::load(file).map_err(|error| node::config_failure(&error))?,
        None => SiteConfigFile::default(),
    };
    let name = options.name.clone().or(config.name.take());
    config.name = Some(name.unwrap_or_else(|| DEFAULT_NAME.to_owned()));
    let dir = options.dir.clone().or(config.data_dir.take());
    config.data_dir = Some(dir.unwrap_or_else(|| DEFAULT_DIR.into()));
    if options.authority.is_some() {
        config.authority_dir.clone_from(&options.authority);
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
        identity_dir: &mut config.identity_dir,
        cache: &mut config.limits.cache,
        child_delay: &mut config.child_delay,
        log: &mut config.log,
    });
    Ok(config)
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

/// The whole configuration as TOML.
fn render(config: &SiteConfigFile) -> String {
    let mut toml = Toml(String::new());
    toml.text("name", config.name.as_deref().unwrap_or(DEFAULT_NAME));
    toml.path("data_dir", config.data_dir.as_deref());
    toml.path("identity_dir", config.identity_dir.as_deref());
    toml.path("authority_dir", config.authority_dir.as_deref());
    toml.addresses("listen", &config.listen);
    if let Some(http) = config.http {
        toml.text("http", &http.to_string());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_used() {
        let mut config = SiteConfigFile::parse(SiteConfigFile::EXAMPLE).unwrap();
        config.authority_dir = Some("/there".into());
        config.http = Some("127.0.0.1:7431".parse().unwrap());
        assert_eq!(SiteConfigFile::parse(&render(&config)).unwrap(), config);
    }
}
