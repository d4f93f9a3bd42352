//! Locks that the sessions of this program hold (rule C5).

use crate::lock::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use thorp_model::{Fence, HomeId, Millis};

/// Until when the program may believe in each lock.
///
/// Invariant: a lock that nobody has claimed is given back at the latest when it would get more time.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<(HomeId, Fence), Believed>>);

struct Believed {
    until: Millis,
    /// A session has it.
    is_claimed: bool,
}

impl Locks {
    /// A lock was granted, or got more time. False: nobody has come for it since it was granted.
    pub(super) fn granted(&self, of: (HomeId, Fence), until: Millis) -> bool {
        let mut locks = lock(&self.0);
        let Some(believed) = locks.get_mut(&of) else {
            let is_claimed = false;
            locks.insert(of, Believed { until, is_claimed });
            return true;
        };
        believed.until = until;
        let is_claimed = believed.is_claimed;
        if !is_claimed {
            locks.remove(&of);
        }
        is_claimed
    }

    /// A lock is over.
    pub(super) fn end(&self, of: (HomeId, Fence)) {
        lock(&self.0).remove(&of);
    }

    /// A session has got it.
    pub(super) fn claim(&self, of: (HomeId, Fence)) {
        if let Some(believed) = lock(&self.0).get_mut(&of) {
            believed.is_claimed = true;
        }
    }

    /// Whether the program may believe in it.
    pub(super) fn holds(&self, of: (HomeId, Fence), now: Millis) -> bool {
        let locks = lock(&self.0);
        locks.get(&of).is_some_and(|believed| now < believed.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_believed_in_until_it_ends_and_kept_if_somebody_came_for_it() {
        let locks = Locks::default();
        let of = (HomeId(1), Fence(5));
        assert!(locks.granted(of, Millis(100)));
        assert!(locks.holds(of, Millis(99)) && !locks.holds(of, Millis(100)));
        locks.claim(of);
        assert!(locks.granted(of, Millis(200)));
        assert!(locks.holds(of, Millis(199)));
        locks.end(of);
        assert!(!locks.holds(of, Millis(0)));
        assert!(locks.granted(of, Millis(100)));
        assert!(!locks.granted(of, Millis(200)), "nobody has come");
        assert!(!locks.holds(of, Millis(0)));
    }
}
