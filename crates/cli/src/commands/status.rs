//! `thorp status`: how a node is, as it tells over HTTP.

use super::node_status::{self, Agreement, Child, PATH, Pages, Parent, Source, Status, not_a_node};
use super::{context, dev_village, say, say_json};
use crate::demo::Link;
use crate::failure::{Code, Failure};
use crate::http;
use crate::text::{Side, Table, bytes, percent};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use thorp_client::{Context, Contexts};
use thorp_server::{HOME_HTTP_PORT, SITE_HTTP_PORT};

/// What `thorp status` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Its --http address, HOST:PORT [default: those of the current context, or the home and the site of this machine] [env:
    /// THORP_HTTP]
    #[arg(value_name = "ADDR")]
    node: Option<String>,
    /// Ask the nodes whose addresses this context has, in place of the current one [env: THORP_CONTEXT]
    #[arg(long, value_name = "NAME", conflicts_with = "node")]
    context: Option<String>,
    /// An operator's certificate and key: asks by TLS a node that answers operators only, and shows process ids in the JSON
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
    /// Print its own JSON; without an address, {"nodes": [...]}
    #[arg(long)]
    json: bool,
    /// How long to wait for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
}

/// Asks and shows.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let timeout = Duration::from_secs(options.timeout.max(1));
    let operator = node_status::operator(options.identity.as_deref())?;
    let ask = |node: &str| {
        let source = Source {
            node: node.to_owned(),
            operator: operator.clone(),
            within: timeout,
        };
        source.ask()
    };
    if let Some(node) = options.node() {
        let body = ask(&node)?;
        if options.json {
            say_json(&raw(&body)?)?;
        }
        return tell(&body, options);
    }
    let context = options.context()?;
    let nodes = nodes_of(context.as_ref());
    let (mut end, mut bodies) = (None, Vec::new());
    for node in &nodes {
        let told = match ask(node) {
            Ok(body) => {
                bodies.push(raw(&body)?);
                tell(&body, options)
            }
            Err(_) if !http::is_taken(node) => continue,
            // Somebody has the port and says nothing: one that hangs is the last to be left out.
            Err(failure) => {
                let _ = crate::text::note(&failure.to_string());
                Err(failure)
            }
        };
        // All are shown, also if one is not well.
        end = Some(end.unwrap_or(Ok(())).and(told));
    }
    if options.json && end.is_some() {
        say_json(&serde_json::json!({ "nodes": bodies }))?;
    }
    end.unwrap_or_else(|| Err(nobody_here(&nodes, context.as_ref())))
}

/// Those of the context that counts, or else where a home and a site of this machine serve their status if nobody says
/// otherwise.
pub(super) fn nodes_here() -> Vec<String> {
    nodes_of(context::that_counts().as_ref())
}

fn nodes_of(context: Option<&Context>) -> Vec<String> {
    let own = context.map(|context| context.status.clone());
    own.filter(|nodes| !nodes.is_empty()).unwrap_or_else(|| {
        let ports = [HOME_HTTP_PORT, SITE_HTTP_PORT];
        ports.map(|port| format!("127.0.0.1:{port}")).to_vec()
    })
}

impl Options {
    /// The only node that is asked. A context that was named goes before a variable.
    fn node(&self) -> Option<String> {
        let named = || std::env::var("THORP_HTTP").ok().filter(|at| !at.is_empty());
        match (&self.node, &self.context) {
            (Some(node), _) => Some(node.clone()),
            (None, Some(_)) => None,
            (None, None) => named(),
        }
    }

    fn context(&self) -> Result<Option<Context>, Failure> {
        match &self.context {
            Some(name) => Ok(Some(Contexts::of_user()?.get(name)?)),
            None => Ok(context::that_counts()),
        }
    }
}

fn nobody_here(nodes: &[String], context: Option<&Context>) -> Failure {
    let asked = nodes.join(" or ");
    let failure = match context.filter(|context| context.status.is_empty()) {
        Some(context) => Failure::new(
            format!(
                "context {} knows no address where a node serves its status, and nobody answers on {asked}",
                context.name
            ),
            "`thorp doctor` looks at what can be reached from here; if you know such an address: `thorp status ADDR`",
        ),
        None => Failure::new(
            format!("no home and no site answers on {asked}"),
            "start one, or give the address that it printed when it started: `thorp status ADDR`",
        ),
    };
    let failure = match context.and_then(dev_village::restart) {
        Some(todo) => failure.or(todo),
        None => failure,
    };
    failure.with(Code::Unreachable)
}

fn tell(body: &str, options: &Options) -> Result<(), Failure> {
    let status = Status::of(body)?;
    if !options.json {
        show(&status)?;
    }
    if status.health.ok {
        return Ok(());
    }
    let what = format!(
        "{} is not well: {}",
        status.name,
        status.health.reasons.join("; ")
    );
    Err(Failure::new(what, "mend that; its log tells more").with(Code::Wrong))
}

/// Its document, with what this build does not know.
fn raw(body: &str) -> Result<serde_json::Value, Failure> {
    Status::of(body)?;
    serde_json::from_str(body).map_err(|error| not_a_node(&error))
}

