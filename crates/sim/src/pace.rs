//! How fast members go on.

use crate::time::At;
use std::collections::BTreeMap;
use thorp_model::MemberId;

/// When members last heard that they have committed what they wrote.
#[derive(Debug, Default)]
pub struct Pace {
    last: BTreeMap<MemberId, At>,
}

impl Pace {
    /// A member has heard so.
    pub fn committed(&mut self, member: MemberId, at: At) {
        self.last.insert(member, at);
    }

    /// Whether a member has heard so after a time.
    pub fn has_committed(&self, member: MemberId, since: At) -> bool {
        self.last.get(&member).is_some_and(|at| *at > since)
    }
}
