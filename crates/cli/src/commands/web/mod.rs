//! `thorp web`: a reverse proxy whose cache is never stale.

mod beside;
mod check;
mod keeper;
mod noting;
mod setup;
mod source;
mod status;
mod updates;
mod watchdog;

use super::node::{Shutdown, shutdown};
use super::{say, say_json};
use crate::failure::{Code, Failure};
use beside::Beside;
use clap::{Args, Subcommand};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_server::Bytes;
use thorp_versions::Followed;
use thorp_web::{Proxy, REQUEST_LIFE, Tls, serve, serve_tls};
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
    /// See which unsafe requests are under way, and end what stays open
    Updates(updates::Options),
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
    /// Each unsafe request (POST, PUT ...) is a change: no database is watched
    #[arg(long, requires = "recipe", conflicts_with = "postgres")]
    requests: bool,
    /// With --requests: the longest time in seconds that the origin works on one request
    #[arg(long, value_name = "SECONDS", requires = "requests", default_value_t = REQUEST_LIFE.as_secs())]
    #[arg(value_parser = source::seconds())]
    request_seconds: u64,
    /// With --requests: where the application may say by /begin and /end that something changes
    #[arg(long, value_name = "IP:PORT", requires_all = ["requests", "calls_secret"])]
    calls: Option<String>,
    /// The file with the secret of --calls: one line of at least 16 letters
    #[arg(long, value_name = "FILE", requires = "calls")]
    calls_secret: Option<PathBuf>,
    /// What rows and answers stand for: a file, or the name of a recipe that comes with Thorp (mediawiki, wagtail)
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
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
        (Some(Command::Updates(options)), _) => updates::run(options),
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
    noting::fits(options, &recipe)?;
    let tls = tls(options)?;
    let beside = match database {
        Some(database) => Some(Beside::of(options, database, &recipe)?),
        None if options.requests => Some(Beside::of_requests(options)?),
        None => None,
    };
    // Without a database no answer is checked against a table.
    let nothing = || Arc::new(Followed::new(PathBuf::new(), recipe.terms("")));
    let reader = beside.as_ref().map_or_else(nothing, Beside::reader);
    let cache_bytes = options.cache_bytes.0;
    let proxy = Proxy::new(&options.origin, recipe, reader, cache_bytes).map_err(usage)?;
    let proxy = match beside.as_ref().and_then(Beside::requests) {
        Some(requests) => proxy.with_requests(requests),
        None => proxy,
    };
    source::log(&options.log_level)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        until(options, (tls, beside), Arc::new(proxy), shutdown).await
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

async fn until(
    options: &ProxyOptions,
    (tls, beside): (Option<Tls>, Option<Beside>),
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
    let beside = match beside {
        Some(beside) => Some(beside.run().await?),
        None => None,
    };
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
    let ended = match beside {
        Some(beside) => beside.end().await,
        None => Ok(()),
    };
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
ready. Run `thorp web watchdog` beside the database. Answers that no recipe names are cached as their \
Cache-Control says; without --recipe these are all.

With --requests no database is watched: each unsafe request (POST, PUT, DELETE ...) is a change, from \
before it is sent on until its whole answer has come. The application must change nothing otherwise.

Examples:
  thorp web --origin http://127.0.0.1:8000 --postgres postgresql:///shop --recipe shop.toml
  thorp web --origin http://127.0.0.1:8000 --requests --recipe pages.toml
  thorp web --origin http://127.0.0.1:8000,http://127.0.0.1:8001";

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
