//! The task that reads one edge.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thorp_model::codec::CodecError;
use thorp_model::{EdgeId, Message, NameId, Up, codec};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::intake::{Held, Intake};
use crate::receiver::Received;
use crate::{Error, FrameReceiver};

/// What the loop hears from an edge.
pub(super) struct ReaderEvent {
    pub(super) edge: EdgeId,
    pub(super) what: What,
    /// What it has taken to decode.
    pub(super) decoding: Duration,
    /// Its place in the edge's part of the inbox; free again when the loop has handled it.
    _place: Option<OwnedSemaphorePermit>,
}

impl ReaderEvent {
    /// Whether somebody waits for what comes of it.
    pub(super) fn asks(&self) -> bool {
        let What::Message(Message::Up(up), _) = &self.what else {
            return false;
        };
        matches!(
            up,
            Up::Fetch(_)
                | Up::Commit(_)
                | Up::Save(_)
                | Up::Update(_)
                | Up::Decide(_)
                | Up::Call(_)
                | Up::Report(_)
        )
    }
}

pub(super) enum What {
    /// A message, and its space in the inbox.
    Message(Message, Option<Held>),
    /// The last thing that is heard.
    Gone(Gone),
}

/// Why an edge ended.
#[derive(Debug)]
pub(super) enum Gone {
    Goodbye,
    Failed(Error),
    NoMessage(CodecError),
}

/// Where readers put what they read: bounded in frames for each edge, and in bytes by the intake.
#[derive(Clone)]
pub(super) struct Inbox {
    pub(super) events: mpsc::UnboundedSender<(Payer, ReaderEvent)>,
    pub(super) intake: Arc<Intake>,
    /// Frames of one edge that wait for the loop.
    pub(super) frames_max: usize,
}

/// So many bytes of a frame take one more of its edge's places.
const BYTES_OF_A_PLACE: usize = 16 << 10;

/// Whose line an edge's inputs wait in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Payer {
    /// The name in the peer's certificate.
    pub(super) name: NameId,
    /// A parent speaks for many: it has several shares of the loop's time.
    pub(super) is_parent: bool,
}

impl Inbox {
    /// Reads until the edge ends. One frame after the other: what waits for the loop keeps the next from being read.
    pub(super) async fn read(self, edge: EdgeId, payer: Payer, mut receiver: FrameReceiver) {
        let places = Arc::new(Semaphore::new(self.frames_max));
        let gone = loop {
            let Received { frame, held } = match receiver.recv_held().await {
                Ok(Some(received)) => received,
                Ok(None) => break Gone::Goodbye,
                Err(error) => break Gone::Failed(error),
            };
            // Nobody closes the semaphore. A long frame takes several places: it takes longer to decode.
            let wanted = (1 + frame.len() / BYTES_OF_A_PLACE).min(self.frames_max);
            let place = Arc::clone(&places).acquire_many_owned(wanted as u32).await;
            let begun = Instant::now();
            let message = match codec::decode(&frame) {
                Ok(message) => message,
                Err(error) => break Gone::NoMessage(error),
            };
            let decoding = begun.elapsed();
            // What waits in the inbox has to be in memory once only, but for a page.
            receiver.reuse(frame);
            let event = ReaderEvent {
                edge,
                what: What::Message(message, held),
                decoding,
                _place: place.ok(),
            };
            if self.events.send((payer, event)).is_err() {
                return;
            }
        };
        let event = ReaderEvent {
            edge,
            what: What::Gone(gone),
            decoding: Duration::ZERO,
            _place: None,
        };
        // Fails only if the driver is gone.
        let _ = self.events.send((payer, event));
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goodbye => f.write_str("it said goodbye"),
            Self::Failed(error) => error.fmt(f),
            Self::NoMessage(error) => write!(f, "it sent {error}"),
        }
    }
}
