//! One life of a keeper: a synchronous standby that decodes each commit before anybody can see it.

use super::acks::Acks;
use super::asking::{self, Answer, Begun};
use super::config::Postgres;
use super::decode;
use super::error::PostgresError;
use super::going_live::{Found, GoingLive, Task, leaves_after_ms};
use super::keys::{Changed, Relations};
use super::question::Question;
use super::report::{Health, Report};
use super::standby::{self, Standby};
use super::waits::Waits;
use super::xid::Numbers;
use super::{rights, schema, sessions};
use crate::journal::{Cause, Journal};
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

/// So long commits may wait for a keeper that takes up what was committed before.
const CATCH_UP_MAX: Duration = Duration::from_millis(BEAT_MS_MAX);

/// How often a keeper asks for a session that it needs to take its name out, and after which pause.
const ASKED_MAX: u32 = 10;
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

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
    /// For questions, and to change for whom commits wait.
    standby: Option<Arc<Standby>>,
    /// Its name may be among those for which commits wait. It may have been put there by a life before.
    is_named: bool,
    /// The process of the database that reads the slot for this keeper, or has read it for a life before.
    own: Option<i32>,
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
            standby: None,
            is_named: false,
            own: None,
            stream: None,
            begun,
            answers,
            answered,
            _looks: Aborted(tokio::spawn(looks)),
            beats: None,
        }
    }

    /// The same after a life that has left its name.
    pub(super) fn after(self, left: Left) -> Self {
        Life {
            is_named: left.is_named,
            own: left.own,
            ..self
        }
    }

    /// What the next life has to know.
    pub(super) fn left(&self) -> Left {
        Left {
            is_named: self.is_named,
            own: self.own,
        }
    }

    /// Goes live, and stays so until the database is lost.
    pub(super) async fn live(&mut self) -> Result<(), PostgresError> {
        let standby = Arc::new(Standby::of(self.source, "thorp web").await?);
        self.standby = Some(Arc::clone(&standby));
        let confirmed = self.look_over(standby.client()).await?;
        let own = self.follow(confirmed).await?;
        let is_waited_for = self.outlive_beats_of_others(standby.client()).await?;
        self.catch_up(is_waited_for, own).await?;
        let going_live = tokio::time::timeout(GOING_LIVE_MAX, self.go_live(&standby)).await;
        match going_live {
            Ok(gone) => gone?,
            Err(_) => {
                let why = self.still_awaits();
                // Without its stream, commits would wait until the watchdog lets them go on.
                self.leave().await?;
                return Err(why);
            }
        }
        let beats = asking::beats(self.source.clone(), own, self.answers.clone());
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

    /// Begins the stream. Returns the process of the database that sends it: as long as it does, no other keeper has the slot.
    async fn follow(&mut self, confirmed: Lsn) -> Result<i32, PostgresError> {
        let mut stream = ReplicationClient::connect_gated(self.source.stream()?).await?;
        let rows = stream.simple_query("SELECT pg_backend_pid()").await?;
        let text = rows.first().and_then(|row| row.first()?.as_ref());
        let own = text.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let own = own.ok_or(PostgresError::NoLongerWaitedFor)?;
        stream.start().await?;
        stream.wait_started().await?;
        // The database waits for nobody who has not said how far it is.
        stream.update_applied_lsn(confirmed);
        self.stream = Some(stream);
        self.own = Some(own);
        Ok(own)
    }

    /// Takes the stream up to a message of the keeper's own, before commits wait for it. So what cannot be decoded holds nobody up, and
    /// neither does what takes long. If commits wait for it already, because it was lost with its name in, they do not wait for long.
    async fn catch_up(&mut self, is_waited_for: bool, own: i32) -> Result<(), PostgresError> {
        let (standby, report) = (self.standby.clone(), self.report);
        let hears = async {
            let mut emitted = self.emit("local").await?;
            emitted.position = Some(self.take_up().await?);
            self.let_end(Some(emitted)).await
        };
        let mut hears = std::pin::pin!(hears);
        if let Ok(heard) = tokio::time::timeout(CATCH_UP_MAX, hears.as_mut()).await {
            return heard;
        }
        report.send_modify(|report| {
            let why = "it takes up what was committed before it came";
            report.health = Health::Away(why.to_owned());
        });
        let Some(standby) = standby.filter(|_| is_waited_for) else {
            return hears.await;
        };
        let (heard, withdrawn) = tokio::join!(hears, standby.withdraw(Some(own)));
        withdrawn?;
        heard
    }

    /// Whether it is live, or has been.
    pub(super) fn has_lived(&self) -> bool {
        self.beats.is_some()
    }

    /// Stops in order: no beat, then nobody serves hits, then no commit waits. Until then, commits are acknowledged as before, and no other
    /// keeper has the slot. Without a stream, the name may be that of another keeper: then this one takes out what a life before has left.
    ///
    /// # Errors
    ///
    /// The database does not answer. The name may be in.
    pub(super) async fn leave(&mut self) -> Result<(), PostgresError> {
        self.beats = None;
        self.ledger.restart(random::number());
        if self.stream.is_some() {
            self.serve_until_beats_are_old().await;
        } else if !self.is_named {
            return Ok(());
        }
        let mut asked = 0;
        while let Err(error) = self.take_name_out().await {
            asked += 1;
            if asked == ASKED_MAX {
                return Err(error);
            }
            tokio::time::sleep(ASKED_AGAIN_AFTER).await;
        }
        Ok(())
    }

    /// Goes on to acknowledge, for as long as a reader has a young beat.
    async fn serve_until_beats_are_old(&mut self) {
        let end = Instant::now() + Duration::from_millis(leaves_after_ms());
        while let Ok(stepped) = tokio::time::timeout_at(end, self.step()).await {
            match stepped {
                Ok(Some(position)) => self.acknowledge(position),
                Ok(None) => {}
                Err(_) => break,
            }
        }
        tokio::time::sleep_until(end).await;
    }

    /// Lets no commit wait any more. Without the slot, another keeper may have it and beat by now.
    pub(super) async fn take_name_out(&mut self) -> Result<(), PostgresError> {
        let standby = match self.standby.take().filter(|standby| !standby.is_closed()) {
            Some(standby) => standby,
            None => Arc::new(Standby::of(self.source, "thorp web").await?),
        };
        self.standby = Some(Arc::clone(&standby));
        let has_left = match (&self.stream, self.own) {
            (Some(_), Some(own)) => standby.leave(own).await?,
            _ => false,
        };
        if !has_left {
            standby.withdraw(self.own).await?;
        }
        self.is_named = false;
        Ok(())
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
        // Without it, nothing of set-up is there.
        let publishes_all = schema::publishes_all(client, name).await?;
        let publishes_all =
            publishes_all.ok_or_else(|| PostgresError::NoPublication(name.to_owned()))?;
        let lacking = rights::lacking(client, name).await?;
        if !lacking.is_empty() {
            return Err(PostgresError::Rights(lacking));
        }
        if !publishes_all {
            return Err(PostgresError::Publication(name.to_owned()));
        }
        let next = next_xid(client).await?;
        self.numbers = Numbers::new(next);
        self.make_slot(client, next).await?;
        let question = "SELECT active_pid, (confirmed_flush_lsn - '0/0')::int8,
                plugin = 'pgoutput' AND database = current_database() AND wal_status IS DISTINCT FROM 'lost'
            FROM pg_replication_slots WHERE slot_name = $1";
        let row = client.query_one(question, &[&name]).await?;
        if let Some(process) = row.get(0) {
            return Err(PostgresError::SlotInUse(name.to_owned(), process));
        }
        match (row.get::<_, Option<i64>>(1), row.get(2)) {
            (Some(confirmed), Some(true)) => Ok(Lsn::from_u64(confirmed.unsigned_abs())),
            _ => Err(PostgresError::Slot(name.to_owned())),
        }
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
    /// nothing is acknowledged before that, if commits have waited already (rule W7). Whether they have.
    async fn outlive_beats_of_others(&mut self, client: &Client) -> Result<bool, PostgresError> {
        let name = self.source.name();
        let names = standby::names(client).await?;
        if names.is_empty() {
            return Ok(false);
        }
        if names != standby::only(name) && names != standby::gone(name) {
            return Err(PostgresError::Names(names));
        }
        tokio::time::sleep(BEATS_ARE_OLD).await;
        Ok(true)
    }

    /// Does what [`GoingLive`] wants, until the keeper may beat.
    async fn go_live(&mut self, standby: &Standby) -> Result<(), PostgresError> {
        let client = standby.client();
        let mut going = GoingLive::new();
        let mut own = None;
        while going.task() != Task::Beat {
            let task = going.task();
            let found = self.does(task, standby, &mut own).await?;
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
        standby: &Standby,
        own: &mut Option<Emitted>,
    ) -> Result<Found, PostgresError> {
        let client = standby.client();
        match task {
            Task::Name => {
                let was_named = std::mem::replace(&mut self.is_named, true);
                let added = standby.add().await;
                if let Err(PostgresError::Names(_) | PostgresError::BeingLetGo) = &added {
                    self.is_named = was_named;
                }
                added?;
            }
            Task::AskWhetherWaitedFor => {
                let own = self.own.unwrap_or_default();
                let waits = asking::is_waited_for(client, self.source.name(), own).await?;
                return Ok(Found::Waits(waits));
            }
            Task::Emit => *own = Some(self.emit("on").await?),
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

    /// Commits a message of the keeper's own, with this setting of `synchronous_commit`.
    async fn emit(&mut self, synchronous: &str) -> Result<Emitted, PostgresError> {
        let nonce = random::number().to_string();
        let other = self.source.connect().await?;
        let set = format!("SET synchronous_commit = {synchronous}");
        other.batch_execute(&set).await?;
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
        let Some(standby) = self.standby.clone() else {
            return Ok(());
        };
        while let Some(id) = self.relations.unplaced() {
            let root = tokio::time::timeout(PLACED_AFTER, schema::root(standby.client(), id)).await;
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
        let position = end.to_string();
        let cause = Cause::Transaction { xid, position };
        self.journal.begun(number, cause, keys.as_deref());
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

/// What a life leaves to the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// The name of this keeper may be among those for which commits wait.
    pub(super) is_named: bool,
    own: Option<i32>,
}

/// A task that ends with its owner.
struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}
