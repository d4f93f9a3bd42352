//! `thorp ca revoke`: a node that is no longer let in.

use crate::commands::say;
use crate::failure::{Code, Failure};
use clap::Args;
use std::path::PathBuf;
use thorp_net::{Address, CertificateAuthority, IdentityError, announce_revoked};

/// What `thorp ca revoke` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The node's name; without it, what was revoked before is announced again
    name: Option<String>,
    /// A home or a site to announce it to; may be given several times
    #[arg(long, value_name = "ADDR")]
    at: Vec<Address>,
    /// The directory of the authority, or of the home that made the village
    #[arg(long, value_name = "DIR", default_value = crate::commands::home::DEFAULT_DIR)]
    dir: PathBuf,
}

/// Exit code 4 if somebody was not reached.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let failed = |error: IdentityError| {
        let todo =
            "give the directory of the authority, or of the home that made the village, with --dir";
        Failure::new(error.to_string(), todo)
    };
    let authority = CertificateAuthority::open(CertificateAuthority::find(&options.dir));
    let authority = authority.map_err(failed)?;
    if let Some(name) = &options.name {
        let revoked = authority.revoke(name).map_err(failed)?;
        if revoked == 0 {
            let what = format!("{name} has no certificate that is good");
            return Err(Failure::new(what, "`thorp ca list` shows what was issued"));
        }
        say(&format!("{name} is revoked: certificates {revoked}"))?;
    }
    announce(&authority, options)
}

fn announce(authority: &CertificateAuthority, options: &Options) -> Result<(), Failure> {
    if options.at.is_empty() {
        let what = "no home and no site was told";
        let todo = "name all of them with --at: until then they let the node in";
        return Err(Failure::new(what, todo).with(Code::Unreachable));
    }
    let runtime = thorp_server::runtime().map_err(|error| {
        let what = format!("the system gives no runtime: {error}");
        Failure::new(what, "try again")
    })?;
    let mut missed = Vec::new();
    for address in &options.at {
        match runtime.block_on(announce_revoked(authority, address)) {
            Ok(()) => say(&format!("  {address} has it"))?,
            Err(error) => {
                say(&format!("  {address} was not reached: {error}"))?;
                missed.push(address.to_string());
            }
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    let what = format!("{} still let the node in", missed.join(", "));
    let todo = "when they are reached, run `thorp ca revoke --dir DIR --at ADDR` for them, with the same authority";
    Err(Failure::new(what, todo).with(Code::Unreachable))
}

const HELP: &str = "\
Each home and site that is named keeps the serial numbers in its identity's directory, ends the connections
that stand by them, and turns the node away. It is told everything that was revoked and has not
expired, so one that was away can be told later. Name all homes and sites. A name that was revoked may be let
in again, with a new certificate in a new directory.";
