//! Which consistencies a visit may have in this build.

use crate::{Error, Result};
use thorp_model::{AccessMode, Consistency, Failures, SessionKind, UpdateOrder};

/// What is refused until it is built.
pub(super) fn check_built(consistency: &Consistency) -> Result<()> {
    let writes = consistency.mode().writes();
    let why = if consistency.kind() != SessionKind::Visit {
        "a serializable or strict session is a transaction: use Member::transact, with Session::strict for the strict one"
    } else if writes && consistency.order() == UpdateOrder::Stamp {
        "stamp order is not built yet: take order=total or order=serial"
    } else if consistency.is_causal() && is_optimistic(consistency) {
        "causal order among updates of logs is not built yet: take failures=pessimistic, or leave causal out"
    } else if writes && is_locking(consistency) && is_optimistic(consistency) {
        "a log keeps no updates under a lock: take failures=pessimistic, or another mode"
    } else {
        return Ok(());
    };
    Err(Error::invalid(why))
}

fn is_locking(consistency: &Consistency) -> bool {
    let mode = consistency.mode();
    matches!(mode, AccessMode::ReadLock | AccessMode::WriteLock)
}

/// Whether updates go into a log.
pub(super) fn is_optimistic(consistency: &Consistency) -> bool {
    matches!(consistency.failures(), Failures::Optimistic { .. })
}
