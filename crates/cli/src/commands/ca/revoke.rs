//! `thorp ca revoke`: a node that is no longer let in.

use crate::commands::node::each;
use crate::commands::{authority, context, say, say_json};
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
    /// The directory of the authority, or of the home that made the village [default: thorp-home, or that of the current
    /// context]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Exit code 4 if somebody was not reached.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let failed = |error: IdentityError| {
        let todo =
            "give the directory of the authority, or of the home that made the village, with --dir";
        Failure::new(error.to_string(), todo)
    };
    let dir = authority::find(options.dir.as_deref(), false, context::current().as_ref())?;
    let authority = CertificateAuthority::open(dir).map_err(failed)?;
    let mut done = Done::default();
    if let Some(name) = &options.name {
        done.certificates = authority.revoke(name).map_err(failed)?;
        if done.certificates == 0 {
            let what = format!("{name} has no certificate that is good");
            return Err(Failure::new(what, "`thorp ca list` shows what was issued"));
        }
        let count = done.certificates;
        options.tell(&format!("{name} is revoked: certificates {count}"))?;
    }
    announce(&authority, options, &mut done)?;
    if options.json {
        say_json(&done.as_json(options.name.as_deref()))?;
    }
    done.check()
}

impl Options {
    /// Prints a line to a person, as it happens.
    fn tell(&self, line: &str) -> Result<(), Failure> {
        match self.json {
            true => Ok(()),
            false => say(line),
        }
    }
}

/// What was revoked, and who knows it.
#[derive(Default)]
struct Done {
    certificates: usize,
    told: Vec<Address>,
    /// Who was not reached, and why.
    missed: Vec<(Address, String)>,
}

fn announce(
    authority: &CertificateAuthority,
    options: &Options,
    done: &mut Done,
) -> Result<(), Failure> {
    let runtime = thorp_server::runtime().map_err(|error| {
        let what = format!("the system gives no runtime: {error}");
        Failure::new(what, "try again")
    })?;
    for address in &options.at {
        match runtime.block_on(announce_revoked(authority, address)) {
            Ok(()) => {
                options.tell(&format!("  {address} has it"))?;
                done.told.push(address.clone());
            }
            Err(error) => {
                options.tell(&format!("  {address} was not reached: {error}"))?;
                done.missed.push((address.clone(), error.to_string()));
            }
        }
    }
    Ok(())
}

impl Done {
    fn as_json(&self, name: Option<&str>) -> serde_json::Value {
        let missed = self.missed.iter();
        let missed = missed
            .map(|(address, why)| serde_json::json!({"address": address.to_string(), "why": why}));
        serde_json::json!({
            "name": name,
            "certificates": self.certificates,
            "announced_to": each(&self.told),
            "not_reached": missed.collect::<Vec<_>>(),
        })
    }

    fn check(&self) -> Result<(), Failure> {
        let (what, todo) = match (&self.missed[..], &self.told[..]) {
            ([], []) => (
                "no home and no site was told".to_owned(),
                "name all of them with --at: until then they let the node in",
            ),
            ([], _) => return Ok(()),
            (missed, _) => {
                let missed: Vec<String> = missed.iter().map(|(at, _)| at.to_string()).collect();
                (
                    format!("{} still let the node in", missed.join(", ")),
                    "when they are reached, run `thorp ca revoke --dir DIR --at ADDR` for them, with the same authority",
                )
            }
        };
        Err(Failure::new(what, todo).with(Code::Unreachable))
    }
}

const HELP: &str = "\
Each home and site that is named keeps the serial numbers in its identity's directory, ends the connections \
that stand by them, and turns the node away. It is told everything that was revoked and has not \
expired, so one that was away can be told later. Name all homes and sites. A name that was revoked may be let \
in again, with a new certificate in a new directory.

Examples:
  thorp ca revoke anna --dir thorp-dev --at 127.0.0.1:7420 --at 127.0.0.1:7421
  thorp ca revoke --dir thorp-dev --at 127.0.0.1:7421    # one that was away before";
