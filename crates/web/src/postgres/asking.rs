//! What the keeper asks its database again and again: who is visible, and whether it still waits.

use super::config::Postgres;
use super::error::PostgresError;
use super::question::Question;
use super::standby;
use crate::clock;
use std::collections::BTreeSet;
use std::time::Duration;
use thorp_versions::Event;
use tokio::sync::mpsc;

/// How often the keeper asks whether it is waited for. Four times in the life of a beat.
const BEAT_EVERY: Duration = Duration::from_millis(500);

/// The first and the longest pause between two looks at what is visible.
const LOOK_AFTER: Duration = Duration::from_millis(1);
const LOOK_AFTER_MAX: Duration = Duration::from_millis(50);

/// What the database has answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// It waits for the keeper: an event for that.
    Waits(Event),
    /// These transactions are visible.
    Visible(Vec<u64>),
    /// It cannot be asked any more, or does not wait.
    Lost(PostgresError),
}

/// Asks whether the database waits for the keeper, until nobody listens.
pub(super) async fn beats(source: Postgres, answers: mpsc::Sender<Answer>) {
    if let Err(error) = beat(&source, &answers).await {
        // Nobody may listen any more.
        let _ = answers.send(Answer::Lost(error)).await;
    }
}

async fn beat(source: &Postgres, answers: &mpsc::Sender<Answer>) -> Result<(), PostgresError> {
    let client = source.connect().await?;
    loop {
        let question = Question::ask(clock::now_ms());
        let waits = is_waited_for(&client, source.name()).await?;
        let beat = question.answered(waits, clock::now_ms);
        let beat = beat.ok_or(PostgresError::NoLongerWaitedFor)?;
        if answers.send(Answer::Waits(beat)).await.is_err() {
            return Ok(());
        }
        tokio::time::sleep(BEAT_EVERY).await;
    }
}

/// Whether commits wait for this keeper, and for nobody who could stand in for it (trap W26): the names are its own alone, no other standby
/// has its name, and the one that the database calls *sync* reads the keeper's slot.
pub(super) async fn is_waited_for(
    client: &tokio_postgres::Client,
    name: &str,
) -> Result<bool, PostgresError> {
    let question = "
        SELECT current_setting('synchronous_standby_names') = $2
            AND count(*) = 1
            AND count(*) FILTER (WHERE slot.slot_name IS NOT NULL AND standby.sync_state = 'sync') = 1
        FROM pg_stat_replication AS standby
        LEFT JOIN pg_replication_slots AS slot ON slot.active_pid = standby.pid AND slot.slot_name = $1
        WHERE standby.application_name = $1";
    let row = client
        .query_one(question, &[&name, &standby::only(name)])
        .await?;
    Ok(row.get(0))
}

/// Asks which of the transactions that come here are visible, until no more come.
pub(super) async fn visible(
    source: Postgres,
    mut begun: mpsc::UnboundedReceiver<u64>,
    answers: mpsc::Sender<Answer>,
) {
    if let Err(error) = look(&source, &mut begun, &answers).await {
        // Nobody may listen any more.
        let _ = answers.send(Answer::Lost(error)).await;
    }
}

async fn look(
    source: &Postgres,
    begun: &mut mpsc::UnboundedReceiver<u64>,
    answers: &mpsc::Sender<Answer>,
) -> Result<(), PostgresError> {
    let client = source.connect().await?;
    let question = "SELECT x FROM unnest($1::text[]) AS x WHERE pg_visible_in_snapshot(x::xid8, pg_current_snapshot())";
    let question = client.prepare(question).await?;
    let mut open = BTreeSet::new();
    let mut pause = LOOK_AFTER;
    loop {
        if open.is_empty() {
            let Some(xid) = begun.recv().await else {
                return Ok(());
            };
            open.insert(xid);
            pause = LOOK_AFTER;
        }
        while let Ok(xid) = begun.try_recv() {
            open.insert(xid);
            pause = LOOK_AFTER;
        }
        let asked: Vec<String> = open.iter().map(u64::to_string).collect();
        let rows = client.query(&question, &[&asked]).await?;
        let found = rows
            .iter()
            .filter_map(|row| row.get::<_, &str>(0).parse().ok());
        let found: Vec<u64> = found.collect();
        if found.is_empty() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_AFTER_MAX);
            continue;
        }
        for xid in &found {
            open.remove(xid);
        }
        if answers.send(Answer::Visible(found)).await.is_err() {
            return Ok(());
        }
    }
}
