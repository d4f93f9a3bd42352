//! The lives of a home, and whether it is closed (rule R9).

use thorp_model::records::{self, NextRecord};
use thorp_model::{Closed, LifeEnd, LifeId, Position, Reader, StorageError, Table};
use thorp_store::Store;

use crate::error::ServerError;
use crate::node::random;

/// A life begins in a store in which the log has come so far. It is durable when this returns, before anybody hears of it.
pub(super) fn begin_life(
    store: &Store,
    position: Position,
    failed: impl Fn(StorageError) -> ServerError,
) -> Result<(), ServerError> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    let end_of_last = LifeEnd {
        mark: store.usage().mark,
        position,
        ceiling: read(store, records::CLOCK_KEY)
            .map_err(&failed)?
            .unwrap_or_default(),
    };
    let next = read::<NextRecord>(store, records::NEXT_KEY).map_err(&failed)?;
    let life = LifeId {
        // As the home itself counts it when it opens.
        counter: next.unwrap_or_default().life.saturating_add(1),
        random: u64::from_le_bytes(bytes),
    };
    store.begin_life(life, end_of_last).map_err(failed)
}

fn read<T: serde::de::DeserializeOwned>(
    store: &Store,
    key: &[u8],
) -> Result<Option<T>, StorageError> {
    let stored = store.get(Table::Meta, key)?;
    let decoded = stored.map(|value| records::decode(Table::Meta, key, &value));
    decoded.transpose()
}

/// What a closed home says to everybody but operators, and to whoever looks after it.
pub(super) fn words(home: &str, why: Closed) -> String {
    format!(
        "home {home} is closed, only operators get in: {why}. Start it with --restored if it goes on from an older state (or run \
         `thorp confirm DIR` while it does not run), or with --moved if its directory was moved and the old place is gone"
    )
}
