//! `thorp web keeper`: notes what each commit of a database changes, before anybody can see it.

use super::source::{log, recipe, runtime, source, table};
use crate::commands::node::{Shutdown, shutdown};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text;
use clap::Args;
use std::path::PathBuf;
use std::process::id;
use std::sync::Arc;
use thorp_versions::{Kept, TableError, Writer};
use thorp_web::{Health, Postgres, Recipe, Report, keep, random_id, write_status};
use tokio::sync::watch;

/// What `thorp web keeper` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database, as postgresql:///shop. Give a URL with a password in the environment
    #[arg(
        long,
        value_name = "URL",
        env = "THORP_POSTGRES",
        hide_env_values = true
    )]
    postgres: String,
    /// What rows stand for: a file, or the name of a recipe that comes with Thorp (mediawiki, wagtail)
    #[arg(long, value_name = "FILE")]
    recipe: PathBuf,
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
    let source = source(&options.postgres, &options.name)?;
    let recipe = recipe(&options.recipe)?;
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
        let table = self.table.display().to_string();
        match options.json {
            true => say_json(&serde_json::json!({
                "name": options.name, "process": id(), "table": table
            }))?,
            false => say(&format!("ready: it keeps {table}"))?,
        }
        let status = write_status(self.table, options.name.clone(), report.clone());
        let status = tokio::spawn(status);
        let telling = tokio::spawn(tell(report));
        let keeping = keep(self.source, self.recipe, self.writer, says, stopped);
        let mut keeping = std::pin::pin!(keeping);
        let kept = tokio::select! {
            kept = keeping.as_mut() => kept,
            () = shutdown => {
                stop.send_replace(true);
                keeping.await
            }
        };
        status.abort();
        telling.abort();
        kept.map_err(|error| {
            let what = format!("commits go on waiting for the keeper, which has ended: {error}");
            let action = "run ALTER SYSTEM SET synchronous_standby_names = ''; and SELECT pg_reload_conf(); as a superuser, four seconds after all proxies have ended";
            Failure::new(what, action)
        })
    }
}

/// Says what becomes of it.
async fn tell(mut report: watch::Receiver<Report>) {
    let mut before = Report::new();
    while report.changed().await.is_ok() {
        let now = report.borrow_and_update().clone();
        if now.health != before.health {
            match &now.health {
                Health::Live => eprintln!("keeper: live. Commits wait for it"),
                Health::Away(why) => eprintln!("keeper: away. {}", text::name(why)),
            }
        }
        let is_new = |session: &&String| {
            let mut said = before.awaits.iter();
            !said.any(|said| lasting(said) == lasting(session))
        };
        for session in now.awaits.iter().filter(is_new) {
            eprintln!(
                "keeper: it awaits the transaction of {}",
                text::name(session)
            );
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

Examples:
  thorp web keeper --postgres postgresql:///shop --recipe shop.toml";
