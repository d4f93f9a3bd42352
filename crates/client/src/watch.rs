//! Hearing of changes.

use crate::Result;
use std::time::Duration;
use thorp_core::ids::{ObjectId, Position};

/// Tells what changes in a segment: see [`Segment::watch`](crate::Segment::watch).
#[derive(Debug)]
pub struct Watch {}

/// Some commits' changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    /// The changes, in the order of commits; whole commits only.
    pub changes: Vec<Change>,
    /// More happened than is told (too much at once, or the connection was lost meanwhile): look at everything anew.
    pub lost: bool,
}

/// One changed object: written, created or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Which object.
    pub object: ObjectId,
    /// By the commit at this place in the home's order.
    pub position: Position,
}

impl Watch {
    /// The next changes; `None` if there are none within the time.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Changed>> {
        let _ = timeout;
        Err(crate::Error::closed())
    }

    /// The next changes, as soon as there are any.
    pub async fn next_async(&mut self) -> Result<Changed> {
        Err(crate::Error::closed())
    }

    /// The changes that are there, without waiting.
    pub fn take(&mut self) -> Changed {
        Changed::default()
    }
}
