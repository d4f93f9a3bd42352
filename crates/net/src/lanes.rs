//! The lanes of a connection: sockets beside its first one, for frames that may overtake others.
//!
//! Where a packet is lost, its socket holds back everything that came after it for a round trip: with one in a hundred lost
//! and thirty pages on their way that is nearly always the case. With four sockets it is so for a part of the pages,
//! and not for the stream. A lane is opened by the caller once the connection stands. Both sides know each other by what only
//! the two ends of the first socket can know: a value that TLS derives from its secrets (RFC 8446, section 7.5). A lane
//! that breaks ends the connection, like its first socket.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::io::ReadHalf;
use tokio::sync::mpsc;
use tokio_rustls::TlsStream;

use crate::abort::AbortHandle;
use crate::frame::Frame;
use crate::identity::Standing;
use crate::queue::PREFIX_BYTES;
use crate::receiver::{Bounds, Partial, Received};
use crate::socket::Stream;
use crate::traffic::Counters;
use crate::writer::{Outgoing, Writer};
use crate::{CertifiedName, Error, Limits, LinkDelay, Queued, SendError};

/// What both ends of a connection know and nobody else.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token([u8; TOKEN_BYTES]);

/// The sockets of one connection, as its sender uses them.
pub(crate) struct Lanes {
    state: Mutex<State>,
    cut: Arc<AbortHandle>,
    counters: Arc<Counters>,
    limits: Limits,
    bounds: Arc<Bounds>,
    arrived: mpsc::Sender<Arrived>,
    /// By which certificate the peer is here.
    standing: Mutex<Standing>,
}

/// A frame that came by a lane, or why it ended.
pub(crate) type Arrived = Result<Received, Error>;

struct State {
    /// The first socket first.
    ways: Vec<Arc<Outgoing>>,
    /// Whose turn it is among those with equally much to write.
    turn: usize,
    delay: LinkDelay,
    is_closed: bool,
}

impl Lanes {
    /// Of a connection that has one socket so far; and where what comes by others arrives.
    pub(crate) fn new(
        first: Arc<Outgoing>,
        (cut, standing): (Arc<AbortHandle>, Standing),
        counters: Arc<Counters>,
        (limits, bounds, delay): (&Limits, Arc<Bounds>, LinkDelay),
    ) -> (Self, mpsc::Receiver<Arrived>) {
        let (arrived, arrivals) = mpsc::channel(ARRIVED_MAX);
        let state = State {
            ways: vec![first],
            turn: 0,
            delay,
            is_closed: false,
        };
        let lanes = Self {
            state: Mutex::new(state),
            cut,
            counters,
            limits: limits.clone(),
            bounds,
            arrived,
            standing: Mutex::new(standing),
        };
        (lanes, arrivals)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics half-way through a change of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By which certificate the peer is here.
    pub(crate) fn standing(&self) -> Standing {
        let standing = self.standing.lock();
        standing.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The peer has shown another certificate, of the same node.
    pub(crate) fn stand_by(&self, new: Standing) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        // An older proof may come late.
        if new.validity.until() > standing.validity.until() {
            *standing = new;
        }
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Takes one more socket, past its greetings; `first` is sent before any frame. False if the connection is closed or has
    /// enough of them.
    pub(crate) fn join(&self, stream: Stream, first: Vec<u8>) -> bool {
        let mut state = self.state();
        if state.is_closed || state.ways.len() >= self.limits.lanes {
            return false;
        }
        let outgoing = Arc::new(Outgoing::new(&self.limits, state.delay));
        state.ways.push(Arc::clone(&outgoing));
        let (read_half, write_half) = tokio::io::split(stream);
        let writer = Writer {
            stream: write_half,
            outgoing,
            cut: Arc::clone(&self.cut),
            counters: Arc::clone(&self.counters),
            limits: self.limits.clone(),
        };
        tokio::spawn(writer.run(first));
        let reader = Reader {
            stream: read_half,
            cut: Arc::clone(&self.cut),
            counters: Arc::clone(&self.counters),
            bounds: Arc::clone(&self.bounds),
            arrived: self.arrived.clone(),
        };
        tokio::spawn(reader.run());
        true
    }

    /// Queues a frame where least waits.
    pub(crate) fn push(&self, now: Instant, frame: Frame) -> Result<(), SendError> {
        let mut state = self.state();
        let held = sum(&state.ways);
        if held.bytes.saturating_add(PREFIX_BYTES + frame.len()) > self.limits.queue_bytes_max {
            return Err(SendError::Full(held));
        }
        state.turn = (state.turn + 1) % state.ways.len();
        let turn = state.turn;
        let (before, from) = state.ways.split_at(turn);
        let ways = from.iter().chain(before);
        let Some(way) = ways.min_by_key(|way| way.queue().held().bytes) else {
            return Err(SendError::Closed);
        };
        way.queue().push(now, frame)?;
        way.pushed();
        Ok(())
    }

    pub(crate) fn sockets(&self) -> usize {
        self.state().ways.len()
    }

    /// What waits to be written to the peer.
    pub(crate) fn queued(&self) -> Queued {
        sum(&self.state().ways)
    }

    pub(crate) fn set_delay(&self, delay: LinkDelay) {
        let mut state = self.state();
        state.delay = delay;
        for way in &state.ways {
            way.queue().set_delay(delay);
        }
    }

    /// Writes what is queued, then says goodbye.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        for way in &state.ways {
            way.close();
        }
    }

