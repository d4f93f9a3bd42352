//! The homes that a site is to reach, whether or not it does (rule 1).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::HOME_NAMES_MAX;
use thorp_model::{EdgeId, HomeNames, NodeKind, Peer};

/// What the configuration of a site says of the nodes above it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParentNames {
    /// The names of homes. A name that turns out to be another site's is none of these.
    pub homes: Vec<String>,
    /// How many parents there are beside these: other sites, and homes whose names it does not say.
    pub others: usize,
}

/// The names that children are told. A name never goes: a home that is out of reach is one that the site is to reach.
#[derive(Debug)]
pub(super) struct Reach {
    names: BTreeSet<String>,
    /// Those of them that the configuration has as the names of parents.
    configured: BTreeSet<String>,
    /// Parents of which no name is known before they are there.
    others: usize,
    /// Of the parents that are there: whether all homes are known that they lead to.
    above: BTreeMap<EdgeId, IsKnown>,
    is_all: bool,
    /// Children that have claimed: they are told, and of each change.
    children: BTreeSet<EdgeId>,
    /// Those that are to be told.
    due: BTreeSet<EdgeId>,
    is_configured: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IsKnown {
    /// By its configured name: it is not one of the others.
    Before,
    /// One of the others, and it has told of all.
    Now,
    /// One of the others.
    NotYet,
}

impl Reach {
    /// A site that is not told what its parents are called tells nobody.
    pub(super) fn new(parents: Option<ParentNames>) -> Self {
        let is_configured = parents.is_some();
        let ParentNames { homes, others } = parents.unwrap_or_default();
        let configured: BTreeSet<String> = homes.into_iter().take(HOME_NAMES_MAX).collect();
        Reach {
            names: configured.clone(),
            configured,
            others,
            above: BTreeMap::new(),
            is_all: is_configured && others == 0,
            children: BTreeSet::new(),
            due: BTreeSet::new(),
            is_configured,
        }
    }

    /// A parent is there.
    pub(super) fn parent_came(&mut self, edge: EdgeId, peer: &Peer) {
        let known = match (peer.kind, self.configured.contains(&peer.name)) {
            (NodeKind::Home, true) => IsKnown::Before,
            (NodeKind::Home, false) => {
                self.add(&peer.name);
                IsKnown::Now
            }
            (_, was_named) => {
                // The configuration calls a site by its name, as it does homes.
                if was_named {
                    self.configured.remove(&peer.name);
                    self.names.remove(&peer.name);
                    self.others += 1;
                    self.is_all = false;
                    self.changed();
                }
                IsKnown::NotYet
            }
        };
        self.above.insert(edge, known);
        self.look();
    }

    /// A parent is gone.
    pub(super) fn parent_went(&mut self, edge: EdgeId) {
        self.above.remove(&edge);
    }

    /// A site above has told which homes it is to reach.
    pub(super) fn parent_told(&mut self, edge: EdgeId, told: &HomeNames) {
        if self.above.get(&edge) == Some(&IsKnown::Before) {
            return;
        }
        for name in &told.names {
            self.add(name);
        }
        if told.is_all && self.above.contains_key(&edge) {
            self.above.insert(edge, IsKnown::Now);
        }
        self.look();
    }

    fn add(&mut self, name: &str) {
        if self.names.len() < HOME_NAMES_MAX && self.names.insert(String::from(name)) {
            self.changed();
        }
    }

    fn changed(&mut self) {
        self.due = self.children.clone();
    }

    /// What was known once stays known.
    fn look(&mut self) {
        let known = self.above.values().filter(|is| **is == IsKnown::Now);
        if self.is_configured && !self.is_all && known.count() >= self.others {
            self.is_all = true;
            self.changed();
        }
    }

    /// A child has the streams that there are.
    pub(super) fn child_claimed(&mut self, edge: EdgeId) {
        if self.is_configured && self.children.insert(edge) {
            self.due.insert(edge);
        }
    }

    /// A child is gone.
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        self.children.remove(&edge);
        self.due.remove(&edge);
    }

