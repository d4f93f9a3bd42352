//! The watchdog beside a database: commits go on without a keeper that is gone or hangs (rule W7).

use super::config::Postgres;
use super::error::PostgresError;
use super::patience::{Deed, Look, Names, Patience};
use super::standby::{self, Standby};
use crate::clock;
use std::time::Duration;
use tokio::sync::watch;
use tokio_postgres::Client;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

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
    let standby = Standby::of(source, &program(source.name())).await?;
    let standby = standby.without_insisting();
    let mut patience = Patience::default();
    loop {
        let seen = see(standby.client(), source.name()).await?;
        let deed = patience.look(seen, clock::now_ms());
        let from = deed.replaces();
        match deed {
            Deed::Nothing => {
                says.send_if_modified(|said| match said {
                    Watched::Blind(_) => {
                        *said = Watched::Well;
                        true
                    }
                    _ => false,
                });
            }
            Deed::End => {
                tracing::warn!("commits go on without {} soon", source.name());
                standby.end(from).await?;
            }
            Deed::LetGo(why) => {
                tracing::warn!("commits go on without {}: {why}", source.name());
                standby.let_go(from).await?;
                says.send_replace(Watched::LetGo(why));
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// One look at the database.
async fn see(client: &Client, name: &str) -> Result<Look<(i32, String)>, PostgresError> {
    let found = standby::names(client).await?;
    let names = match found {
        _ if found == standby::gone(name) => Names::Gone,
        _ if found == standby::only(name) => Names::Keeper,
        _ => Names::Others,
    };
    let question = "SELECT pid, coalesce(backend_xid::text, '') FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let rows = client.query(question, &[]).await?;
    let waiting = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(Look {
        names,
        waiting,
        is_away: standby::reader(client, name).await?.is_none(),
    })
}
