//! One life of a keeper: a synchronous standby that decodes each commit before anybody can see it.

use super::acks::Acks;
use super::asking::{self, Answer, Begun};
use super::config::Postgres;
use super::decode;
use super::error::PostgresError;
use super::going_live::{Found, GoingLive, Task, leaves_after_ms};
use super::keys::{Changed, Relations};
use super::patience::Names;
use super::question::Question;
use super::report::{Health, Report};
use super::waits::Waits;
use super::xid::Numbers;
use super::{rights, schema, sessions, setup, standby};
use crate::journal::Journal;
use crate::recipe::Recipe;
use crate::{clock, random};
use pgwire_replication::{Lsn, ReplicationClient, ReplicationEvent};
use std::sync::Arc;
use std::time::Duration;
use thorp_versions::{Action, BEAT_MS_MAX, Event, Ledger, UpdateId, Writable};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_postgres::{Client, Row};

/// How long the database may take until it waits for the keeper.
const GOING_LIVE_MAX: Duration = Duration::from_secs(30);

/// How often the keeper looks while it goes live.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// After so long, no reader has a young beat of what was before.
const BEATS_ARE_OLD: Duration = Duration::from_millis(BEAT_MS_MAX);

/// So long the keeper waits for an answer about a table. Without one, a change of the table ends all answers.
const PLACED_AFTER: Duration = Duration::from_secs(1);

/// Answers of the database that wait for the keeper.
const ANSWERS_WAITING: usize = 16;

/// The prefix of the messages in the stream: those of the keeper, and those of the event triggers that `setup` makes.
pub(super) const PREFIX: &str = "thorp_web";

/// One life of a keeper, between two losses of its database.
pub(super) struct Life<'a, C> {
    source: &'a Postgres,
    recipe: &'a Recipe,
    ledger: &'a mut Ledger<C>,
    report: &'a watch::Sender<Report>,
    relations: Relations,
    /// The transaction that is being decoded.
    decoding: Option<(u32, Changed)>,
    numbers: Numbers,
    /// The message of the keeper's own commit that it waits for. Nobody else knows it.
    awaited: Option<String>,
    /// The transaction that is being decoded has it.
    is_heard: bool,
    acks: Acks,
    waits: Waits,
    journal: Journal,
    /// For questions, and to take the name out when no more sessions are to be had.
    client: Option<Arc<Client>>,
    /// As long as it is there, no other keeper has the slot.
    stream: Option<ReplicationClient>,
    begun: mpsc::UnboundedSender<Begun>,
    answers: mpsc::Sender<Answer>,
    answered: mpsc::Receiver<Answer>,
    _looks: Aborted,
    beats: Option<Aborted>,
}

impl<'a, C: Writable> Life<'a, C> {
    pub(super) fn new(
        source: &'a Postgres,
        recipe: &'a Recipe,
        ledger: &'a mut Ledger<C>,
        report: &'a watch::Sender<Report>,
    ) -> Self {
        ledger.restart(random::number());
        let (begun, begins) = mpsc::unbounded_channel();
        let (answers, answered) = mpsc::channel(ANSWERS_WAITING);
        let looks = asking::visible(source.clone(), begins, answers.clone());
        Life {
            source,
            recipe,
            ledger,
            report,
            relations: Relations::default(),
            decoding: None,
            numbers: Numbers::default(),
            awaited: None,
            is_heard: false,
            acks: Acks::default(),
            waits: Waits::default(),
            journal: report.borrow().journal.clone(),
            client: None,
            stream: None,
            begun,
            answers,
            answered,
            _looks: Aborted(tokio::spawn(looks)),
            beats: None,
        }
    }

