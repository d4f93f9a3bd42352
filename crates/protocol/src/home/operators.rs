//! What only operators may ask a home for.

use crate::home::audit::{Audit, Occasion};
use thorp_model::{CallError, NameId, Principal, Right, SegmentId};

/// Who asks: whose rights count, and the site that brings it, if one does.
pub(in crate::home) type Asker = (Principal, Option<NameId>);

/// Only an operator on an edge of its own is served: a site could make the request up. What others want is recorded
/// (rule R8).
///
/// # Errors
///
/// *No right*.
pub(in crate::home) fn check(audit: &mut Audit, (who, site): Asker) -> Result<(), CallError> {
    if who.is_operator && site.is_none() {
        return Ok(());
    }
    let right = Right::Admin;
    let occasion = Occasion::denied(who.name, SegmentId(0), right).brought_by(site);
    audit.note(occasion, 1);
    Err(CallError::NoRight { right })
}
