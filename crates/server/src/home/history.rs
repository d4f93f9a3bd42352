//! The lives of a home, and whether it is closed (rule R9).

use thorp_model::{Closed, Met};
use thorp_protocol::{HomeHistory, OtherHistory};
use thorp_store::Store;

use crate::error::ServerError;
use crate::node::random;

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
        is_closed: known.closed().is_some(),
    })
}

/// Why a home closes that has met a receipt of another history.
pub(super) fn met(other: &OtherHistory) -> Closed {
    Closed::OtherHistory(Met {
        by: other.by.clone(),
        incarnation: other.receipt.incarnation,
        point: other.receipt.point,
    })
}

/// What a closed home says to everybody but operators, and to whoever looks after it.
pub(super) fn words(home: &str, why: &Closed) -> String {
    format!(
        "home {home} is closed, only operators get in: {why}. Start it with --restored if it goes on from an older state (or run \
         `thorp confirm DIR` while it does not run), or with --moved if its directory was moved and the old place is gone"
    )
}
