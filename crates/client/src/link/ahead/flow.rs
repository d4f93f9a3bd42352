//! How much may be under way beside what is waited for.

use std::time::Duration;

/// What the link carries without holding up what is waited for.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) pages_max: usize,
    quickest: Duration,
}

impl Flow {
    /// More, while what is waited for comes as quickly as ever; half, if it comes late.
    pub(super) fn came(&mut self, after: Duration) {
        // It may have become a longer way.
        self.quickest = match after.checked_sub(self.quickest) {
            Some(longer) => self.quickest + longer / 16,
            None => after,
        };
        if after <= self.quickest * 5 / 4 {
            self.pages_max = (self.pages_max + 8).min(UNDER_WAY_MAX);
        } else if after > self.quickest * 2 {
            self.pages_max = (self.pages_max / 2).max(UNDER_WAY_MIN);
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            pages_max: 4 * UNDER_WAY_MIN,
            quickest: Duration::MAX,
        }
    }
}

/// Pages fetched ahead that may be under way.
const UNDER_WAY_MIN: usize = 8;
const UNDER_WAY_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_not_held_up() {
        let mut flow = Flow::default();
        for _ in 0..100 {
            flow.came(Duration::from_millis(40));
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MAX);
        for _ in 0..10 {
            flow.came(Duration::from_millis(400));
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MIN);
        // What has become a longer way is the way.
        for _ in 0..100 {
            flow.came(Duration::from_millis(400));
        }
        assert_eq!(flow.pages_max, UNDER_WAY_MAX);
    }
}
