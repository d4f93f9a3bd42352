//! How many fills run at a time. A fill goes on without its client, so the limit of clients' connections does not bound fills.

use super::origin::OriginError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Fills at a time. Each has a connection to the origin.
const FILLS_MAX: usize = 512;

/// How long a request waits for its turn to fill.
const WAITS_FOR: Duration = Duration::from_secs(10);

/// The fills that run.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Semaphore>);

/// The right to run a fill.
#[derive(Debug)]
pub(super) struct Turn {
    _place: OwnedSemaphorePermit,
}

impl Default for Places {
    fn default() -> Self {
        Places(Arc::new(Semaphore::new(FILLS_MAX)))
    }
}

impl Places {
    /// Waits for a turn. It comes back when it is dropped.
    ///
    /// # Errors
    ///
    /// None has come in time.
    pub(super) async fn turn(&self) -> Result<Turn, OriginError> {
        self.turn_within(WAITS_FOR).await
    }

    async fn turn_within(&self, patience: Duration) -> Result<Turn, OriginError> {
        let place = Arc::clone(&self.0).acquire_owned();
        match tokio::time::timeout(patience, place).await {
            Ok(Ok(place)) => Ok(Turn { _place: place }),
            Ok(Err(_)) | Err(_) => Err(OriginError::Busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn one_fill_too_many_waits_and_is_refused() {
        let places = Places::default();
        let mut turns = Vec::new();
        for _ in 0..FILLS_MAX {
            turns.push(places.turn().await.expect("a turn"));
        }
        let refused = places.turn_within(SHORT).await;
        assert!(matches!(refused, Err(OriginError::Busy)));
        let waits = tokio::spawn({
            let places = places.clone();
            async move { places.turn_within(Duration::from_secs(3_600)).await }
        });
        turns.pop();
        assert!(waits.await.expect("it ends").is_ok());
    }
}
