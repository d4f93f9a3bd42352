//! What children claim to hold of a home, before their streams begin (rule R9).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::{Claim, EdgeId, HomeId};

/// The claims of a node's children.
///
/// No stream of a home begins to a child before the child has claimed: with its first message on an edge, or as its
/// answer to the end of an earlier stream. An edge carries messages in order, so all that the child sent before rests
/// on the stream before.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    by_edge: BTreeMap<EdgeId, OfChild>,
}

#[derive(Debug, Default)]
struct OfChild {
    /// Its first message has come.
    has_come: bool,
    held: BTreeMap<HomeId, Claim>,
    /// The homes whose stream has ended there, and that it has not claimed again.
    ended: BTreeSet<HomeId>,
}

impl Claims {
    /// A child is there, and is about to claim.
    pub(crate) fn child_came(&mut self, edge: EdgeId) {
        self.by_edge.insert(edge, OfChild::default());
    }

    /// A child is gone.
    pub(crate) fn child_went(&mut self, edge: EdgeId) {
        self.by_edge.remove(&edge);
    }

    /// The stream of a home has ended at a child.
    pub(crate) fn stream_ended(&mut self, edge: EdgeId, home: HomeId) {
        if let Some(child) = self.by_edge.get_mut(&edge) {
            child.held.remove(&home);
            child.ended.insert(home);
        }
    }

    /// A child claims: for every home with its first message, and later for those whose stream has ended there.
    pub(crate) fn take(&mut self, edge: EdgeId, claims: Vec<(HomeId, Claim)>) {
        let Some(child) = self.by_edge.get_mut(&edge) else {
            return;
        };
        for (home, claim) in claims {
            // Beside the first message a claim answers the end of a stream, and nothing else.
            if !child.has_come || child.ended.remove(&home) {
                child.held.insert(home, claim);
            }
        }
        child.has_come = true;
    }

    /// What a child claims of a home, until its stream has ended there. None: it has not claimed yet.
    pub(crate) fn claimed(&self, edge: EdgeId, home: HomeId) -> Option<Option<Claim>> {
        let child = self.by_edge.get(&edge)?;
        let is_ready = child.has_come && !child.ended.contains(&home);
        is_ready.then(|| child.held.get(&home).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{Incarnation, LifeId, Mark, Point, Position, Receipt, ReceiptKey};

    const EDGE: EdgeId = EdgeId(1);
    const HOME: HomeId = HomeId(1);
    const OTHER: HomeId = HomeId(2);

    fn claim(position: u64) -> Claim {
        let point = Point {
            life: LifeId {
                counter: 1,
                random: 0,
            },
            mark: Mark(1),
            position: Position(position),
            clock: 0,
        };
        let key = ReceiptKey::new([0; 32]);
        Claim {
            receipt: Receipt::new(HOME, Incarnation::default(), point, &key),
            position: point.position,
            clock: 0,
        }
    }

    #[test]
    fn nothing_begins_before_the_first_message() {
        let mut claims = Claims::default();
        claims.child_came(EDGE);
        assert_eq!(claims.claimed(EDGE, HOME), None);
        claims.take(EDGE, Vec::from([(HOME, claim(3))]));
        assert_eq!(claims.claimed(EDGE, HOME), Some(Some(claim(3))));
        assert_eq!(claims.claimed(EDGE, OTHER), Some(None), "it holds nothing");
        // It claims nothing more before a stream has ended.
        claims.take(EDGE, Vec::from([(HOME, claim(9)), (OTHER, claim(9))]));
        assert_eq!(claims.claimed(EDGE, HOME), Some(Some(claim(3))));
        assert_eq!(claims.claimed(EDGE, OTHER), Some(None));
    }

    /// Trap R38.
    #[test]
    fn an_ended_stream_begins_after_another_claim() {
        let mut claims = Claims::default();
        claims.child_came(EDGE);
        claims.take(EDGE, Vec::new());
        claims.stream_ended(EDGE, HOME);
        assert_eq!(claims.claimed(EDGE, HOME), None);
        assert_eq!(claims.claimed(EDGE, OTHER), Some(None));
        claims.take(EDGE, Vec::from([(HOME, claim(4))]));
        assert_eq!(claims.claimed(EDGE, HOME), Some(Some(claim(4))));
        claims.child_went(EDGE);
        assert_eq!(claims.claimed(EDGE, HOME), None);
    }
}
