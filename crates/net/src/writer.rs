//! The task that writes one connection's frames: whatever is queued when the socket is ready, in as few writes as can be.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::Notify;

use crate::clock;
use crate::config::{BATCH_BYTES_MAX, COPY_BYTES_MAX};
use crate::cut::Cut;
use crate::queue::{Next, PREFIX_BYTES, Queue};
use crate::socket::Stream;
use crate::traffic::Counters;
use crate::{Limits, LinkDelay, Queued};

/// What the two ends of a connection's outgoing side share: the owner pushes, the writer takes.
#[derive(Debug)]
pub(crate) struct Outgoing {
    queue: Mutex<Queue>,
    pushed: Notify,
    closed: Notify,
}

/// The writer of one connection.
pub(crate) struct Writer {
    pub(crate) stream: WriteHalf<Stream>,
    pub(crate) outgoing: Arc<Outgoing>,
    pub(crate) cut: Arc<Cut>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) limits: Limits,
}

impl Outgoing {
    pub(crate) fn new(limits: &Limits, delay: LinkDelay) -> Self {
        Self {
            queue: Mutex::new(Queue::new(limits, delay)),
            pushed: Notify::new(),
            closed: Notify::new(),
        }
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics half-way through a change of the queue.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the writer after a push.
    pub(crate) fn pushed(&self) {
        self.pushed.notify_one();
    }

    /// Lets what waits go out, then says goodbye.
    pub(crate) fn close(&self) {
        self.queue().close();
        self.pushed.notify_one();
        self.closed.notify_one();
    }
}

impl Writer {
    /// Runs until the queue is closed and empty, the connection is cut, or writing fails. `first` (the answer to a
    /// caller's greeting) goes out before any frame and counts as none.
    pub(crate) async fn run(mut self, first: Vec<u8>) {
        let (outgoing, cut) = (Arc::clone(&self.outgoing), Arc::clone(&self.cut));
        let linger_max = self.limits.close_linger_max;
        let ended = tokio::select! {
            ended = self.write_all(&first) => ended,
            () = cut.pulled() => return outgoing.queue().discard(),
            () = linger(&outgoing, linger_max) => Err(io::ErrorKind::TimedOut.into()),
        };
        outgoing.queue().discard();
        if let Err(error) = ended {
            cut.writer_failed(error.kind());
        }
    }

    async fn write_all(&mut self, first: &[u8]) -> io::Result<()> {
        if !first.is_empty() {
            self.stream.write_all(first).await?;
            self.stream.flush().await?;
        }
        let outgoing = Arc::clone(&self.outgoing);
        let mut batch = Vec::new();
        let mut buffer = Vec::new();
        loop {
            let next = outgoing.queue().next(Instant::now(), &mut batch);
            match next {
                Next::Write => self.write_batch(&mut batch, &mut buffer).await?,
                // Nothing pushed later can be due earlier.
                Next::WaitUntil(due) => clock::sleep_until(due).await,
                Next::Idle => outgoing.pushed.notified().await,
                Next::Finished => return self.stream.shutdown().await,
            }
        }
    }

    async fn write_batch(
        &mut self,
        batch: &mut Vec<Vec<u8>>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut written = Queued::default();
        for frame in batch.drain(..) {
            written.bytes += PREFIX_BYTES + frame.len();
            written.frames += 1;
            // The queue refuses what does not fit into 32 bits.
            buffer.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            if frame.len() <= COPY_BYTES_MAX {
                buffer.extend_from_slice(&frame);
            } else {
                self.write_buffer(buffer).await?;
                self.stream.write_all(&frame).await?;
            }
        }
        self.write_buffer(buffer).await?;
        self.stream.flush().await?;
        self.counters.sent(written.bytes, written.frames);
        self.outgoing.queue().release(written);
        Ok(())
    }

    async fn write_buffer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        debug_assert!(buffer.len() <= BATCH_BYTES_MAX + PREFIX_BYTES + COPY_BYTES_MAX);
        self.stream.write_all(buffer).await?;
        buffer.clear();
        Ok(())
    }
}

/// A closed sender does not wait for ever for a peer that does not read.
async fn linger(outgoing: &Outgoing, linger_max: std::time::Duration) {
    outgoing.closed.notified().await;
    let one_way = outgoing.queue().one_way();
    tokio::time::sleep(linger_max.saturating_add(one_way)).await;
}
