//! The keeper of a database: a synchronous standby that decodes each commit before anybody can see it.

use super::asking::{self, Answer};
use super::config::Postgres;
use super::decode;
use super::error::PostgresError;
use super::going_live::{Found, GoingLive, Task, leaves_after_ms};
use super::keys::{Changed, Relations};
use super::question::Question;
use super::standby;
use super::xid::Numbers;
use crate::recipe::Recipe;
use crate::{clock, random};
use pgwire_replication::{Lsn, ReplicationClient, ReplicationEvent};
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Action, Event, Ledger, UpdateId, Writable, Writer};
use tokio::sync::{mpsc, watch};
use tokio_postgres::Client;

/// How long the keeper waits before it tries again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long the database may take until it waits for the keeper.
const GOING_LIVE_MAX: Duration = Duration::from_secs(30);

/// How often the keeper looks while it goes live.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Answers of the database that wait for the keeper.
const ANSWERS_WAITING: usize = 16;

/// The prefix of the keeper's own messages in the stream.
const PREFIX: &str = "thorp_web";

/// How a keeper is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// It is not live yet, or not any more: why. There are no hits.
    Away(String),
    /// The database waits for it.
    Live,
}

/// Keeps the table of a database, until it is told to stop.
pub async fn keep<C: Writable + Send>(
    source: Postgres,
    recipe: Arc<Recipe>,
    writer: Writer<C>,
    health: watch::Sender<Health>,
    mut stop: watch::Receiver<bool>,
) {
    let mut ledger = Ledger::new(writer);
    while !*stop.borrow() {
        let mut life = Life::new(&source, &recipe, &mut ledger, &health);
        let ended = tokio::select! {
            ended = life.live() => ended,
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        };
        drop(life);
        let Err(error) = ended else {
            break;
        };
        // What was not decoded may be seen from now on.
        ledger.restart(random::number());
        tracing::warn!("the keeper of {} is away: {error}", source.name());
        health.send_replace(Health::Away(error.to_string()));
        tokio::select! {
            () = tokio::time::sleep(AGAIN_AFTER) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
    leave(&source, &mut ledger).await;
}

/// Stops in order: no beat, then nobody serves hits, then no commit waits.
async fn leave<C: Writable>(source: &Postgres, ledger: &mut Ledger<C>) {
    ledger.restart(random::number());
    tokio::time::sleep(Duration::from_millis(leaves_after_ms())).await;
    let left = async {
        let client = source.connect().await?;
        standby::remove(&client, source.name()).await
    };
    if let Err(error) = left.await {
        tracing::error!("commits go on waiting for {}: {error}", source.name());
    }
}

/// One life of a keeper, between two losses of its database.
struct Life<'a, C> {
    source: &'a Postgres,
    recipe: &'a Recipe,
    ledger: &'a mut Ledger<C>,
    health: &'a watch::Sender<Health>,
    relations: Relations,
    /// The transaction that is being decoded.
    decoding: Option<(u32, Changed)>,
    numbers: Numbers,
    /// The message of the keeper's own commit that it waits for. Nobody else knows it.
    awaited: Option<String>,
    /// The transaction that is being decoded has it.
    is_heard: bool,
    begun: Option<mpsc::UnboundedSender<u64>>,
}

impl<'a, C: Writable> Life<'a, C> {
    fn new(
        source: &'a Postgres,
        recipe: &'a Recipe,
        ledger: &'a mut Ledger<C>,
        health: &'a watch::Sender<Health>,
    ) -> Self {
        ledger.restart(random::number());
        Life {
            source,
            recipe,
            ledger,
            health,
            relations: Relations::default(),
            decoding: None,
            numbers: Numbers::default(),
            awaited: None,
            is_heard: false,
            begun: None,
        }
    }

    /// Goes live, and stays so until the database is lost.
    async fn live(&mut self) -> Result<(), PostgresError> {
        let client = self.source.connect().await?;
        let confirmed = self.look_over(&client).await?;
        let mut stream = ReplicationClient::connect(self.source.stream()?).await?;
        // The database waits for nobody who has not said how far it is.
        stream.update_applied_lsn(confirmed);
        let (begins, begun) = mpsc::unbounded_channel();
        let (answers, mut answered) = mpsc::channel(ANSWERS_WAITING);
        self.begun = Some(begins);
        let looks = asking::visible(self.source.clone(), begun, answers.clone());
        let _looks = Aborted(tokio::spawn(looks));
        let going_live = self.go_live(&client, &mut stream, &mut answered);
        let going_live = tokio::time::timeout(GOING_LIVE_MAX, going_live);
        going_live
            .await
            .map_err(|_| PostgresError::NotWaitedFor)??;
        let beats = asking::beats(self.source.clone(), answers);
        let _beats = Aborted(tokio::spawn(beats));
        self.health.send_replace(Health::Live);
        loop {
            self.step(&mut stream, &mut answered).await?;
        }
    }

    /// What has to be so before anything begins. Makes the slot, and returns how far it is.
    async fn look_over(&mut self, client: &Client) -> Result<Lsn, PostgresError> {
        let name = self.source.name();
        let row = client
            .query_one("SELECT current_setting('wal_level')", &[])
            .await?;
        let level: &str = row.get(0);
        if level != "logical" {
            return Err(PostgresError::WalLevel(level.to_owned()));
        }
        let question = "SELECT count(*) FROM pg_publication WHERE pubname = $1";
        let row = client.query_one(question, &[&name]).await?;
        if row.get::<_, i64>(0) == 0 {
            return Err(PostgresError::NoPublication(name.to_owned()));
        }
        let make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')
            WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)";
        client.query(make, &[&name]).await?;
        self.numbers = Numbers::new(next_xid(client).await?);
        let question = "SELECT (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots WHERE slot_name = $1";
        let row = client.query_one(question, &[&name]).await?;
        Ok(Lsn::from_u64(row.get::<_, i64>(0).unsigned_abs()))
    }

    // --- Going live ---

    /// Does what [`GoingLive`] wants, until the keeper may beat.
    async fn go_live(
        &mut self,
        client: &Client,
        stream: &mut ReplicationClient,
        answered: &mut mpsc::Receiver<Answer>,
    ) -> Result<(), PostgresError> {
        let mut going = GoingLive::new();
        let mut emitted = None;
        let mut position = None;
        loop {
            let task = going.task();
            let found = match task {
                Task::Name => {
                    standby::add(client, self.source.name()).await?;
                    Found::Done
                }
                Task::AskWhetherWaitedFor => {
                    Found::Waits(asking::is_waited_for(client, self.source.name()).await?)
                }
                Task::Emit => {
                    emitted = Some(self.emit().await?);
                    Found::Done
                }
                Task::TakeUp => {
                    position = Some(self.take_up(stream, answered).await?);
                    Found::Done
                }
                Task::AskWhetherItWaits => match emitted.as_mut() {
                    Some(emitted) => Found::Waits(emitted.is_seen_waiting(client).await?),
                    None => Found::Waits(false),
                },
                Task::Acknowledge => {
                    position
                        .into_iter()
                        .for_each(|position| stream.update_applied_lsn(position));
                    Found::Done
                }
                Task::AskNextNumber => Found::Number(next_xid(client).await?),
                Task::AskOldest => Found::Number(oldest_xid(client).await?),
                Task::Renew => {
                    self.ledger.renew(random::number());
                    Found::Done
                }
                Task::Beat => return Ok(()),
            };
            going.found(found);
            if matches!(found, Found::Waits(false)) || going.task() == task {
                if let Some(position) = position {
                    stream.update_applied_lsn(position);
                }
                self.steps(stream, answered, LOOK_AFTER).await?;
            }
        }
    }

    /// Commits a message of the keeper's own, which waits for the keeper.
    async fn emit(&mut self) -> Result<Emitted, PostgresError> {
        let nonce = random::number().to_string();
        let other = self.source.connect().await?;
        other.batch_execute("SET synchronous_commit = on").await?;
        let row = other.query_one("SELECT pg_backend_pid()", &[]).await?;
        let backend = row.get(0);
        self.awaited = Some(nonce.clone());
        let commit = tokio::spawn(async move {
            let emit = "SELECT pg_logical_emit_message(true, $1, $2)::text";
            // Whether it has failed, its waiting says.
            let _ = other.query_one(emit, &[&PREFIX, &nonce]).await;
        });
        Ok(Emitted { backend, commit })
    }

    /// Takes the stream up to the keeper's own message. Returns its position.
    async fn take_up(
        &mut self,
        stream: &mut ReplicationClient,
        answered: &mut mpsc::Receiver<Answer>,
    ) -> Result<Lsn, PostgresError> {
        loop {
            if let Some(position) = self.step(stream, answered).await? {
                return Ok(position);
            }
        }
    }

    // --- Each event ---

    /// Handles what comes in a while.
    async fn steps(
        &mut self,
        stream: &mut ReplicationClient,
        answered: &mut mpsc::Receiver<Answer>,
        pause: Duration,
    ) -> Result<(), PostgresError> {
        let end = tokio::time::Instant::now() + pause;
        while let Ok(stepped) = tokio::time::timeout_at(end, self.step(stream, answered)).await {
            stepped?;
        }
        Ok(())
    }

    /// Handles the next event. Returns the end of the commit that is awaited, which the caller acknowledges.
    async fn step(
        &mut self,
        stream: &mut ReplicationClient,
        answered: &mut mpsc::Receiver<Answer>,
    ) -> Result<Option<Lsn>, PostgresError> {
        tokio::select! {
            biased;
            answer = answered.recv() => match answer {
                Some(answer) => self.answered(answer).map(|()| None),
                None => Err(PostgresError::NoLongerWaitedFor),
            },
            event = stream.recv() => match event? {
                Some(event) => self.decoded(event, stream),
                None => Err(PostgresError::NoLongerWaitedFor),
            },
        }
    }

    fn answered(&mut self, answer: Answer) -> Result<(), PostgresError> {
        match answer {
            Answer::Waits(beat) => self.act(beat),
            Answer::Visible(xids) => {
                let mut ends = xids.into_iter().map(|xid| Event::End(UpdateId(xid)));
                ends.try_for_each(|end| self.act(end))
            }
            Answer::Lost(error) => Err(error),
        }
    }

    fn decoded(
        &mut self,
        event: ReplicationEvent,
        stream: &ReplicationClient,
    ) -> Result<Option<Lsn>, PostgresError> {
        if let Some(beat) = Question::heard(clock::now_ms) {
            self.act(beat)?;
        }
        match event {
            ReplicationEvent::Begin { xid, .. } => {
                self.decoding = Some((xid, Changed::nothing()));
                self.is_heard = false;
            }
            ReplicationEvent::XLogData { data, .. } => {
                if let Some((_, changed)) = &mut self.decoding {
                    self.relations
                        .take(decode::read(data), self.recipe, changed);
                }
            }
            ReplicationEvent::Message { content, .. } => {
                let awaited = self.awaited.as_ref().map(String::as_bytes);
                self.is_heard |= awaited == Some(&content[..]);
            }
            ReplicationEvent::Commit { end_lsn, .. } => {
                if let Some((low, changed)) = self.decoding.take() {
                    self.commits(low, changed)?;
                }
                if std::mem::take(&mut self.is_heard) {
                    self.awaited = None;
                    return Ok(Some(end_lsn));
                }
                stream.update_applied_lsn(end_lsn);
            }
            ReplicationEvent::KeepAlive { .. } | ReplicationEvent::StoppedAt { .. } => {}
        }
        Ok(None)
    }

    /// A transaction is about to become visible. Its words are stored when this returns.
    fn commits(&mut self, low: u32, changed: Changed) -> Result<(), PostgresError> {
        if changed.is_nothing() {
            return Ok(());
        }
        let xid = self.numbers.whole(low);
        self.act(Event::Begin(UpdateId(xid), changed.places()))?;
        if let Some(begun) = &self.begun {
            // If nobody looks any more, the answer says so.
            let _ = begun.send(xid);
        }
        Ok(())
    }

    fn act(&mut self, event: Event) -> Result<(), PostgresError> {
        let actions = self.ledger.handle(event);
        // The caller acknowledges, by the position of the commit.
        let is_refused = |action: &Action| matches!(action, Action::Refuse(_));
        match actions.iter().any(is_refused) {
            true => Err(PostgresError::TooManyOpen),
            false => Ok(()),
        }
    }
}

/// A commit of the keeper's own that is under way.
struct Emitted {
    backend: i32,
    commit: tokio::task::JoinHandle<()>,
}

impl Emitted {
    /// Whether it is seen waiting before it is over.
    async fn is_seen_waiting(&mut self, client: &Client) -> Result<bool, PostgresError> {
        let question =
            "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'";
        while !self.commit.is_finished() {
            let row = client.query_one(question, &[&self.backend]).await?;
            if row.get::<_, i64>(0) == 1 {
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(false)
    }
}

/// About the number of the next transaction.
async fn next_xid(client: &Client) -> Result<u64, PostgresError> {
    let question = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";
    let row = client.query_one(question, &[]).await?;
    Ok(row.get::<_, &str>(0).parse().unwrap_or_default())
}

/// The number of the oldest transaction that is open.
async fn oldest_xid(client: &Client) -> Result<u64, PostgresError> {
    let question = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text";
    let row = client.query_one(question, &[]).await?;
    Ok(row.get::<_, &str>(0).parse().unwrap_or_default())
}

/// A task that ends with its owner.
struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}
