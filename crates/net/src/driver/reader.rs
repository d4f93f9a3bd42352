//! The task that reads one edge.

use std::fmt;
use std::sync::Arc;

use thorp_model::codec::CodecError;
use thorp_model::{EdgeId, Message, codec};
use tokio::sync::mpsc;

use crate::intake::{Held, Intake};
use crate::receiver::Received;
use crate::{Error, FrameReceiver};

/// What the loop hears from an edge.
pub(super) struct ReaderEvent {
    pub(super) edge: EdgeId,
    pub(super) what: What,
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

/// Where readers put what they read: bounded in frames by the channel, and in bytes by the intake.
#[derive(Clone)]
pub(super) struct Inbox {
    pub(super) events: mpsc::Sender<ReaderEvent>,
    pub(super) intake: Arc<Intake>,
}

impl Inbox {
    /// Reads until the edge ends. One frame after the other: what waits for the loop keeps the next from being read.
    pub(super) async fn read(self, edge: EdgeId, mut receiver: FrameReceiver) {
        let gone = loop {
            let Received { frame, held } = match receiver.recv_held().await {
                Ok(Some(received)) => received,
                Ok(None) => break Gone::Goodbye,
                Err(error) => break Gone::Failed(error),
            };
            let message = match codec::decode(&frame) {
                Ok(message) => message,
                Err(error) => break Gone::NoMessage(error),
            };
            // What waits in the inbox has to be in memory once only, but for a page.
            receiver.reuse(frame);
            let what = What::Message(message, held);
            if self.events.send(ReaderEvent { edge, what }).await.is_err() {
                return;
            }
        };
        let what = What::Gone(gone);
        // Fails only if the driver is gone.
        let _ = self.events.send(ReaderEvent { edge, what }).await;
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
