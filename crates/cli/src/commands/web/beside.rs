//! What runs beside a proxy with coherent routes: the reader of a keeper's table, and a keeper if there is none; or the readers of the tables
//! of Thorp homes.

use super::config::WebConfig;
use super::noting::{Noting, RunningNoting};
use super::{homes, source, usage};
use crate::failure::Failure;
use crate::text;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{AnySource, Health, Recipe, Requests, Start, follow};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The source of a proxy, and how a keeper is started.
pub(super) struct Beside {
    source: AnySource,
    /// The file by which a keeper's table is found.
    table: Option<PathBuf>,
    start: Option<Start>,
    noting: Option<Noting>,
}

impl Beside {
    /// What a proxy needs. None: nothing says when answers change.
    pub(super) fn of(config: &WebConfig, recipe: &Recipe) -> Result<Option<Self>, Failure> {
        match &config.postgres.url {
            Some(database) => Beside::of_database(config, database, recipe).map(Some),
            None if config.requests.on => Beside::of_requests(config).map(Some),
            None if !config.home.is_empty() => Beside::of_homes(config, recipe).map(Some),
            None => Ok(None),
        }
    }

    /// What a proxy needs whose answers rest on Thorp homes.
    fn of_homes(config: &WebConfig, recipe: &Recipe) -> Result<Self, Failure> {
        Ok(Beside {
            source: AnySource::Homes(homes::homes(&config.home, recipe)?),
            table: None,
            start: None,
            noting: None,
        })
    }

    /// What a proxy in front of a database needs.
    fn of_database(config: &WebConfig, database: &str, recipe: &Recipe) -> Result<Self, Failure> {
        let keeper = &config.keeper;
        let source = source::source(database, &keeper.name)?;
        let table = source::table(keeper.table.as_ref(), &source)?;
        let reader = Followed::new(table.clone(), recipe.terms(&keeper.name));
        let path = config.recipe.as_ref().map(OsString::from);
        let told = Told {
            database: Some(OsString::from(database)),
            words: &[],
            flags: Vec::from([("--recipe", path.unwrap_or_default())]),
        };
        Ok(Beside {
            source: AnySource::Table(Arc::new(reader)),
            start: keeper_of(config, told, &table)?,
            table: Some(table),
            noting: None,
        })
    }

    /// What a proxy needs whose requests are the source.
    fn of_requests(config: &WebConfig) -> Result<Self, Failure> {
        let (reader, noting) = Noting::of(config)?;
        let life = config.requests.seconds.to_string();
        let told = Told {
            database: None,
            words: &["--requests"],
            flags: Vec::from([("--request-seconds", OsString::from(life))]),
        };
        let table = noting.table();
        Ok(Beside {
            source: AnySource::Table(reader),
            start: keeper_of(config, told, &table)?,
            table: Some(table),
            noting: Some(noting),
        })
    }

    /// What is noted of requests, if they are the source.
    pub(super) fn requests(&self) -> Option<Requests> {
        self.noting.as_ref().map(Noting::requests)
    }

    /// The file by which the table of the keeper is found. None: there is no keeper.
    pub(super) fn table(&self) -> Option<PathBuf> {
        self.table.clone()
    }

    /// What answers are checked against.
    pub(super) fn source(&self) -> AnySource {
        self.source.clone()
    }

    /// Follows keepers, or homes, until its end.
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
        let tasks = match self.source {
            AnySource::Homes(homes) => homes::follow(&homes, &stopped),
            AnySource::Table(reader) => {
                let (says, health) = watch::channel(Health::Away(String::from("it starts")));
                let following = tokio::spawn(follow(reader, self.start, says, stopped));
                Vec::from([(following, tokio::spawn(tell(health, live)))])
            }
        };
        let (following, telling) = tasks.into_iter().unzip();
        Ok(Running {
            noting,
            stop,
            following,
            telling,
        })
    }
}

/// Keepers, or homes, are followed.
pub(super) struct Running {
    noting: Option<RunningNoting>,
    stop: watch::Sender<bool>,
    following: Vec<JoinHandle<()>>,
    telling: Vec<JoinHandle<()>>,
}

impl Running {
    /// Ends it in order. The keeper takes its name out of the database, so that no commit waits for it. It outlives requests that are noted.
    pub(super) async fn end(self) -> Result<(), Failure> {
        if let Some(noting) = self.noting {
            noting.end().await;
        }
        self.stop.send_replace(true);
        let mut ended = Ok(());
        for following in self.following {
            let failed = |error| Failure::new(format!("what is followed: {error}"), "");
            ended = ended.and(following.await.map_err(failed));
        }
        self.telling.iter().for_each(JoinHandle::abort);
        ended
    }
}

/// What a keeper is told of its source.
struct Told {
    /// In its environment: the URL may have a password, and everybody sees the words of a command.
    database: Option<OsString>,
    words: &'static [&'static str],
    flags: Vec<(&'static str, OsString)>,
}

/// How a keeper of the same source is started beside the proxy. It ends in order when the proxy ends, also if that is killed. None: the
/// operator wants none.
fn keeper_of(config: &WebConfig, told: Told, table: &PathBuf) -> Result<Option<Start>, Failure> {
    if !config.keeper.start {
        return Ok(None);
    }
    let program = std::env::current_exe()
        .map_err(|error| usage(format!("the program does not find itself: {error}")))?;
    let mut flags = told.flags;
    flags.extend([
        ("--table", OsString::from(table)),
        ("--name", OsString::from(&config.keeper.name)),
        ("--log-level", OsString::from(&config.log.level)),
    ]);
    Ok(Some(Box::new(move || {
        let mut command = tokio::process::Command::new(&program);
        command.args(["web", "keeper", "--until-stdin-closes"]);
        command.args(told.words);
        match &told.database {
            Some(url) => command.env("THORP_POSTGRES", url),
            None => command.env_remove("THORP_POSTGRES"),
        };
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
            Health::Away(why) => {
                eprintln!("away: {}. All requests go to the origin", text::name(why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_password_is_no_word_of_the_keepers_command() {
        let url = "postgresql://thorp:secret@localhost/shop";
        let told = Told {
            database: Some(OsString::from(url)),
            words: &[],
            flags: Vec::new(),
        };
        let start = keeper_of(&WebConfig::default(), told, &PathBuf::from("a.table"));
        let start = start.expect("the program finds itself");
        let command = start.expect("a keeper")();
        let command = command.as_std();
        let has = |word: &OsStr| word.to_string_lossy().contains("secret");
        assert!(!command.get_args().any(has));
        let mut given = command.get_envs();
        assert!(
            given.any(|(name, value)| name == "THORP_POSTGRES" && value == Some(OsStr::new(url)))
        );
    }
}
