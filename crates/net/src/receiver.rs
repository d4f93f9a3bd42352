//! The receiving half of a connection.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::{mpsc, oneshot};

use crate::abort::AbortHandle;
use crate::clock::later;
use crate::config::{FRAME_SIGN_BYTES_MIN, FRAME_SIGNS_MAX, REUSED_BYTES_MAX};
use crate::intake::{Answer, Held, Quota};
use crate::lanes::Arrived;
use crate::queue::PREFIX_BYTES;
use crate::socket::Stream;
use crate::traffic::Counters;
use crate::{Error, Limits};

/// Takes frames from the peer, one at a time. Reads nothing while nobody calls [`FrameReceiver::recv`]: then the buffers of the two
/// systems fill up, and the peer's queue after them.
#[derive(Debug)]
pub struct FrameReceiver {
    pub(crate) stream: ReadHalf<Stream>,
    pub(crate) cut: Arc<AbortHandle>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) partial: Partial,
    /// What came by other sockets of the connection.
    pub(crate) lanes: mpsc::Receiver<Arrived>,
}

/// What bounds the frames that arrive, by any socket of one connection.
#[derive(Debug)]
pub(crate) struct Bounds {
    frame_bytes_max: usize,
    progress_time_max: Duration,
    /// Without it the space of frames is not counted.
    quota: OnceLock<Quota>,
}

/// A frame, and the space that is counted for it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) frame: Vec<u8>,
    pub(crate) held: Option<Held>,
}

/// The frame that is arriving. Kept outside of the future, so that giving up a `recv` loses nothing.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    prefix: [u8; PREFIX_BYTES],
    prefix_bytes: usize,
    frame: Vec<u8>,
    /// Its space.
    held: Option<Held>,
    /// By which its space comes.
    grant: Option<oneshot::Receiver<Held>>,
    /// When the next sign of life is due.
    due: Option<Instant>,
    /// Signs of life that this frame gave.
    signs: usize,
    /// And all frames together: so each sign has another number.
    signs_of_all: u64,
}

impl FrameReceiver {
    /// The next frame; `None` when the peer has closed the connection properly between two frames.
    ///
    /// May be given up and called again (in `select!`, say) without losing anything. After `None` or an error the
    /// connection is over.
    ///
    /// # Errors
    ///
    /// [`Error::FrameTooLong`], [`Error::Timeout`] (a frame began and does not go on), [`Error::Truncated`] (ended in the middle of a frame), [`Error::Lost`] (ended between two
    /// frames without a goodbye: the peer's process or machine died), [`Error::CutOff`] (by this side), [`Error::Io`],
    /// [`Error::Tls`].
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let received = self.recv_held().await?;
        Ok(received.map(|received| received.frame))
    }

    /// The same, with the space that is counted for the frame.
    pub(crate) async fn recv_held(&mut self) -> Result<Option<Received>, Error> {
        if self.cut.is_aborted() {
            return Err(self.cut.error());
        }
        let Self {
            stream,
            cut,
            counters,
            bounds,
            partial,
            lanes,
        } = self;
        tokio::select! {
            // What has arrived comes before the news that the writer failed.
            biased;
            received = async {
                tokio::select! {
                    received = partial.read(stream, bounds, counters) => {
                        let received = received?;
                        counters.arriving(0);
                        if let Some(Received { frame, .. }) = &received {
                            counters.received(PREFIX_BYTES + frame.len());
                        }
                        Ok(received)
                    }
                    Some(received) = lanes.recv() => received.map(Some),
                }
            } => received,
            () = cut.pulled() => Err(cut.error()),
        }
    }

    /// The room of a frame that is done with is taken for the next one, if it is not much.
    pub(crate) fn reuse(&mut self, mut frame: Vec<u8>) {
        if self.partial.frame.capacity() == 0 && frame.capacity() <= REUSED_BYTES_MAX {
            frame.clear();
            self.partial.frame = frame;
        }
    }
}

impl Bounds {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            frame_bytes_max: limits.frame_bytes_max,
            progress_time_max: limits.frame_progress_time_max,
            quota: OnceLock::new(),
        }
    }

    /// Counts the frames that begin from now on. A second quota changes nothing: an edge has one name.
    pub(crate) fn count_in(&self, quota: Quota) {
        let _ = self.quota.set(quota);
    }
}