    /// Drops what is queued.
    pub(crate) fn discard(&self) {
        let mut state = self.state();
        state.is_closed = true;
        for way in &state.ways {
            way.queue().discard();
        }
    }
}

fn sum(ways: &[Arc<Outgoing>]) -> Queued {
    let held = ways.iter().map(|way| way.queue().held());
    held.fold(Queued::default(), |sum, held| Queued {
        bytes: sum.bytes + held.bytes,
        frames: sum.frames + held.frames,
    })
}

/// Reads what comes by one lane.
struct Reader {
    stream: ReadHalf<Stream>,
    cut: Arc<AbortHandle>,
    counters: Arc<Counters>,
    bounds: Arc<Bounds>,
    arrived: mpsc::Sender<Arrived>,
}

impl Reader {
    /// Until the lane ends, the connection does, or nobody reads it any more.
    async fn run(self) {
        let (cut, arrived) = (Arc::clone(&self.cut), self.arrived.clone());
        tokio::select! {
            () = self.read() => {}
            () = cut.pulled() => {}
            () = arrived.closed() => {}
        }
    }

    async fn read(mut self) {
        let mut partial = Partial::default();
        // Signs of life of long frames are those of the first socket.
        let signs = Counters::default();
        loop {
            let read = partial.read(&mut self.stream, &self.bounds, &signs);
            let arrived = match read.await {
                // Its first socket says whether the connection has ended.
                Ok(None) => return,
                Ok(Some(received)) => {
                    let bytes = PREFIX_BYTES + received.frame.len();
                    self.counters.received(bytes);
                    Ok(received)
                }
                Err(error) => Err(error),
            };
            let is_last = arrived.is_err();
            if self.arrived.send(arrived).await.is_err() || is_last {
                return;
            }
        }
    }
}

impl Token {
    /// Of a connection by its first socket.
    pub(crate) fn of(stream: &Stream) -> Option<Self> {
        let bytes = [0; TOKEN_BYTES];
        let derived = match stream {
            TlsStream::Client(stream) => stream
                .get_ref()
                .1
                .export_keying_material(bytes, LABEL, None),
            TlsStream::Server(stream) => stream
                .get_ref()
                .1
                .export_keying_material(bytes, LABEL, None),
        };
        derived.ok().map(Token)
    }

    /// As a lane's hello has it.
    pub(crate) fn from_hello(hello: &[u8]) -> Option<Self> {
        hello.try_into().ok().map(Token)
    }

    pub(crate) fn as_hello(&self) -> &[u8] {
        &self.0
    }
}

/// The connections of a listener that may get lanes.
#[derive(Default)]
pub(crate) struct Registry(Mutex<HashMap<Token, Known>>);

struct Known {
    lanes: Weak<Lanes>,
    /// In the certificate of the node that made the connection: its lanes have the same.
    certified: CertifiedName,
}

impl Registry {
    fn known(&self) -> MutexGuard<'_, HashMap<Token, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, token: Token, of: &CertifiedName, lanes: &Arc<Lanes>) {
        let mut known = self.known();
        known.retain(|_, known| known.lanes.strong_count() > 0);
        let (lanes, certified) = (Arc::downgrade(lanes), of.clone());
        known.insert(token, Known { lanes, certified });
    }

    pub(crate) fn find(&self, token: Token, of: &CertifiedName) -> Option<Arc<Lanes>> {
        let known = self.known();
        let known = known.get(&token).filter(|known| known.certified == *of)?;
        known.lanes.upgrade()
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("sockets", &self.sockets())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Token {
    /// Who knows it can join the connection.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry")
            .field(&self.known().len())
            .finish()
    }
}

const TOKEN_BYTES: usize = 32;
const LABEL: &[u8] = b"EXPERIMENTAL thorp lane";
/// Frames of all lanes that wait to be taken; then the lanes are not read, and their senders' queues grow.
const ARRIVED_MAX: usize = 4;
