//! `thorp web`: a reverse proxy whose cache is never stale.

mod check;
mod keeper;
mod setup;
mod source;
mod status;
mod watchdog;

use super::node::{Shutdown, shutdown};
use super::{say, say_json};
use crate::failure::{Code, Failure};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use thorp_server::Bytes;
use thorp_versions::Followed;
use thorp_web::{Health, Proxy, Start, follow, serve};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What `thorp web` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    proxy: Option<ProxyOptions>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a database ready, or take that back
    Setup(setup::Options),
    /// See whether a database and a recipe are ready
    Check(check::Options),
    /// Note what each commit changes, for the proxies of this machine
    Keeper(keeper::Options),
    /// See how a keeper is doing
    Status(status::Options),
    /// Let commits go on when a keeper is gone
    Watchdog(watchdog::Options),
}

/// What the proxy is told.
#[derive(Args, Debug)]
struct ProxyOptions {
    /// The application, as http://127.0.0.1:8000
    #[arg(long, value_name = "URL")]
    origin: String,
    /// Its database, as postgresql://thorp@localhost/wiki
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// What rows and answers stand for: a file, or the name of a recipe that comes with Thorp (mediawiki)
    #[arg(long, value_name = "FILE")]
    recipe: PathBuf,
    /// Where clients connect
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Memory for answers, as 1048576 or "256 MiB"
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    cache_bytes: Bytes,
    /// What its publication, slot and standby are called in the database
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// The --table of the keeper [default: one of the database, in a directory of this user]
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Start no keeper if there is none
    #[arg(long)]
    no_keeper: bool,
    /// error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: String,
    /// Tell in JSON where it answers, once it does
    #[arg(long)]
    json: bool,
    /// Shut down when standard input ends: for programs that start this one
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Runs until it is told to end.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match (&options.command, &options.proxy) {
        (Some(Command::Setup(options)), _) => setup::run(options),
        (Some(Command::Check(options)), _) => check::run(options),
        (Some(Command::Keeper(options)), _) => keeper::run(options),
        (Some(Command::Status(options)), _) => status::run(options),
        (Some(Command::Watchdog(options)), _) => watchdog::run(options),
        (None, Some(options)) => run_proxy(options),
        (None, None) => Err(usage("nothing was named to stand in front of")),
    }
}

fn run_proxy(options: &ProxyOptions) -> Result<(), Failure> {
    let source = source::source(&options.postgres, &options.name)?;
    let recipe = Arc::new(source::recipe(&options.recipe)?);
    let table = source::table(options.table.as_ref(), &source)?;
    let reader = Arc::new(Followed::new(table.clone(), recipe.terms(&options.name)));
    let cache_bytes = options.cache_bytes.0;
    let proxy = Proxy::new(&options.origin, recipe, Arc::clone(&reader), cache_bytes);
    let proxy = Arc::new(proxy.map_err(usage)?);
    let start = match options.no_keeper {
        true => None,
        false => Some(keeper_of(options, table)?),
    };
    source::log(&options.log_level)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        until(options, Beside { reader, start }, proxy, shutdown).await
    })
}

/// How a keeper of the same database is started beside the proxy. It ends in order when the proxy ends, also if that is killed.
fn keeper_of(options: &ProxyOptions, table: PathBuf) -> Result<Start, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the program does not find itself: {error}"), ""))?;
    let flags = [
        ("--postgres", OsString::from(&options.postgres)),
        ("--recipe", OsString::from(&options.recipe)),
        ("--table", OsString::from(table)),
        ("--name", OsString::from(&options.name)),
        ("--log-level", OsString::from(&options.log_level)),
    ];
    Ok(Box::new(move || {
        let mut command = tokio::process::Command::new(&program);
        command.args(["web", "keeper", "--until-stdin-closes"]);
        for (flag, value) in &flags {
            command.arg(flag).arg(value);
        }
        command.stdout(Stdio::null());
        command
    }))
}

/// The reader of a keeper's table, and how a keeper is started.
struct Beside {
    reader: Arc<Followed>,
    start: Option<Start>,
}

async fn until(
    options: &ProxyOptions,
    beside: Beside,
    proxy: Arc<Proxy<Arc<Followed>>>,
    shutdown: Shutdown,
) -> Result<(), Failure> {
    let listen = &options.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::new(
            format!("{listen}: {error}"),
            "give a free address with --listen",
        )
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new(error.to_string(), ""))?;
    let (stop, stopped) = watch::channel(false);
    let (says, health) = watch::channel(Health::Away(String::from("it starts")));
    let following = follow(beside.reader, beside.start, says, stopped.clone());
    let following = tokio::spawn(following);
    let telling = tokio::spawn(tell(health));
    match options.json {
        true => say_json(&serde_json::json!({ "address": address.to_string() }))?,
        false => say(&format!(
            "ready: http://{address}, in front of {}",
            options.origin
        ))?,
    }
    let serving = serve(listener, proxy, stopped);
    let served = tokio::select! {
        served = serving => served,
        () = shutdown => Ok(()),
    };
    stop.send_replace(true);
    // The keeper takes its name out of the database, so that no commit waits for it.
    let followed = following.await;
    telling.abort();
    served.map_err(|error| Failure::new(format!("{address}: {error}"), ""))?;
    followed.map_err(|error| Failure::new(format!("the keeper: {error}"), ""))
}

/// Says when there are hits and when there are none.
async fn tell(mut health: watch::Receiver<Health>) {
    while health.changed().await.is_ok() {
        match &*health.borrow_and_update() {
            Health::Live => eprintln!("live: commits wait for the keeper, and answers are kept"),
            Health::Away(why) => eprintln!("away: {why}. All requests go to the origin"),
        }
    }
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string(), "see `thorp web --help`").with(Code::Usage)
}

const HELP: &str = "\
It serves an answer from its cache only if nothing has changed on which the answer rests. It knows \
that from a keeper of the database: each commit waits until the keeper has noted what it changes. It \
starts a keeper beside itself if there is none, and stops that one when it ends. A recipe says which \
keys a row stands for, and which answers rest on which keys; other answers pass through. `thorp web \
setup` makes the database ready. Run `thorp web watchdog` beside the database.

Examples:
  thorp web --origin http://127.0.0.1:8000 --postgres postgresql:///shop --recipe shop.toml";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn refused(words: &[&str], recipe: &str) -> String {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("shop.toml");
        fs::write(&path, recipe).expect("a file");
        let path = path.display().to_string();
        let line = [&["web", "--recipe", &path], words].concat();
        let options = Line::parse_from(line).options;
        let failure = run(&options).expect_err("it is refused");
        failure.what().to_owned()
    }

    #[test]
    fn what_cannot_be_right_is_said_before_anything_runs() {
        let (origin, database) = ("http://127.0.0.1:1", "postgresql://localhost/a");
        for (origin, database, recipe, words) in [
            ("ftp://a", database, "", "is no origin"),
            ("http://a/path", database, "", "is no origin"),
            (origin, "postgresql://[", "", "the address of the database"),
            (origin, database, "[tables]\na = 1", "shop.toml"),
        ] {
            let said = refused(&["--origin", origin, "--postgres", database], recipe);
            assert!(said.contains(words), "{said}");
        }
    }
}
