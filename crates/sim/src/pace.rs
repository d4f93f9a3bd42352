//! How fast members go on.

use crate::time::At;
use std::collections::BTreeMap;
use thorp_model::MemberId;

/// When members last heard that they have committed what they wrote.
#[derive(Debug, Default)]
pub struct Pace {
    last: BTreeMap<MemberId, At>,
    /// Since when each is waited for, while that is so.
    awaited_since: Option<At>,
}

impl Pace {
    /// A member has heard so.
    pub fn committed(&mut self, member: MemberId, at: At) {
        self.last.insert(member, at);
    }

    /// From now on each member is to commit something. It writes until then, and steps aside for slower ones after that:
    /// otherwise honest programs would stop each other.
    pub fn await_all(&mut self, now: At) {
        self.awaited_since = Some(now);
    }

    /// All that was awaited has come.
    pub fn go_on(&mut self) {
        self.awaited_since = None;
    }

    /// Whether a member is waited for.
    pub fn awaits(&self, member: MemberId) -> bool {
        let since = self.awaited_since;
        since.is_some_and(|since| !self.has_committed(member, since))
    }

    /// Whether a member has done what it was awaited for, and others may not have.
    pub fn steps_aside(&self, member: MemberId) -> bool {
        self.awaited_since.is_some() && !self.awaits(member)
    }

    /// Whether a member has heard so after a time.
    pub fn has_committed(&self, member: MemberId, since: At) -> bool {
        self.last.get(&member).is_some_and(|at| *at > since)
    }
}
