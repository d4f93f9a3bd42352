//! The keeper of a database: it lives again after each loss, until it is told to stop.

use super::config::Postgres;
use super::error::PostgresError;
use super::life::{Left, Life};
use super::report::{Health, Report};
use crate::random;
use crate::recipe::Recipe;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Ledger, Writable, Writer};
use tokio::sync::watch;

/// How long the keeper waits before it tries again. The longer one: its stream has ended before it was live, again and again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(16);

/// Keeps the table of a database, until it is told to stop.
///
/// # Errors
///
/// It could not take its name out of the database, so commits go on waiting.
pub async fn keep<C: Writable + Send>(
    source: Postgres,
    recipe: Arc<Recipe>,
    writer: Writer<C>,
    report: watch::Sender<Report>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), PostgresError> {
    let mut ledger = Ledger::new(writer);
    let mut left = Left::default();
    let mut pause = AGAIN_AFTER;
    loop {
        let mut life = Life::new(&source, &recipe, &mut ledger, &report).after(left);
        let ended = tokio::select! {
            ended = life.live() => ended,
            () = told(&mut stop) => return life.leave().await,
        };
        pause = match &ended {
            Err(PostgresError::Stream(_)) if !life.has_lived() => (2 * pause).min(AGAIN_AFTER_MAX),
            _ => AGAIN_AFTER,
        };
        left = life.left();
        let has_lived = life.has_lived();
        drop(life);
        // What was not decoded may be seen from now on.
        ledger.restart(random::number());
        if let Err(error) = ended {
            tracing::warn!("the keeper of {} is away: {error}", source.name());
            let health = Health::Away(error.to_string());
            report.send_modify(|report| report.health = health);
        }
        // One that was lost is back soon. One that does not get live lets commits go on.
        if !has_lived && left.is_named {
            left = let_go(Life::new(&source, &recipe, &mut ledger, &report).after(left)).await;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = told(&mut stop) => {
                let life = Life::new(&source, &recipe, &mut ledger, &report);
                return life.after(left).leave().await;
            }
        }
    }
}

/// Takes out the name that a life before has left. If it fails, the next time will do.
async fn let_go<C: Writable>(mut life: Life<'_, C>) -> Left {
    match life.take_name_out().await {
        // The names are others now.
        Ok(()) | Err(PostgresError::Names(_)) => {}
        Err(error) => tracing::warn!("commits go on waiting: {error}"),
    }
    life.left()
}

/// Returns when it is time to stop, also if nobody is left to say so.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
