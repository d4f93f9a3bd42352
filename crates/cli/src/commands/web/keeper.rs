//! `thorp web keeper`: notes what each commit of a database changes, or each unsafe request, before anybody can see it.

use super::source::{log, recipe, runtime, seconds, source, table, table_by_name};
use crate::commands::node::{Shutdown, shutdown};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::id;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Kept, TableError, Writer};
use thorp_web::{
    Health, Postgres, REQUEST_LIFE, Recipe, Report, keep, keep_requests, random_id,
    terms_of_requests, write_status,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What `thorp web keeper` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database, as postgresql:///shop. Give a URL with a password in the environment
    #[arg(
        long,
        value_name = "URL",
        env = "THORP_POSTGRES",
        hide_env_values = true,
        requires = "recipe",
        required_unless_present = "requests"
    )]
    postgres: Option<String>,
    /// What rows stand for: a file, or the name of a recipe that comes with Thorp (mediawiki, wagtail)
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// Note what unsafe requests (POST, PUT ...) change, instead of commits
    #[arg(long, conflicts_with_all = ["postgres", "recipe"])]
    requests: bool,
    /// With --requests: the longest time in seconds that the origin works on one request
    #[arg(long, value_name = "SECONDS", requires = "requests", default_value_t = REQUEST_LIFE.as_secs())]
    #[arg(value_parser = seconds())]
    request_seconds: u64,
    /// The file by which proxies find its table [default: one of the database, in a directory of this user]
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// What its publication, slot and standby are called in the database
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: String,
    /// Tell in JSON which file it has, once it runs
    #[arg(long)]
    json: bool,
    /// Shut down when standard input ends: for programs that start this one
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Runs until it is told to end.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let (Some(postgres), Some(path)) = (&options.postgres, &options.recipe) else {
        return run_of_requests(options);
    };
    let source = source(postgres, &options.name)?;
    let recipe = recipe(path)?;
    let table = table(options.table.as_ref(), &source)?;
    log(&options.log_level)?;
    let kept = Kept::make(&table, recipe.terms(&options.name), random_id());
    let writer = Writer::new(kept.map_err(refused)?);
    let kept = Keeping {
        source,
        recipe: Arc::new(recipe),
        table,
        writer,
    };
    runtime()?.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        kept.until(options, shutdown).await
    })
}

fn refused(error: TableError) -> Failure {
    let code = match error {
        TableError::Io(..) => Code::Failed,
        _ => Code::Usage,
    };
    Failure::new(error.to_string(), "").with(code)
}

/// What a keeper says of its source.
#[derive(Clone, Copy)]
struct Words {
    live: &'static str,
    awaited: &'static str,
}

const OF_DATABASE: Words = Words {
    live: "Commits wait for it",
    awaited: "the transaction of ",
};
const OF_REQUESTS: Words = Words {
    live: "Unsafe requests wait for it",
    awaited: "the proxy of ",
};

/// Notes what requests change.
fn run_of_requests(options: &Options) -> Result<(), Failure> {
    let table = table_by_name(options.table.as_ref(), &options.name)?;
    log(&options.log_level)?;
    let kept = Kept::make(&table, terms_of_requests(&options.name), random_id());
    let writer = Writer::new(kept.map_err(refused)?);
    let life = Duration::from_secs(options.request_seconds);
    runtime()?.block_on(async {
        let shutdown = shutdown(options.until_stdin_closes)?;
        let (says, report) = watch::channel(Report::new());
        let telling = begin_telling(options, &table, report, OF_REQUESTS)?;
        let (stop, stopped) = watch::channel(false);
        let keeping = keep_requests(&table, writer, life, says, stopped);
        let mut keeping = std::pin::pin!(keeping);
        let kept = tokio::select! {
            kept = keeping.as_mut() => kept,
            () = shutdown => {
                stop.send_replace(true);
                keeping.await
            }
        };
        telling.iter().for_each(JoinHandle::abort);
        kept.map_err(|error| Failure::new(error.to_string(), "start it again"))
    })
}

/// Says that it runs, and how it is doing from then on.
fn begin_telling(
    options: &Options,
    table: &Path,
    report: watch::Receiver<Report>,
    words: Words,
) -> Result<[JoinHandle<()>; 2], Failure> {
    let at = table.display().to_string();
    match options.json {
        true => say_json(&serde_json::json!({
            "name": options.name, "process": id(), "table": at
        }))?,
        false => say(&format!("ready: it keeps {at}"))?,
    }
    let status = write_status(table.to_owned(), options.name.clone(), report.clone());
    Ok([tokio::spawn(status), tokio::spawn(tell(report, words))])
}

/// A database, and who writes its table.
struct Keeping {
    source: Postgres,
    recipe: Arc<Recipe>,
    table: PathBuf,
    writer: Writer<Kept>,
}

impl Keeping {
    async fn until(self, options: &Options, shutdown: Shutdown) -> Result<(), Failure> {
        let (stop, stopped) = watch::channel(false);
        let (says, report) = watch::channel(Report::new());
        let telling = begin_telling(options, &self.table, report, OF_DATABASE)?;
        let keeping = keep(self.source, self.recipe, self.writer, says, stopped);
        let mut keeping = std::pin::pin!(keeping);
        let kept = tokio::select! {
            kept = keeping.as_mut() => kept,
            () = shutdown => {
                stop.send_replace(true);
                keeping.await
            }
        };
        telling.iter().for_each(JoinHandle::abort);
        kept.map_err(|error| {
            let what = format!("commits go on waiting for the keeper, which has ended: {error}");
            let action = "run ALTER SYSTEM SET synchronous_standby_names = ''; and SELECT pg_reload_conf(); as a superuser, four seconds after all proxies have ended";
            Failure::new(what, action)
        })
    }
}

/// Says what becomes of it.
async fn tell(mut report: watch::Receiver<Report>, Words { live, awaited }: Words) {
    let mut before = Report::new();
    while report.changed().await.is_ok() {
        let now = report.borrow_and_update().clone();
        if now.health != before.health {
            match &now.health {
                Health::Live => eprintln!("keeper: live. {live}"),
                Health::Away(why) => eprintln!("keeper: away. {}", text::name(why)),
            }
        }
        let is_new = |session: &&String| {
            let mut said = before.awaits.iter();
            !said.any(|said| lasting(said) == lasting(session))
        };
        for session in now.awaits.iter().filter(is_new) {
            eprintln!("keeper: it awaits {awaited}{}", text::name(session));
        }
        if before.not_waited == 0 && now.not_waited > 0 {
            eprintln!(
                "keeper: a commit did not wait for it. Others may have seen older answers for a moment: see `thorp web check --postgres URL --recipe FILE`"
            );
        }
        before = now;
    }
}

/// The process and the role of a session: what it does, and for how long, changes while it is awaited.
fn lasting(session: &str) -> &str {
    session
        .split_once(" (")
        .map_or(session, |(lasting, _)| lasting)
}

const HELP: &str = "\
It is a synchronous standby of the database: each commit waits until it has noted what the commit \
changes. `thorp web` reads that, and starts a keeper beside itself if there is none. Run one with this \
command for several proxies on one machine. End it with SIGTERM: if it is killed, commits wait until \
it is back, or until `thorp web watchdog` lets them go on.

With --requests it notes what unsafe requests change, for proxies with --requests. No process waits \
for it then but these proxies: without it they answer 503 to unsafe requests.

Examples:
  thorp web keeper --postgres postgresql:///shop --recipe shop.toml
  thorp web keeper --requests";