impl Partial {
    pub(crate) async fn read(
        &mut self,
        stream: &mut ReadHalf<Stream>,
        bounds: &Bounds,
        counters: &Counters,
    ) -> Result<Option<Received>, Error> {
        while self.prefix_bytes < PREFIX_BYTES {
            let read = stream.read(&mut self.prefix[self.prefix_bytes..]).await;
            match read.map_err(|error| self.broken(error))? {
                0 if self.prefix_bytes == 0 => return Ok(None),
                0 => return Err(self.truncated()),
                bytes => self.prefix_bytes += bytes,
            }
        }
        let (bytes, bytes_max) = (self.announced(), bounds.frame_bytes_max);
        if bytes > bytes_max {
            return Err(Error::FrameTooLong { bytes, bytes_max });
        }
        if let Some(quota) = bounds.quota.get() {
            self.wait_for_space(quota, counters).await;
        }
        self.read_frame(stream, bounds, counters).await.map(Some)
    }

    /// Nothing is read meanwhile, so the peer's queue grows in the end. It says nothing about whether the peer is alive.
    async fn wait_for_space(&mut self, quota: &Quota, counters: &Counters) {
        while self.held.is_none() {
            let Some(grant) = &mut self.grant else {
                match quota.claim(self.announced()) {
                    Answer::Granted(held) => self.held = Some(held),
                    Answer::Waits(grant) => self.grant = Some(grant),
                }
                continue;
            };
            counters.waits_for_space(true);
            // Its other end is lost only with the intake, of which the quota is a part.
            self.held = grant.await.ok();
            counters.waits_for_space(false);
            self.grant = None;
        }
    }

    async fn read_frame(
        &mut self,
        stream: &mut ReadHalf<Stream>,
        bounds: &Bounds,
        counters: &Counters,
    ) -> Result<Received, Error> {
        let (bytes, after) = (self.announced(), bounds.progress_time_max);
        let during = "receiving a frame";
        // Address space, not memory: the system gives pages only as they are filled.
        self.frame.reserve_exact(bytes - self.frame.len());
        while self.frame.len() < bytes {
            let rest = (bytes - self.frame.len()) as u64;
            let due = *self.due.get_or_insert_with(|| later(Instant::now(), after));
            let mut stream = (&mut *stream).take(rest);
            let read = tokio::time::timeout_at(due.into(), stream.read_buf(&mut self.frame)).await;
            let read = read.map_err(|_| Error::Timeout { during, after })?;
            if read.map_err(|error| self.broken(error))? == 0 {
                return Err(self.truncated());
            }
            if self.show_life(counters) {
                self.due = None;
            }
        }
        self.prefix_bytes = 0;
        self.signs = 0;
        self.due = None;
        Ok(Received {
            frame: std::mem::take(&mut self.frame),
            held: self.held.take(),
        })
    }

    /// A peer that trickles shows none (rule 15): whoever waits for it would wait for ever.
    fn show_life(&mut self, counters: &Counters) -> bool {
        let signs = self.frame.len() / sign_bytes(self.announced());
        let is_new = signs > self.signs;
        if is_new {
            self.signs = signs;
            self.signs_of_all += 1;
            counters.arriving(self.signs_of_all);
        }
        is_new
    }

    fn announced(&self) -> usize {
        u32::from_le_bytes(self.prefix) as usize
    }

    fn broken(&self, error: std::io::Error) -> Error {
        match Error::from_tls("receiving frames", error) {
            Error::Lost if self.prefix_bytes > 0 => self.truncated(),
            other => other,
        }
    }

    fn truncated(&self) -> Error {
        let frame_bytes = if self.prefix_bytes == PREFIX_BYTES {
            self.announced()
        } else {
            0
        };
        Error::Truncated {
            bytes: self.prefix_bytes + self.frame.len(),
            bytes_due: PREFIX_BYTES + frame_bytes,
        }
    }
}

/// So many bytes of a frame of this length are a sign of life.
fn sign_bytes(frame_bytes: usize) -> usize {
    frame_bytes
        .div_ceil(FRAME_SIGNS_MAX)
        .max(FRAME_SIGN_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FRAME_BYTES_MAX;
    use thorp_model::limits::{ALIVE_MISSED_MAX, ALIVE_MS};

    #[test]
    fn a_slow_link_brings_a_sign_in_time_and_no_frame_gives_too_many() {
        let silence_ms = ALIVE_MS * u64::from(ALIVE_MISSED_MAX);
        let brought = 64 * silence_ms;
        for bytes in [1, FRAME_SIGN_BYTES_MIN, 4 << 20, FRAME_BYTES_MAX] {
            // What came just before the last look is not counted.
            assert!(2 * sign_bytes(bytes) as u64 <= brought, "{bytes}");
            assert!(bytes / sign_bytes(bytes) <= FRAME_SIGNS_MAX, "{bytes}");
        }
        // Also where the silence allowed is half a second.
        assert!(sign_bytes(4 << 20) <= 64 * 500);
    }
}