    /// Goes live, and stays so until the database is lost.
    pub(super) async fn live(&mut self) -> Result<(), PostgresError> {
        let client = Arc::new(self.source.connect().await?);
        self.client = Some(Arc::clone(&client));
        let confirmed = self.look_over(&client).await?;
        let stream = ReplicationClient::connect(self.source.stream()?).await?;
        // The database waits for nobody who has not said how far it is.
        stream.update_applied_lsn(confirmed);
        self.stream = Some(stream);
        self.outlive_beats_of_others(&client).await?;
        let going_live = tokio::time::timeout(GOING_LIVE_MAX, self.go_live(&client)).await;
        match going_live {
            Ok(gone) => gone?,
            Err(_) => {
                let why = self.still_awaits();
                // It may hold the lock under which names are changed.
                drop(client);
                // Without its stream, commits would wait until the watchdog lets them go on.
                self.leave().await;
                return Err(why);
            }
        }
        let beats = asking::beats(self.source.clone(), self.answers.clone());
        self.beats = Some(Aborted(tokio::spawn(beats)));
        self.report.send_modify(|report| {
            report.health = Health::Live;
            report.awaits.clear();
        });
        loop {
            if let Some(position) = self.step().await? {
                self.acknowledge(position);
            }
        }
    }

    /// Stops in order: no beat, then nobody serves hits, then no commit waits. Until then, commits are acknowledged as before, and no other
    /// keeper has the slot.
    pub(super) async fn leave(&mut self) {
        self.beats = None;
        self.ledger.restart(random::number());
        let end = Instant::now() + Duration::from_millis(leaves_after_ms());
        if self.stream.is_none() {
            return;
        }
        let mut has_slot = true;
        while let Ok(stepped) = tokio::time::timeout_at(end, self.step()).await {
            match stepped {
                Ok(Some(position)) => self.acknowledge(position),
                Ok(None) => {}
                Err(_) => {
                    has_slot = false;
                    break;
                }
            }
        }
        tokio::time::sleep_until(end).await;
        if let Err(error) = self.take_name_out(has_slot).await {
            tracing::error!("commits go on waiting for {}: {error}", self.source.name());
        }
    }

    /// Whether the database has sent to this life: its name may be in.
    pub(super) fn has_streamed(&self) -> bool {
        self.stream.is_some()
    }

    /// Stops although the stream is lost, so that no commit waits for a keeper that does not come back. Another keeper that has the slot by
    /// now goes on.
    pub(super) async fn let_go(&self) {
        if let Err(error) = self.take_lost_name_out().await {
            tracing::error!("commits go on waiting for {}: {error}", self.source.name());
        }
    }

    async fn take_lost_name_out(&self) -> Result<(), PostgresError> {
        let client = self.source.connect().await?;
        let question = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1 AND active";
        let row = client.query_one(question, &[&self.source.name()]).await?;
        if row.get::<_, i64>(0) > 0 {
            return Ok(());
        }
        tokio::time::sleep(2 * BEATS_ARE_OLD).await;
        standby::remove(&client, self.source.name()).await
    }

    /// Lets no commit wait any more. Without the slot, another keeper may have it and beat by now: that one is stopped first.
    async fn take_name_out(&self, has_slot: bool) -> Result<(), PostgresError> {
        let client = self.source.connect().await?;
        if !has_slot {
            standby::end(&client, self.source.name(), &[Names::Keeper]).await?;
            tokio::time::sleep(2 * BEATS_ARE_OLD).await;
        }
        standby::remove(&client, self.source.name()).await
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
        let lacking = rights::lacking(client).await?;
        if !lacking.is_empty() {
            let lacking = lacking.iter().map(ToString::to_string);
            return Err(PostgresError::Rights(lacking.collect()));
        }
        match setup::publishes_all(client, name).await? {
            Some(true) => {}
            Some(false) => return Err(PostgresError::Publication(name.to_owned())),
            None => return Err(PostgresError::NoPublication(name.to_owned())),
        }
        let next = next_xid(client).await?;
        self.numbers = Numbers::new(next);
        self.make_slot(client, next).await?;
        let question = "SELECT (confirmed_flush_lsn - '0/0')::int8, active_pid FROM pg_replication_slots WHERE slot_name = $1";
        let row = client.query_one(question, &[&name]).await?;
        if let Some(process) = row.get(1) {
            return Err(PostgresError::SlotInUse(name.to_owned(), process));
        }
        Ok(Lsn::from_u64(row.get::<_, i64>(0).unsigned_abs()))
    }

