//! The keeper of a database: it lives again after each loss, until it is told to stop.

use super::config::Postgres;
use super::life::Life;
use super::report::{Health, Report};
use crate::random;
use crate::recipe::Recipe;
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Ledger, Writable, Writer};
use tokio::sync::watch;

/// How long the keeper waits before it tries again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Keeps the table of a database, until it is told to stop.
pub async fn keep<C: Writable + Send>(
    source: Postgres,
    recipe: Arc<Recipe>,
    writer: Writer<C>,
    report: watch::Sender<Report>,
    mut stop: watch::Receiver<bool>,
) {
    let mut ledger = Ledger::new(writer);
    let mut has_streamed = false;
    loop {
        let mut life = Life::new(&source, &recipe, &mut ledger, &report);
        let ended = tokio::select! {
            ended = life.live() => ended,
            () = told(&mut stop) => {
                match has_streamed && !life.has_streamed() {
                    true => life.let_go().await,
                    false => life.leave().await,
                }
                return;
            }
        };
        has_streamed |= life.has_streamed();
        drop(life);
        // What was not decoded may be seen from now on.
        ledger.restart(random::number());
        if let Err(error) = ended {
            tracing::warn!("the keeper of {} is away: {error}", source.name());
            let health = Health::Away(error.to_string());
            report.send_modify(|report| report.health = health);
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN_AFTER) => {}
            () = told(&mut stop) => {
                if has_streamed {
                    Life::new(&source, &recipe, &mut ledger, &report).let_go().await;
                }
                return;
            }
        }
    }
}

/// Returns when it is time to stop, also if nobody is left to say so.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
