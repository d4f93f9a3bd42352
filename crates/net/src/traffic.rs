//! What really crossed a link.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What has crossed one connection so far, counting frames with their length prefixes (4 bytes each) but neither TLS's own bytes
/// nor the handshake. A frame counts as sent when the system has taken it, as received when it is complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent, with length prefixes.
    pub bytes_sent: u64,
    /// Frames sent.
    pub frames_sent: u64,
    /// Bytes received, with length prefixes.
    pub bytes_received: u64,
    /// Frames received.
    pub frames_received: u64,
}

/// The counters behind [`Traffic`]: plain sums that order nothing, hence relaxed.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    bytes_sent: AtomicU64,
    frames_sent: AtomicU64,
    bytes_received: AtomicU64,
    frames_received: AtomicU64,
    /// While a frame is arriving: the number of its last sign of life, of all that any frame gave. Else zero.
    arriving: AtomicU64,
    /// A frame has begun to arrive, and this side has no space for it yet.
    waits: AtomicBool,
}

impl Counters {
    pub(crate) fn sent(&self, bytes: usize, frames: usize) {
        self.bytes_sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.frames_sent.fetch_add(frames as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_received
            .fetch_add(bytes as u64, Ordering::Relaxed);
        self.frames_received.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn arriving(&self, sign: u64) {
        self.arriving.store(sign, Ordering::Relaxed);
    }

    pub(crate) fn sign(&self) -> u64 {
        self.arriving.load(Ordering::Relaxed)
    }

    pub(crate) fn waits_for_space(&self, waits: bool) {
        self.waits.store(waits, Ordering::Relaxed);
    }

    pub(crate) fn is_waiting_for_space(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    pub(crate) fn snapshot(&self) -> Traffic {
        Traffic {
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            frames_sent: self.frames_sent.load(Ordering::Relaxed),
            bytes_received: self.bytes_received.load(Ordering::Relaxed),
            frames_received: self.frames_received.load(Ordering::Relaxed),
        }
    }
}
