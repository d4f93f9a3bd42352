//! Who may read which segment, as of where the streams to the children stand (rule R4).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::{Principal, Readers, SegmentId};

/// The readers of each segment that not every member may read.
///
/// Invariant: no segment in it has [`Readers::Members`]. A segment that is not in it may be read by
/// every member, or is not there.
#[derive(Debug, Default)]
pub(super) struct Readership(BTreeMap<SegmentId, Readers>);

impl Readership {
    /// These segments are restricted, and no others are.
    pub(super) fn of(readers: impl IntoIterator<Item = (SegmentId, Readers)>) -> Self {
        let mut all = Readership::default();
        for (segment, readers) in readers {
            all.set(segment, readers);
        }
        all
    }

    /// A segment has these readers from now on. False if it had them before.
    pub(super) fn set(&mut self, segment: SegmentId, readers: Readers) -> bool {
        let old = match &readers {
            Readers::Members => self.0.remove(&segment),
            Readers::Names(_) => self.0.insert(segment, readers.clone()),
        };
        old.unwrap_or(Readers::Members) != readers
    }

    /// Whether somebody may read a segment, if it is there.
    pub(super) fn includes(&self, segment: SegmentId, who: Principal) -> bool {
        let readers = self.0.get(&segment);
        readers.is_none_or(|readers| readers.include(who))
    }

    /// All of it, for a site that begins.
    pub(super) fn all(&self) -> Vec<(SegmentId, Readers)> {
        let all = self.0.iter();
        all.map(|(segment, readers)| (*segment, readers.clone()))
            .collect()
    }

    /// How many segments are restricted.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::NameId;

    const SEGMENT: SegmentId = SegmentId(3);

    fn who(name: u64) -> Principal {
        Principal {
            name: NameId(name),
            is_operator: false,
        }
    }

    #[test]
    fn only_restricted_segments_are_in_it() {
        let mut all = Readership::default();
        assert!(all.includes(SEGMENT, who(1)));
        assert!(!all.set(SEGMENT, Readers::Members), "as before");
        let names = Readers::Names(Vec::from([NameId(1)]));
        assert!(all.set(SEGMENT, names.clone()));
        assert!(!all.set(SEGMENT, names.clone()));
        assert!(all.includes(SEGMENT, who(1)) && !all.includes(SEGMENT, who(2)));
        assert_eq!(all.all(), [(SEGMENT, names)]);
        assert!(all.set(SEGMENT, Readers::Members));
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn an_operator_may_read_what_nobody_may() {
        let all = Readership::of([(SEGMENT, Readers::Names(Vec::new()))]);
        let operator = Principal {
            is_operator: true,
            ..who(1)
        };
        assert!(all.includes(SEGMENT, operator) && !all.includes(SEGMENT, who(1)));
    }
}
