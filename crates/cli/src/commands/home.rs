//! `thorp home`: the durable server.

use super::node::{self, Common, NameAnd, Parts};
use super::toml::Toml;
use super::{say, say_json};
use crate::failure::Failure;
use crate::text::pasted;
use clap::Args;
use rustix::fs::Mode;
use rustix::process::umask;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use thorp_model::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use thorp_net::{Address, CertificateAuthority, Identity};
use thorp_server::{Bytes, HomeConfigFile, HomeServer, HttpFor, Opening, OtherHome};

/// What `thorp home` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Where it keeps everything; made if it is not there [default: thorp-home]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Its name, as in thorp://NAME/path [default: home]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The most that the store may hold, as 1048576 or "100 GiB"; commits are refused when it is full
    #[arg(long, value_name = "SIZE")]
    limit_bytes: Option<Bytes>,
    /// Another home's name and address, as dale=tcp://dale.example.org:7420, to ask it about transactions over both; the same
    /// name again adds an address
    #[arg(long, value_name = "NAME=ADDR")]
    other_home: Vec<NameAnd<Address>>,
    /// How long a site may write what the home has not seen, in seconds, 1 to 3600; reads with a hard bound wait so long for one
    /// that has fallen silent [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = lease)]
    lease: Option<u32>,
    /// From this start on only operators, and whom they name in thorp://NAME/.create, make segments, and a new segment is its
    /// maker's alone; segments that are there stay as they are
    #[arg(long)]
    closed: bool,
    /// Write a table of what changes, for web caches on this machine: thorp web --home NAME=DIR/web.table
    #[arg(long)]
    web_table: bool,
    /// Its directory was moved, and the old place is gone: it does not start closed for that
    #[arg(long, conflicts_with = "restored")]
    moved: bool,
    /// It goes on from an older state, as from a backup: opens it with the next incarnation, at this start only
    #[arg(long)]
    restored: bool,
    /// With --restored: the directory is a copy for a test, and proves nothing to the original
    #[arg(long, requires = "restored")]
    apart: bool,
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
    // What a home writes is for its own user (threat 12).
    umask(Mode::RWXG | Mode::RWXO);
    node::serve(
        &options.common,
        (&config.log, &config.link),
        async |shutdown| {
            let server = HomeServer::start(config.clone())
                .await
                .map_err(|error| node::refused(&error))?;
            let started = Started::of(&config, &server)?;
            match options.common.json {
                true => say_json(&started.as_json())?,
                false => started.welcome()?,
            }
            server.run(shutdown).await;
            Ok(())
        },
    )
}

fn effective(options: &Options) -> Result<HomeConfigFile, Failure> {
    let mut config = match &options.common.config {
        Some(file) => HomeConfigFile::load(file).map_err(|error| node::config_failure(&error))?,
        None => HomeConfigFile::default(),
    };
    node::settle(options.name.as_ref(), &mut config.name, DEFAULT_NAME);
    node::settle(options.dir.as_ref(), &mut config.data_dir, DEFAULT_DIR);
    if options.limit_bytes.is_some() {
        config.store.limit = options.limit_bytes;
    }
    if let Some(seconds) = options.lease {
        config.limits.lease_ms = seconds * MS;
    }
    config.closed |= options.closed;
    config.web_table |= options.web_table;
    config.opening = options.opening();
    if !options.other_home.is_empty() {
        config.other_home = others(&options.other_home);
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
    fn opening(&self) -> Opening {
        let apart = self.apart;
        match (self.moved, self.restored) {
            (true, _) => Opening::Moved,
            (false, true) => Opening::Restored { apart },
            (false, false) => Opening::Prove,
        }
    }
}

/// A number of seconds that a home takes for its leases.
fn lease(text: &str) -> Result<u32, String> {
    let (least, most) = (LEASE_MS_MIN / MS, LEASE_MS_MAX / MS);
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (least..=most).contains(seconds));
    seconds.ok_or_else(|| format!("a lease lasts {least} to {most} seconds, in whole seconds"))
}

