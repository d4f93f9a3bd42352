//! `thorp join`: a node makes its key and gets its first certificate.

use super::invite::{check_out, say_how};
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::PathBuf;
use thorp_net::{IdentityError, JoinToken, site_dir};

/// What `thorp join` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// What `thorp invite NAME` has printed
    token: JoinToken,
    /// Where to put key and certificate
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Prints what to do with the directory.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    check_out(&options.out)?;
    let runtime = thorp_server::runtime().map_err(|error| {
        let what = format!("the system gives no runtime: {error}");
        Failure::new(what, "try again")
    })?;
    let joined = runtime.block_on(thorp_net::join(&options.token, &options.out));
    let identity = joined.map_err(|error| {
        let todo = match &error {
            IdentityError::Authority { .. } => {
                "look whether `thorp ca serve` runs where the token says, and whether the token is good; then do the same again"
            }
            _ => "give a directory that is empty, or not there yet, with --out",
        };
        let failure = Failure::new(error.to_string(), todo);
        match error {
            IdentityError::Authority { .. } => failure.with(Code::Unreachable),
            _ => failure,
        }
    })?;
    let has_site = site_dir(&options.out).is_dir();
    say_how(&identity, &options.out, has_site)
}

const HELP: &str = "\
The key is made here and goes nowhere else. The node renews its certificate by itself in the last
third of its life, while it runs and the authority's process does. Doing it again with the same token
and directory completes what was cut short; a token works for no second node.";
