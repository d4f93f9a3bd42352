//! `thorp doctor`: what is wrong, and what to do.

mod address;
mod check;
mod clock;
mod configuration;
mod directory;
mod homes;
mod identity;
mod status;
mod system;

use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::text;
use check::{Check, Checks, Verdict};
use clap::Args;
use configuration::Place;
use std::path::PathBuf;
use std::time::Instant;

/// What `thorp doctor` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Look also at the directory of a home or of `thorp dev` on this machine
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Exit code 3 if a check found a problem.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let deadline = Instant::now() + options.via.patience();
    let mut checks = Checks::new(options.json);
    let place = Place::find(&options.via, &mut checks)?;
    check_village(&place, options, deadline, &mut checks)?;
    let is_far = place.addresses.iter().any(address::is_far);
    checks.add_all(system::check(is_far))?;
    if let Some(dir) = &options.dir {
        checks.add_all(directory::check(dir))?;
    }
    if options.json {
        checks.print()?;
    }
    end(&checks)
}

/// Certificate, addresses, nodes and homes.
fn check_village(
    place: &Place,
    options: &Options,
    deadline: Instant,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let identity = match &place.identity {
        Some(dir) => identity::check(dir, place.authority.as_deref(), checks)?,
        None => None,
    };
    if place.addresses.is_empty() {
        checks.skip("addresses", "nothing says where to join")?;
        return checks.skip("homes", "nothing says where to join");
    }
    let found = address::check(&place.addresses, identity.as_ref(), deadline)?;
    let has_node = found.iter().any(|found| found.is_node);
    checks.add_all(found.into_iter().map(|found| found.check))?;
    let village = identity.as_ref().map(thorp_client::Identity::village);
    status::check(&place.status, village, deadline, checks)?;
    match identity {
        None => checks.skip(
            "homes",
            "without a good certificate nobody lets this node in",
        ),
        Some(_) if !has_node => checks.skip("homes", "no node answered at any address"),
        Some(_) => homes::check(&options.via, place, deadline, checks),
    }
}

fn end(checks: &Checks) -> Result<(), Failure> {
    let (problems, warnings) = (
        checks.count(Verdict::Problem),
        checks.count(Verdict::Warning),
    );
    let problems = text::count(problems as u64, "problem");
    let warnings = text::count(warnings as u64, "warning");
    if checks.count(Verdict::Problem) == 0 {
        let left_out = checks.not_checked().join(", ");
        let _ = text::note(&match (checks.count(Verdict::Warning), &*left_out) {
            (0, "") => "all is well".to_owned(),
            (0, _) => format!("nothing wrong was found; not looked at: {left_out}"),
            (_, "") => format!("no problem, {warnings}"),
            _ => format!("no problem, {warnings}; not looked at: {left_out}"),
        });
        return Ok(());
    }
    let todo = "do what stands below each, the first one first, and run `thorp doctor` again";
    Err(Failure::new(format!("{problems}, {warnings}"), todo).with(Code::Wrong))
}

const HELP: &str = "\
Looks at all that a command needs: the configuration, the certificate and its end, each address, the nodes \
there and their versions, the homes behind them, the clocks, and what this machine lets TCP do. It changes \
nothing, goes on after each problem, and says below each what to do. --timeout limits all of it together. \
Exit code 3 if there is a problem; a warning is none.

Examples:
  thorp doctor
  thorp doctor --context dev --json
  thorp doctor --dir thorp-dev";