fn others(homes: &[NameAnd<Address>]) -> Vec<OtherHome> {
    let mut others: Vec<OtherHome> = Vec::new();
    for home in homes {
        match others.iter_mut().find(|other| other.name == home.name) {
            Some(other) => other.addresses.push(home.value.clone()),
            None => others.push(OtherHome {
                name: home.name.clone(),
                addresses: vec![home.value.clone()],
                one_way_ms: 0,
            }),
        }
    }
    others
}

/// A home that runs.
struct Started<'a> {
    name: &'a str,
    dir: &'a Path,
    server: &'a HomeServer,
    http: (Option<SocketAddr>, HttpFor),
    /// The authority's directory, if it is here.
    authority: Option<PathBuf>,
    /// The identity of a member on this machine, if there is one.
    local: Option<PathBuf>,
    village: String,
}

impl<'a> Started<'a> {
    fn of(config: &'a HomeConfigFile, server: &'a HomeServer) -> Result<Self, Failure> {
        let wrong = |error| node::config_failure(&error);
        let dir = config.data_dir().map_err(wrong)?;
        let authority = CertificateAuthority::find(dir);
        let local = config.local_identity_dir().map_err(wrong)?;
        Ok(Started {
            name: config.name().map_err(wrong)?,
            dir,
            server,
            http: (server.http_address(), config.http_for),
            authority: CertificateAuthority::is_in(&authority).then_some(authority),
            local: Identity::load(&local).is_ok().then_some(local),
            village: node::village(config.identity_dir())?,
        })
    }

    /// Tells how others come in.
    fn welcome(&self) -> Result<(), Failure> {
        say(&format!(
            "home {} keeps its segments in {}",
            self.name,
            self.dir.display()
        ))?;
        node::say_listening(self.server.addresses())?;
        let open = self.server.segments_without_rights();
        if open > 0 {
            say(&format!(
                "  every member may read and write in {open} of its segments, which have no rights list: an operator gives them one \
                 with\n    thorp rights grant SEGMENT RIGHT SUBJECT"
            ))?;
        }
        if let Some(authority) = &self.authority {
            say(
                "  let another node in (ROLE: member, site, home or operator), and carry the directory to its machine:",
            )?;
            let pasted = pasted(authority);
            say(&format!(
                "    thorp invite NAME --role ROLE --dir {pasted} --out NAME-identity"
            ))?;
        }
        node::say_ready(self.server.addresses(), self.local.as_deref(), self.http)
    }

    fn as_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "home_id": self.server.home().0,
            "village": self.village,
            "dir": node::shown(self.dir),
            "listen": node::each(self.server.addresses()),
            "http": self.http.0.map(|at| at.to_string()),
            "authority": self.authority.as_deref().map(node::shown),
            "local_identity": self.local.as_deref().map(node::shown),
            "segments_without_rights": self.server.segments_without_rights(),
        })
    }
}

