//! `thorp invite`: a certificate for another node.

use super::say;
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thorp_net::{
    CertificateAuthority, Grant, Identity, IdentityError, NodeRole, may_hold_identity, site_dir,
};

/// What `thorp invite` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The node's name: letters, digits, hyphens and full stops
    name: String,
    /// Where to put it; without it a token is printed, for `thorp join` on the node's machine
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long the token works
    #[arg(long, value_name = "N", default_value_t = 24, conflicts_with = "out", value_parser = clap::value_parser!(u32).range(1..=720))]
    hours: u32,
    /// What the node may be: member (a program), site, home, or operator (a program that administers the village)
    #[arg(long, value_name = "ROLE", default_value = "member")]
    role: NodeRole,
    /// For a member that may carry its site's redirector: makes a second certificate, of role site, in DIR/site
    #[arg(long)]
    with_site: bool,
    /// The directory of the authority, or of the home that made the village
    #[arg(long, value_name = "DIR", default_value = super::home::DEFAULT_DIR)]
    dir: PathBuf,
}

/// Prints what to do with the directory.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(out) = &options.out {
        check_out(out)?;
    }
    if options.with_site && options.role != NodeRole::Member {
        let what = format!("{} {} carries no redirector", options.role, options.name);
        let todo = "only a member does: leave out --role, or --with-site";
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let grant = Grant {
        with_site: options.with_site,
        ..Grant::new(options.role, &*options.name)
    };
    let authority = CertificateAuthority::open(CertificateAuthority::find(&options.dir));
    let Some(out) = &options.out else {
        let life = Duration::from_secs(u64::from(options.hours) * 60 * 60);
        let token = authority.and_then(|authority| authority.invite(&grant, life));
        let token = token.map_err(|error| failed(&error, &grant, Path::new("")))?;
        say(&format!(
            "{} {} joins with this, once and within {}, while `thorp ca serve` runs:",
            grant.role,
            grant.name,
            hours(options.hours)
        ))?;
        return say(&format!(
            "  thorp join {token} --out {}-identity",
            grant.name
        ));
    };
    let issued = authority.and_then(|authority| authority.issue(&grant, out));
    let identity = issued.map_err(|error| failed(&error, &grant, out))?;
    say_how(&identity, out, options.with_site)
}

fn hours(count: u32) -> String {
    match count {
        1 => "an hour".to_owned(),
        _ => format!("{count} hours"),
    }
}

/// A key among other files would be carried to wherever these go.
pub(super) fn check_out(out: &Path) -> Result<(), Failure> {
    if may_hold_identity(out) {
        return Ok(());
    }
    let what = format!("{} holds other files", out.display());
    Err(Failure::new(what, EMPTY))
}

/// What to do with the directory of a new identity.
pub(super) fn say_how(identity: &Identity, out: &Path, with_site: bool) -> Result<(), Failure> {
    let flag = match identity.role() {
        NodeRole::Member | NodeRole::Operator => "name it there with THORP_IDENTITY or --identity",
        NodeRole::Site | NodeRole::Home | NodeRole::Authority => "start it there with --identity",
    };
    say(&format!(
        "{} is let into village {}: carry {} to its machine (it holds a key: keep it secret), and {flag}",
        identity.certified(),
        identity.village(),
        out.display()
    ))?;
    match with_site {
        true => say(&format!(
            "its redirector is site {}, with the identity in {}",
            identity.name(),
            site_dir(out).display()
        )),
        false => Ok(()),
    }
}

/// Why there is no certificate, and what to do.
pub(super) fn failed(error: &IdentityError, grant: &Grant, out: &Path) -> Failure {
    Failure::new(error.to_string(), advice(error, grant, out))
}

fn advice(error: &IdentityError, grant: &Grant, out: &Path) -> &'static str {
    match error {
        IdentityError::BadName { .. } => "take a name such as office or anna.laptop",
        IdentityError::NameTaken { held, .. }
            if held.role() == NodeRole::Member && grant.with_site =>
        {
            "take another name: only `thorp invite NAME --with-site` makes both certificates of a member that carries a site"
        }
        IdentityError::NameTaken { .. } => {
            "take another name, or give the --role that the name has"
        }
        IdentityError::OwnHome { .. } | IdentityError::HomeIdTaken { .. } => "take another name",
        IdentityError::Token { .. } => {
            "or give --out DIR: then the directory with key and certificate is carried to the node"
        }
        IdentityError::OtherNode { .. }
        | IdentityError::OtherVillage { .. }
        | IdentityError::Revoked { .. } => EMPTY,
        IdentityError::File { path, .. } if out.file_name().is_some() && path.starts_with(out) => {
            EMPTY
        }
        _ => {
            "give the authority's directory with --dir, or that of the home that was started first: its first start makes the authority"
        }
    }
}

const EMPTY: &str = "give a directory that is empty, or not there yet, with --out";

const HELP: &str = "\
Makes a directory with a certificate and a key for another node: to be carried to its machine
and named there with --identity (or THORP_IDENTITY). Without --out it prints a token instead: with
`thorp join`, the node makes a key of its own and gets the certificate from `thorp ca serve`. A node
that has a certificate may join, with that name and in that role. A site needs --role site, a further home
--role home. A name has one role for ever: the authority keeps a list of what it issued. Doing it again
for the same name and the same directory renews the certificate in the last third of its life, and else
changes nothing.";
