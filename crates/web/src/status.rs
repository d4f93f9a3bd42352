//! What a keeper's process writes beside its table about itself, for people and programs that have no way to ask it.

use crate::clock;
use crate::journal::Noted;
use crate::postgres::{Health, Report};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// How often it is written, and at each change.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// An older one is that of a keeper that is gone, or hangs.
const AGE_MS_MAX: u64 = 3_000;

/// What a keeper says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// Its name in the database.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// Commits wait for it, and proxies may serve hits.
    pub live: bool,
    /// Why not.
    pub why: Option<String>,
    /// All commits of the last minute have waited for it.
    pub coherent: bool,
    /// The sessions whose transactions it awaits before it is live.
    pub awaits: Vec<String>,
    /// Updates that it has decoded, and that are not known to be visible.
    pub open_updates: usize,
    /// Commits that change something.
    pub commits: u64,
    /// Those of them that ended all answers.
    pub unknown: u64,
    /// Those of them that did not wait for it.
    pub not_waited: u64,
    /// Commits that have waited until it had looked at them.
    pub waits: u64,
    /// How long they have waited together, in microseconds: from when it had each one until it acknowledged it.
    pub waited_us: u64,
    /// The longest of these, in microseconds.
    pub waited_us_max: u64,
    /// When this was written, in milliseconds since the machine started.
    pub written_ms: u64,
}

impl Status {
    fn of(name: &str, report: &Report) -> Self {
        let why = match &report.health {
            Health::Live => None,
            Health::Away(why) => Some(why.clone()),
        };
        Status {
            name: name.to_owned(),
            process: std::process::id(),
            live: why.is_none(),
            why,
            coherent: report.is_coherent(),
            awaits: report.awaits.clone(),
            open_updates: report.open,
            commits: report.commits,
            unknown: report.unknown,
            not_waited: report.not_waited,
            waits: report.waits,
            waited_us: micros(report.waited),
            waited_us_max: micros(report.waited_max),
            written_ms: clock::now_ms(),
        }
    }

    /// The status of the keeper of a table. One that is old says so.
    ///
    /// # Errors
    ///
    /// There is no status, or it cannot be read.
    pub fn read(table: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(beside(table, STATUS))?;
        let mut status: Status = serde_json::from_str(&text)?;
        if clock::now_ms().saturating_sub(status.written_ms) > AGE_MS_MAX {
            status.live = false;
            status.why = Some(String::from(
                "it has said nothing for three seconds: it is gone, or hangs",
            ));
        }
        Ok(status)
    }

    /// Whether commits wait, and all do.
    pub fn is_well(&self) -> bool {
        self.live && self.coherent
    }
}

/// Writes the status of a keeper beside its table, until nobody reports any more.
pub async fn write_status(table: PathBuf, name: String, mut report: watch::Receiver<Report>) {
    let mut said = None;
    loop {
        let (status, journal) = {
            let report = report.borrow_and_update();
            (Status::of(&name, &report), report.journal.clone())
        };
        let (table, before) = (table.clone(), said);
        // Beside the keeper's thread: a commit may wait for that.
        let telling = tokio::task::spawn_blocking(move || {
            tell(&beside(&table, STATUS), &status);
            let (version, noted) = journal.since(before)?;
            tell(&beside(&table, UPDATES), &noted);
            Some(version)
        });
        said = telling.await.ok().flatten().or(said);
        // Also without a change: an old one is that of a keeper that is gone.
        if let Ok(Err(_)) = tokio::time::timeout(WRITE_EVERY, report.changed()).await {
            return;
        }
    }
}

/// The last updates of the keeper of a table, and how often keys have changed. None: no keeper has said any.
pub fn read_updates(table: &Path) -> Option<Noted> {
    let text = fs::read(beside(table, UPDATES)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The ends of the names of what a keeper says, after that of its table.
const STATUS: &str = ".status";
const UPDATES: &str = ".updates";

fn tell<T: Serialize>(path: &Path, said: &T) {
    if let Err(error) = write(path, said) {
        tracing::warn!("{}: {error}", path.display());
    }
}

/// Readers see the old one or the new one.
fn write<T: Serialize>(path: &Path, said: &T) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    // Keys are of this user alone: they have parts of rows.
    let mut file = OpenOptions::new();
    let file = file.write(true).create(true).truncate(true).mode(0o600);
    let mut file = file.open(&new)?;
    file.write_all(&serde_json::to_vec(said)?)?;
    fs::rename(&new, path)
}

fn beside(table: &Path, end: &str) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