    /// The children that are to be told now, and what.
    pub(super) fn take_due(&mut self) -> Option<(BTreeSet<EdgeId>, HomeNames)> {
        if self.due.is_empty() {
            return None;
        }
        let names = HomeNames {
            names: self.names.iter().cloned().collect(),
            is_all: self.is_all,
        };
        Some((core::mem::take(&mut self.due), names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use thorp_model::MemberId;

    const CHILD: EdgeId = EdgeId(9);

    fn peer(kind: NodeKind, name: &str) -> Peer {
        Peer {
            kind,
            node: MemberId(1),
            name: String::from(name),
            is_operator: false,
            is_carried: false,
        }
    }

    fn reach(homes: &[&str], others: usize) -> Reach {
        let homes = homes.iter().map(|home| String::from(*home)).collect();
        let mut reach = Reach::new(Some(ParentNames { homes, others }));
        reach.child_claimed(CHILD);
        reach
    }

    fn told(reach: &mut Reach) -> Option<(Vec<String>, bool)> {
        let (edges, told) = reach.take_due()?;
        assert_eq!(edges, BTreeSet::from([CHILD]));
        Some((told.names, told.is_all))
    }

    #[test]
    fn homes_with_names_are_told_before_they_are_there_and_once() {
        let mut reach = reach(&["dale", "alps"], 0);
        let all = (vec!["alps".into(), "dale".into()], true);
        assert_eq!(told(&mut reach), Some(all.clone()));
        reach.parent_came(EdgeId(1), &peer(NodeKind::Home, "alps"));
        reach.parent_went(EdgeId(1));
        assert_eq!(told(&mut reach), None);
        // On another edge the child is told again; with another claim on the same one it is not.
        reach.child_claimed(CHILD);
        assert_eq!(told(&mut reach), None);
        reach.child_went(CHILD);
        reach.child_claimed(CHILD);
        assert_eq!(told(&mut reach), Some(all));
    }

    #[test]
    fn a_site_that_nobody_configured_so_tells_nobody() {
        let mut reach = Reach::new(None);
        reach.child_claimed(CHILD);
        reach.parent_came(EdgeId(1), &peer(NodeKind::Home, "alps"));
        assert_eq!(told(&mut reach), None);
    }

    #[test]
    fn a_home_without_a_name_is_known_when_it_is_there() {
        let mut reach = reach(&["alps"], 1);
        assert_eq!(told(&mut reach), Some((vec!["alps".into()], false)));
        reach.parent_came(EdgeId(1), &peer(NodeKind::Home, "dale"));
        let all = (vec!["alps".into(), "dale".into()], true);
        assert_eq!(told(&mut reach), Some(all));
    }

    #[test]
    fn the_homes_of_a_site_above_are_known_when_it_has_told_them() {
        let mut reach = reach(&["office"], 0);
        reach.parent_came(EdgeId(1), &peer(NodeKind::Redirector, "office"));
        assert_eq!(told(&mut reach), Some((vec![], false)));
        let mut names = HomeNames {
            names: vec!["alps".into()],
            is_all: false,
        };
        reach.parent_told(EdgeId(1), &names);
        assert_eq!(told(&mut reach), Some((vec!["alps".into()], false)));
        names.is_all = true;
        reach.parent_told(EdgeId(1), &names);
        assert_eq!(told(&mut reach), Some((vec!["alps".into()], true)));
        // It comes again, and whatever it has told: it is the same parent.
        names.names.push("office".into());
        reach.parent_told(EdgeId(1), &names);
        assert!(told(&mut reach).is_some_and(|(_, is_all)| is_all));
        reach.parent_went(EdgeId(1));
        reach.parent_came(EdgeId(2), &peer(NodeKind::Redirector, "office"));
        assert_eq!((told(&mut reach), reach.others), (None, 1));
    }

    #[test]
    fn a_site_above_cannot_tell_without_end() {
        let mut reach = reach(&[], 1);
        reach.parent_came(EdgeId(1), &peer(NodeKind::Redirector, "office"));
        let names = (0..2 * HOME_NAMES_MAX).map(|n| alloc::format!("h{n}"));
        let told = HomeNames {
            names: names.collect(),
            is_all: true,
        };
        reach.parent_told(EdgeId(1), &told);
        assert_eq!(reach.names.len(), HOME_NAMES_MAX);
        // A home speaks for itself only.
        let mut reach = Reach::new(Some(ParentNames {
            homes: vec!["alps".into()],
            others: 0,
        }));
        reach.parent_came(EdgeId(1), &peer(NodeKind::Home, "alps"));
        reach.parent_told(EdgeId(1), &told);
        assert_eq!(reach.names.len(), 1);
    }
}
