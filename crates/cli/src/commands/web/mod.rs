//! `thorp web`: a reverse proxy whose cache is never stale.

mod beside;
mod check;
mod config;
mod files;
mod homes;
mod keeper;
mod noting;
mod proxy_port;
mod running;
mod setup;
mod source;
mod status;
mod updates;
mod watchdog;
mod why;

use super::node::{Shutdown, shutdown};
use super::{say, say_json};
use crate::failure::{Code, Failure};
use clap::{Args, Subcommand};
use config::WebConfig;
use running::Ready;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_server::{Bytes, HttpAt};
use thorp_web::{OperatorPort, Share, serve_door};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
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
    /// See how a keeper or a proxy is doing
    Status(status::Options),
    /// See which unsafe requests are under way, and end what stays open
    Updates(updates::Options),
    /// Let commits go on when a keeper is gone
    Watchdog(watchdog::Options),
    /// See what is stored for an address, and which update dropped it
    Why(why::Options),
}

/// What the proxy is told. What is not given stays as the file, or else the default, has it.
#[derive(Args, Debug)]
struct ProxyOptions {
    /// Read this TOML file first; flags override it
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Print the configuration that would be used, as TOML, and end
    #[arg(long)]
    print_config: bool,
    /// The application, as http://127.0.0.1:8000; several addresses with commas between them
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Its database, as postgresql:///shop; with --recipe. Give a URL with a password in the environment
    #[arg(
        long,
        value_name = "URL",
        env = "THORP_POSTGRES",
        hide_env_values = true
    )]
    postgres: Option<String>,
    /// Each unsafe request (POST, PUT ...) is a change: no database is watched; with --recipe
    #[arg(long)]
    requests: bool,
    /// With --requests: the longest time in seconds that the origin works on one request [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = source::seconds())]
    request_seconds: Option<u64>,
    /// With --requests: where the application may say by /begin and /end that something changes; with --calls-secret
    #[arg(long, value_name = "IP:PORT")]
    calls: Option<String>,
    /// The file with the secret of --calls: one line of at least 16 letters
    #[arg(long, value_name = "FILE")]
    calls_secret: Option<PathBuf>,
    /// What rows and answers stand for: a file, or the name of a recipe that comes with Thorp (mediawiki, wagtail)
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// A Thorp home on this machine that its answers rest on, as alps=DIR/web.table; may be given several times; with --recipe
    #[arg(long, value_name = "NAME=FILE")]
    home: Vec<homes::HomeConfig>,
    /// Where clients connect [default: 127.0.0.1:8080]
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Where operators of this machine see what is stored and why: IP:PORT on this machine, or "off" [default: off]
    #[arg(long, value_name = "ADDR")]
    status: Option<HttpAt>,
    /// Compare this share of the hits with the origin, as 0.1% [default: 0%]
    #[arg(long, value_name = "SHARE")]
    audit: Option<Share>,
    /// Serve HTTPS: its certificate and those that have signed it, in PEM; with --tls-key
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The private key of --tls-certificate, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Memory for answers, as 1048576 or "256 MiB" [default: 256 MiB]
    #[arg(long, value_name = "SIZE")]
    cache_bytes: Option<Bytes>,
    /// What its publication, slot and standby are called in the database [default: thorp]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The --table of the keeper [default: one of the database, in a directory of this user]
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Start no keeper if there is none
    #[arg(long)]
    no_keeper: bool,
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Tell in JSON where it answers, once it does
    #[arg(long, conflicts_with = "print_config")]
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
        (Some(Command::Updates(options)), _) => updates::run(options),
        (Some(Command::Watchdog(options)), _) => watchdog::run(options),
        (Some(Command::Why(options)), _) => why::run(options),
        (None, Some(options)) => run_proxy(options),
        (None, None) => Err(usage(
            "nothing was named to stand in front of: give --origin or --config",
        )),
    }
}

fn run_proxy(options: &ProxyOptions) -> Result<(), Failure> {
    let config = WebConfig::effective(options)?;
    if options.print_config {
        return say(config.render().trim_end());
    }
    let ready = Ready::read(config.clone())?;
    source::log_by(&config.log)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        until(options, (config, ready), shutdown).await
    })
}

