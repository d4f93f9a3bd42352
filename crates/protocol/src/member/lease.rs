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
    /// The parent wants it back: nothing new is answered under it.
    is_recalled: bool,
}

impl Lease {
    /// Whether the member believes in it.
    pub(in crate::member) fn is_held(&self, now: Millis) -> bool {
        now < self.until && (!self.is_recalled || planted::is(Bug::AnswersRecalled))
    }

    /// The parent wants it back (rule C1).
    pub(in crate::member) fn recall(&mut self) {
        self.is_recalled = true;
    }

    /// Whether it is to be given back as soon as what was answered under it is executed.
    pub(in crate::member) fn is_recalled(&self) -> bool {
        self.is_recalled
    }

    /// Whether the home is sure to have an update before the lease ends, if the oldest one waits for it so long. A home that gives no
    /// more time has readers that wait (rule C4).
    pub(in crate::member) fn keeps_pace(&self, oldest_ms: u64) -> bool {
        !self.is_refused && oldest_ms <= self.lease_ms / 4 || planted::is(Bug::PaceNotKept)
    }

    /// Whether an answer to the program may wait for it.
    pub(in crate::member) fn may_come(&self) -> bool {
        !self.is_denied
    }

    /// Whether the member has to ask for it, or for more time.
    pub(in crate::member) fn is_due(&self, now: Millis) -> bool {
        !self.is_asked && now >= self.due && (!self.is_recalled || now >= self.until)
    }

    /// When it is to be asked for.
    pub(in crate::member) fn due(&self) -> Option<Millis> {
        let recalled_until = match self.is_recalled {
            true => self.until,
            false => Millis(0),
        };
        (!self.is_asked).then_some(self.due.max(recalled_until))
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
        (self.is_asked, self.is_denied, self.is_recalled) = (false, false, false);
        self.lease_ms = lease_ms;
        self.is_refused = false;
    }

    /// The home does not grant it now.
    pub(in crate::member) fn refused(&mut self, now: Millis, is_denied: bool) {
        (self.is_asked, self.is_denied, self.is_refused) = (false, is_denied, true);
        let wait = match is_denied {
            true => 20,
            false => 4,
        };
        self.due = now.plus(u64::from(BUSY_RETRY_MS) * wait);
    }

    /// The answer says nothing of this lease: it is asked for once more.
    pub(in crate::member) fn ask_again(&mut self) {
        self.is_asked = false;
        self.due = Millis(0);
    }

    /// The member gives it back, and holds no update that the home has not executed. False: it has none.
    pub(in crate::member) fn give_back(&mut self, now: Millis) -> bool {
        let is_held = now < self.until || self.is_asked || self.is_recalled;
        *self = Lease::default();
        is_held
    }

    /// The request is lost with its stream. What was granted lasts.
    pub(in crate::member) fn stream_ended(&mut self) {
        self.is_asked = false;
        // The next parent says again whether it wants it back.
        self.is_recalled = false;
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
    fn nothing_new_is_answered_under_a_recalled_lease() {
        let mut lease = Lease::default();
        lease.granted(Millis(0), 1_600, Millis(9));
        lease.recall();
        assert!(!lease.is_held(Millis(10)) && lease.is_recalled());
        assert!(!lease.is_due(Millis(400)) && lease.due() == Some(Millis(1_500)));
        assert!(lease.give_back(Millis(10)));
        assert!(!lease.is_recalled() && !lease.give_back(Millis(10)));
        lease.granted(Millis(20), 1_600, Millis(29));
        lease.recall();
        lease.stream_ended();
        assert!(lease.is_held(Millis(30)), "the next parent asks again");
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
