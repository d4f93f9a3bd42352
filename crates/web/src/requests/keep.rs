//! The keeper of requests: proxies tell it before they forward an unsafe request, and when the answer has come.

use super::book::Book;
use super::lives::{Connection, Lives, PROXIES_MAX, Todo};
use super::wire::{self, ToKeeper, ToProxy, socket_of};
use crate::journal::{Cause, Journal};
use crate::postgres::{Health, Report};
use crate::{clock, random};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thorp_versions::{Address, BEAT_MS_MAX, Event, Ledger, TableError, Writable, Writer};
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// The longest time that the origin may work on one request, unless the operator says otherwise.
pub const REQUEST_LIFE: Duration = Duration::from_secs(300);

/// After so long, no reader has a young beat of the keeper before.
const BEATS_ARE_OLD: Duration = Duration::from_millis(BEAT_MS_MAX + 1);

/// How often it beats.
const BEAT_EVERY: Duration = Duration::from_millis(250);

/// How long a keeper that is to stop hears proxies that stop at the same time.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// Connections beside those of proxies: of people's commands, and of proxies that come back.
const OTHERS_MAX: usize = 16;

/// Messages of all proxies that wait for the keeper. More wait in the sockets.
const HEARD_WAITING: usize = 1_024;

/// Messages that wait for one proxy. One that does not read them loses its connection, and lists what is open when it comes back.
const TOLD_WAITING: usize = 4_096;

/// Why a keeper has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeepError {
    /// A file beside the table cannot be written, or there is no socket there.
    Io(PathBuf, io::Error),
    /// The file of the table names it no more.
    Table(TableError),
    /// The file of the table names another keeper.
    Replaced(PathBuf),
}

impl fmt::Display for KeepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepError::Io(path, error) => {
                let path = path.display();
                write!(
                    f,
                    "{path}: {error}: name a file with a shorter path, in a directory that lasts"
                )
            }
            KeepError::Table(error) => error.fmt(f),
            KeepError::Replaced(path) => {
                write!(f, "{} names another keeper: run one alone", path.display())
            }
        }
    }
}

impl std::error::Error for KeepError {}

/// Keeps the table whose address is in a file, until it is told to stop. The writer is that of the table. No request is at work at the origin
/// for longer than its life, in whole milliseconds.
///
/// # Errors
///
/// It has lost the file: the next keeper may have it. From then on nothing is acknowledged, and there is no beat.
pub async fn keep_requests<C: Writable + Send>(
    table: &Path,
    writer: Writer<C>,
    life: Duration,
    report: watch::Sender<Report>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), KeepError> {
    let own = Address::read(table).map_err(KeepError::Table)?;
    let mut keeping = Keeping::begin((table, own), writer, life, &report);
    let (says, mut heard) = mpsc::channel(HEARD_WAITING);
    let kept = tokio::select! {
        kept = keeping.run(says, &mut heard) => kept,
        _ = stop.wait_for(|stop| *stop) => Ok(()),
    };
    // There are no hits from now on, and nothing is acknowledged.
    keeping.ledger.restart(random::number());
    keeping.leave(&mut heard).await;
    kept
}

/// One life of a keeper.
struct Keeping<'a, C> {
    table: &'a Path,
    own: Address,
    ledger: Ledger<C>,
    lives: Lives,
    book: Book,
    report: &'a watch::Sender<Report>,
    journal: Journal,
    proxies: BTreeMap<Connection, mpsc::Sender<ToProxy>>,
    connections: JoinSet<()>,
    next: u64,
}

/// What comes from a proxy. None: its connection has ended.
type Heard = (Connection, Option<ToKeeper>);

