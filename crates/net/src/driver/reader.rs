//! The task that reads one edge.

use std::fmt;
use std::sync::Arc;

use thorp_model::codec::CodecError;
use thorp_model::{EdgeId, Message, codec};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::{Error, FrameReceiver};

/// What the loop hears from an edge.
pub(super) struct ReaderEvent {
    pub(super) edge: EdgeId,
    pub(super) what: What,
}

pub(super) enum What {
    /// A message; its room in the inbox is free when it is dropped.
    Message(Message, Option<OwnedSemaphorePermit>),
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

/// Where readers put what they read: bounded in frames by the channel and in bytes by the permits.
#[derive(Clone)]
pub(super) struct Inbox {
    pub(super) events: mpsc::Sender<ReaderEvent>,
    pub(super) room: Arc<Semaphore>,
    pub(super) bytes_max: u32,
}

impl Inbox {
    /// Reads until the edge ends. One frame after the other: what waits for room keeps the next from being read.
    pub(super) async fn read(self, edge: EdgeId, mut receiver: FrameReceiver) {
        let gone = loop {
            let frame = match receiver.recv().await {
                Ok(Some(frame)) => frame,
                Ok(None) => break Gone::Goodbye,
                Err(error) => break Gone::Failed(error),
            };
            let permit = self.room_for(frame.len()).await;
            let message = match codec::decode(&frame) {
                Ok(message) => message,
                Err(error) => break Gone::NoMessage(error),
            };
            // What waits for room in the inbox has to be in memory once only, but for a page.
            receiver.reuse(frame);
            let what = What::Message(message, permit);
            if self.events.send(ReaderEvent { edge, what }).await.is_err() {
                return;
            }
        };
        let what = What::Gone(gone);
        // Fails only if the driver is gone.
        let _ = self.events.send(ReaderEvent { edge, what }).await;
    }

    async fn room_for(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        // A frame larger than all the room gets all of it.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max);
        let room = Arc::clone(&self.room);
        // Fails only if the semaphore were closed, which nobody does.
        room.acquire_many_owned(bytes).await.ok()
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
