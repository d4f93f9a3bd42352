//! The watchdog beside a database: commits go on without a keeper that is gone or hangs (rule W7).

use super::config::Postgres;
use super::error::PostgresError;
use super::standby;
use std::collections::BTreeMap;
use std::time::Duration;
use thorp_versions::BEAT_MS_MAX;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Client;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long a commit may wait for a keeper, and how long a keeper may be gone.
const WAITED_MAX: Duration = Duration::from_millis(BEAT_MS_MAX);

/// How long nobody beats any more before commits go on. Then no reader has a young beat.
const GONE_FOR: Duration = Duration::from_millis(2 * BEAT_MS_MAX);

/// What a watchdog has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Watched {
    /// It looks, and commits wait for a keeper that answers; or for nobody.
    Well,
    /// It has let commits go on without their keeper: why.
    LetGo(String),
    /// It cannot look.
    Blind(String),
}

/// Watches over the keeper of this name, until it is told to stop.
pub async fn watch_over(
    source: Postgres,
    says: watch::Sender<Watched>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let watched = tokio::select! {
            watched = look(&source, &says) => watched,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        if let Err(error) = watched {
            says.send_replace(Watched::Blind(error.to_string()));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// What its session is called in the database. `check` looks for it.
pub(super) fn program(name: &str) -> String {
    format!("thorp watchdog {name}")
}

/// Looks again and again, over one connection.
async fn look(source: &Postgres, says: &watch::Sender<Watched>) -> Result<(), PostgresError> {
    let client = source.connect_as(&program(source.name())).await?;
    let mut patience = Patience::default();
    loop {
        let names = standby::names(&client).await?;
        let why = if names == standby::gone(source.name()) {
            // A watchdog has ended half way.
            Some(String::from("a watchdog had begun to"))
        } else if names == standby::only(source.name()) {
            patience.look(&client, source.name()).await?
        } else {
            patience = Patience::default();
            None
        };
        match why {
            Some(why) => {
                tracing::warn!("commits go on without {}: {why}", source.name());
                let_go(&client, source.name()).await?;
                patience = Patience::default();
                says.send_replace(Watched::LetGo(why));
            }
            None => {
                says.send_if_modified(|said| match said {
                    Watched::Blind(_) => {
                        *said = Watched::Well;
                        true
                    }
                    _ => false,
                });
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Lets commits go on without their keeper. First the answer to *do you wait for me* is no: the names are those of nobody. Then every beat
/// grows old. Only then commits go on (trap W25).
async fn let_go(client: &Client, name: &str) -> Result<(), PostgresError> {
    standby::end(client, name).await?;
    tokio::time::sleep(GONE_FOR).await;
    standby::remove(client, name).await
}

/// Since when commits wait, and since when the keeper's stream is away.
#[derive(Debug, Default)]
struct Patience {
    waiting: BTreeMap<(i32, String), Instant>,
    away: Option<Instant>,
}

impl Patience {
    /// Why commits are not to wait any longer.
    async fn look(&mut self, client: &Client, name: &str) -> Result<Option<String>, PostgresError> {
        let now = Instant::now();
        let question = "SELECT pid, coalesce(backend_xid::text, '') FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        let rows = client.query(question, &[]).await?;
        let found = rows.iter().map(|row| (row.get(0), row.get(1)));
        let before = std::mem::take(&mut self.waiting);
        self.waiting = found
            .map(|commit| (before.get(&commit).copied().unwrap_or(now), commit))
            .map(|(since, commit)| (commit, since))
            .collect();
        let question = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1 AND active";
        let row = client.query_one(question, &[&name]).await?;
        let is_away = row.get::<_, i64>(0) == 0;
        self.away = is_away.then(|| self.away.unwrap_or(now));
        let is_late = |since: &Instant| now.duration_since(*since) >= WAITED_MAX;
        let late = self.waiting.values().filter(|since| is_late(since)).count();
        Ok(match self.away {
            _ if late > 0 => Some(format!("{late} commits have waited for too long")),
            Some(since) if is_late(&since) => Some(String::from("the keeper is gone")),
            _ => None,
        })
    }
}