    /// Makes the slot if it is not there. That awaits all transactions that are open: those before the next number.
    async fn make_slot(&self, client: &Client, next: u64) -> Result<(), PostgresError> {
        let name = self.source.name();
        let question = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1";
        let row = client.query_one(question, &[&name]).await?;
        if row.get::<_, i64>(0) > 0 {
            return Ok(());
        }
        let awaits = sessions::writing_since(client, next).await?;
        self.report.send_modify(|report| {
            report.health = Health::Away(String::from(
                "it makes its slot, which awaits all open transactions",
            ));
            report.awaits = awaits;
        });
        let make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')";
        client.query(make, &[&name]).await?;
        Ok(())
    }

    // --- Going live ---

    /// Another keeper of this name may have died a moment ago. Its readers have other tables, and nothing ends their beats but time. So
    /// nothing is acknowledged before that, if commits have waited already (rule W7).
    async fn outlive_beats_of_others(&mut self, client: &Client) -> Result<(), PostgresError> {
        let name = self.source.name();
        let names = standby::names(client).await?;
        if names == standby::only(name) || names == standby::gone(name) {
            tokio::time::sleep(BEATS_ARE_OLD).await;
        }
        Ok(())
    }

    /// Does what [`GoingLive`] wants, until the keeper may beat.
    async fn go_live(&mut self, client: &Client) -> Result<(), PostgresError> {
        let mut going = GoingLive::new();
        let mut own = None;
        while going.task() != Task::Beat {
            let task = going.task();
            let found = self.does(task, client, &mut own).await?;
            going.found(found);
            if found == Found::Waits(false) || going.task() == task {
                self.goes_on_waiting(going.first_new(), client).await?;
            }
        }
        Ok(())
    }

    /// One task. The keeper has at most one commit of its own under way.
    async fn does(
        &mut self,
        task: Task,
        client: &Client,
        own: &mut Option<Emitted>,
    ) -> Result<Found, PostgresError> {
        let name = self.source.name();
        match task {
            Task::Name => standby::add(client, name).await?,
            Task::AskWhetherWaitedFor => {
                return Ok(Found::Waits(asking::is_waited_for(client, name).await?));
            }
            Task::Emit => *own = Some(self.emit().await?),
            Task::TakeUp => {
                let position = self.take_up().await?;
                if let Some(own) = own {
                    own.position = Some(position);
                }
            }
            Task::AskWhetherItWaits => {
                let waits = match own {
                    Some(emitted) => emitted.is_seen_waiting(client).await?,
                    None => false,
                };
                if !waits {
                    self.let_end(own.take()).await?;
                }
                return Ok(Found::Waits(waits));
            }
            Task::Acknowledge => self.let_end(own.take()).await?,
            Task::AskNextNumber => return Ok(Found::Number(next_xid(client).await?)),
            Task::AskOldest => return Ok(Found::Number(oldest_xid(client).await?)),
            Task::Renew => self.ledger.renew(random::number()),
            Task::Beat => {}
        }
        Ok(Found::Done)
    }

    /// Handles what comes for a while. With a first new transaction, it is for older ones that the keeper waits.
    async fn goes_on_waiting(
        &mut self,
        first_new: Option<u64>,
        client: &Client,
    ) -> Result<(), PostgresError> {
        if let Some(first_new) = first_new {
            let awaits = sessions::writing_since(client, first_new).await?;
            self.report.send_if_modified(|report| {
                let is_new = report.awaits != awaits;
                report.awaits = awaits;
                is_new
            });
        }
        self.steps(LOOK_AFTER).await
    }

    /// Acknowledges a commit of the keeper's own, and waits until it has ended. Only then a snapshot counts all transactions that were open
    /// when it began: the number that comes next is that behind the last one that has ended.
    async fn let_end(&mut self, own: Option<Emitted>) -> Result<(), PostgresError> {
        let Some(own) = own else {
            return Ok(());
        };
        own.position
            .into_iter()
            .for_each(|position| self.acknowledge(position));
        match own.commit.await {
            Ok(ended) => Ok(ended.map(|_| ())?),
            Err(_) => Err(PostgresError::NotWaitedFor),
        }
    }

