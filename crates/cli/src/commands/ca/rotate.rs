//! `thorp ca rotate`: a new key for the authority.

use crate::commands::say;
use crate::failure::Failure;
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use thorp_net::{CertificateAuthority, Rotation};

/// What `thorp ca rotate` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP, group = ArgGroup::new("step").required(true))]
pub(crate) struct Options {
    /// The directory of the authority, or of the home that made the village
    #[arg(value_name = "DIR", default_value = crate::commands::home::DEFAULT_DIR)]
    dir: PathBuf,
    /// Make the new key: nodes trust both from now on, and the old one signs
    #[arg(long, group = "step")]
    begin: bool,
    /// The new key signs
    #[arg(long, group = "step")]
    switch: bool,
    /// The old one is trusted no longer
    #[arg(long, group = "step")]
    finish: bool,
}

/// Says what has to happen before the next step.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let (step, next) = match (options.begin, options.switch) {
        (true, _) => (Rotation::Begin, NEXT_OF_BEGIN),
        (false, true) => (Rotation::Switch, NEXT_OF_SWITCH),
        (false, false) => (Rotation::Finish, NEXT_OF_FINISH),
    };
    let dir = CertificateAuthority::find(&options.dir);
    let rotated = CertificateAuthority::rotate(dir, step);
    let authority = rotated.map_err(|error| {
        let todo = "give the directory of the authority, and the steps in the order --begin, --switch, --finish";
        Failure::new(error.to_string(), todo)
    })?;
    say(&format!("village {}: {next}", authority.village()))
}

const NEXT_OF_BEGIN: &str = "both authorities are trusted by every node that renews its certificate, or is invited again into its \
     directory. When all of them are, go on with --switch";
const NEXT_OF_SWITCH: &str = "the new key signs. Start `thorp ca serve` again; tokens that are not used yet are void. When every node \
     has renewed its certificate, go on with --finish";
const NEXT_OF_FINISH: &str =
    "only the new authority is trusted, by every node that renews its certificate from now on";

const HELP: &str = "\
The village keeps its name. Between the steps, every node has to get what the step before has changed:
by renewing its certificate, or by the same `thorp invite NAME --role ROLE --out DIR` as at first. Nodes take
the files in their directories while they run, and no connection ends.";
