//! What nodes below send to a home and nobody answers: that a commit is settled, whom a site denied something, and watches
//! that begin.

use crate::edge::shares::Shares;
use thorp_model::limits::{HEARTBEAT_MS, UNANSWERED_MAX, UNANSWERED_PER_NAME_MAX};
use thorp_model::{Millis, NameId};

/// How many such messages went up to one home in the time between two heartbeats, by the names of the children that
/// brought them. A home that is silent gets no more than for one such time, or the site would have to end its edge.
///
/// Invariant: at most [`UNANSWERED_MAX`] are counted, and of one name at most [`UNANSWERED_PER_NAME_MAX`] and no more than it
/// leaves free (rule R7).
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    since: Millis,
    of_names: Shares<NameId>,
}

impl Unanswered {
    /// Whether one more of a name may go up; it is counted then.
    pub(super) fn may_pass(&mut self, name: NameId) -> bool {
        let limits = (UNANSWERED_MAX as u64, UNANSWERED_PER_NAME_MAX as u64);
        let may = self.of_names.allows(name, 1, limits);
        if may {
            self.of_names.take(Some(name), 1);
        }
        may
    }

    /// The home has said something.
    pub(super) fn heard(&mut self, now: Millis) {
        if now.since(self.since) >= HEARTBEAT_MS {
            self.since = now;
            self.of_names = Shares::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn passed(unanswered: &mut Unanswered, name: u64) -> usize {
        let name = NameId(name);
        (0..UNANSWERED_MAX)
            .filter(|_| unanswered.may_pass(name))
            .count()
    }

    #[test]
    fn a_name_has_its_share_until_the_home_is_heard_again() {
        let mut unanswered = Unanswered::default();
        unanswered.heard(Millis(1_000));
        assert_eq!(passed(&mut unanswered, 7), UNANSWERED_PER_NAME_MAX);
        assert_eq!(passed(&mut unanswered, 8), UNANSWERED_PER_NAME_MAX);
        // It says more than once in that time that it is there.
        unanswered.heard(Millis(1_001));
        assert_eq!(passed(&mut unanswered, 7), 0);
        unanswered.heard(Millis(1_000 + HEARTBEAT_MS));
        assert_eq!(passed(&mut unanswered, 7), UNANSWERED_PER_NAME_MAX);
    }

    #[test]
    fn all_names_together_have_a_limit() {
        let mut unanswered = Unanswered::default();
        let all: Vec<usize> = (0..100).map(|name| passed(&mut unanswered, name)).collect();
        let whole = |share: &&usize| **share == UNANSWERED_PER_NAME_MAX;
        assert_eq!(
            all.iter().filter(whole).count(),
            15,
            "each leaves as much as it takes"
        );
        assert_eq!(all.iter().sum::<usize>(), UNANSWERED_MAX - 1);
        assert_eq!(all.last(), Some(&0));
    }
}