    /// Why it took too long.
    fn still_awaits(&self) -> PostgresError {
        let awaits = self.report.borrow().awaits.clone();
        match awaits.is_empty() {
            true => PostgresError::NotWaitedFor,
            false => PostgresError::Awaits(awaits),
        }
    }

    /// Commits a message of the keeper's own.
    async fn emit(&mut self) -> Result<Emitted, PostgresError> {
        let nonce = random::number().to_string();
        let other = self.source.connect().await?;
        other.batch_execute("SET synchronous_commit = on").await?;
        let row = other.query_one("SELECT pg_backend_pid()", &[]).await?;
        let backend = row.get(0);
        self.awaited = Some(nonce.clone());
        let commit = tokio::spawn(async move {
            let emit = "SELECT pg_logical_emit_message(true, $1, $2)::text";
            other.query_one(emit, &[&PREFIX, &nonce]).await
        });
        Ok(Emitted {
            commit,
            backend,
            position: None,
        })
    }

    /// Takes the stream up to the keeper's own message. Returns its position.
    async fn take_up(&mut self) -> Result<Lsn, PostgresError> {
        loop {
            if let Some(position) = self.step().await? {
                return Ok(position);
            }
        }
    }

    // --- Each event ---

    /// Handles what comes in a while.
    async fn steps(&mut self, pause: Duration) -> Result<(), PostgresError> {
        let end = Instant::now() + pause;
        while let Ok(stepped) = tokio::time::timeout_at(end, self.step()).await {
            stepped?;
        }
        Ok(())
    }

    /// Handles the next event. Returns the end of the commit that is awaited, which the caller acknowledges.
    async fn step(&mut self) -> Result<Option<Lsn>, PostgresError> {
        self.place().await?;
        let Some(stream) = &mut self.stream else {
            return Err(PostgresError::NoLongerWaitedFor);
        };
        tokio::select! {
            biased;
            answer = self.answered.recv() => match answer {
                Some(answer) => self.answered(answer).map(|()| None),
                None => Err(PostgresError::NoLongerWaitedFor),
            },
            event = stream.recv() => match event? {
                Some(event) => self.decoded(event),
                None => Err(PostgresError::NoLongerWaitedFor),
            },
        }
    }

    /// Asks of which tables those are parts that the stream has just described. Its next event may be a change of them. What is committed
    /// later than that change makes no difference: a table that becomes a part, or ends to be one, ends all answers.
    async fn place(&mut self) -> Result<(), PostgresError> {
        let Some(client) = self.client.clone() else {
            return Ok(());
        };
        while let Some(id) = self.relations.unplaced() {
            let root = tokio::time::timeout(PLACED_AFTER, schema::root(&client, id)).await;
            self.relations.place(id, root.ok().transpose()?.flatten());
        }
        Ok(())
    }

    fn answered(&mut self, answer: Answer) -> Result<(), PostgresError> {
        match answer {
            // A keeper that leaves beats no more.
            Answer::Waits(_) if self.beats.is_none() => Ok(()),
            Answer::Waits(beat) => self.act(beat),
            Answer::Visible(xids) => xids.into_iter().try_for_each(|xid| self.end(xid)),
            Answer::Looked(end, early) => {
                let position = self.acks.looked(end);
                self.acknowledge(position);
                // What was committed before the keeper is live had nobody to wait for.
                if !early.is_empty() && self.beats.is_some() {
                    self.report
                        .send_modify(|report| report.not_waited(early.len()));
                }
                Ok(())
            }
            Answer::Lost(error) => Err(error),
        }
    }

