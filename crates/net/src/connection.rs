//! An open connection and its sending half.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::abort::AbortHandle;
use crate::frame::Frame;
use crate::identity::Standing;
use crate::intake::Quota;
use crate::lanes::{Lanes, Token};
use crate::receiver::{Bounds, FrameReceiver, Partial};
use crate::socket::Stream;
use crate::traffic::{Counters, Traffic};
use crate::writer::{Outgoing, Writer};
use crate::{CertifiedName, Config, LinkDelay, Role};

/// An open connection to a node of the same village, after TLS and greetings.
#[derive(Debug)]
pub struct Connection {
    sender: FrameSender,
    receiver: FrameReceiver,
    peer: Peer,
    /// By which both ends know its further sockets.
    pub(crate) token: Option<Token>,
    /// The serial number of the certificate that this side has shown, if it has called.
    pub(crate) shown: Option<String>,
}

/// Who is at the other end. Its certificate proves what it is; its role and hello are its own words.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Where it is, for people to read: `tcp://192.0.2.1:40312`, `unix:/run/thorp.sock`.
    pub address: String,
    /// The role and the name in its certificate.
    pub certified: CertifiedName,
    /// All that its certificate says.
    pub(crate) standing: Standing,
    /// What it says it is.
    pub role: Role,
    /// The bytes it greeted with, at most [`HELLO_BYTES_MAX`](crate::HELLO_BYTES_MAX).
    pub hello: Vec<u8>,
    /// How long the system took to connect: one round trip to the peer. Only where this side called, over TCP.
    pub round_trip: Option<Duration>,
}

/// Sends frames to the peer through a bounded queue. Never waits and never grows.
///
/// Dropping it says goodbye in an orderly way: what is queued is still written, for a named time at most.
#[derive(Debug)]
pub struct FrameSender {
    outgoing: Arc<Outgoing>,
    lanes: Arc<Lanes>,
    cut: Arc<AbortHandle>,
    counters: Arc<Counters>,
}

/// What waits to be written to one peer, including what is just being written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queued {
    /// Bytes, with length prefixes.
    pub bytes: usize,
    /// Frames.
    pub frames: usize,
}

/// Why a frame was not taken. The queue is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The peer does not read fast enough: cut it off ([`FrameSender::abort`]).
    Full(Queued),
    /// The frame is above the limit; our own mistake.
    TooLong {
        /// Length of the frame in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The connection is over; [`FrameReceiver::recv`] tells why.
    Closed,
}

impl Connection {
    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The two halves, to be used by different tasks.
    pub fn split(self) -> (FrameSender, FrameReceiver) {
        (self.sender, self.receiver)
    }

    /// Counts the frames that arrive by this connection in a common space.
    pub(crate) fn count_in(&self, quota: Quota) {
        self.sender.lanes.bounds().count_in(quota);
    }

    pub(crate) fn lanes(&self) -> &Arc<Lanes> {
        &self.sender.lanes
    }

    /// Takes a stream that is past the greetings and starts its writer, which sends `first` before any frame.
    pub(crate) fn start(stream: Stream, peer: Peer, config: &Config, first: Vec<u8>) -> Self {
        let token = Token::of(&stream);
        let (read_half, write_half) = tokio::io::split(stream);
        let outgoing = Arc::new(Outgoing::new(&config.limits, config.delay));
        let (cut, counters) = (
            Arc::new(AbortHandle::default()),
            Arc::new(Counters::default()),
        );
        let writer = Writer {
            stream: write_half,
            outgoing: Arc::clone(&outgoing),
            cut: Arc::clone(&cut),
            counters: Arc::clone(&counters),
            limits: config.limits.clone(),
        };
        tokio::spawn(writer.run(first));
        let bounds = Arc::new(Bounds::new(&config.limits));
        let (lanes, arrivals) = Lanes::new(
            Arc::clone(&outgoing),
            (Arc::clone(&cut), peer.standing.clone()),
            Arc::clone(&counters),
            (&config.limits, Arc::clone(&bounds), config.delay),
        );
        let receiver = FrameReceiver {
            stream: read_half,
            cut: Arc::clone(&cut),
            counters: Arc::clone(&counters),
            bounds,
            partial: Partial::default(),
            lanes: arrivals,
        };
        Self {
            sender: FrameSender {
                outgoing,
                lanes: Arc::new(lanes),
                cut,
                counters,
            },
            receiver,
            peer,
            token,
            shown: None,
        }
    }
}

impl FrameSender {
    /// Queues a frame. It goes out with the next write; frames of one turn of the runtime share writes.
    ///
    /// # Errors
    ///
    /// [`SendError`]; nothing is queued then.
    pub fn try_send(&self, frame: impl Into<Frame>) -> Result<(), SendError> {
        self.outgoing.queue().push(Instant::now(), frame)?;
        self.outgoing.pushed();
        Ok(())
    }

    /// Queues a frame that may overtake others, and be overtaken: it goes by the socket of this connection that has least to write.
    /// At the end of the connection it may be lost where those before it are not.
    ///
    /// # Errors
    ///
    /// [`SendError`]; nothing is queued then.
    pub fn try_send_unordered(&self, frame: impl Into<Frame>) -> Result<(), SendError> {
        self.lanes.push(Instant::now(), frame.into())
    }

    /// How many sockets the connection has.
    pub fn sockets(&self) -> usize {
        self.lanes.sockets()
    }

    /// By which certificate the peer is here.
    pub(crate) fn standing(&self) -> Standing {
        self.lanes.standing()
    }

    /// What waits to be written.
    pub fn queued(&self) -> Queued {
        self.lanes.queued()
    }

    /// What has crossed this connection so far, both ways. Also told after the end.
    pub fn traffic(&self) -> Traffic {
        self.counters.snapshot()
    }

    /// The last sign of life of a frame that is arriving and not complete; zero if there is none. No two are the same.
    pub(crate) fn sign(&self) -> u64 {
        self.counters.sign()
    }

    /// Whether a frame of the peer waits because this side has no space for it.
    pub(crate) fn is_waiting_for_space(&self) -> bool {
        self.counters.is_waiting_for_space()
    }

    /// Changes the delay for frames queued from now on; the order stays.
    pub fn set_delay(&self, delay: LinkDelay) {
        self.lanes.set_delay(delay);
    }

    /// Writes what is queued, then says goodbye; nothing more can be queued. The receiving half goes on.
    pub fn close(&self) {
        self.lanes.close();
    }

    /// Cuts the peer off at once: what is queued is dropped, and [`FrameReceiver::recv`] gives
    /// [`Error::CutOff`](crate::Error::CutOff). The socket closes when both halves are dropped.
    pub fn abort(&self) {
        self.lanes.discard();
        self.cut.abort();
    }
}

impl Drop for FrameSender {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(queued) => {
                write!(
                    f,
                    "the peer does not read: {} frames, {} bytes wait for it",
                    queued.frames, queued.bytes
                )
            }
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "a frame of {bytes} bytes; the limit is {bytes_max}")
            }
            Self::Closed => f.write_str("the connection is closed"),
        }
    }
}

impl std::error::Error for SendError {}
