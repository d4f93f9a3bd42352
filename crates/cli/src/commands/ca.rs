//! `thorp ca`: the authority of a village.

use super::node::pasted;
use super::say;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use thorp_net::{CertificateAuthority, IdentityError};

/// What is to be done with the authority.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Make the authority of a new village, or move one into a directory of its own
    Init(Init),
}

/// What `thorp ca init` is told.
#[derive(Args, Debug)]
#[command(after_help = INIT_HELP)]
pub(crate) struct Init {
    /// The authority's directory; made if it is not there
    dir: PathBuf,
    /// Move the authority here that is in this directory, or in that of the home that made the village
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

/// Does it.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Init(options) => init(options),
    }
}

fn init(options: &Init) -> Result<(), Failure> {
    let made = match &options.from {
        None => CertificateAuthority::init(&options.dir),
        Some(from) => {
            CertificateAuthority::take_over(&options.dir, CertificateAuthority::find(from))
        }
    };
    let authority = made.map_err(|error| {
        let todo = advice(&error, options);
        Failure::new(error.to_string(), todo)
    })?;
    say(&format!(
        "the authority of village {} is in {}: whoever can read it lets nodes in",
        authority.village(),
        options.dir.display()
    ))?;
    say(
        "  let a node in (ROLE: member, site, home or operator), and carry the directory to its machine:",
    )?;
    say(&format!(
        "    thorp invite NAME --role ROLE --dir {} --out NAME-identity",
        pasted(&options.dir)
    ))
}

fn advice(error: &IdentityError, options: &Init) -> &'static str {
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

const INIT_HELP: &str = "\
Makes an authority: a certificate, a key, and the list of what it issued. Nodes that it lets in trust
each other. The first home of a village makes one itself, in `authority` in its directory. No running
node needs it. Keep it on a machine that no node runs on: move it there with --from, from a directory that
you carried, or that of the home. Doing it again changes nothing, and completes what a crash cut short.";
