//! Whether visits keep their bounds, on real processes with a home 40 ms away from two sites: `make bounds`.
//!
//! Writers at one site and at the home write down when each change was answered. Readers at the other site and at the home write
//! down when a visit began, and what it read. All use one clock. Afterwards each read is judged by what was answered before: a
//! hard bound in time or in changes that was exceeded is a *violation*. Of soft bounds the distribution is shown.
//!
//! | file | what |
//! |---|---|
//! | `cast` | who writes and reads what, and where |
//! | `writer`, `reader`, `obey` | their processes |
//! | `village` | starts and ends everything |
//! | `record` | what they write down |
//! | `judge`, `report` | what comes of it |
//!
//! If `THORP_PLANTED_BUG` switches a guard off (in a build with `planted-bugs`), there have to be violations.

mod cast;
mod clock;
mod judge;
mod obey;
mod planted;
mod reader;
mod record;
mod report;
mod village;
mod writer;

use clap::Parser;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use thorp_bench::{Result, process, roles};
use village::Running;

/// As in the `thorp` command, whose roles are played here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Counts violations of hard bounds, on real processes with a home 40 ms away
#[derive(Parser)]
struct Cli {
    /// So many hard reads
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    reads: u64,
    /// No longer than this; a run with too few reads fails
    #[arg(long, value_name = "S", default_value_t = 3_600)]
    seconds: u64,
    /// Where to leave what everybody has written down
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// A document instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bounds: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether it came out as it must.
fn run() -> Result<bool> {
    planted::from_environment()?;
    if let Some((role, arguments)) = process::role() {
        match role.as_str() {
            writer::ROLE => process::end_with_parent().and_then(|()| writer::play(&arguments))?,
            reader::ROLE => process::end_with_parent().and_then(|()| reader::play(&arguments))?,
            _ => roles::play().map(drop)?,
        }
        return Ok(true);
    }
    let cli = Cli::parse();
    let mut running = Running::start()?;
    let took = running.work(cli.reads, Duration::from_secs(cli.seconds))?;
    if let Some(keep) = &cli.keep {
        record::copy(&running.dir(), keep)?;
    }
    let report = Report::of(&running.dir(), took, planted::name())?;
    match cli.json {
        true => println!("{:#}", report.document()),
        false => report.print(),
    }
    verdict(&cli, &report)
}

fn verdict(cli: &Cli, report: &Report) -> Result<bool> {
    let violations = report.violations();
    if let Some(bug) = planted::name() {
        match violations {
            0 => eprintln!("NOT NOTICED, although {bug} is planted"),
            _ => eprintln!("noticed, as it must be with {bug} planted"),
        }
        return Ok(violations > 0);
    }
    if violations > 0 {
        return Ok(false);
    }
    if let Some(why) = report.says_nothing() {
        return Err(format!("{why}: that says nothing").into());
    }
    let reads = report.hard_reads();
    match reads as u64 >= cli.reads {
        true => Ok(true),
        false => Err(format!("{reads} hard reads are too few").into()),
    }
}
