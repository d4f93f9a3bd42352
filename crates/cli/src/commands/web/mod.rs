//! `thorp web`: a reverse proxy whose cache is never stale.

mod beside;
mod check;
mod homes;
mod keeper;
mod setup;
mod source;
mod status;
mod watchdog;

use super::node::{Shutdown, shutdown};
use super::{say, say_json};
use crate::failure::{Code, Failure};
use beside::{Beside, Running};
use clap::{Args, Subcommand};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_server::Bytes;
use thorp_versions::Followed;
use thorp_web::{Homes, Proxy, Recipe, Source, Tls, serve, serve_tls};
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
    /// The application, as http://127.0.0.1:8000; several addresses with commas between them
    #[arg(long, value_name = "URL")]
    origin: String,
    /// Its database, as postgresql:///shop
    #[arg(long, value_name = "URL", requires = "recipe")]
    postgres: Option<String>,
    /// What rows and answers stand for: a file, or the name of a recipe that comes with Thorp (mediawiki, wagtail)
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// A Thorp home on this machine that its answers rest on, as alps=DIR/web.table; may be given several times
    #[arg(
        long,
        value_name = "NAME=FILE",
        conflicts_with = "postgres",
        requires = "recipe"
    )]
    home: Vec<String>,
    /// Where clients connect
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Serve HTTPS: its certificate and those that have signed it, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The private key of --tls-certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
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
    let path = options.recipe.as_ref();
    let recipe = path.map(|path| source::recipe(path)).transpose()?;
    // Without a recipe, no answer is coherent.
    let recipe = Arc::new(recipe.unwrap_or_default());
    let database = options.postgres.as_deref().zip(path.map(PathBuf::as_path));
    if !options.home.is_empty() {
        let homes = homes::homes(&options.home, &recipe)?;
        return run_with(
            options,
            recipe,
            Arc::clone(&homes),
            Some(Side::Homes(homes)),
        );
    }
    if database.is_none() && recipe.has_routes() {
        let what = "the recipe has routes, and nothing says when their answers change";
        let action = "name the database with --postgres or the home with --home, or leave the routes out of the recipe";
        return Err(Failure::new(what, action).with(Code::Usage));
    }
    let beside = database.map(|database| Beside::of(options, database, &recipe));
    let beside = beside.transpose()?;
    // Without a database no answer is checked against a table.
    let nothing = || Arc::new(Followed::new(PathBuf::new(), recipe.terms("")));
    let reader = beside.as_ref().map_or_else(nothing, Beside::reader);
    run_with(options, recipe, reader, beside.map(Side::Keeper))
}

/// What runs beside a proxy.
enum Side {
    /// The reader of a keeper's table.
    Keeper(Beside),
    /// The readers of the tables of homes.
    Homes(Arc<Homes>),
}

impl Side {
    fn run(self, stopped: &watch::Receiver<bool>) -> Vec<Running> {
        match self {
            Side::Keeper(beside) => Vec::from([beside.run(stopped.clone())]),
            Side::Homes(homes) => homes::follow(&homes, stopped),
        }
    }
}

fn run_with<S: Source + Send + Sync + 'static>(
    options: &ProxyOptions,
    recipe: Arc<Recipe>,
    source: S,
    side: Option<Side>,
) -> Result<(), Failure> {
    let tls = tls(options)?;
    let cache_bytes = options.cache_bytes.0;
    let proxy = Proxy::new(&options.origin, recipe, source, cache_bytes).map_err(usage)?;
    source::log(&options.log_level)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        until(options, (tls, side), Arc::new(proxy), shutdown).await
    })
}

/// What clients speak. None: HTTP without TLS.
fn tls(options: &ProxyOptions) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (&options.tls_certificate, &options.tls_key) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| fs::read(path).map_err(|error| Failure::file(path, &error));
    let tls = Tls::from_pem(&read(certificate)?, &read(key)?);
    tls.map(Some).map_err(|error| {
        let action = "give PEM files with --tls-certificate and --tls-key";
        Failure::new(error.to_string(), action).with(Code::Usage)
    })
}

async fn until<S: Source + Send + Sync + 'static>(
    options: &ProxyOptions,
    (tls, side): (Option<Tls>, Option<Side>),
    proxy: Arc<Proxy<S>>,
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
    let beside = side.map_or_else(Vec::new, |side| side.run(&stopped));
    let scheme = if tls.is_some() { "https" } else { "http" };
    match options.json {
        true => say_json(&serde_json::json!({ "address": address.to_string() }))?,
        false => say(&format!(
            "ready: {scheme}://{address}, in front of {}",
            options.origin
        ))?,
    }
    let serving = async {
        match tls {
            Some(tls) => serve_tls(listener, tls, proxy, stopped).await,
            None => serve(listener, proxy, stopped).await,
        }
    };
    let served = tokio::select! {
        served = serving => served,
        () = shutdown => Ok(()),
    };
    stop.send_replace(true);
    let mut ended = Ok(());
    for running in beside {
        ended = ended.and(running.end().await);
    }
    served.map_err(|error| Failure::new(format!("{address}: {error}"), ""))?;
    ended
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string(), "see `thorp web --help`").with(Code::Usage)
}

const HELP: &str = "\
It serves an answer from its cache only if nothing has changed on which the answer rests. It knows \
that from a keeper of the database: each commit waits until the keeper has noted what it changes. It \
starts a keeper beside itself if there is none, and stops that one when it ends. A recipe says which \
keys a row stands for, and which answers rest on which keys. `thorp web setup` makes the database \
ready. Run `thorp web watchdog` beside the database. With --home the answers themselves say what they \
have read at a Thorp home (Thorp-Evidence, Thorp-Reads), and that home says when it changes. Answers that no recipe names are cached as their \
Cache-Control says; without --recipe these are all.

Examples:
  thorp web --origin http://127.0.0.1:8000 --postgres postgresql:///shop --recipe shop.toml
  thorp web --origin http://127.0.0.1:8000,http://127.0.0.1:8001
  thorp web --origin http://127.0.0.1:8000 --home alps=alps/web.table --recipe auction.toml";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

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
