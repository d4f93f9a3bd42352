//! `thorp ca init`: makes an authority, or moves one.

use crate::commands::home::IDENTITY_DIR;
use crate::commands::node::{refused, shown};
use crate::commands::{say, say_json};
use crate::failure::Failure;
use crate::text::pasted;
use clap::Args;
use std::path::{Path, PathBuf};
use thorp_net::{CertificateAuthority, Grant, HomeIdOf, Identity, IdentityError, NodeRole};

/// What `thorp ca init` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The authority's directory; made if it is not there
    dir: PathBuf,
    /// Move the authority here that is in this directory, or in that of the home that made the village
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A home's certificate of an earlier build, and what the new one has to name.
struct OldHome {
    identity: PathBuf,
    grant: Grant,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let (old, made) = match &options.from {
        None => (None, CertificateAuthority::init(&options.dir)),
        // What may fail comes first: so a home that runs is left as it is.
        Some(from) => (
            old_home(from)?,
            CertificateAuthority::take_over(&options.dir, CertificateAuthority::find(from)),
        ),
    };
    let failed = |error: IdentityError| {
        let todo = advice(&error, options);
        Failure::new(error.to_string(), todo)
    };
    let authority = made.map_err(failed)?;
    if let Some(old) = &old {
        authority.issue(&old.grant, &old.identity).map_err(failed)?;
    }
    let renewed = old.map(|old| old.grant.name);
    match options.json {
        true => say_json(&serde_json::json!({
            "village": authority.village(),
            "dir": shown(&options.dir),
            "renewed_home": renewed,
        })),
        false => tell(&authority, options, renewed.as_deref()),
    }
}

/// Says where the authority is, and what to do with it.
fn tell(
    authority: &CertificateAuthority,
    options: &Options,
    renewed: Option<&str>,
) -> Result<(), Failure> {
    if let Some(home) = renewed {
        say(&format!(
            "the home {home} has a certificate that names its id"
        ))?;
    }
    say(&format!(
        "the authority of village {} is in {}: whoever can read it lets nodes in",
        authority.village(),
        options.dir.display()
    ))?;
    if let Some(from) = &options.from {
        say(&format!(
            "  it is not in {} any more: commands that looked for it there need --dir {}",
            from.display(),
            pasted(&options.dir)
        ))?;
    }
    say(
        "  let a node in (ROLE: member, site, home or operator), and carry the directory to its machine:",
    )?;
    say(&format!(
        "    thorp invite NAME --role ROLE --dir {} --out NAME-identity",
        pasted(&options.dir)
    ))
}

/// The home in a directory, if its certificate does not name its id.
fn old_home(dir: &Path) -> Result<Option<OldHome>, Failure> {
    let identity = dir.join(IDENTITY_DIR);
    if !matches!(
        Identity::load(&identity),
        Err(IdentityError::NoHomeId { .. })
    ) {
        return Ok(None);
    }
    let found = thorp_server::home_in_store(dir).map_err(|error| refused(&error))?;
    let (id, name) = found.ok_or_else(|| {
        let what = format!("there is no store in {}", dir.display());
        Failure::new(
            what,
            "give the directory of the home that made the village with --from",
        )
    })?;
    let grant = Grant {
        home_id: HomeIdOf::Store(id),
        ..Grant::new(NodeRole::Home, name)
    };
    Ok(Some(OldHome { identity, grant }))
}

fn advice(error: &IdentityError, options: &Options) -> &'static str {
    match (error, &options.from) {
        (IdentityError::OtherVillage { .. }, _) => {
            "give a directory that is empty, or not there yet"
        }
        (IdentityError::File { path, .. }, Some(from)) if path.starts_with(from) => {
            "give the directory of the home that made the village, or of the authority, with --from"
        }
        _ => {
            "give a directory that is empty, or not there yet, or that has an authority with its key"
        }
    }
}

const HELP: &str = "\
Makes an authority: a certificate, a key, and the list of what it issued. Nodes that it lets in trust \
each other. The first home of a village makes one itself, in `authority` in its directory. No running \
node needs it. Keep it on a machine that no node runs on: move it there with --from, from a directory that \
you carried, or that of the home. Doing it again changes nothing, and completes what a crash cut short. The \
home of an earlier build must not run meanwhile: it also gets a certificate that names its id.

Examples:
  thorp ca init village
  thorp ca init elsewhere --from alps  # the authority of the home in ./alps";
