//! The place of the engine in a store, where it can be opened anew while others read.

use crate::engine::Opened;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use thorp_model::StorageError;

/// Holds the engine, and lends it to whoever reads or writes.
///
/// It is opened anew only when it is lent to nobody: the engine locks its directory, so there is never a second one beside it.
/// A reader may borrow it again while it holds it, as one that reads while it scans does.
pub(crate) struct Slot {
    engine: Mutex<Current>,
}

/// The engine, or why there is none.
type Current = Result<Arc<Opened>, StorageError>;

impl Slot {
    pub(crate) fn new(engine: Opened) -> Slot {
        Slot {
            engine: Mutex::new(Ok(Arc::new(engine))),
        }
    }

    /// The engine.
    ///
    /// # Errors
    ///
    /// [`StorageError::Broken`]: it could not be opened again.
    pub(crate) fn borrow(&self) -> Result<Arc<Opened>, StorageError> {
        self.lock().clone()
    }

    /// Closes the engine and puts a new one in its place. Readers wait meanwhile. Tells whether it did: not while somebody
    /// holds the old one for longer than [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// [`StorageError::Broken`]: there is no engine now. The store has to be opened again.
    pub(crate) fn renew(
        &self,
        open: impl FnOnce() -> Result<Opened, StorageError>,
    ) -> Result<bool, StorageError> {
        let Some(mut engine) = self.lock_alone()? else {
            return Ok(false);
        };
        // The old one is dropped here, and closed with that.
        *engine = Err(StorageError::Broken {
            detail: "the engine is being opened".to_string(),
        });
        *engine = open().map(Arc::new);
        engine.as_ref().map(|_| true).map_err(Clone::clone)
    }

    /// The lock, when nobody else holds the engine.
    fn lock_alone(&self) -> Result<Option<MutexGuard<'_, Current>>, StorageError> {
        for _ in 0..PATIENCE.as_millis() {
            let engine = self.lock();
            match &*engine {
                Ok(held) if Arc::strong_count(held) == 1 => return Ok(Some(engine)),
                Ok(_) => {}
                Err(error) => return Err(error.clone()),
            }
            drop(engine);
            thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        // A panic while it was opened left an error in it.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long readers may keep the engine from being opened anew.
const PATIENCE: Duration = Duration::from_secs(1);
