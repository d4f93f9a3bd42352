//! How many early commits may be under way (rule 14).

use super::requests::Requests;
use crate::limits::EARLY_PER_HOME_MAX;
use crate::lock::lock;
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use thorp_model::HomeId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for early commits: [`EARLY_PER_HOME_MAX`] for each home. So a home that does not respond holds up no commit
/// to another home.
#[derive(Debug, Default)]
pub(crate) struct EarlyPlaces(Mutex<HashMap<HomeId, Arc<Semaphore>>>);

impl EarlyPlaces {
    /// Waits for a place.
    pub(crate) async fn take(
        &self,
        home: HomeId,
        requests: &Arc<Requests>,
        due: Instant,
    ) -> Result<OwnedSemaphorePermit> {
        let places = self.of(home);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(place);
        }
        tokio::select! {
            Ok(place) = places.acquire_owned() => Ok(place),
            slept = requests.sleep_until(due) => Err(slept.err().unwrap_or_else(Error::late)),
        }
    }

    fn of(&self, home: HomeId) -> Arc<Semaphore> {
        let mut places = lock(&self.0);
        let places = places.entry(home);
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(EARLY_PER_HOME_MAX)));
        Arc::clone(places)
    }
}
