//! A connection's emergency brake: pulled once, seen by everyone, however late they look.

use std::io;
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::Error;

/// Tells the reader and the writer of one connection that it is over.
#[derive(Debug, Default)]
pub(crate) struct AbortHandle {
    /// Set with the first cause only.
    pulled: AtomicBool,
    /// What the writer died of; empty if the owner pulled the brake.
    cause: OnceLock<io::ErrorKind>,
    bell: Notify,
}

impl AbortHandle {
    /// The owner cuts the peer off.
    pub(crate) fn abort(&self) {
        self.pulled.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }

    /// The writer could not go on.
    pub(crate) fn writer_failed(&self, cause: io::ErrorKind) {
        // A second cause changes nothing: the first one is the reason.
        let _ = self.cause.set(cause);
        self.abort();
    }

    /// Whether the owner pulled it. A writer's failure does not count: what has arrived may still be read then.
    pub(crate) fn is_aborted(&self) -> bool {
        self.pulled.load(Ordering::Acquire) && self.cause.get().is_none()
    }

    /// Waits for the brake.
    pub(crate) async fn pulled(&self) {
        let mut heard = pin!(self.bell.notified());
        // Listen first, look second: a pull in between is heard.
        heard.as_mut().enable();
        if !self.pulled.load(Ordering::Acquire) {
            heard.await;
        }
    }

    /// The reason, once pulled.
    pub(crate) fn error(&self) -> Error {
        match self.cause.get() {
            Some(kind) => Error::Io {
                during: "sending frames",
                source: (*kind).into(),
            },
            None => Error::CutOff,
        }
    }
}
