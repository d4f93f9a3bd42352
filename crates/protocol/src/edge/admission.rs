//! What one child may have under way (rule 15). Home and redirector admit by the same limits; each
//! counts in its own tables.

use thorp_model::limits::{CALLS_PER_CHILD_MAX, COMMITS_IN_FLIGHT_MAX};
use thorp_model::planted;
use thorp_model::planted::Bug;

/// The commits of one member that wait for an answer: each of them, and each decision about one.
/// A member has no more of either than it may have in flight.
pub(crate) const ANSWERS_PER_CHILD_MAX: usize = 2 * COMMITS_IN_FLIGHT_MAX;

/// What one child has under way: it asked, and no answer went down. A parent that asks before
/// each new request never lets a child have more than the limits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct UnderWay {
    /// Commits, and decisions about commits.
    pub commits: usize,
    /// Calls.
    pub calls: usize,
}

impl UnderWay {
    /// Whether the child has as many commits under way as it may.
    pub(crate) fn has_all_commits(self) -> bool {
        self.commits >= COMMITS_IN_FLIGHT_MAX && !planted::is(Bug::ChildNotLimited)
    }

    /// Whether the child waits for more than its commits can be answered with: each of them by a
    /// delivery, and by what it gets when it decides.
    pub(crate) fn has_all_answers(self) -> bool {
        self.commits >= ANSWERS_PER_CHILD_MAX
    }

    /// Whether the child has as many calls under way as it may.
    pub(crate) fn has_all_calls(self) -> bool {
        self.calls >= CALLS_PER_CHILD_MAX && !planted::is(Bug::ChildNotLimited)
    }

    /// The larger count of each kind.
    pub(crate) fn most(self, other: UnderWay) -> UnderWay {
        UnderWay {
            commits: self.commits.max(other.commits),
            calls: self.calls.max(other.calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_may_have_as_many_as_the_limit_and_no_more() {
        let below = UnderWay {
            commits: COMMITS_IN_FLIGHT_MAX - 1,
            calls: CALLS_PER_CHILD_MAX - 1,
        };
        assert!(!below.has_all_commits() && !below.has_all_calls());
        let at = UnderWay {
            commits: COMMITS_IN_FLIGHT_MAX,
            calls: CALLS_PER_CHILD_MAX,
        };
        assert!(at.has_all_commits() && at.has_all_calls() && !at.has_all_answers());
        let answers = UnderWay {
            commits: ANSWERS_PER_CHILD_MAX,
            calls: 0,
        };
        assert!(answers.has_all_answers());
        assert_eq!(below.most(answers).commits, ANSWERS_PER_CHILD_MAX);
        assert_eq!(below.most(answers).calls, CALLS_PER_CHILD_MAX - 1);
    }
}
