//! What children wanted to read and may not (rule R8).

use alloc::collections::BTreeMap;
use alloc::string::String;
use thorp_model::SegmentId;
use thorp_model::limits::DENIALS_MAX;

/// How often each name was denied a segment, since this was reported last.
///
/// Invariant: it counts at most [`DENIALS_MAX`] pairs of name and segment. What is above is not
/// counted until the next report.
#[derive(Debug, Default)]
pub(super) struct Denials(BTreeMap<(String, SegmentId), u64>);

impl Denials {
    /// A name was denied a segment.
    pub(super) fn count(&mut self, name: &str, segment: SegmentId) {
        let is_full = self.0.len() >= DENIALS_MAX;
        let key = (String::from(name), segment);
        match self.0.get_mut(&key) {
            Some(count) => *count += 1,
            None if is_full => {}
            None => drop(self.0.insert(key, 1)),
        }
    }

    /// Everything since the last time.
    pub(super) fn take(&mut self) -> BTreeMap<(String, SegmentId), u64> {
        core::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_denials_are_counted_and_others_are_bounded() {
        let mut denials = Denials::default();
        for segment in 0..2 * DENIALS_MAX as u32 {
            denials.count("ben", SegmentId(segment));
        }
        denials.count("ben", SegmentId(0));
        let all = denials.take();
        assert_eq!(all.len(), DENIALS_MAX);
        assert_eq!(all.get(&(String::from("ben"), SegmentId(0))), Some(&2));
        assert!(denials.take().is_empty());
    }
}
