//! The places of a listener's callers, as its tasks use them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::places::{Arrival, CallerId, Origin, Places};

/// The [`Places`] of one listener.
#[derive(Debug)]
pub(crate) struct Doorway {
    places: Mutex<Places<oneshot::Sender<()>>>,
    /// Somebody has left, or may be dropped now.
    changed: Notify,
}

/// The place of one caller; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    id: CallerId,
    doorway: Arc<Doorway>,
    lost: oneshot::Receiver<()>,
}

impl Doorway {
    pub(crate) fn new(max: usize, known_max: usize) -> Self {
        Self {
            places: Mutex::new(Places::new(max, known_max)),
            changed: Notify::new(),
        }
    }

    /// Waits until there is a place for a caller. Only one task waits here, and the callers after this one wait behind it: of
    /// a flood from one address a place becomes free every few milliseconds.
    pub(crate) async fn enter(self: &Arc<Self>, origin: Origin) -> Place {
        loop {
            let (token, lost) = oneshot::channel();
            let now = Instant::now().into_std();
            let arrival = self.places().arrive(now, origin, token);
            match arrival {
                Arrival::Enters { id, dropped } => {
                    if let Some(token) = dropped {
                        // Fails if the task has just ended by itself.
                        let _ = token.send(());
                    }
                    let doorway = Arc::clone(self);
                    return Place { id, doorway, lost };
                }
                Arrival::Waits(None) => self.changed.notified().await,
                Arrival::Waits(Some(until)) => {
                    let until = tokio::time::sleep_until(until.into());
                    tokio::select! {
                        () = self.changed.notified() => {}
                        () = until => {}
                    }
                }
            }
        }
    }

    fn places(&self) -> MutexGuard<'_, Places<oneshot::Sender<()>>> {
        // Nothing panics half-way through a change of the places.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The caller has done what its place is for. False if it has lost its place.
    pub(crate) fn complete(&self) -> bool {
        self.doorway.places().complete(self.id)
    }

    /// The caller is turned away, and may lose its place from now on.
    pub(crate) fn turn_away(&self) {
        self.doorway.places().turn_away(self.id);
        self.doorway.changed.notify_one();
    }

    /// Waits until the caller loses its place to a newer one. May be given up and called again.
    pub(crate) async fn lost(&mut self) {
        // Its sender is kept as long as the place is.
        let _ = (&mut self.lost).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.doorway.places().leave(self.id);
        self.doorway.changed.notify_one();
    }
}
