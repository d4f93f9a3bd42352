//! The receiving half of a connection.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::mpsc;

use crate::Error;
use crate::abort::AbortHandle;
use crate::config::{FRAME_SIGN_BYTES_MIN, FRAME_SIGNS_MAX, REUSED_BYTES_MAX};
use crate::lanes::Arrived;
use crate::queue::PREFIX_BYTES;
use crate::socket::Stream;
use crate::traffic::Counters;

/// Takes frames from the peer, one at a time. Reads nothing while nobody calls [`FrameReceiver::recv`]: then the buffers of the two
/// systems fill up, and the peer's queue after them.
#[derive(Debug)]
pub struct FrameReceiver {
    pub(crate) stream: ReadHalf<Stream>,
    pub(crate) cut: Arc<AbortHandle>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frame_bytes_max: usize,
    pub(crate) partial: Partial,
    /// What came by other sockets of the connection.
    pub(crate) lanes: mpsc::Receiver<Arrived>,
}

/// The frame that is arriving. Kept outside of the future, so that giving up a `recv` loses nothing.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    prefix: [u8; PREFIX_BYTES],
    prefix_bytes: usize,
    frame: Vec<u8>,
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
    /// [`Error::FrameTooLong`], [`Error::Truncated`] (ended in the middle of a frame), [`Error::Lost`] (ended between two
    /// frames without a goodbye: the peer's process or machine died), [`Error::CutOff`] (by this side), [`Error::Io`],
    /// [`Error::Tls`].
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.cut.is_aborted() {
            return Err(self.cut.error());
        }
        let Self {
            stream,
            cut,
            counters,
            frame_bytes_max,
            partial,
            lanes,
        } = self;
        tokio::select! {
            // What has arrived comes before the news that the writer failed.
            biased;
            frame = async {
                tokio::select! {
                    frame = partial.read(stream, *frame_bytes_max, counters) => {
                        let frame = frame?;
                        counters.arriving(0);
                        if let Some(frame) = &frame {
                            counters.received(PREFIX_BYTES + frame.len());
                        }
                        Ok(frame)
                    }
                    Some(frame) = lanes.recv() => frame.map(Some),
                }
            } => frame,
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

impl Partial {
    pub(crate) async fn read(
        &mut self,
        stream: &mut ReadHalf<Stream>,
        bytes_max: usize,
        counters: &Counters,
    ) -> Result<Option<Vec<u8>>, Error> {
        while self.prefix_bytes < PREFIX_BYTES {
            let read = stream.read(&mut self.prefix[self.prefix_bytes..]).await;
            match read.map_err(|error| self.broken(error))? {
                0 if self.prefix_bytes == 0 => return Ok(None),
                0 => return Err(self.truncated()),
                bytes => self.prefix_bytes += bytes,
            }
        }
        self.read_frame(stream, bytes_max, counters).await.map(Some)
    }

    async fn read_frame(
        &mut self,
        stream: &mut ReadHalf<Stream>,
        bytes_max: usize,
        counters: &Counters,
    ) -> Result<Vec<u8>, Error> {
        let bytes = self.announced();
        if bytes > bytes_max {
            return Err(Error::FrameTooLong { bytes, bytes_max });
        }
        // Address space, not memory: the system gives pages only as they are filled.
        self.frame.reserve_exact(bytes - self.frame.len());
        while self.frame.len() < bytes {
            let rest = (bytes - self.frame.len()) as u64;
            let read = (&mut *stream).take(rest).read_buf(&mut self.frame).await;
            if read.map_err(|error| self.broken(error))? == 0 {
                return Err(self.truncated());
            }
            self.show_life(counters);
        }
        self.prefix_bytes = 0;
        self.signs = 0;
        Ok(std::mem::take(&mut self.frame))
    }

    /// A peer that trickles shows none (rule 15): whoever waits for it would wait for ever.
    fn show_life(&mut self, counters: &Counters) {
        let signs = self.frame.len() / sign_bytes(self.announced());
        if signs > self.signs {
            self.signs = signs;
            self.signs_of_all += 1;
            counters.arriving(self.signs_of_all);
        }
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
