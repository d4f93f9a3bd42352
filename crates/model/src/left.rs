//! Numbers that a log has no more although no step of its own said so (rule C7).

use crate::ids::{HomeId, SegmentId};
use crate::update::{LogId, UpdateId};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Why a log has numbers no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WhyLeft {
    /// Their home had executed them before the log was opened: its member had died, or the log was restored from a backup.
    Saved,
    /// Their home has gone back in time, and only a history that is lost had settled them. The log has declared them void.
    Void,
    /// Their home had refused them, and a conflict routine of the program has given them up for what others wrote.
    Dropped,
}

/// Numbers of one log in one segment, from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeftNumbers {
    /// The home of the segment.
    pub home: HomeId,
    /// The log.
    pub log: LogId,
    /// The segment.
    pub segment: SegmentId,
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
    /// Why they are there no more.
    pub why: WhyLeft,
}

/// What has left a log so, for people: `meta/left` of the log's own directory. No rule rests on it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LeftRecord {
    /// The newest come last.
    pub numbers: Vec<LeftNumbers>,
    /// How many entries were dropped, because only so many are kept.
    pub dropped: u64,
}

impl LeftRecord {
    /// Notes a number. False: it was noted before.
    pub fn add(&mut self, home: HomeId, id: UpdateId, why: WhyLeft) -> bool {
        let new = LeftNumbers {
            home,
            log: id.log,
            segment: id.segment,
            first: id.number,
            last: id.number,
            why,
        };
        let is_alike = |of: &LeftNumbers| {
            let (first, last) = (of.first, of.last);
            LeftNumbers { first, last, ..new } == *of
        };
        let mut alike = self.numbers.iter().filter(|of| is_alike(of));
        if alike.any(|of| (of.first..=of.last).contains(&id.number)) {
            return false;
        }
        let mut alike = self.numbers.iter_mut().filter(|of| is_alike(of));
        if let Some(before) = alike.find(|of| of.last.checked_add(1) == Some(id.number)) {
            before.last = id.number;
            return true;
        }
        if self.numbers.len() >= LEFT_NUMBERS_MAX {
            self.numbers.remove(0);
            self.dropped = self.dropped.saturating_add(1);
        }
        self.numbers.push(new);
        true
    }
}

/// Entries that a log keeps: one record, which is written as a whole.
const LEFT_NUMBERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MemberId;

    const HOME: HomeId = HomeId(1);

    fn id(number: u64) -> UpdateId {
        UpdateId {
            log: LogId(MemberId(7)),
            segment: SegmentId(2),
            number,
        }
    }

    #[test]
    fn numbers_that_follow_each_other_are_one_entry_and_each_counts_once() {
        let mut left = LeftRecord::default();
        assert!((3..=5).all(|number| left.add(HOME, id(number), WhyLeft::Void)));
        assert!(!left.add(HOME, id(4), WhyLeft::Void), "it is noted");
        assert!(left.add(HOME, id(6), WhyLeft::Saved), "for another reason");
        assert!(left.add(HomeId(2), id(6), WhyLeft::Void), "of another home");
        let ranges = left.numbers.iter().map(|of| (of.first, of.last));
        assert!(ranges.eq([(3, 5), (6, 6), (6, 6)]));
    }

    #[test]
    fn only_so_many_entries_are_kept_and_the_others_are_counted() {
        let mut left = LeftRecord::default();
        let all = LEFT_NUMBERS_MAX as u64 + 2;
        for number in 1..=all {
            assert!(left.add(HOME, id(2 * number), WhyLeft::Saved));
        }
        assert_eq!((left.numbers.len(), left.dropped), (LEFT_NUMBERS_MAX, 2));
        assert_eq!(left.numbers[0].first, 6, "the oldest goes first");
    }
}
