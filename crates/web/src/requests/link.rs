//! A proxy's connection to the keeper of requests. It comes back after each loss, and lists what is open.

use super::open::{OpenUpdates, counts, may_leave};
use super::wire::{self, ToKeeper, ToProxy, socket_of};
use crate::{clock, random};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thorp_versions::{Followed, Versions};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

/// How long a request waits for the keeper's acknowledgement. Without one it is not forwarded.
const BEGUN_WITHIN: Duration = Duration::from_secs(4);

/// How long after a loss the proxy looks for a keeper again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Messages that wait for the keeper. Above that the connection ends: the next one begins with a list.
const TOLD_WAITING: usize = 16_384;

/// Which table the proxy reads now: its generation. None: that of no keeper that lives.
type Present = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// How long a keeper takes to say how long requests live, once it has acknowledged something.
const TELLS_LIFE_WITHIN: Duration = Duration::from_secs(5);

/// Updates of one proxy.
#[derive(Clone)]
pub struct Requests(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    present: Present,
    /// The longest life of a request, when a keeper has said it.
    life_ms: watch::Sender<Option<u64>>,
}

/// Both change together: what is open is what the keeper of this connection has been told, in the order of the messages.
#[derive(Default)]
struct State {
    open: OpenUpdates,
    keeper: Option<mpsc::Sender<ToKeeper>>,
}

/// Why an update has not begun: its request must not be forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotBegun {
    /// No keeper of the table that is read now has acknowledged it (trap W32).
    NoKeeper,
    /// Too many updates are open.
    TooMany,
}

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotBegun::NoKeeper => {
                "no keeper notes what this request changes, so it was not sent on: try again in a moment"
            }
            NotBegun::TooMany => {
                "too many requests are under way, so this one was not sent on: try again in a moment"
            }
        })
    }
}

impl std::error::Error for NotBegun {}

/// An update that the keeper has acknowledged. Dropped, it ends if it was never forwarded. Otherwise it lingers.
pub struct Update {
    requests: Requests,
    update: u64,
    begun_ms: u64,
    is_forwarded: bool,
    is_over: bool,
}

impl Requests {
    /// Updates at the keeper of the table that this reader follows.
    pub fn beside(reader: Arc<Followed>) -> Self {
        Requests::of(Box::new(move || {
            // The file may name a new keeper since the last look.
            reader.look().ok()?;
            Some(reader.evidence().generation)
        }))
    }

    fn of(present: Present) -> Self {
        Requests(Arc::new(Inner {
            state: Mutex::default(),
            present,
            life_ms: watch::Sender::new(None),
        }))
    }

    /// An update of these keys begins, or of nobody knows which. When this returns, no entry that rests on them is served, here or at any
    /// other proxy.
    ///
    /// # Errors
    ///
    /// See [`NotBegun`].
    pub async fn begin(&self, keys: Option<Vec<String>>) -> Result<Update, NotBegun> {
        let (mut update, begun) = {
            let mut state = self.state();
            let (update, begin, begun) = state.open.begin(keys).ok_or(NotBegun::TooMany)?;
            state.tell(begin);
            let update = Update {
                requests: self.clone(),
                update,
                begun_ms: clock::now_ms(),
                is_forwarded: false,
                is_over: false,
            };
            (update, begun)
        };
        let generation = match tokio::time::timeout(BEGUN_WITHIN, begun).await {
            Ok(Ok(generation)) => generation,
            Ok(Err(_)) => {
                update.is_over = true;
                return Err(NotBegun::TooMany);
            }
            Err(_) => return Err(NotBegun::NoKeeper),
        };
        match counts(generation, (self.0.present)()) {
            true => Ok(update),
            false => Err(NotBegun::NoKeeper),
        }
    }

