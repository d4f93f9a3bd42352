//! `thorp web why`: what is stored for an address, and which update dropped it.

use super::proxy_port::ask;
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text::{bytes, count};
use clap::Args;
use thorp_web::{Address, AtAddress, DropLine, EntryLine, UpdateLine};

/// What `thorp web why` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The address of the answer, as clients have it: http://HOST/PATH, or /PATH at any host
    #[arg(value_name = "URL")]
    url: String,
    /// The --status of the proxy
    #[arg(long, value_name = "ADDR", default_value = super::proxy_port::USUAL)]
    status: String,
    /// Tell it in JSON
    #[arg(long)]
    json: bool,
}

/// Asks the proxy and shows what it says. Fails if it knows nothing of the address.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let question = Address::question(&options.url).ok_or_else(|| {
        let what = format!("{:?} is no address of an answer", options.url);
        Failure::new(what, "write http://HOST/PATH as clients do, or /PATH").with(Code::Usage)
    })?;
    let found: AtAddress = ask(&options.status, &question)?;
    let is_known =
        !(found.entries.is_empty() && found.dropped.is_empty() && found.others.is_empty());
    match options.json {
        true => say_json(&found)?,
        false => lines(&found).iter().try_for_each(|line| say(line))?,
    }
    if is_known {
        return Ok(());
    }
    let todo = match (&found.other_hosts[..], found.has_route) {
        ([], true) => String::from(
            "ask for it through the proxy; the answer's Cache-Status says what was done",
        ),
        ([], false) => String::from(
            "no route of the recipe takes it, so it is cached as the origin says, or not at all",
        ),
        (hosts, _) => format!("the proxy has that path for {}", hosts.join(", ")),
    };
    let what = format!(
        "nothing is stored for {}, and nothing was dropped lately",
        found.address
    );
    Err(Failure::new(what, todo).with(Code::NotThere))
}

fn lines(found: &AtAddress) -> Vec<String> {
    let entries = found.entries.iter().flat_map(entry);
    let dropped = found.dropped.iter().map(dropped);
    let others = found.others.iter().map(|stored| {
        format!(
            "stored as the origin says, without a route: status {}, {}",
            stored.status,
            bytes(stored.bytes)
        )
    });
    entries.chain(others).chain(dropped).collect()
}

fn entry(entry: &EntryLine) -> Vec<String> {
    let mut lines = vec![format!(
        "stored: {}{}, status {}, {}, {}",
        entry.host,
        entry.path,
        entry.status,
        bytes(entry.bytes),
        count(entry.hits, "hit")
    )];
    if !entry.variant.is_empty() {
        lines.push(format!("  for {}", entry.variant.replace('\n', ", ")));
    }
    lines.push(format!("  rests on {}", entry.dependencies.join(", ")));
    if let Some(reason) = &entry.reason {
        let cause = cause(entry.key.as_deref(), entry.update.as_ref());
        lines.push(format!(
            "  the next request does not get it: {reason}{cause}"
        ));
    }
    lines
}

fn dropped(line: &DropLine) -> String {
    let cause = cause(line.key.as_deref(), line.update.as_ref());
    format!(
        "dropped: {}{} {} ago, after {}: {}{cause}",
        line.host,
        line.path,
        super::proxy_port::ago(line.at_unix_ms),
        count(line.hits, "hit"),
        line.reason
    )
}

/// The key, and the update that changed it.
fn cause(key: Option<&str>, update: Option<&UpdateLine>) -> String {
    let key = key.map_or(String::new(), |key| format!(" {key}"));
    let update = update.map_or(String::new(), |update| {
        let at = update.at_unix_ms.map(super::proxy_port::ago);
        let at = at.map_or(String::new(), |ago| format!(", {ago} ago"));
        format!(", by {}{at}", update.cause)
    });
    format!("{key}{update}")
}

const HELP: &str = "\
It asks a proxy of this machine that was started with --status. An update has the number of its \
transaction in PostgreSQL, and the place in the log where its commit ends; with --requests as the source \
it has the keeper's number of the request. Half a second after an \
update the proxy knows which one it was. The exit code is 5 if nothing is known of the address.

Examples:
  thorp web why http://127.0.0.1:8080/items/1 --status 127.0.0.1:7432";
