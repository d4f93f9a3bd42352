//! The edges that a commit came up by. A member that turns to another parent sends it again, and
//! what it wrote is kept at every site on every way until that hears how it ended (rule 8).

use alloc::collections::BTreeSet;
use thorp_model::EdgeId;

/// The ways that a commit came, and that are there yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyRoutes {
    /// The last one: its delivery goes there.
    last: Option<EdgeId>,
    others: BTreeSet<EdgeId>,
}

impl ReplyRoutes {
    /// It comes, perhaps once more.
    pub(crate) fn came_by(&mut self, edge: EdgeId) {
        self.others.extend(self.last.replace(edge));
        self.others.remove(&edge);
    }

    /// An edge is gone.
    pub(crate) fn went(&mut self, edge: EdgeId) {
        self.others.remove(&edge);
        if self.last == Some(edge) {
            self.last = self.others.pop_first();
        }
    }

    /// Where its delivery goes; nowhere, if nobody who asked is there.
    pub(crate) fn last(&self) -> Option<EdgeId> {
        self.last
    }

    /// Those that hear of the outcome beside the delivery; each once.
    pub(crate) fn take_others(&mut self) -> BTreeSet<EdgeId> {
        core::mem::take(&mut self.others)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = EdgeId> {
        self.others.iter().copied().chain(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_last_way_that_is_left_is_the_one_of_the_delivery() {
        let mut routes = ReplyRoutes::default();
        for edge in [1, 2, 3, 1] {
            routes.came_by(EdgeId(edge));
        }
        assert_eq!(routes.last(), Some(EdgeId(1)));
        routes.went(EdgeId(1));
        assert_eq!(routes.last(), Some(EdgeId(2)));
        assert_eq!(routes.iter().collect::<Vec<_>>(), [EdgeId(3), EdgeId(2)]);
        assert_eq!(routes.take_others().len(), 1);
        routes.went(EdgeId(2));
        assert!(routes.last().is_none() && routes.iter().next().is_none());
    }
}
