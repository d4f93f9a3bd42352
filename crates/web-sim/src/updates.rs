//! The updates of clients.

use crate::database::{Row, Xid};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Updates that are under way, and the last value that was written.
#[derive(Default)]
pub(crate) struct Updates {
    pub(crate) pending: RefCell<BTreeMap<Xid, Pending>>,
    pub(crate) last: Cell<u64>,
}

pub(crate) struct Pending {
    pub(crate) writes: Vec<(Row, u64)>,
    /// Who writes again after it.
    pub(crate) writer: Option<usize>,
}
