//! The task that writes one connection's frames: whatever is queued when the socket is ready, in as few writes as can be.

use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::Notify;

use crate::abort::AbortHandle;
use crate::clock;
use crate::config::{BATCH_BYTES_MAX, COPY_BYTES_MAX};
use crate::frame::Frame;
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
    pub(crate) cut: Arc<AbortHandle>,
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
        let mut heads = Vec::new();
        loop {
            let next = outgoing.queue().next(Instant::now(), &mut batch);
            match next {
                Next::Write => self.write_batch(&mut batch, &mut heads).await?,
                // Nothing pushed later can be due earlier.
                Next::WaitUntil(due) => clock::sleep_until(due).await,
                Next::Idle => outgoing.pushed.notified().await,
                Next::Finished => return self.stream.shutdown().await,
            }
        }
    }

    async fn write_batch(&mut self, batch: &mut Vec<Frame>, heads: &mut Vec<u8>) -> io::Result<()> {
        let mut written = Queued::default();
        for frame in &*batch {
            written.bytes += PREFIX_BYTES + frame.len();
            written.frames += 1;
            // The queue refuses what does not fit into 32 bits.
            heads.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            if is_copied(frame) {
                heads.extend_from_slice(frame.head());
            }
        }
        debug_assert!(heads.len() <= BATCH_BYTES_MAX + PREFIX_BYTES + COPY_BYTES_MAX);
        self.write_slices(&mut slices(batch, heads)).await?;
        self.stream.flush().await?;
        batch.clear();
        heads.clear();
        self.counters.sent(written.bytes, written.frames);
        self.outgoing.queue().release(written);
        Ok(())
    }

    async fn write_slices(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !slices.is_empty() {
            match self.stream.write_vectored(slices).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => IoSlice::advance_slices(&mut slices, bytes),
            }
        }
        Ok(())
    }
}

/// Whether a frame's own bytes stand among the heads, behind their prefix; else they are written from where they lie.
fn is_copied(frame: &Frame) -> bool {
    frame.head().len() <= COPY_BYTES_MAX
}

/// A batch as it goes out: the heads, cut open where frames have something that was not copied.
fn slices<'a>(batch: &'a [Frame], heads: &'a [u8]) -> Vec<IoSlice<'a>> {
    let mut slices = Vec::with_capacity(2 * batch.len());
    let (mut rest, mut copied) = (heads, 0);
    for frame in batch {
        let (own, length) = match is_copied(frame) {
            true => (&[][..], frame.head().len()),
            false => (frame.head(), 0),
        };
        copied += PREFIX_BYTES + length;
        for lent in [own, frame.tail()] {
            if !lent.is_empty() {
                let (before, after) = rest.split_at(copied);
                slices.extend([before, lent].map(IoSlice::new));
                (rest, copied) = (after, 0);
            }
        }
    }
    slices.push(IoSlice::new(rest));
    slices.retain(|slice| !slice.is_empty());
    slices
}

/// A closed sender does not wait for ever for a peer that does not read.
async fn linger(outgoing: &Outgoing, linger_max: std::time::Duration) {
    outgoing.closed.notified().await;
    let one_way = outgoing.queue().one_way();
    tokio::time::sleep(linger_max.saturating_add(one_way)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_or_shared_is_written_from_where_it_lies() {
        let large = vec![3; COPY_BYTES_MAX + 1];
        let image: Arc<[u8]> = Arc::from([4; 100]);
        let batch = [
            Frame::from(vec![1; 10]),
            Frame::sharing(vec![2; 20], Some(Arc::clone(&image))),
            Frame::from(large.clone()),
            Frame::sharing(large, Some(Arc::clone(&image))),
            Frame::from(vec![5; 30]),
        ];
        let prefix = [0; PREFIX_BYTES];
        let heads = [
            &prefix[..],
            &[1; 10],
            &prefix,
            &[2; 20],
            &prefix,
            &prefix,
            &prefix,
            &[5; 30],
        ];
        let heads = heads.concat();
        let slices = slices(&batch, &heads);
        let lent = [&slices[1], &slices[3], &slices[5], &slices[6]].map(|slice| slice.as_ptr());
        let lies = [&image[..], batch[2].head(), batch[3].head(), &image].map(<[u8]>::as_ptr);
        assert_eq!(lent, lies);
        let lengths: Vec<usize> = slices.iter().map(|slice| slice.len()).collect();
        let large = COPY_BYTES_MAX + 1;
        let head = PREFIX_BYTES;
        assert_eq!(
            lengths,
            [2 * head + 30, 100, head, large, head, large, 100, head + 30]
        );
    }
}
