//! `thorp top`: how a node is doing, again each second.

mod live;
mod screen;
mod snapshot;
mod view;

use super::node_status::{self, Source};
use super::{say, say_json, status};
use crate::failure::Failure;
use clap::Args;
use snapshot::Snapshot;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use view::View;

/// What `thorp top` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Its --http address, HOST:PORT [default: the first of the current context, or the home of this machine]
    #[arg(env = "THORP_HTTP", value_name = "ADDR")]
    node: Option<String>,
    /// An operator's certificate and key: asks by TLS a node that answers operators only
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
    /// Look for one second, print that, and end; so it is also if standard output is no terminal
    #[arg(long)]
    once: bool,
    /// Print JSON, once
    #[arg(long)]
    json: bool,
    /// How long to wait for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
}

/// The first look is before the screen is taken: a wrong address is told as any other.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let node = options.node.clone();
    let source = Source {
        // There is at least one.
        node: node.unwrap_or_else(|| status::nodes_here().swap_remove(0)),
        operator: node_status::operator(options.identity.as_deref())?,
        within: Duration::from_secs(options.timeout.max(1)),
    };
    let mut view = View::of(&source.node);
    view.add(Snapshot::of(&source)?);
    if !options.once && !options.json && std::io::stdout().is_terminal() {
        return live::show(source, view);
    }
    thread::sleep(live::EVERY);
    view.add(Snapshot::of(&source)?);
    match options.json {
        true => say_json(&view.as_json()),
        false => view.lines().iter().try_for_each(|line| say(line)),
    }
}

const HELP: &str = "\
Shows the health of a home or a site, its homes, its store, what it does each second, and who is connected \
below it: on the whole screen, again each second, until q. ? shows the keys. It asks one node for its \
status, as `thorp status` does, which costs the node as much as that.

Examples:
  thorp top
  thorp top 127.0.0.1:7430 --once --json";
