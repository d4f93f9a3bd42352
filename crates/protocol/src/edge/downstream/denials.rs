//! What children wanted to read and may not (rule R8).

use crate::edge::shares::Shares;
use alloc::collections::BTreeMap;
use alloc::string::String;
use thorp_model::limits::DENIALS_MAX;
use thorp_model::{NameId, SegmentId};

/// What a name was denied beyond its share is counted together, as of no segment.
const NO_SEGMENT: SegmentId = SegmentId(0);

/// How often each name was denied a segment, since this was reported last.
///
/// Invariant: it counts at most [`DENIALS_MAX`] pairs of name and segment. A name has no more of them than it leaves free.
/// What it is denied beyond that is counted without the segment, for at most as many names.
#[derive(Debug, Default)]
pub(super) struct Denials {
    counts: BTreeMap<(String, SegmentId), u64>,
    pairs: Shares<NameId>,
    sums: usize,
}

impl Denials {
    /// A name was denied a segment.
    pub(super) fn count(&mut self, name: &str, segment: SegmentId) {
        let key = |segment| (String::from(name), segment);
        if let Some(count) = self.counts.get_mut(&key(segment)) {
            *count += 1;
            return;
        }
        let most = DENIALS_MAX as u64;
        let id = NameId::of(name);
        if self.pairs.allows(id, 1, (most, most)) {
            self.pairs.take(Some(id), 1);
            self.counts.insert(key(segment), 1);
        } else if let Some(count) = self.counts.get_mut(&key(NO_SEGMENT)) {
            *count += 1;
        } else if self.sums < DENIALS_MAX {
            self.sums += 1;
            self.counts.insert(key(NO_SEGMENT), 1);
        }
    }

    /// Everything since the last time.
    pub(super) fn take(&mut self) -> BTreeMap<(String, SegmentId), u64> {
        core::mem::take(self).counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &BTreeMap<(String, SegmentId), u64>, name: &str, segment: u32) -> Option<u64> {
        all.get(&(String::from(name), SegmentId(segment))).copied()
    }

    #[test]
    fn a_name_hides_nothing_of_another_and_not_that_it_was_denied_more() {
        let mut denials = Denials::default();
        let many = 2 * DENIALS_MAX as u32;
        for segment in 1..=many {
            denials.count("mallory", SegmentId(segment));
        }
        denials.count("mallory", SegmentId(1));
        denials.count("ben", SegmentId(7));
        let all = denials.take();
        let half = many / 4;
        assert_eq!(of(&all, "mallory", 1), Some(2));
        assert_eq!(of(&all, "mallory", half), Some(1));
        assert_eq!(of(&all, "mallory", half + 1), None);
        assert_eq!(of(&all, "mallory", 0), Some(u64::from(many - half)));
        assert_eq!(of(&all, "ben", 7), Some(1));
        assert!(denials.take().is_empty());
    }

    #[test]
    fn many_names_are_bounded() {
        let mut denials = Denials::default();
        for name in 0..3 * DENIALS_MAX {
            denials.count(&alloc::format!("n{name}"), SegmentId(1));
        }
        let taken = denials.take().len();
        assert!((DENIALS_MAX..=2 * DENIALS_MAX).contains(&taken), "{taken}");
    }
}
