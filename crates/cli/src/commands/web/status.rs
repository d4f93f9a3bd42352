//! `thorp web status`: what a keeper or a proxy on this machine says of itself.

use super::proxy_port::{ago, ask};
use super::source::{source, table, table_by_name};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text::{bytes, time};
use clap::Args;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thorp_web::{ProxyStatus, SourceKind, Status};

/// What `thorp web status` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database of the keeper, as its --postgres
    #[arg(long, value_name = "URL", required_unless_present_any = ["requests", "proxy"])]
    postgres: Option<String>,
    /// The keeper has --requests
    #[arg(long, conflicts_with = "postgres")]
    requests: bool,
    /// Ask a proxy in place of a keeper, at the address of its --status
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["postgres", "requests", "table"])]
    proxy: Option<String>,
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

/// Says how it is doing. Fails if it is not well.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    match &options.proxy {
        Some(proxy) => of_proxy(proxy, options.json),
        None => of_keeper(options),
    }
}

fn of_proxy(address: &str, json: bool) -> Result<(), Failure> {
    let status: ProxyStatus = ask(address, "/status")?;
    match json {
        true => say_json(&status)?,
        false => proxy_lines(&status).iter().try_for_each(|line| say(line))?,
    }
    if let Some(error) = &status.reloads.error {
        let what = format!("the last reload was refused: {error}");
        let todo = "mend it, and send SIGHUP again; until then the old configuration is in force";
        return Err(Failure::new(what, todo).with(Code::Wrong));
    }
    if status.live || !status.has_routes {
        return Ok(());
    }
    let todo = match status.source {
        SourceKind::Requests => "`thorp web status --requests` says how the keeper is doing",
        SourceKind::Homes => "look at the log of each home that is away",
        _ => "`thorp web status --postgres URL` says how the keeper is doing",
    };
    let what = match status.source {
        SourceKind::Homes => "a home is away: requests whose answers rest on it go to the origin",
        _ => "the keeper is away: all requests of routes go to the origin",
    };
    Err(Failure::new(what, todo).with(Code::Wrong))
}

fn proxy_lines(status: &ProxyStatus) -> Vec<String> {
    let live = match (status.has_routes, status.live) {
        (true, true) => "live, answers of routes are kept",
        (true, false) => "away, no answer of a route is kept",
        (false, _) => "without routes",
    };
    let (entries, others, audit) = (&status.entries, &status.others, &status.audit);
    let mut lines = vec![
        format!(
            "process {}, in front of {}: {live}",
            status.process,
            status.origins.join(", ")
        ),
        format!(
            "{} answers of routes in {} of {}",
            entries.count,
            bytes(entries.bytes),
            bytes(entries.bytes_max)
        ),
        format!(
            "{} addresses without a route in {} of {}",
            others.count,
            bytes(others.bytes),
            bytes(others.bytes_max)
        ),
        format!(
            "{} hits, {} misses ({} joined another request); {} dropped because of a change",
            status.hits,
            sum(&status.missed),
            status.joined,
            status.dropped
        ),
    ];
    for (what, counts) in [
        ("misses", &status.missed),
        ("past the cache", &status.bypassed),
        ("not stored", &status.refused),
        ("unsafe requests", &status.updated),
    ] {
        lines.extend(reasons(what, counts));
    }
    lines.extend(status.homes.iter().map(|home| {
        let is = if home.live { "live" } else { "away" };
        format!("home {}: {is}", home.name)
    }));
    if audit.share != "0%" {
        lines.push(format!(
            "audit of {}: {} as at the origin, {} different, {} changed meanwhile, {} failed, {} skipped",
            audit.share, audit.same, audit.different, audit.changed, audit.failed, audit.skipped
        ));
    }
    let differences = audit.differences.iter();
    lines.extend(differences.map(|line| {
        format!(
            "different {} ago: {}: {}",
            ago(line.at_unix_ms),
            line.address,
            line.what
        )
    }));
    lines
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// The reasons that were met, in a line.
fn reasons(what: &str, counts: &BTreeMap<String, u64>) -> Option<String> {
    let met = counts.iter().filter(|(_, count)| **count > 0);
    let met: Vec<String> = met
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    (!met.is_empty()).then(|| format!("{what}: {}", met.join(", ")))
}

fn of_keeper(options: &Options) -> Result<(), Failure> {
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
    if let Some(average_us) = status.waited_us.checked_div(status.waits) {
        lines.push(format!(
            "{} {noted} have waited for it: {} on the average, {} at most",
            status.waits,
            time(Duration::from_micros(average_us)),
            time(Duration::from_micros(status.waited_us_max))
        ));
    }
    lines
}

const HELP: &str = "\
The keeper writes its status beside its table twice a second. The exit code is 3 if it is not live, or \
if commits of the last minute did not wait for it. With --proxy it is 3 if the proxy has no live keeper, \
or if its last reload was refused.

Examples:
  thorp web status --postgres postgresql:///shop
  thorp web status --requests
  thorp web status --proxy 127.0.0.1:7432";