/// What has crossed a node's edges to its children so far.
pub(crate) fn links_below(http: &str, timeout: Duration) -> Result<Link, Failure> {
    let down = Status::of(&http::get(http, PATH, timeout)?)?.down;
    Ok(Link {
        messages: down.frames_sent.saturating_add(down.frames_received),
        bytes: down.both(),
    })
}

fn show(status: &Status) -> Result<(), Failure> {
    let village = &status.village;
    say(&format!("{}, village {village}", status.headline()))?;
    for line in status.reasons_and_homes() {
        say(&format!("  {line}"))?;
    }
    for parent in &status.parents {
        say(&format!("  {}", parent_line(parent)))?;
    }
    if let Some(storage) = &status.storage {
        say(&format!("  {}", storage.line()))?;
    }
    if let Some(line) = status.agreement.as_ref().and_then(agreement_line) {
        say(&format!("  {line}"))?;
    }
    if let Some(line) = status.privileges.line() {
        say(&format!("  {line}"))?;
    }
    say(&format!("  {}", pages_line(&status.role, &status.pages)))?;
    say(&format!(
        "  traffic: {} up, {} down",
        bytes(status.up.both()),
        bytes(status.down.both())
    ))?;
    if status.children.is_empty() {
        return say("  nobody is connected below");
    }
    say("")?;
    say(&children(&status.children).render())
}

fn parent_line(parent: &Parent) -> String {
    let name = match parent.name.as_str() {
        "" => "parent",
        name => name,
    };
    let at = parent.addresses.join(", ");
    if parent.connected {
        // Of several addresses it is one.
        let at = parent.reached_at.as_ref().unwrap_or(&at);
        return format!("connected to {name} at {at}");
    }
    if !parent.wanted {
        return format!("{name} at {at} is dialed when there is something to ask it");
    }
    let since = parent
        .lost_for_s
        .map_or(String::new(), |s| format!(" for {s} s"));
    let why = parent
        .why
        .as_ref()
        .map_or(String::new(), |why| format!(": {why}"));
    format!("NOT connected to {name} at {at}{since}{why}")
}

/// Nothing, at a home that has shared no transaction.
fn agreement_line(agreement: &Agreement) -> Option<String> {
    let (by_member, by_homes) = (agreement.resolved_by_member, agreement.resolved_by_homes);
    let by_operators = agreement.resolved_by_operators;
    let counts = [agreement.in_doubt, by_member, by_homes, by_operators];
    if counts == [0; 4] {
        return None;
    }
    let mut line = format!("shared with other homes: {} in doubt", agreement.in_doubt);
    if agreement.in_doubt > 0 {
        line += &format!(", the oldest for {:.1} s", agreement.oldest_s);
    }
    for home in &agreement.waits_for {
        let reached = if home.reached { "asked" } else { "NOT reached" };
        line += &format!(", home id {} is {reached}", home.home);
    }
    line += &format!(
        "; {by_member} ended by members, {by_homes} by asking ({} questions)",
        agreement.asked
    );
    if by_operators > 0 {
        line += &format!(", {by_operators} by operators");
    }
    if agreement.ended_otherwise > 0 {
        let times = agreement.ended_otherwise;
        line += &format!("; {times} times that was NOT how another node ended it");
    }
    Some(line)
}

fn pages_line(role: &str, pages: &Pages) -> String {
    if role == "home" {
        let all = pages.all();
        let hits = percent(pages.from_memory, all);
        return format!("pages: {all} asked for, {hits} from memory");
    }
    let (near, all) = (pages.near(), pages.all());
    let mut line = format!(
        "pages: {all} asked for, {} served near: {} from memory, {} from members, {} joined; {} from above",
        percent(near, all),
        pages.from_memory,
        pages.redirected,
        pages.joined,
        pages.from_parent
    );
    if pages.refetched > 0 {
        line += &format!(
            "; {} invalidated ones fetched again before they were asked for, {} used, {} in vain",
            pages.refetched, pages.refetches_used, pages.refetches_wasted
        );
    }
    if pages.fetched_ahead > 0 {
        line += &format!(
            "; {} fetched ahead of being asked for, {} used, {} in vain",
            pages.fetched_ahead, pages.ahead_used, pages.ahead_wasted
        );
    }
    line
}

fn children(all: &[Child]) -> Table {
    let mut table = Table::new(&[
        ("child", Side::Left),
        ("kind", Side::Left),
        ("connected", Side::Right),
        ("acknowledged", Side::Right),
        ("lag", Side::Right),
        ("queued", Side::Right),
        ("sent", Side::Right),
        ("received", Side::Right),
        ("", Side::Left),
    ]);
    for child in all {
        let acknowledged: Vec<String> = child
            .homes
            .iter()
            .map(|at| at.acknowledged.to_string())
            .collect();
        table.row(vec![
            child.name.clone(),
            child.kind.clone(),
            child.connected(),
            acknowledged.join(", "),
            child.lag().to_string(),
            bytes(child.queued_bytes),
            bytes(child.traffic.bytes_sent),
            bytes(child.traffic.bytes_received),
            child.state(),
        ]);
    }
    table
}

const HELP: &str = "\
Shows who is connected to a home or a site, how far they are behind, hit ratios, and who is \
stuck. Exit code 3 if it is not well. A node that was started with --http-for-operators answers only to \
--identity. If THORP_VIA is set, the current context does not count here either.

Examples:
  thorp status
  thorp status 127.0.0.1:7430 --json";