    /// From when this returns, anything may be changing, until all updates are over that were open then. The caller is about to give answers
    /// other keys than these updates have.
    ///
    /// # Errors
    ///
    /// See [`NotBegun`].
    pub async fn cover(&self) -> Result<(), NotBegun> {
        let cover = self.begin(None).await?;
        let (requests, next) = (self.clone(), self.state().open.next());
        tokio::spawn(async move {
            while requests.state().open.is_open_beside(cover.update, next) {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            cover.end();
        });
        Ok(())
    }

    /// The longest time that the origin may work on one request, as the keeper says.
    pub fn life(&self) -> Duration {
        let life_ms = *self.0.life_ms.borrow();
        life_ms.map_or(super::keep::REQUEST_LIFE, Duration::from_millis)
    }

    /// The same, when the keeper has said it: that comes behind its first acknowledgements. None: it does not come.
    pub(super) async fn told_life(&self) -> Option<Duration> {
        let mut life_ms = self.0.life_ms.subscribe();
        let told = life_ms.wait_for(Option::is_some);
        let told = tokio::time::timeout(TELLS_LIFE_WITHIN, told).await;
        let life_ms = *told.ok()?.ok()?;
        life_ms.map(Duration::from_millis)
    }

    /// Ends an update that was [left open](Update::leave_open). False: it is over.
    pub fn end(&self, update: u64) -> bool {
        let mut state = self.state();
        let end = state.open.end(update);
        let is_open = end.is_some();
        state.tell_all(end);
        is_open
    }

    /// Whether an update is open.
    pub fn is_open(&self, update: u64) -> bool {
        self.state().open.is_open(update)
    }

    /// Waits until no request is under way whose end this proxy learns, or for so long.
    pub async fn settle(&self, within: Duration) {
        let settled = async {
            while self.state().open.followed() > 0 {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        };
        // Those that are left end by time.
        let _ = tokio::time::timeout(within, settled).await;
    }

    /// Connects to the keeper beside a table again and again, until it is told to stop.
    pub async fn run(self, table: &Path, mut stop: watch::Receiver<bool>) {
        let path = socket_of(table);
        let life = random::number();
        let connects = async {
            loop {
                if let Err(error) = self.converse(&path, life).await {
                    tracing::debug!("the keeper: {error}");
                }
                self.state().keeper = None;
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        };
        tokio::select! {
            () = connects => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// One connection, until it ends.
    async fn converse(&self, path: &Path, life: u64) -> io::Result<()> {
        let stream = UnixStream::connect(path).await?;
        let user = rustix::process::geteuid().as_raw();
        if stream.peer_cred()?.uid() != user {
            return Err(io::Error::other("the keeper is another user's"));
        }
        let (reads, mut writes) = stream.into_split();
        let life_ms = u64::try_from(self.life().as_millis()).unwrap_or(u64::MAX);
        let (list, mut told) = self.state().connect(clock::now_ms(), life_ms);
        let tells = async {
            let process = std::process::id();
            wire::write(&mut writes, &ToKeeper::Hello { life, process }).await?;
            for open in list {
                wire::write(&mut writes, &open).await?;
            }
            wire::write(&mut writes, &ToKeeper::Listed).await?;
            while let Some(message) = told.recv().await {
                wire::write(&mut writes, &message).await?;
            }
            Ok(())
        };
        let mut reads = BufReader::new(reads);
        let hears = async {
            while let Some(message) = wire::read(&mut reads).await? {
                self.hear(message);
            }
            Ok(())
        };
        tokio::select! {
            told = tells => told,
            heard = hears => heard,
        }
    }

    fn hear(&self, message: ToProxy) {
        let mut state = self.state();
        match message {
            ToProxy::Welcome { life_ms } => {
                self.0.life_ms.send_replace(Some(life_ms));
            }
            ToProxy::Begun { update, generation } => state.open.begun(update, generation),
            ToProxy::Refused { update } => state.open.refused(update),
            ToProxy::Over { update } => state.open.over(update),
            // These go to people's commands.
            ToProxy::Shown(_) | ToProxy::ByHand(_) => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A connection begins: the list comes first, and all messages after it.
    fn connect(&mut self, now_ms: u64, life_ms: u64) -> (Vec<ToKeeper>, mpsc::Receiver<ToKeeper>) {
        let (keeper, told) = mpsc::channel(TOLD_WAITING);
        self.keeper = Some(keeper);
        (self.open.list(now_ms, life_ms), told)
    }

    /// Without a connection, the next list says it.
    fn tell(&mut self, message: ToKeeper) {
        let told = self.keeper.as_ref().map(|keeper| keeper.try_send(message));
        if matches!(told, Some(Err(_))) {
            self.keeper = None;
        }
    }

    fn tell_all(&mut self, messages: impl IntoIterator<Item = ToKeeper>) {
        messages.into_iter().for_each(|message| self.tell(message));
    }
}

impl Update {
    /// Its request leaves for the origin now.
    ///
    /// # Errors
    ///
    /// The acknowledgement is old: this process was stopped, and a keeper of now may not know the update any more. Nothing may leave.
    pub fn forwards(&mut self) -> Result<(), NotBegun> {
        if !may_leave(self.begun_ms, clock::now_ms()) {
            return Err(NotBegun::NoKeeper);
        }
        self.is_forwarded = true;
        Ok(())
    }

    /// It is visible, or it never will be.
    pub fn end(mut self) {
        self.is_over = true;
        self.requests.end(self.update);
    }

    /// It ends when somebody ends it by its number, or when the longest life of a request has passed.
    pub fn leave_open(mut self) -> u64 {
        self.is_over = true;
        let mut state = self.requests.state();
        let linger = state.open.called(self.update);
        state.tell_all(linger);
        self.update
    }
}

impl Drop for Update {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.requests.state();
        let says = match self.is_forwarded {
            // The origin may be at work on it.
            true => state.open.linger(self.update, clock::now_ms()),
            false => state.open.end(self.update),
        };
        state.tell_all(says);
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Update({})", self.update)
    }
}
