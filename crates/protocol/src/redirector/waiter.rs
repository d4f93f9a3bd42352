//! A request of a child for a page.

use thorp_model::{Attempt, EdgeId, message};

/// A child that waits for a page from above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) edge: EdgeId,
    pub(super) attempt: Attempt,
    /// Whether a neighbour may answer, beside the stream.
    pub(super) peers: bool,
    /// Whether nobody waits for it yet.
    pub(super) ahead: bool,
    /// Whether it shows that the page is wanted below (rule 8).
    pub(super) counts: bool,
}

impl Waiter {
    /// The child that asks for a page.
    pub(super) fn of(edge: EdgeId, fetch: &message::Fetch) -> Self {
        Waiter {
            edge,
            attempt: fetch.attempt,
            peers: fetch.peers,
            ahead: fetch.ahead,
            // All values that are known here go to all holders anyway. A child that asks for
            // them is a site that refetches what its members want.
            counts: !fetch.ahead || fetch.updates > 0,
        }
    }
}
