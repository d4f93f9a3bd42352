//! The lives of a home, and whether it is closed (rule R9).

use std::sync::Arc;

use thorp_model::Closed;
use thorp_protocol::{HomeHistory, Reopen};
use thorp_store::{Reopening, Store};
use tracing::warn;

use super::disk::Disk;
use crate::error::ServerError;
use crate::node::random;
use crate::status::{HistoryStatus, MetStatus};

/// What a store knows of its history, for the home that starts on it.
pub(super) fn of(store: &Store) -> Result<HomeHistory, ServerError> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    let known = store.history();
    Ok(HomeHistory {
        incarnation: known.incarnation(),
        lives: known.lives().clone(),
        mark: store.usage().mark,
        key: known.key().clone(),
        random: u64::from_le_bytes(bytes),
        closed: known.closed(),
        openings: known.openings().to_vec(),
    })
}

/// Opens a store as an operator wants it, if one does, before a home starts on it.
pub(super) fn reopen(
    disk: Arc<Disk>,
    wanted: &mut Option<Reopen>,
) -> Result<Arc<Disk>, ServerError> {
    if let Some(Reopen { apart, by }) = wanted.clone() {
        let name = by.name.clone();
        let by = Some(by);
        let store = disk.store();
        let incarnation = store.reopen(Reopening { apart, by });
        let incarnation = incarnation.map_err(ServerError::Store)?;
        *wanted = None;
        warn!("operator {name:?} has opened the home: it goes on with incarnation {incarnation}");
    }
    Ok(disk)
}

/// What a store tells of its history.
pub(super) fn status(store: &Store) -> HistoryStatus {
    let history = store.history();
    let closed = history.closed();
    let met = match &closed {
        Some(Closed::OtherHistory(met)) => Some(MetStatus {
            by: met.by.clone(),
            incarnation: met.incarnation.get(),
            life: met.point.life.counter,
            position: met.point.position.0,
        }),
        _ => None,
    };
    HistoryStatus {
        incarnation: history.incarnation().get(),
        lives: history.lives().len(),
        closed: closed.map(|why| why.to_string()),
        met,
    }
}

/// What a closed home says to everybody but operators, and to whoever looks after it.
pub(super) fn words(home: &str, why: &Closed) -> String {
    format!(
        "home {home} is closed, only operators get in: {why}. If it goes on from an older state, an operator runs `thorp confirm \
         {home}`, or somebody starts it with --restored; with --moved, if its directory was moved and the old place is gone"
    )
}
