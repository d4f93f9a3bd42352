//! `thorp web status`: what a keeper on this machine says of itself.

use super::source::{source, table};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use clap::Args;
use std::io;
use std::path::PathBuf;
use thorp_web::Status;

/// What `thorp web status` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database of the keeper, as its --postgres
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// The --table of the keeper
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// The --name of the keeper
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// Tell it in JSON
    #[arg(long)]
    json: bool,
}

/// Says how the keeper is doing. Fails if it is not well.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let source = source(&options.postgres, &options.name)?;
    let table = table(options.table.as_ref(), &source)?;
    let status = Status::read(&table).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            format!("no keeper has been at {}", table.display()),
            "start one: `thorp web keeper`; give its --postgres and --table here",
        )
        .with(Code::NotThere),
        _ => Failure::file(&table, &error),
    })?;
    match options.json {
        true => say_json(&status)?,
        false => lines(&status).iter().try_for_each(|line| say(line))?,
    }
    if status.is_well() {
        return Ok(());
    }
    let what = match &status.why {
        Some(why) => format!("the keeper is away: {why}"),
        None => String::from("commits have not waited for the keeper"),
    };
    Err(Failure::new(what, "`thorp web check` says what to change").with(Code::Wrong))
}

fn lines(status: &Status) -> Vec<String> {
    let live = if status.live { "live" } else { "away" };
    let coherent = match status.coherent {
        true => "coherent",
        false => "not coherent: commits of the last minute did not wait",
    };
    let mut lines = vec![format!(
        "{} (process {}): {live}, {coherent}",
        status.name, status.process
    )];
    let awaits = status.awaits.iter().filter(|_| !status.live);
    lines.extend(awaits.map(|session| format!("awaits the transaction of {session}")));
    lines.push(format!(
        "{} commits, {} of them ended all answers, {} did not wait; {} are open",
        status.commits, status.unknown, status.not_waited, status.open_updates
    ));
    lines
}

const HELP: &str = "\
The keeper writes its status beside its table twice a second. The exit code is 3 if it is not live, or \
if commits of the last minute did not wait for it.

Examples:
  thorp web status --postgres postgresql:///shop";