    fn decoded(&mut self, event: ReplicationEvent) -> Result<Option<Lsn>, PostgresError> {
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
            ReplicationEvent::Message {
                transactional: true,
                content,
                ..
            } => {
                let awaited = self.awaited.as_ref().map(String::as_bytes);
                let is_own = awaited == Some(&content[..]);
                self.is_heard |= is_own;
                // Also that of an event trigger: tables have changed their form, or something that is not decoded has changed.
                if let Some((_, changed)) = self.decoding.as_mut().filter(|_| !is_own) {
                    changed.unknown();
                }
            }
            ReplicationEvent::Commit { end_lsn, .. } => return self.committed(end_lsn),
            // All commits before that have come, and those that are not decoded wait, too: of other databases, of unlogged tables.
            ReplicationEvent::KeepAlive { wal_end, .. } if self.decoding.is_none() => {
                self.passes(wal_end);
            }
            ReplicationEvent::Message { .. }
            | ReplicationEvent::KeepAlive { .. }
            | ReplicationEvent::StoppedAt { .. } => {}
        }
        Ok(None)
    }

    /// A transaction is about to become visible. Its words are stored before anything is acknowledged.
    fn committed(&mut self, end: Lsn) -> Result<Option<Lsn>, PostgresError> {
        let decoded = self.decoding.take();
        match decoded.filter(|(_, changed)| !changed.is_nothing()) {
            Some((low, changed)) => self.begin(low, changed, end)?,
            None if self.is_heard => {}
            None => self.passes(end),
        }
        if std::mem::take(&mut self.is_heard) {
            self.awaited = None;
            return Ok(Some(end));
        }
        Ok(None)
    }

    /// Stores what it changes. It is acknowledged after a look whether it is visible already.
    fn begin(&mut self, low: u32, changed: Changed, end: Lsn) -> Result<(), PostgresError> {
        let xid = self.numbers.whole(low);
        let (places, keys) = changed.keys().unzip();
        let is_unknown = places.is_none();
        self.act(Event::Begin(UpdateId(xid), places))?;
        let number = (self.ledger.generation(), self.ledger.keeper().sequence());
        self.journal
            .begun(number, (xid, end.to_string()), keys.as_deref());
        self.acks.looks(end);
        self.waits.begin(end, Instant::now());
        // If nobody looks any more, the answer says so.
        let _ = self.begun.send(Begun { xid, end });
        self.count(|report| {
            report.commits += 1;
            report.unknown += u64::from(is_unknown);
        });
        Ok(())
    }

    /// A transaction is visible.
    fn end(&mut self, xid: u64) -> Result<(), PostgresError> {
        self.act(Event::End(UpdateId(xid)))?;
        self.journal.ended(xid, self.ledger.keeper().sequence());
        Ok(())
    }

    fn act(&mut self, event: Event) -> Result<(), PostgresError> {
        let actions = self.ledger.handle(event);
        // What is acknowledged is the position of the commit, after a look.
        if actions
            .iter()
            .any(|action| matches!(action, Action::Refuse(_)))
        {
            return Err(PostgresError::TooManyOpen);
        }
        let open = self.ledger.keeper().open();
        self.count(|report| report.open = open);
        Ok(())
    }

    /// What ends here changes nothing that an answer shows.
    fn passes(&mut self, end: Lsn) {
        let position = self.acks.passes(end);
        position
            .into_iter()
            .for_each(|position| self.acknowledge(position));
    }

    fn acknowledge(&mut self, position: Lsn) {
        if let Some(stream) = &self.stream {
            stream.update_applied_lsn(position);
        }
        let waits = self.waits.end(position, Instant::now());
        if !waits.is_empty() {
            self.count(|report| report.waited(&waits));
        }
    }

    /// Changes figures. Nobody is woken for that.
    fn count(&self, change: impl FnOnce(&mut Report)) {
        self.report.send_if_modified(|report| {
            change(report);
            false
        });
    }
}

/// A commit of the keeper's own, which waits for it.
struct Emitted {
    commit: tokio::task::JoinHandle<Result<Row, tokio_postgres::Error>>,
    backend: i32,
    /// Where it ends in the log, once the stream has come to it.
    position: Option<Lsn>,
}

impl Emitted {
    /// Whether it is seen waiting before it is over.
    async fn is_seen_waiting(&self, client: &Client) -> Result<bool, PostgresError> {
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