async fn until(
    options: &ProxyOptions,
    (config, ready): (WebConfig, Ready),
    mut shutdown: Shutdown,
) -> Result<(), Failure> {
    let listen = &config.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::new(
            format!("{listen}: {error}"),
            "give a free address with --listen",
        )
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new(error.to_string(), ""))?;
    let port = operator_port(&config).await?;
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|error| Failure::new(format!("signals cannot be heard: {error}"), ""))?;
    let status = port.as_ref().map(OperatorPort::address);
    let mut proxying = ready.start().await?;
    if let Some(port) = port {
        tokio::spawn(port.serve(Arc::clone(&proxying.watched)));
    }
    say_ready(options, &config, (address, status))?;
    let (stop, stopped) = watch::channel(false);
    let door = Arc::clone(&proxying.door);
    let mut serving = tokio::spawn(serve_door(listener, door, stopped));
    let served = loop {
        tokio::select! {
            served = &mut serving => break served.map_err(io::Error::other).flatten(),
            () = &mut shutdown => break Ok(()),
            Some(()) = hangup.recv() => proxying.reload(options).await,
        }
    };
    stop.send_replace(true);
    let ended = proxying.end().await;
    served.map_err(|error| Failure::new(format!("{address}: {error}"), ""))?;
    ended
}

/// The listener of this machine's operators, if they want one.
async fn operator_port(config: &WebConfig) -> Result<Option<OperatorPort>, Failure> {
    let Some(address) = config.status else {
        return Ok(None);
    };
    let port = OperatorPort::bind(address).await;
    port.map(Some).map_err(|error| {
        let todo = "give a free address of this machine with --status, as 127.0.0.1:7432";
        Failure::new(error.to_string(), todo)
    })
}

fn say_ready(
    options: &ProxyOptions,
    config: &WebConfig,
    (address, status): (SocketAddr, Option<SocketAddr>),
) -> Result<(), Failure> {
    let status = status.map(|status| status.to_string());
    if options.json {
        return say_json(&serde_json::json!({ "address": address.to_string(), "status": status }));
    }
    if let Some(status) = status {
        say(&format!("see how it does: http://{status}/"))?;
    }
    let scheme = if config.tls.key.is_some() {
        "https"
    } else {
        "http"
    };
    let origins = config.origins.join(",");
    say(&format!(
        "ready: {scheme}://{address}, in front of {origins}"
    ))
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string(), "see `thorp web --help`").with(Code::Usage)
}

const HELP: &str = "\
It serves an answer from its cache only if nothing has changed on which the answer rests. It knows \
that from a keeper of the database: each commit waits until the keeper has noted what it changes. It \
starts a keeper beside itself if there is none, and stops that one when it ends. A recipe says which \
keys a row stands for, and which answers rest on which keys. `thorp web setup` makes the database \
ready. Run `thorp web watchdog` beside the database. Answers that no recipe names are cached as their \
Cache-Control says; without --recipe these are all. SIGHUP lets it read --config, --recipe and the TLS \
files again: no request is dropped, and if one of them is wrong, all goes on as before.

With --requests no database is watched: each unsafe request (POST, PUT, DELETE ...) is a change, from \
before it is sent on until its whole answer has come. The application must change nothing otherwise.

With --home the answers themselves say what they have read at a Thorp home (Thorp-Evidence, \
Thorp-Reads), and that home says when it changes.

Examples:
  thorp web --origin http://127.0.0.1:8000 --postgres postgresql:///shop --recipe shop.toml
  thorp web --origin http://127.0.0.1:8000 --requests --recipe pages.toml
  thorp web --origin http://127.0.0.1:8000 --home alps=alps/web.table --recipe auction.toml
  thorp web --origin http://127.0.0.1:8000,http://127.0.0.1:8001
  thorp web --config web.toml --status 127.0.0.1:7432
  thorp web --origin http://127.0.0.1:8000 --print-config > web.toml";

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
        let route = "[[routes]]\npath = \"/\"";
        let said = refused(&["--origin", origin], route);
        assert!(said.contains("says when their answers change"), "{said}");
        let requests = |recipe| refused(&["--origin", origin, "--requests"], recipe);
        for (recipe, words) in [
            ("[tables]\na = [\"a:{id}\"]", "the recipe names tables"),
            (
                "[[routes]]\npath = \"/{id}\"\nkeys = [\"a:{id}\"]",
                "no request changes the key a:{id}",
            ),
        ] {
            let said = requests(recipe);
            assert!(said.contains(words), "{said}");
        }
        let changes = "[[routes]]\npath = \"/\"\nchanges = []";
        let said = refused(&["--origin", origin, "--postgres", database], changes);
        assert!(said.contains("what requests change"), "{said}");
        let file = |path: &str| {
            let files = ["--tls-certificate", path, "--tls-key", path];
            refused(&[&["--origin", origin], &files[..]].concat(), "")
        };
        assert!(file("/dev/null").contains("the certificate:"));
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
