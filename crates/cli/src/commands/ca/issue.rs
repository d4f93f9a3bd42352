//! `thorp ca issue`: a certificate, with all that can be chosen.

use crate::commands::authority::Village;
use crate::commands::invite::{check_out, failed};
use crate::commands::issued::Issued;
use crate::commands::node::refused;
use crate::commands::say_json;
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thorp_net::{CertificateAuthority, Grant, HomeIdOf, NodeRole};

/// What `thorp ca issue` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The node's name: letters, digits, hyphens and full stops
    #[arg(long, value_name = "NAME", required_unless_present = "store")]
    name: Option<String>,
    /// What the node may be: member (a program), site, home, or operator (a program that administers the village)
    #[arg(long, value_name = "ROLE", default_value = "member")]
    role: NodeRole,
    /// How long the certificate is good [default: 30 for members and operators, 365 for sites and homes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3653))]
    days: Option<u32>,
    /// Where to put it
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// For a member that may carry its site's redirector: makes a second certificate, of role site, in DIR/site
    #[arg(long)]
    with_site: bool,
    /// For a home that does not run: its directory, from whose store the certificate takes its name and id
    #[arg(long, value_name = "HOMEDIR", conflicts_with_all = ["name", "new_id"])]
    store: Option<PathBuf>,
    /// For a home that has lost its store, and begins again with an empty one
    #[arg(long)]
    new_id: bool,
    /// The directory of the authority, or of the home that made the village
    #[arg(long, value_name = "DIR", default_value = crate::commands::home::DEFAULT_DIR)]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    check_out(&options.out)?;
    let grant = grant(options)?;
    let failed = |error| failed(&error, &grant, &options.out);
    let authority = CertificateAuthority::open(CertificateAuthority::find(&options.dir));
    let authority = authority.map_err(failed)?;
    let village = Village::of(&authority).map_err(failed)?;
    let issued = Issued::to(&authority, &grant, &options.out).map_err(failed)?;
    match options.json {
        true => say_json(&issued.as_json(&village)),
        false => issued.say(&village),
    }
}

fn grant(options: &Options) -> Result<Grant, Failure> {
    let is_home = options.role == NodeRole::Home;
    if !is_home && (options.store.is_some() || options.new_id) {
        let what = format!("a {} has no store", options.role);
        return Err(Failure::new(what, "give --role home, too").with(Code::Usage));
    }
    if options.with_site && options.role != NodeRole::Member {
        let what = format!("a {} carries no redirector", options.role);
        let todo = "only a member does: leave out --role, or --with-site";
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let (name, home_id) = match (&options.store, options.new_id) {
        (Some(dir), _) => of_store(dir)?,
        (None, true) => (options.name.clone().unwrap_or_default(), HomeIdOf::Nobody),
        (None, false) => (options.name.clone().unwrap_or_default(), HomeIdOf::Name),
    };
    let mut grant = Grant {
        with_site: options.with_site,
        home_id,
        ..Grant::new(options.role, name)
    };
    grant.life = options
        .days
        .map(|days| Duration::from_secs(u64::from(days) * DAY_SECONDS));
    Ok(grant)
}

fn of_store(dir: &Path) -> Result<(String, HomeIdOf), Failure> {
    let found = thorp_server::home_in_store(dir).map_err(|error| refused(&error))?;
    let (id, name) = found.ok_or_else(|| {
        let what = format!("there is no store of a home in {}", dir.display());
        Failure::new(
            what,
            "give the home's directory with --store, or its name with --name",
        )
    })?;
    Ok((name, HomeIdOf::Store(id)))
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

const HELP: &str = "\
Makes a directory with a certificate and a key for another node, as `thorp invite` does. A home's \
certificate names the home's id: a new home takes it from there. --store makes one for a home that has \
its store already. Without a store of its own a home does not start again under its id: it needs --new-id.

Examples:
  thorp ca issue --name anna --dir village --out anna-identity
  thorp ca issue --name office --role site --days 90 --dir village --out office-identity";