impl<'a, C: Writable> Keeping<'a, C> {
    fn begin(
        (table, own): (&'a Path, Address),
        writer: Writer<C>,
        life: Duration,
        report: &'a watch::Sender<Report>,
    ) -> Self {
        let mut ledger = Ledger::new(writer);
        let generation = random::number();
        ledger.restart(generation);
        let book = Book::open(table);
        let life_ms = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        let left = book.page().clone();
        let (lives, todo) = Lives::begin(generation, life_ms, left, clock::now_ms());
        let mut keeping = Keeping {
            table,
            own,
            ledger,
            lives,
            book,
            report,
            journal: report.borrow().journal.clone(),
            proxies: BTreeMap::new(),
            connections: JoinSet::new(),
            next: 0,
        };
        keeping.act(todo, None);
        keeping
    }

    async fn run(
        &mut self,
        says: mpsc::Sender<Heard>,
        heard: &mut mpsc::Receiver<Heard>,
    ) -> Result<(), KeepError> {
        // Proxies may serve hits of the table before for so long, and would not see what is acknowledged here (rule W7).
        tokio::time::sleep(BEATS_ARE_OLD).await;
        let listener = self.listen()?;
        let mut beats = tokio::time::interval_at(Instant::now(), BEAT_EVERY);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = beats.tick() => self.beat()?,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.accept(stream, &says),
                    Err(error) => {
                        tracing::warn!("no connection: {error}");
                        tokio::time::sleep(BEAT_EVERY / 5).await;
                    }
                },
                Some((from, said)) = heard.recv() => self.hear(from, said)?,
            }
        }
    }

    fn listen(&self) -> Result<UnixListener, KeepError> {
        let path = socket_of(self.table);
        self.look()?;
        // What is there is of a keeper that is gone: this one has the table.
        let _ = fs::remove_file(&path);
        UnixListener::bind(&path).map_err(|error| KeepError::Io(path, error))
    }

    /// Looks whether the file still names this keeper. The next one waits until its beats are old.
    fn look(&self) -> Result<(), KeepError> {
        match Address::read(self.table) {
            Ok(found) if found == self.own => Ok(()),
            Ok(_) => Err(KeepError::Replaced(self.table.to_owned())),
            Err(error) => Err(KeepError::Table(error)),
        }
    }

    fn beat(&mut self) -> Result<(), KeepError> {
        let asked_ms = clock::now_ms();
        self.look()?;
        self.ledger.handle(Event::Waits(asked_ms));
        let todo = self.lives.pass_time(asked_ms);
        self.act(todo, None);
        self.write_book()?;
        self.tell_report(asked_ms);
        Ok(())
    }

    fn accept(&mut self, stream: UnixStream, says: &mpsc::Sender<Heard>) {
        while self.connections.try_join_next().is_some() {}
        let user = rustix::process::geteuid().as_raw();
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == user);
        if !is_own || self.proxies.len() >= PROXIES_MAX + OTHERS_MAX {
            tracing::warn!("a connection is refused: another user's, or one too many");
            return;
        }
        self.next += 1;
        let connection = Connection(self.next);
        let (tells, told) = mpsc::channel(TOLD_WAITING);
        self.proxies.insert(connection, tells);
        self.connections
            .spawn(attend(stream, connection, says.clone(), told));
    }

    fn hear(&mut self, from: Connection, said: Option<ToKeeper>) -> Result<(), KeepError> {
        let Some(said) = said else {
            self.proxies.remove(&from);
            self.lives.lost(from, clock::now_ms());
            return Ok(());
        };
        let since = Instant::now();
        let begun = match &said {
            ToKeeper::Begin { keys, .. } => Some(keys.clone()),
            _ => None,
        };
        let todo = self.lives.hear(from, said, clock::now_ms());
        // The next keeper asks whoever is answered now.
        self.write_book()?;
        self.act(todo, begun.as_ref().and_then(Option::as_deref));
        if let Some(keys) = begun {
            self.count(|report| {
                report.commits += 1;
                report.unknown += u64::from(keys.is_none());
                report.waited(&[since.elapsed()]);
            });
        }
        Ok(())
    }

    /// Does it. `keys` are those of the update that a proxy has begun, if they are known.
    fn act(&mut self, todo: Vec<Todo>, keys: Option<&[String]>) {
        for todo in todo {
            match todo {
                Todo::Note(event) => self.note(event, keys),
                Todo::Tell(to, what) => {
                    let told = self.proxies.get(&to).map(|proxy| proxy.try_send(what));
                    if matches!(told, Some(Err(_))) {
                        self.proxies.remove(&to);
                    }
                }
                Todo::Close(connection) => {
                    self.proxies.remove(&connection);
                }
            }
        }
        let open = self.ledger.keeper().open();
        self.count(|report| report.open = open);
    }

    /// Stores an event in the table, and then notes for people what it is.
    fn note(&mut self, event: Event, keys: Option<&[String]>) {
        let before = self.ledger.keeper().sequence();
        let begun = match &event {
            Event::Begin(id, places) => Some((id.0, places.is_some())),
            _ => None,
        };
        let ended = match &event {
            Event::End(id) => Some(id.0),
            _ => None,
        };
        // What is one too many is refused before it comes here.
        self.ledger.handle(event);
        let number = self.ledger.keeper().sequence();
        if number == before {
            // It was open already, or it is over.
            return;
        }
        if let Some((request, is_known)) = begun {
            let keys = keys.filter(|_| is_known);
            let number = (self.ledger.generation(), number);
            self.journal.begun(number, Cause::Request { request }, keys);
        }
        if let Some(request) = ended {
            self.journal.ended(request, number);
        }
    }

    fn write_book(&mut self) -> Result<(), KeepError> {
        let written = self.book.write(self.lives.page());
        written.map_err(|error| KeepError::Io(self.table.to_owned(), error))
    }

    fn tell_report(&self, now_ms: u64) {
        let (health, awaits) = match self.lives.awaits(now_ms) {
            None => (Health::Live, Vec::new()),
            Some((processes, left_ms)) => {
                let why = format!(
                    "requests of before may be at work: it waits {} more seconds for them at most",
                    left_ms.div_ceil(1_000)
                );
                let awaits = processes.iter().map(|process| format!("process {process}"));
                (Health::Away(why), awaits.collect())
            }
        };
        self.report.send_if_modified(|report| {
            let is_new = (report.health == Health::Live) != (health == Health::Live);
            (report.health, report.awaits) = (health, awaits);
            is_new
        });
    }

    /// Changes figures. Nobody is woken for that.
    fn count(&self, change: impl FnOnce(&mut Report)) {
        self.report.send_if_modified(|report| {
            change(report);
            false
        });
    }

    /// Notes what proxies say that stop at the same time, so that the next keeper does not wait for them.
    async fn leave(&mut self, heard: &mut mpsc::Receiver<Heard>) {
        if self.look().is_err() {
            return;
        }
        let _ = fs::remove_file(socket_of(self.table));
        let end = Instant::now() + LEAVES_WITHIN;
        while !self.proxies.is_empty()
            && let Ok(Some((from, said))) = tokio::time::timeout_at(end, heard.recv()).await
        {
            match said {
                None => {
                    self.proxies.remove(&from);
                    self.lives.lost(from, clock::now_ms());
                }
                // What is over is over. Nothing begins any more.
                Some(said @ ToKeeper::End { .. }) => {
                    self.lives.hear(from, said, clock::now_ms());
                }
                Some(_) => {}
            }
        }
        if let Err(error) = self.write_book() {
            tracing::warn!("{error}");
        }
    }
}

/// One connection: what comes, and what goes.
async fn attend(
    stream: UnixStream,
    connection: Connection,
    says: mpsc::Sender<Heard>,
    mut told: mpsc::Receiver<ToProxy>,
) {
    let (reads, mut writes) = stream.into_split();
    let mut reads = BufReader::new(reads);
    let hears = async {
        while let Ok(Some(said)) = wire::read(&mut reads).await {
            if says.send((connection, Some(said))).await.is_err() {
                return;
            }
        }
    };
    let tells = async {
        while let Some(message) = told.recv().await {
            if wire::write(&mut writes, &message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = hears => {}
        () = tells => {}
    }
    // The keeper may have ended.
    let _ = says.send((connection, None)).await;
}
