//! The groups of a home, and which rights lists name them (rule R3, record 0020).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use thorp_model::{Access, SegmentId, Subject};

/// Where the segment of a group is.
const PREFIX: &str = ".group/";

/// The groups of a home, by their names.
///
/// Invariant: a group is here as long as it has a segment or a list names it. `of_segment` has the name of each group
/// with a segment.
#[derive(Debug, Default)]
pub(in crate::home) struct Groups {
    by_name: BTreeMap<String, Group>,
    of_segment: BTreeMap<SegmentId, String>,
}

#[derive(Debug, Default)]
struct Group {
    /// The segment whose list says who is in it. None: nobody is.
    segment: Option<SegmentId>,
    /// The segments whose lists name it.
    named_by: BTreeSet<SegmentId>,
}

/// The group whose segment has this path.
pub(in crate::home) fn name_in(path: &str) -> Option<&str> {
    let name = path.strip_prefix(PREFIX)?;
    matches!(format!("@{name}").parse(), Ok(Subject::Group(_))).then_some(name)
}

impl Groups {
    /// A group has a segment from now on.
    pub(in crate::home) fn found(&mut self, name: &str, segment: SegmentId) {
        let group = self.by_name.entry(name.to_string()).or_default();
        group.segment = Some(segment);
        self.of_segment.insert(segment, name.to_string());
    }

    /// A segment is no more: if it was a group's, nobody is in the group.
    pub(in crate::home) fn end(&mut self, segment: SegmentId) {
        let Some(name) = self.of_segment.remove(&segment) else {
            return;
        };
        if let Some(group) = self.by_name.get_mut(&name) {
            group.segment = None;
        }
        self.forget_if_unused(&name);
    }

    /// The list of a segment names other groups than before.
    pub(in crate::home) fn follow(
        &mut self,
        segment: SegmentId,
        old: Option<&Access>,
        new: Option<&Access>,
    ) {
        for (name, _) in new.into_iter().flat_map(Access::groups) {
            let group = self.by_name.entry(name.to_string()).or_default();
            group.named_by.insert(segment);
        }
        let names = |list: &Access, name| list.groups().any(|(other, _)| other == name);
        for (name, _) in old.into_iter().flat_map(Access::groups) {
            if new.is_some_and(|list| names(list, name)) {
                continue;
            }
            if let Some(group) = self.by_name.get_mut(name) {
                group.named_by.remove(&segment);
            }
            self.forget_if_unused(name);
        }
    }

    fn forget_if_unused(&mut self, name: &str) {
        let group = self.by_name.get(name);
        if group.is_some_and(|group| group.segment.is_none() && group.named_by.is_empty()) {
            self.by_name.remove(name);
        }
    }

    /// The segment whose list says who is in a group.
    pub(in crate::home) fn segment(&self, name: &str) -> Option<SegmentId> {
        self.by_name.get(name)?.segment
    }

    /// The segments whose lists name the group that a segment is.
    pub(in crate::home) fn naming(
        &self,
        segment: SegmentId,
    ) -> impl Iterator<Item = SegmentId> + '_ {
        let name = self.of_segment.get(&segment);
        let group = name.and_then(|name| self.by_name.get(name));
        group
            .into_iter()
            .flat_map(|group| group.named_by.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const STAFF: SegmentId = SegmentId(1);
    const PLANS: SegmentId = SegmentId(2);

    #[test]
    fn a_path_names_a_group_as_a_list_does() {
        assert_eq!(name_in(".group/staff"), Some("staff"));
        for other in [".group/", ".group/members", ".group/A", ".new", "staff"] {
            assert_eq!(name_in(other), None, "{other}");
        }
    }

    #[test]
    fn a_group_is_known_while_it_has_a_segment_or_a_name_in_a_list() {
        let mut groups = Groups::default();
        let (with, without) = (Access::of(b"read @staff\n"), Access::of(b""));
        groups.follow(PLANS, None, Some(&with));
        assert_eq!(groups.segment("staff"), None);
        groups.found("staff", STAFF);
        assert_eq!(groups.segment("staff"), Some(STAFF));
        assert!(groups.naming(STAFF).eq([PLANS]));
        groups.end(STAFF);
        assert_eq!(groups.segment("staff"), None);
        groups.found("staff", SegmentId(3));
        assert!(groups.naming(SegmentId(3)).eq([PLANS]));
        groups.follow(PLANS, Some(&with), Some(&without));
        assert_eq!(groups.naming(SegmentId(3)).collect::<Vec<_>>(), []);
        groups.end(SegmentId(3));
        assert!(groups.by_name.is_empty() && groups.of_segment.is_empty());
    }
}
