//! What runs beside a proxy with coherent routes: the reader of a keeper's table, and a keeper if there is none.

use super::config::WebConfig;
use super::{source, usage};
use crate::failure::Failure;
use crate::text;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{Health, Recipe, Start, follow};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The reader of a keeper's table, and how a keeper is started.
pub(super) struct Beside {
    reader: Arc<Followed>,
    table: PathBuf,
    start: Option<Start>,
}

impl Beside {
    /// What a proxy in front of a database needs. None: there is no database.
    pub(super) fn of(config: &WebConfig, recipe: &Recipe) -> Result<Option<Self>, Failure> {
        let postgres = &config.postgres;
        let Some(database) = &postgres.url else {
            return Ok(None);
        };
        let source = source::source(database, &postgres.name)?;
        let table = source::table(postgres.table.as_ref(), &source)?;
        let reader = Followed::new(table.clone(), recipe.terms(&postgres.name));
        let start = match postgres.keeper {
            true => Some(keeper_of(config, database, table.clone())?),
            false => None,
        };
        Ok(Some(Beside {
            reader: Arc::new(reader),
            table,
            start,
        }))
    }

    /// The file by which the table is found.
    pub(super) fn table(&self) -> PathBuf {
        self.table.clone()
    }

    /// The reader of the table.
    pub(super) fn reader(&self) -> Arc<Followed> {
        Arc::clone(&self.reader)
    }

    /// Follows keepers until the end.
    pub(super) fn run(self) -> Running {
        let (stop, stopped) = watch::channel(false);
        let (says, health) = watch::channel(Health::Away(String::from("it starts")));
        let following = follow(self.reader, self.start, says, stopped);
        Running {
            stop,
            following: tokio::spawn(following),
            telling: tokio::spawn(tell(health)),
        }
    }
}

/// Keepers are followed.
pub(super) struct Running {
    stop: watch::Sender<bool>,
    following: JoinHandle<()>,
    telling: JoinHandle<()>,
}

impl Running {
    /// Ends it. The keeper takes its name out of the database, so that no commit waits for it.
    pub(super) async fn end(self) -> Result<(), Failure> {
        self.stop.send_replace(true);
        let followed = self.following.await;
        self.telling.abort();
        followed.map_err(|error| Failure::new(format!("the keeper: {error}"), ""))
    }
}

/// How a keeper of the same database is started beside the proxy. It ends in order when the proxy ends, also if that is killed.
fn keeper_of(config: &WebConfig, database: &str, table: PathBuf) -> Result<Start, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| usage(format!("the program does not find itself: {error}")))?;
    let recipe = config.recipe.as_ref().map(OsString::from);
    let database = OsString::from(database);
    let flags = [
        ("--recipe", recipe.unwrap_or_default()),
        ("--table", OsString::from(table)),
        ("--name", OsString::from(&config.postgres.name)),
        ("--log-level", OsString::from(&config.log.level)),
    ];
    Ok(Box::new(move || {
        let mut command = tokio::process::Command::new(&program);
        command.args(["web", "keeper", "--until-stdin-closes"]);
        // It may have a password, and everybody sees the words of a command.
        command.env("THORP_POSTGRES", &database);
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
        let start = keeper_of(&WebConfig::default(), url, PathBuf::from("a.table"));
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
