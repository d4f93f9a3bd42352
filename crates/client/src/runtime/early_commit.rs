//! What is kept of a commit whose program goes on, until it is answered (rule 14).

use super::{Shared, late};
use crate::Result;
use crate::limits::EARLY_PER_HOME_MAX;
use crate::lock::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use thorp_model::{CommitId, HomeId, Outcome, Refusal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// One such commit: with its place among those of its home.
pub(crate) struct EarlyCommit {
    _place: OwnedSemaphorePermit,
    /// None: its program goes on.
    tell: Option<oneshot::Sender<CommitId>>,
}

impl EarlyCommit {
    /// And what tells that it is shown.
    pub(crate) fn new(place: OwnedSemaphorePermit) -> (Self, oneshot::Receiver<CommitId>) {
        let (tell, shown) = oneshot::channel();
        let early = EarlyCommit {
            _place: place,
            tell: Some(tell),
        };
        (early, shown)
    }

    /// Its program goes on.
    pub(super) fn show(&mut self, id: CommitId) {
        if let Some(tell) = self.tell.take() {
            // Whoever went away goes on, too.
            let _ = tell.send(id);
        }
    }
}

/// How many are under way to each home: one that does not answer holds up nobody at the others.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<HomeId, Arc<Semaphore>>>);

impl Places {
    fn of(&self, home: HomeId) -> Arc<Semaphore> {
        let mut places = lock(&self.0);
        let places = places.entry(home);
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(EARLY_PER_HOME_MAX)));
        Arc::clone(places)
    }
}

impl Shared {
    /// A place for one more, when there is one.
    pub(crate) async fn place(
        self: &Arc<Self>,
        home: HomeId,
        due: Instant,
    ) -> Result<OwnedSemaphorePermit> {
        let places = self.places.of(home);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(place);
        }
        tokio::select! {
            Ok(place) = places.acquire_owned() => Ok(place),
            slept = self.sleep_until(due) => Err(slept.err().unwrap_or_else(late)),
        }
    }

    /// A commit has ended whose program went on: whoever has read what it wrote stands above it (rule 5).
    pub(super) fn hear_outcome(&self, id: CommitId, outcome: &Outcome) {
        if !self.waits.is_open(id) {
            return;
        }
        match outcome {
            Outcome::Committed { stamp, .. } => {
                self.raise_floor(*stamp);
                self.counters.ended(super::Ending::Committed);
            }
            Outcome::Refused(Refusal::Busy { .. } | Refusal::Full) => {
                self.counters.ended(super::Ending::Aborted);
            }
            Outcome::Refused(Refusal::Forgotten) => self.counters.ended(super::Ending::Unknown),
            Outcome::Refused(_) => self.counters.ended(super::Ending::Conflict),
        }
    }
}
