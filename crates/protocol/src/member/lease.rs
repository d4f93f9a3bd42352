//! A lease of a member, to write or to read (rules C1 and C4).

use thorp_model::limits::BUSY_RETRY_MS;
use thorp_model::planted::Bug;
use thorp_model::{Millis, believed_until, planted};

/// A member's lease in one segment.
///
/// Invariant: the member believes in it for less long than every node on the way to the home, because its time counts from
/// sending the request.
#[derive(Debug, Default)]
pub(in crate::member) struct Lease {
    until: Millis,
    lease_ms: u64,
    /// The home has given it no more time when the member asked last.
    is_refused: bool,
    /// When the lease is to be asked for again.
    due: Millis,
    is_asked: bool,
    /// The home does not grant it. Nobody waits for it.
    is_denied: bool,
    /// The home does not grant it because others read with hard bounds.
    is_outranked: bool,
}

impl Lease {
    /// Whether the member believes in it.
    pub(in crate::member) fn is_held(&self, now: Millis) -> bool {
        now < self.until
    }

    /// Whether the home is sure to have an update before the lease ends, if the oldest one waits for it so long. A home that gives no
    /// more time has readers that wait (rule C4).
    pub(in crate::member) fn keeps_pace(&self, oldest_ms: u64) -> bool {
        !self.is_refused && oldest_ms <= self.lease_ms / 4
    }

    /// Whether an answer to the program may wait for it.
    pub(in crate::member) fn may_come(&self) -> bool {
        !self.is_denied
    }

    /// Whether the member has to ask for it, or for more time.
    pub(in crate::member) fn is_due(&self, now: Millis) -> bool {
        !self.is_asked && now >= self.due
    }

    /// When it is to be asked for.
    pub(in crate::member) fn due(&self) -> Option<Millis> {
        (!self.is_asked).then_some(self.due)
    }

    /// The member asks now.
    pub(in crate::member) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// The home grants it now, for a request that was sent then. The member refreshes it four times in its time.
    pub(in crate::member) fn granted(&mut self, sent: Millis, lease_ms: u64, now: Millis) {
        self.until = believed_until(sent, lease_ms).max(self.until);
        if planted::is(Bug::LeaseFromAnswer) {
            self.until = now.plus(lease_ms);
        }
        self.due = sent.plus(lease_ms / 4);
        self.lease_ms = lease_ms;
        (self.is_asked, self.is_denied, self.is_outranked) = (false, false, false);
        self.is_refused = false;
    }

    /// The home does not grant it for a while, because others read with hard bounds.
    pub(in crate::member) fn outranked(&mut self, now: Millis) {
        self.refused(now, false);
        self.is_outranked = true;
    }

    /// The home does not grant it now.
    pub(in crate::member) fn refused(&mut self, now: Millis, is_denied: bool) {
        (self.is_asked, self.is_denied, self.is_outranked) = (false, is_denied, false);
        self.is_refused = true;
        let wait = match is_denied {
            true => 20,
            false => 4,
        };
        self.due = now.plus(u64::from(BUSY_RETRY_MS) * wait);
    }

    /// The member gives it back, and holds no update that the home has not executed. False: it has none.
    pub(in crate::member) fn give_back(&mut self, now: Millis) -> bool {
        let is_held = self.is_held(now) || self.is_asked;
        *self = Lease::default();
        is_held
    }

    /// The request is lost with its stream. What was granted lasts.
    pub(in crate::member) fn stream_ended(&mut self) {
        self.is_asked = false;
        self.due = Millis(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_the_request_and_is_refreshed_in_time() {
        let mut lease = Lease::default();
        assert!(lease.is_due(Millis(0)) && !lease.is_held(Millis(0)));
        lease.ask();
        assert!(!lease.is_due(Millis(5)));
        lease.granted(Millis(0), 1_600, Millis(9));
        assert!(lease.is_held(Millis(1_499)) && !lease.is_held(Millis(1_500)));
        assert!(!lease.is_due(Millis(399)) && lease.is_due(Millis(400)));
        lease.ask();
        lease.stream_ended();
        assert!(lease.is_held(Millis(1_499)) && lease.is_due(Millis(401)));
        lease.refused(Millis(500), true);
        assert!(!lease.may_come() && lease.is_held(Millis(1_499)));
    }

    #[test]
    fn a_member_keeps_pace_while_it_gets_more_time_and_its_home_has_what_is_old() {
        let mut lease = Lease::default();
        lease.granted(Millis(0), 1_600, Millis(9));
        assert!(lease.keeps_pace(400) && !lease.keeps_pace(401));
        lease.refused(Millis(500), false);
        assert!(lease.is_held(Millis(600)) && !lease.keeps_pace(0));
        lease.granted(Millis(700), 1_600, Millis(709));
        assert!(lease.keeps_pace(0));
    }
}