/// The whole configuration as TOML.
fn render(config: &HomeConfigFile) -> String {
    let mut toml = Toml(String::new());
    toml.text("name", config.name.as_deref().unwrap_or(DEFAULT_NAME));
    toml.path("data_dir", config.data_dir.as_deref());
    toml.path("identity_dir", config.identity_dir.as_deref());
    toml.listen(&config.listen, (config.http, config.http_for));
    toml.flag("closed", config.closed);
    toml.flag("web_table", config.web_table);
    for other in &config.other_home {
        toml.table("[[other_home]]");
        toml.text("name", &other.name);
        toml.addresses("addresses", &other.addresses);
        toml.number("one_way_ms", other.one_way_ms);
    }
    toml.log(&config.log);
    toml.table("[store]");
    if let Some(limit) = config.store.limit {
        toml.size("limit", limit);
    }
    toml.size("cache", config.store.cache);
    if let Some(reserve) = config.store.disk_reserve {
        toml.size("disk_reserve", reserve);
    }
    toml.number("room_probe_ms", config.store.room_probe_ms);
    toml.flag("origin_proof", config.store.origin_proof);
    let limits = &config.limits;
    toml.table("[limits]");
    toml.size("cache", limits.cache);
    toml.size("mob", limits.mob);
    toml.size("pending", limits.pending);
    toml.number("changes_known_max", limits.changes_known_max as u64);
    toml.number("parked_max", limits.parked_max as u64);
    toml.size("parked", limits.parked);
    toml.number("registrations_max", limits.registrations_max as u64);
    toml.number("outcomes_per_member", limits.outcomes_per_member);
    toml.number("lease_ms", u64::from(limits.lease_ms));
    let shares = &config.shares;
    toml.table("[shares]");
    toml.number("segments_max", shares.segments_max as u64);
    toml.number("page_numbers_max", u64::from(shares.page_numbers_max));
    toml.number("store_percent_max", u64::from(shares.store_percent_max));
    if let Some(store) = shares.store {
        toml.size("store", store);
    }
    toml.number("commits_max", shares.commits_max as u64);
    toml.number("calls_max", shares.calls_max as u64);
    toml.number("fetches_max", shares.fetches_max as u64);
    toml.link(&config.link, &config.child_delay);
    toml.0
}

/// The store in a home's directory, or the directory itself if that is the store.
pub(crate) fn store_in(dir: &Path) -> PathBuf {
    let inner = dir.join(STORE_DIR);
    match inner.is_dir() {
        true => inner,
        false => dir.to_path_buf(),
    }
}

/// Of a home, if not told otherwise.
pub(crate) const DEFAULT_DIR: &str = "thorp-home";
/// Where a home's store lies in its directory.
pub(crate) const STORE_DIR: &str = "store";
/// Where a node's certificate lies in its directory.
pub(crate) const IDENTITY_DIR: &str = "identity";
const DEFAULT_NAME: &str = "home";
/// Milliseconds in a second.
const MS: u32 = 1_000;

const HELP: &str = "\
Keeps segments in a directory, orders and validates commits, and makes each one durable. The \
first start in a directory makes the store, the village's authority (in `authority`, which no running \
home needs: `thorp ca init` moves it elsewhere), the home's certificate, and one of the member `local` for \
programs on this machine; and tells how others join. A further home of the village needs a certificate \
made by `thorp invite NAME --role home` at the first (--identity); where transactions touch several homes, name each to the others (--other-home). SIGTERM and SIGINT shut it down in order.

The volume of its directory needs 24 MiB at least, and what disk_reserve in the file of --config says beyond that. A \
volume of that size holds about 6 MiB of objects, a larger one up to two fifths of its size. A full home refuses what brings \
something, and takes deletes and `thorp rm`.

A home that cannot prove that its store has all that was acknowledged starts closed: it lets in operators \
only, also after restarts. So does a copy of a directory. --restored, --moved, and `thorp confirm` open it.

No name in a certificate takes more of the segments, of the store or of what is under way than it leaves free: a \
village of one name may fill half of the store. [shares] in the file of --config has the limits of a name, and
--print-config shows them.

Examples:
  thorp home --dir alps --name alps
  thorp home --dir alps --name alps --print-config
  thorp home --dir dale --name dale --identity dale-identity --other-home dev=127.0.0.1:7420";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_used() {
        let mut config = HomeConfigFile::parse(HomeConfigFile::EXAMPLE).unwrap();
        config.http = None;
        config.closed = true;
        config.web_table = true;
        config.http_for = thorp_server::HttpFor::Operators;
        config.store.limit = Some(Bytes(12345));
        config.store.disk_reserve = Some(Bytes(1 << 30));
        config.shares.store = Some(Bytes(5 << 30));
        config.shares.segments_max = 77;
        config.limits.lease_ms = 7_000;
        config.other_home =
            others(&["dale=b:1", "fjord=c:2", "dale=d:3"].map(|t| t.parse().unwrap()));
        config.identity_dir = Some("/a \"quoted\" dir".into());
        assert_eq!(HomeConfigFile::parse(&render(&config)).unwrap(), config);
    }
}
