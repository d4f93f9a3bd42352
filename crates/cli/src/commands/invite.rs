//! `thorp invite`: a certificate for another node.

use super::say;
use crate::failure::Failure;
use clap::Args;
use std::path::{Path, PathBuf};
use thorp_net::{IdentityError, issue, may_hold_identity};

/// What `thorp invite` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The node's name: letters, digits, hyphens and full stops
    name: String,
    /// Where to put it
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The directory of the home that made the village
    #[arg(long, value_name = "DIR", default_value = super::home::DEFAULT_DIR)]
    dir: PathBuf,
}

/// Prints what to do with the directory.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if !may_hold_identity(&options.out) {
        let what = format!("{} holds other files", options.out.display());
        return Err(Failure::new(what, EMPTY));
    }
    let authority = authority_in(&options.dir);
    let identity = issue(&authority, &options.out, &options.name).map_err(|error| {
        let todo = match error {
            IdentityError::BadName { .. } => "take a name such as office or anna.laptop",
            IdentityError::OtherName { .. } | IdentityError::OtherVillage { .. } => EMPTY,
            IdentityError::File { ref path, .. } if path.starts_with(&options.out) => EMPTY,
            _ => "give the directory of the home that was started first with --dir: its first start makes the village's authority",
        };
        Failure::new(error.to_string(), todo)
    })?;
    let out = options.out.display();
    say(&format!(
        "{} is let into village {}: carry {out} to its machine (it holds a key: keep it secret), and start it there with --identity",
        identity.name(),
        identity.village()
    ))
}

/// The village's authority lies in the home's directory, or is it itself.
fn authority_in(dir: &Path) -> PathBuf {
    let inner = dir.join(super::home::IDENTITY_DIR);
    if inner.is_dir() {
        inner
    } else {
        dir.to_owned()
    }
}

const EMPTY: &str = "give a directory that is empty, or not there yet, with --out";

const HELP: &str = "\
Makes a directory with a certificate and a key for another node: to be carried to its machine
and named there with --identity. Who has it may join. Doing it again for the same name and the same
directory changes nothing.";
