//! Which history of a home each node follows, by the streams that it was sent.

use super::branch::BranchNo;
use crate::time::NodeNo;
use std::collections::{BTreeMap, VecDeque};
use thorp_model::{Claim, EdgeId, HomeId};

/// What is known of streams.
#[derive(Default)]
pub(super) struct Streams {
    /// What the child on each edge has last claimed there.
    claims: BTreeMap<EdgeId, BTreeMap<HomeId, Claim>>,
    /// Beginnings of streams that are on their way, and the histories that they are of.
    under_way: BTreeMap<(EdgeId, HomeId), VecDeque<BranchNo>>,
    /// The history that each node follows, or followed last.
    followed: BTreeMap<(NodeNo, HomeId), BranchNo>,
}

impl Streams {
    /// A child's claims have come to its parent.
    pub(super) fn claimed(&mut self, edge: EdgeId, claims: &[(HomeId, Claim)]) {
        self.claims.insert(edge, claims.iter().copied().collect());
    }

    /// What a child claims of a home.
    pub(super) fn claim(&self, edge: EdgeId, home: HomeId) -> Option<&Claim> {
        self.claims.get(&edge)?.get(&home)
    }

    /// A stream is sent down an edge.
    pub(super) fn sent(&mut self, edge: EdgeId, home: HomeId, branch: BranchNo) {
        let under_way = self.under_way.entry((edge, home)).or_default();
        under_way.push_back(branch);
    }

    /// It has come to the child: of which history it is.
    pub(super) fn come(&mut self, edge: EdgeId, home: HomeId) -> Option<BranchNo> {
        self.under_way.get_mut(&(edge, home))?.pop_front()
    }

    /// A node follows a history.
    pub(super) fn follow(&mut self, no: NodeNo, home: HomeId, branch: BranchNo) {
        self.followed.insert((no, home), branch);
    }

    /// The history that a node follows, or followed last.
    pub(super) fn followed(&self, no: NodeNo, home: HomeId) -> Option<BranchNo> {
        self.followed.get(&(no, home)).copied()
    }

    /// A process has died, and with it what it held.
    pub(super) fn forget(&mut self, no: NodeNo) {
        self.followed.retain(|(of, _), _| *of != no);
    }
}
