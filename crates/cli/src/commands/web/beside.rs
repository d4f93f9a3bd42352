//! What runs beside a proxy with coherent routes: the reader of a keeper's table, and a keeper if there is none.

use super::{ProxyOptions, source, usage};
use crate::failure::Failure;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{Health, Recipe, Start, follow};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The reader of a keeper's table, and how a keeper is started.
pub(super) struct Beside {
    reader: Arc<Followed>,
    start: Option<Start>,
}

impl Beside {
    /// What a proxy in front of a database needs.
    pub(super) fn of(
        options: &ProxyOptions,
        (database, path): (&str, &Path),
        recipe: &Recipe,
    ) -> Result<Self, Failure> {
        let source = source::source(database, &options.name)?;
        let table = source::table(options.table.as_ref(), &source)?;
        let reader = Followed::new(table.clone(), recipe.terms(&options.name));
        let start = match options.no_keeper {
            true => None,
            false => Some(keeper_of(options, (database, path), table)?),
        };
        Ok(Beside {
            reader: Arc::new(reader),
            start,
        })
    }

    /// The reader of the table.
    pub(super) fn reader(&self) -> Arc<Followed> {
        Arc::clone(&self.reader)
    }

    /// Follows keepers until it is told to stop.
    pub(super) fn run(self, stopped: watch::Receiver<bool>) -> Running {
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let following = follow(self.reader, self.start, says, stopped);
        Running::new(tokio::spawn(following), tokio::spawn(tell(health)))
    }
}

/// Keepers are followed.
pub(super) struct Running {
    following: JoinHandle<()>,
    telling: JoinHandle<()>,
}

impl Running {
    /// A task that follows something, and one that says what becomes of it.
    pub(super) fn new(following: JoinHandle<()>, telling: JoinHandle<()>) -> Self {
        Running { following, telling }
    }

    /// Waits for the end. The keeper takes its name out of the database, so that no commit waits for it.
    pub(super) async fn end(self) -> Result<(), Failure> {
        let followed = self.following.await;
        self.telling.abort();
        followed.map_err(|error| Failure::new(format!("the keeper: {error}"), ""))
    }
}

/// How a keeper of the same database is started beside the proxy. It ends in order when the proxy ends, also if that is killed.
fn keeper_of(
    options: &ProxyOptions,
    (database, recipe): (&str, &Path),
    table: PathBuf,
) -> Result<Start, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| usage(format!("the program does not find itself: {error}")))?;
    let flags = [
        ("--postgres", OsString::from(database)),
        ("--recipe", OsString::from(recipe)),
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

/// Says when there are hits and when there are none.
async fn tell(mut health: watch::Receiver<Health>) {
    while health.changed().await.is_ok() {
        match &*health.borrow_and_update() {
            Health::Live => eprintln!("live: commits wait for the keeper, and answers are kept"),
            Health::Away(why) => eprintln!("away: {why}. All requests go to the origin"),
        }
    }
}
