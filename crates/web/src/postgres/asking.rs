//! What the keeper asks its database again and again: who is visible, and whether it still waits.

use super::config::Postgres;
use super::error::PostgresError;
use super::question::Question;
use super::standby;
use crate::clock;
use pgwire_replication::Lsn;
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
    /// All commits up to there were looked at for the first time. These of them were visible: they have not waited.
    Looked(Lsn, Vec<u64>),
    /// It cannot be asked any more, or does not wait.
    Lost(PostgresError),
}

/// A commit that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) xid: u64,
    /// Where its commit ends in the log.
    pub(super) end: Lsn,
}

/// Asks whether the database waits for the keeper, until nobody listens.
pub(super) async fn beats(source: Postgres, own: i32, answers: mpsc::Sender<Answer>) {
    if let Err(error) = beat(&source, own, &answers).await {
        // Nobody may listen any more.
        let _ = answers.send(Answer::Lost(error)).await;
    }
}

async fn beat(
    source: &Postgres,
    own: i32,
    answers: &mpsc::Sender<Answer>,
) -> Result<(), PostgresError> {
    let client = source.connect().await?;
    loop {
        let question = Question::ask(clock::now_ms());
        let waits = is_waited_for(&client, source.name(), own).await?;
        let beat = question.answered(waits, clock::now_ms);
        let beat = beat.ok_or(PostgresError::NoLongerWaitedFor)?;
        if answers.send(Answer::Waits(beat)).await.is_err() {
            return Ok(());
        }
        tokio::time::sleep(BEAT_EVERY).await;
    }
}

/// Whether commits wait for this keeper, and for nobody who could stand in for it (trap W26): the names are its own alone, no other standby
/// has its name, and the one that the database calls *sync* reads the keeper's slot in its own process.
pub(super) async fn is_waited_for(
    client: &tokio_postgres::Client,
    name: &str,
    own: i32,
) -> Result<bool, PostgresError> {
    let question = "
        SELECT current_setting('synchronous_standby_names') = $2
            AND count(*) = 1
            AND count(*) FILTER (WHERE slot.slot_name IS NOT NULL AND standby.sync_state = 'sync') = 1
        FROM pg_stat_replication AS standby
        LEFT JOIN pg_replication_slots AS slot ON slot.active_pid = standby.pid AND slot.slot_name = $1 AND standby.pid = $3
        WHERE standby.application_name = $1";
    let row = client
        .query_one(question, &[&name, &standby::only(name), &own])
        .await?;
    Ok(row.get(0))
}

/// Asks which of the transactions that come here are visible, until no more come.
pub(super) async fn visible(
    source: Postgres,
    begun: mpsc::UnboundedReceiver<Begun>,
    answers: mpsc::Sender<Answer>,
) {
    let mut looks = Looks {
        begun,
        answers,
        open: BTreeSet::new(),
        pause: LOOK_AFTER,
    };
    if let Err(error) = looks.run(&source).await {
        // Nobody may listen any more.
        let _ = looks.answers.send(Answer::Lost(error)).await;
    }
}

/// Looks for open transactions in fresh snapshots.
struct Looks {
    begun: mpsc::UnboundedReceiver<Begun>,
    answers: mpsc::Sender<Answer>,
    /// Those that no snapshot has shown yet.
    open: BTreeSet<u64>,
    pause: Duration,
}

impl Looks {
    async fn run(&mut self, source: &Postgres) -> Result<(), PostgresError> {
        let client = source.connect().await?;
        let question = "SELECT x FROM unnest($1::text[]) AS x WHERE pg_visible_in_snapshot(x::xid8, pg_current_snapshot())";
        let question = client.prepare(question).await?;
        while let Some(new) = self.next().await {
            let open = self.open.iter().copied();
            let asked = open.chain(new.iter().map(|begun| begun.xid));
            let asked: Vec<String> = asked.map(|xid| xid.to_string()).collect();
            let rows = client.query(&question, &[&asked]).await?;
            let found = rows.iter().map(|row| row.get::<_, &str>(0).parse().ok());
            let found: BTreeSet<u64> = found.flatten().collect();
            if !self.answer(&new, found).await {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The commits that have come since the last look. Without any, a look is worth it after a pause. None: no more come.
    async fn next(&mut self) -> Option<Vec<Begun>> {
        let first = match self.open.is_empty() {
            true => Some(self.begun.recv().await?),
            false => match tokio::time::timeout(self.pause, self.begun.recv()).await {
                Ok(begun) => Some(begun?),
                Err(_) => None,
            },
        };
        let mut new: Vec<Begun> = first.into_iter().collect();
        while let Ok(begun) = self.begun.try_recv() {
            new.push(begun);
        }
        self.pause = match new.is_empty() {
            true => (self.pause * 2).min(LOOK_AFTER_MAX),
            false => LOOK_AFTER,
        };
        Some(new)
    }

    /// Says what a look has shown. Whether somebody listens.
    async fn answer(&mut self, new: &[Begun], found: BTreeSet<u64>) -> bool {
        let is_found = |begun: &&Begun| found.contains(&begun.xid);
        let early = new.iter().filter(is_found).map(|begun| begun.xid);
        let early: Vec<u64> = early.collect();
        self.open.extend(new.iter().map(|begun| begun.xid));
        let seen: Vec<u64> = found
            .into_iter()
            .filter(|xid| self.open.remove(xid))
            .collect();
        let mut is_heard = true;
        if let Some(last) = new.last() {
            let looked = Answer::Looked(last.end, early);
            is_heard &= self.answers.send(looked).await.is_ok();
        }
        if !seen.is_empty() {
            is_heard &= self.answers.send(Answer::Visible(seen)).await.is_ok();
        }
        is_heard
    }
}
