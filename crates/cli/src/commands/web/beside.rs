//! What runs beside a proxy with coherent routes: the reader of a keeper's table, and a keeper if there is none.

use super::config::WebConfig;
use super::noting::{Noting, RunningNoting};
use super::{source, usage};
use crate::failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{Health, Recipe, Requests, Start, follow};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The reader of a keeper's table, and how a keeper is started.
pub(super) struct Beside {
    reader: Arc<Followed>,
    table: PathBuf,
    start: Option<Start>,
    noting: Option<Noting>,
}

impl Beside {
    /// What a proxy needs. None: nothing says when answers change.
    pub(super) fn of(config: &WebConfig, recipe: &Recipe) -> Result<Option<Self>, Failure> {
        match &config.postgres.url {
            Some(database) => Beside::of_database(config, database, recipe).map(Some),
            None if config.requests.on => Beside::of_requests(config).map(Some),
            None => Ok(None),
        }
    }

    /// What a proxy in front of a database needs.
    fn of_database(config: &WebConfig, database: &str, recipe: &Recipe) -> Result<Self, Failure> {
        let keeper = &config.keeper;
        let source = source::source(database, &keeper.name)?;
        let table = source::table(keeper.table.as_ref(), &source)?;
        let reader = Followed::new(table.clone(), recipe.terms(&keeper.name));
        let path = config.recipe.as_ref().map(OsString::from);
        let flags = [
            ("--postgres", OsString::from(database)),
            ("--recipe", path.unwrap_or_default()),
        ];
        Ok(Beside {
            reader: Arc::new(reader),
            start: keeper_of(config, &[], &flags, &table)?,
            table,
            noting: None,
        })
    }

    /// What a proxy needs whose requests are the source.
    fn of_requests(config: &WebConfig) -> Result<Self, Failure> {
        let (reader, noting) = Noting::of(config)?;
        let life = config.requests.seconds.to_string();
        let flags = [("--request-seconds", OsString::from(life))];
        let table = noting.table();
        Ok(Beside {
            reader,
            start: keeper_of(config, &["--requests"], &flags, &table)?,
            table,
            noting: Some(noting),
        })
    }

    /// What is noted of requests, if they are the source.
    pub(super) fn requests(&self) -> Option<Requests> {
        self.noting.as_ref().map(Noting::requests)
    }

    /// The file by which the table is found.
    pub(super) fn table(&self) -> PathBuf {
        self.table.clone()
    }

    /// The reader of the table.
    pub(super) fn reader(&self) -> Arc<Followed> {
        Arc::clone(&self.reader)
    }

    /// Follows keepers until its end.
    pub(super) async fn run(self) -> Result<Running, Failure> {
        let live = match self.noting {
            Some(_) => "unsafe requests are noted",
            None => "commits wait for the keeper",
        };
        let noting = match self.noting {
            Some(noting) => Some(noting.run().await?),
            None => None,
        };
        let (stop, stopped) = watch::channel(false);
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let following = follow(self.reader, self.start, says, stopped);
        Ok(Running {
            noting,
            stop,
            following: tokio::spawn(following),
            telling: tokio::spawn(tell(health, live)),
        })
    }
}

/// Keepers are followed.
pub(super) struct Running {
    noting: Option<RunningNoting>,
    stop: watch::Sender<bool>,
    following: JoinHandle<()>,
    telling: JoinHandle<()>,
}

impl Running {
    /// Ends it in order. The keeper takes its name out of the database, so that no commit waits for it. It outlives requests that are noted.
    pub(super) async fn end(self) -> Result<(), Failure> {
        if let Some(noting) = self.noting {
            noting.end().await;
        }
        self.stop.send_replace(true);
        let followed = self.following.await;
        self.telling.abort();
        followed.map_err(|error| Failure::new(format!("the keeper: {error}"), ""))
    }
}

/// How a keeper of the same source is started beside the proxy. It ends in order when the proxy ends, also if that is killed. None: the
/// operator wants none.
fn keeper_of(
    config: &WebConfig,
    words: &'static [&'static str],
    source: &[(&'static str, OsString)],
    table: &PathBuf,
) -> Result<Option<Start>, Failure> {
    if !config.keeper.start {
        return Ok(None);
    }
    let program = std::env::current_exe()
        .map_err(|error| usage(format!("the program does not find itself: {error}")))?;
    let common = [
        ("--table", OsString::from(table)),
        ("--name", OsString::from(&config.keeper.name)),
        ("--log-level", OsString::from(&config.log.level)),
    ];
    let flags = [source, &common].concat();
    Ok(Some(Box::new(move || {
        let mut command = tokio::process::Command::new(&program);
        command.args(["web", "keeper", "--until-stdin-closes"]);
        command.args(words);
        for (flag, value) in &flags {
            command.arg(flag).arg(value);
        }
        command.stdout(Stdio::null());
        command
    })))
}

/// Says when there are hits and when there are none.
async fn tell(mut health: watch::Receiver<Health>, live: &str) {
    while health.changed().await.is_ok() {
        match &*health.borrow_and_update() {
            Health::Live => eprintln!("live: {live}, and answers are kept"),
            Health::Away(why) => eprintln!("away: {why}. All requests go to the origin"),
        }
    }
}
