//! What runs beside a proxy with coherent routes: the reader of a keeper's table, and a keeper if there is none.

use super::noting::{Noting, RunningNoting};
use super::{ProxyOptions, source, usage};
use crate::failure::Failure;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{Health, Recipe, Requests, Start, follow};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The reader of a keeper's table, and how a keeper is started.
pub(super) struct Beside {
    reader: Arc<Followed>,
    start: Option<Start>,
    noting: Option<Noting>,
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
            false => {
                let flags = [
                    ("--postgres", OsString::from(database)),
                    ("--recipe", OsString::from(path)),
                ];
                Some(keeper_of(options, &[], &flags, table)?)
            }
        };
        Ok(Beside {
            reader: Arc::new(reader),
            start,
            noting: None,
        })
    }

    /// What a proxy needs whose requests are the source.
    pub(super) fn of_requests(options: &ProxyOptions) -> Result<Self, Failure> {
        let (reader, noting) = Noting::of(options)?;
        let start = match options.no_keeper {
            true => None,
            false => {
                let life = options.request_seconds.to_string();
                let flags = [("--request-seconds", OsString::from(life))];
                let table = noting.table();
                Some(keeper_of(options, &["--requests"], &flags, table)?)
            }
        };
        Ok(Beside {
            reader,
            start,
            noting: Some(noting),
        })
    }

    /// What is noted of requests, if they are the source.
    pub(super) fn requests(&self) -> Option<Requests> {
        self.noting.as_ref().map(Noting::requests)
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

/// How a keeper of the same source is started beside the proxy. It ends in order when the proxy ends, also if that is killed.
fn keeper_of(
    options: &ProxyOptions,
    words: &'static [&'static str],
    source: &[(&'static str, OsString)],
    table: PathBuf,
) -> Result<Start, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| usage(format!("the program does not find itself: {error}")))?;
    let common = [
        ("--table", OsString::from(table)),
        ("--name", OsString::from(&options.name)),
        ("--log-level", OsString::from(&options.log_level)),
    ];
    let flags = [source, &common].concat();
    Ok(Box::new(move || {
        let mut command = tokio::process::Command::new(&program);
        command.args(["web", "keeper", "--until-stdin-closes"]);
        command.args(words);
        for (flag, value) in &flags {
            command.arg(flag).arg(value);
        }
        command.stdout(Stdio::null());
        command
    }))
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
