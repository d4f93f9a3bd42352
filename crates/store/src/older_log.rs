//! Logs of earlier versions become logs of this one (rule C6).

use crate::store::Store;
use serde::{Deserialize, Serialize};
use thorp_model::records::{self, UpdateRecord};
use thorp_model::{Op, Reader, Refusal, Scan, StorageError, Table, Update};

/// An update as versions 1 and 2 of a log have it: its log's own member has written it.
#[derive(Serialize, Deserialize)]
pub(crate) struct UnauthoredRecord {
    pub(crate) update: Update,
    pub(crate) rejected: Option<Refusal>,
}

/// What makes the updates of an earlier version those of this one.
pub(crate) fn converted(store: &Store) -> Result<Vec<Op>, StorageError> {
    let (from, to) = records::update_range();
    let (mut ops, mut damaged) = (Vec::new(), None);
    store.scan(
        Table::Meta,
        &from,
        &to,
        &mut |key, value| match records::decode(Table::Meta, key, value) {
            Ok(UnauthoredRecord { update, rejected }) => {
                let record = UpdateRecord {
                    update,
                    rejected,
                    author: None,
                };
                ops.push(records::put(Table::Meta, key.to_vec(), &record));
                Scan::Go
            }
            Err(error) => {
                damaged = Some(error);
                Scan::Stop
            }
        },
    )?;
    damaged.map_or(Ok(ops), Err)
}
