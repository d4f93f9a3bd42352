//! `thorp web status`: what a keeper on this machine says of itself.

use super::source::{source, table, table_by_name};
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
    #[arg(long, value_name = "URL", required_unless_present = "requests")]
    postgres: Option<String>,
    /// The keeper has --requests
    #[arg(long, conflicts_with = "postgres")]
    requests: bool,
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
    let named = options.table.as_ref();
    let table = match &options.postgres {
        Some(postgres) => table(named, &source(postgres, &options.name)?)?,
        None => table_by_name(named, &options.name)?,
    };
    let status = Status::read(&table).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            format!("no keeper has been at {}", table.display()),
            "give the same --postgres or --requests as the keeper, and run this as the same user; name the --table of a keeper that is a service",
        )
        .with(Code::NotThere),
        _ => Failure::file(&table, &error),
    })?;
    match options.json {
        true => say_json(&status)?,
        false => lines(&status, options.requests)
            .iter()
            .try_for_each(|line| say(line))?,
    }
    if status.is_well() {
        return Ok(());
    }
    let what = match &status.why {
        Some(why) => format!("the keeper is away: {why}"),
        None => String::from("commits have not waited for the keeper"),
    };
    let todo = match options.requests {
        true => "`thorp web updates` lists what is open: end what you know to be over",
        false => "`thorp web check --postgres URL --recipe FILE` says what to change",
    };
    Err(Failure::new(what, todo).with(Code::Wrong))
}

fn lines(status: &Status, of_requests: bool) -> Vec<String> {
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
    let (awaited, noted) = match of_requests {
        true => ("the proxy of", "unsafe requests"),
        false => ("the transaction of", "commits"),
    };
    lines.extend(awaits.map(|session| format!("awaits {awaited} {session}")));
    lines.push(format!(
        "{} {noted}, {} of them ended all answers, {} did not wait; {} are open",
        status.commits, status.unknown, status.not_waited, status.open_updates
    ));
    lines
}

const HELP: &str = "\
The keeper writes its status beside its table twice a second. The exit code is 3 if it is not live, or \
if commits of the last minute did not wait for it.

Examples:
  thorp web status --postgres postgresql:///shop
  thorp web status --requests";
