//! `thorp confirm`: an operator opens a closed home.

use super::say;
use crate::failure::{Code, Failure};
use clap::Args;
use rustix::fs::Mode;
use rustix::process::umask;
use std::path::PathBuf;
use thorp_store::{OpenError, Opening, Options as StoreOptions, Store};

/// What `thorp confirm` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The home's directory, or the store in it
    dir: PathBuf,
    /// The directory is a copy for a test: it gets a key of its own, and proves nothing to the original
    #[arg(long)]
    apart: bool,
}

/// Opens the store with the next incarnation.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dir = super::home::store_in(&options.dir);
    umask(Mode::RWXG | Mode::RWXO);
    let opening = StoreOptions {
        create: false,
        opening: Opening::Restored {
            apart: options.apart,
        },
        ..StoreOptions::default()
    };
    let store = Store::open(&dir, opening).map_err(|error| match error {
        OpenError::InUse { .. } => Failure::new(
            error.to_string(),
            "stop the home first, or start it again with --restored",
        ),
        OpenError::Damaged { .. } => Failure::new(
            error.to_string(),
            "`thorp salvage DIR INTO` copies what can be read",
        )
        .with(Code::Wrong),
        _ => Failure::new(error.to_string(), "give the directory of a stopped home"),
    })?;
    say(&format!(
        "{} is open, with incarnation {}",
        dir.display(),
        store.history().incarnation()
    ))
}

const HELP: &str = "\
The home must not run. From the next start on it lets everybody in again. Do this if you know that no other copy of the
home runs, and that what was committed after its state is lost. Rights that were revoked after that are back. The home
gets the next incarnation: its new segments and registrations have numbers that were never given before.";
