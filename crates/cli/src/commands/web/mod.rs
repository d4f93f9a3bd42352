//! `thorp web`: a reverse proxy whose cache is never stale.

mod watchdog;

use super::node::{Shutdown, shutdown};
use super::{say, say_json};
use crate::failure::{Code, Failure};
use clap::{Args, Subcommand};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_server::{Bytes, LogConfig, init_logs};
use thorp_versions::{Memory, Reader, Writer};
use thorp_web::{Health, Postgres, Proxy, Recipe, Tls, keep, serve, serve_tls};
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
    /// Let commits go on when `thorp web` is gone
    Watchdog(watchdog::Options),
}

/// What the proxy is told.
#[derive(Args, Debug)]
struct ProxyOptions {
    /// The application, as http://127.0.0.1:8000; several addresses with commas between them
    #[arg(long, value_name = "URL")]
    origin: String,
    /// Its database, as postgresql://postgres@localhost/wiki; its role has to be a superuser
    #[arg(long, value_name = "URL", requires = "recipe")]
    postgres: Option<String>,
    /// What rows and answers stand for: a file, or the name of a recipe that comes with Thorp (mediawiki)
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
        (Some(Command::Watchdog(options)), _) => watchdog::run(options),
        (None, Some(options)) => run_proxy(options),
        (None, None) => Err(usage("nothing was named to stand in front of")),
    }
}

fn run_proxy(options: &ProxyOptions) -> Result<(), Failure> {
    let source = options.postgres.as_ref();
    let source = source.map(|address| Postgres::new(address, &options.name));
    let source = source.transpose().map_err(usage)?;
    let recipe = Arc::new(recipe(options)?);
    if source.is_none() && recipe.has_routes() {
        let what = "the recipe has routes, and nothing says when their answers change";
        let action = "name the database with --postgres, or leave the routes out of the recipe";
        return Err(Failure::new(what, action).with(Code::Usage));
    }
    let tls = tls(options)?;
    let table = Arc::new(Memory::new());
    let kept = source.map(|source| Kept {
        source,
        recipe: Arc::clone(&recipe),
        writer: Writer::new(Arc::clone(&table)),
    });
    let cache_bytes = options.cache_bytes.0;
    let reader = Reader::new(table);
    let proxy = Proxy::new(&options.origin, recipe, reader, cache_bytes).map_err(usage)?;
    let log = LogConfig {
        level: options.log_level.clone(),
        ..LogConfig::default()
    };
    init_logs(&log).map_err(|error| Failure::new(error.to_string(), "").with(Code::Usage))?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        until(options, tls, kept, Arc::new(proxy), shutdown).await
    })
}

/// A recipe that comes with Thorp, or one in a file. Without one, no answer is coherent.
fn recipe(options: &ProxyOptions) -> Result<Recipe, Failure> {
    let Some(path) = &options.recipe else {
        return Ok(Recipe::default());
    };
    let text = match path.to_str().and_then(Recipe::shipped) {
        Some(text) => text.to_owned(),
        None => fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?,
    };
    Recipe::parse(&text).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        Failure::new(what, "mend the recipe").with(Code::Usage)
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

/// A source, and who writes its table.
struct Kept {
    source: Postgres,
    recipe: Arc<Recipe>,
    writer: Writer<Arc<Memory>>,
}

async fn until(
    options: &ProxyOptions,
    tls: Option<Tls>,
    kept: Option<Kept>,
    proxy: Arc<Proxy<Arc<Memory>>>,
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
    let kept = kept.map(|kept| {
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let keeper = keep(kept.source, kept.recipe, kept.writer, says, stopped.clone());
        (tokio::spawn(keeper), tokio::spawn(tell(health)))
    });
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
    if let Some((keeper, telling)) = kept {
        // The keeper takes its name out of the database, so that no commit waits for it.
        ended = keeper.await;
        telling.abort();
    }
    served.map_err(|error| Failure::new(format!("{address}: {error}"), ""))?;
    ended.map_err(|error| Failure::new(format!("the keeper: {error}"), ""))
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
that from the database: each commit waits until `thorp web` has noted what it changes. A recipe says \
which keys a row stands for, and which answers rest on which keys. The \
database needs wal_level=logical, and a publication: CREATE PUBLICATION thorp FOR ALL TABLES. While \
`thorp web` is killed or stopped, commits wait for it: end it with SIGTERM, and run `thorp web \
watchdog` beside the database. Answers that no recipe names are cached as their Cache-Control says; \
without --recipe these are all.

Examples:
  thorp web --origin http://127.0.0.1:8000 --postgres postgresql:///shop --recipe shop.toml
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
