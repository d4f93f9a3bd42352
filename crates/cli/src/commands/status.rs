//! `thorp status`: how a node is, as it tells over HTTP.

use super::{context, say, say_json};
use crate::demo::Link;
use crate::failure::{Code, Failure};
use crate::http;
use crate::text::{Side, Table, bytes, percent, time};
use clap::Args;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use thorp_client::{Context, Contexts};
use thorp_net::Identity;
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

/// What is shown of a node's answer. What an older or newer node does not tell is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    role: String,
    name: String,
    village: String,
    version: String,
    uptime_s: u64,
    health: Health,
    homes: Vec<Home>,
    parents: Vec<Parent>,
    children: Vec<Child>,
    pages: Pages,
    up: Traffic,
    down: Traffic,
    storage: Option<Storage>,
    agreement: Option<Agreement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agreement {
    in_doubt: u64,
    oldest_s: f64,
    waits_for: Vec<WaitsFor>,
    asked: u64,
    resolved_by_member: u64,
    resolved_by_homes: u64,
    resolved_by_operators: u64,
    ended_otherwise: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WaitsFor {
    home: u32,
    reached: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Health {
    ok: bool,
    reasons: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Home {
    name: String,
    position: u64,
    connected: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parent {
    name: String,
    addresses: Vec<String>,
    connected: bool,
    #[serde(default = "yes")]
    wanted: bool,
    reached_at: Option<String>,
    lost_for_s: Option<u64>,
    why: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Child {
    name: String,
    kind: String,
    homes: Vec<AtHome>,
    queued_bytes: u64,
    traffic: Traffic,
    connected_s: u64,
    stuck: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AtHome {
    acknowledged: u64,
    lag: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pages {
    from_memory: u64,
    redirected: u64,
    joined: u64,
    from_parent: u64,
    refetched: u64,
    refetches_used: u64,
    refetches_wasted: u64,
    fetched_ahead: u64,
    ahead_used: u64,
    ahead_wasted: u64,
    from_disk: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Traffic {
    bytes_sent: u64,
    frames_sent: u64,
    bytes_received: u64,
    frames_received: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Storage {
    bytes: u64,
    limit_bytes: Option<u64>,
    room: bool,
    lack: Option<Lack>,
}

#[derive(Debug, Deserialize)]
struct Lack {
    free_bytes: u64,
    needed_bytes: u64,
}

/// Asks and shows.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let timeout = Duration::from_secs(options.timeout.max(1));
    let identity = options.operator()?;
    let ask = |node: &str| match &identity {
        Some(operator) => http::get_as(operator, node, PATH, timeout),
        None if node.starts_with(http::HTTPS) => Err(operators_only(node)),
        None => http::get(node, PATH, timeout),
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

    fn operator(&self) -> Result<Option<Identity>, Failure> {
        let loaded = self.identity.as_ref().map(Identity::load).transpose();
        loaded.map_err(|error| {
            let todo = "give the directory of an operator's certificate and key; `thorp invite NAME --role operator --out DIR` makes one";
            Failure::new(error.to_string(), todo)
        })
    }
}

pub(super) fn operators_only(node: &str) -> Failure {
    let todo = "give an operator's certificate with --identity; `thorp invite NAME --role operator --out DIR` makes one";
    Failure::new(format!("{node} answers operators only"), todo).with(Code::Usage)
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
    failure.with(Code::Unreachable)
}

fn tell(body: &str, options: &Options) -> Result<(), Failure> {
    let status = parse(body)?;
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

fn raw(body: &str) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(body).map_err(|error| not_a_node(&error))
}

/// What has crossed a node's edges to its children so far.
pub(crate) fn links_below(http: &str, timeout: Duration) -> Result<Link, Failure> {
    let down = parse(&http::get(http, PATH, timeout)?)?.down;
    Ok(Link {
        messages: down.frames_sent + down.frames_received,
        bytes: down.bytes_sent + down.bytes_received,
    })
}

fn parse(body: &str) -> Result<Status, Failure> {
    serde_json::from_str(body).map_err(|error| not_a_node(&error))
}

pub(super) fn not_a_node(error: &serde_json::Error) -> Failure {
    let todo = "check that this is the --http address of a home or a site: the last line that it printed when it started";
    Failure::new(format!("the answer is not a node's status: {error}"), todo)
}

fn show(status: &Status) -> Result<(), Failure> {
    say(&headline(status))?;
    for reason in &status.health.reasons {
        say(&format!("  NOT WELL: {reason}"))?;
    }
    for home in &status.homes {
        let state = if home.connected {
            ""
        } else {
            ", its stream does not come in"
        };
        say(&format!(
            "  home {} at position {}{state}",
            home.name, home.position
        ))?;
    }
    for parent in &status.parents {
        say(&format!("  {}", parent_line(parent)))?;
    }
    if let Some(storage) = &status.storage {
        say(&format!("  {}", storage_line(storage)))?;
    }
    if let Some(line) = status.agreement.as_ref().and_then(agreement_line) {
        say(&format!("  {line}"))?;
    }
    say(&format!("  {}", pages_line(&status.role, &status.pages)))?;
    say(&format!(
        "  traffic: {} up, {} down",
        both_ways(&status.up),
        both_ways(&status.down)
    ))?;
    if status.children.is_empty() {
        return say("  nobody is connected below");
    }
    say("")?;
    say(&children(&status.children).render())
}

fn headline(status: &Status) -> String {
    let Status {
        role,
        name,
        village,
        version,
        ..
    } = status;
    let health = if status.health.ok { "well" } else { "NOT WELL" };
    let up = match status.uptime_s {
        // It is whole seconds.
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => time(Duration::from_secs(seconds)),
    };
    format!("{role} {name}: {health}, up {up}, version {version}, village {village}")
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

/// Of a parent, if an older node does not tell.
fn yes() -> bool {
    true
}

fn storage_line(storage: &Storage) -> String {
    let limit = match storage.limit_bytes {
        Some(limit) => format!(" of at most {}", bytes(limit)),
        None => String::new(),
    };
    let room = match &storage.lack {
        Some(lack) => {
            let (free, needed) = (bytes(lack.free_bytes), bytes(lack.needed_bytes));
            format!(", FULL: {free} free, {needed} needed")
        }
        None if storage.room => String::new(),
        None => ", FULL: no commits are taken".to_owned(),
    };
    format!("store: {}{limit}{room}", bytes(storage.bytes))
}

/// Nothing, at a home that has shared no transaction.
fn agreement_line(agreement: &Agreement) -> Option<String> {
    let (by_member, by_homes) = (agreement.resolved_by_member, agreement.resolved_by_homes);
    let by_operators = agreement.resolved_by_operators;
    if agreement.in_doubt + by_member + by_homes + by_operators == 0 {
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
        let all = pages.from_memory + pages.from_disk;
        let hits = percent(pages.from_memory, all);
        return format!("pages: {all} asked for, {hits} from memory");
    }
    let near = pages.from_memory + pages.redirected + pages.joined;
    let all = near + pages.from_parent;
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
        let lag = child.homes.iter().map(|at| at.lag).max().unwrap_or(0);
        table.row(vec![
            child.name.clone(),
            child.kind.clone(),
            format!("{} s", child.connected_s),
            acknowledged.join(", "),
            lag.to_string(),
            bytes(child.queued_bytes),
            bytes(child.traffic.bytes_sent),
            bytes(child.traffic.bytes_received),
            if child.stuck { "STUCK" } else { "" }.to_owned(),
        ]);
    }
    table
}

fn both_ways(traffic: &Traffic) -> String {
    bytes(traffic.bytes_sent + traffic.bytes_received)
}

const PATH: &str = "/status";

const HELP: &str = "\
Shows who is connected to a home or a site, how far they are behind, hit ratios, and who is \
stuck. Exit code 3 if it is not well. A node that was started with --http-for-operators answers only to \
--identity. If THORP_VIA is set, the current context does not count here either.

Examples:
  thorp status
  thorp status 127.0.0.1:7430 --json";
