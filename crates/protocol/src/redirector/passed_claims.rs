//! Claims of nodes below that a redirector cannot judge: they go up (rule R9).

use crate::edge::shares::Shares;
use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::CLAIMS_PASSED_MAX;
use thorp_model::{Claim, EdgeId, NameId, Note, Up, message};

/// Whose claim was passed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    /// A child's own: its stream begins with the verdict. A child waits for one verdict of a home at a time.
    OfChild(EdgeId),
    /// One that a site below passed up.
    OfSite {
        /// The site's edge.
        edge: EdgeId,
        /// The name in its certificate.
        name: NameId,
        /// How the site names the verdict.
        question: u64,
    },
}

/// The claims of one home that wait for the home's word. They end with the stream.
///
/// Invariant: children have one each. Sites below have at most [`CLAIMS_PASSED_MAX`], and one name of a site never takes more
/// of these than it leaves free.
#[derive(Debug, Default)]
pub(super) struct PassedClaims {
    last: u64,
    waiting: BTreeMap<u64, Passed>,
    /// Those of sites, by the name of each.
    of_sites: Shares<NameId>,
}

impl PassedClaims {
    /// Passes a claim up. False: as many wait as may.
    pub(super) fn pass<W>(
        &mut self,
        up: &Upstream<W>,
        whose: Passed,
        claim: Claim,
        outbox: &mut Outbox,
    ) -> bool {
        if !self.has_space_for(whose) {
            return false;
        }
        outbox.note(Note::ClaimPassed);
        let judge = message::Judge {
            epoch: up.epoch,
            question: self.wait(whose),
            claim,
        };
        up.pass(Up::Judge(judge), outbox);
        true
    }

    /// A claim waits, and the home is asked by this question.
    fn wait(&mut self, whose: Passed) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, whose);
        if let Passed::OfSite { name, .. } = whose {
            self.of_sites.take(Some(name), 1);
        }
        self.last
    }

    fn has_space_for(&self, whose: Passed) -> bool {
        let Passed::OfSite { name, .. } = whose else {
            return true;
        };
        let limits = (CLAIMS_PASSED_MAX as u64, u64::MAX);
        self.of_sites.allows(name, 1, limits)
    }

    /// The home's word has come.
    pub(super) fn judged(&mut self, question: u64) -> Option<Passed> {
        let whose = self.waiting.remove(&question)?;
        self.went(whose);
        Some(whose)
    }

    fn went(&mut self, whose: Passed) {
        if let Passed::OfSite { name, .. } = whose {
            self.of_sites.give_back(Some(name), 1);
        }
    }

    /// Whether a child waits for the home's word on its own claim.
    pub(super) fn is_waiting(&self, edge: EdgeId) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|whose| *whose == Passed::OfChild(edge))
    }

    /// A child is gone.
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        let is_its = |_: &u64, whose: &mut Passed| {
            let (Passed::OfChild(of) | Passed::OfSite { edge: of, .. }) = whose;
            *of == edge
        };
        let gone: Vec<(u64, Passed)> = self.waiting.extract_if(.., is_its).collect();
        gone.into_iter().for_each(|(_, whose)| self.went(whose));
    }

    /// The stream has ended: no word comes.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.of_sites = Shares::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGE: EdgeId = EdgeId(1);

    fn of_site(name: u64, question: u64) -> Passed {
        Passed::OfSite {
            edge: EdgeId(name),
            name: NameId(name),
            question,
        }
    }

    /// Lets a claim wait, if there is space.
    fn pass(claims: &mut PassedClaims, whose: Passed) -> bool {
        let may = claims.has_space_for(whose);
        if may {
            claims.wait(whose);
        }
        may
    }

    #[test]
    fn a_site_takes_no_more_than_it_leaves_free_and_nothing_from_children() {
        let mut claims = PassedClaims::default();
        let taken = (0..).take_while(|question| pass(&mut claims, of_site(7, *question)));
        assert_eq!(taken.count(), CLAIMS_PASSED_MAX / 2);
        assert!(pass(&mut claims, of_site(8, 0)));
        assert!(pass(&mut claims, Passed::OfChild(EDGE)));
        assert!(claims.is_waiting(EDGE));
        // Its edge ends, and with it what waited.
        claims.child_went(EdgeId(7));
        assert!(pass(&mut claims, of_site(7, 0)));
        assert_eq!(claims.waiting.len(), 3);
        let rest = (1..).take_while(|question| pass(&mut claims, of_site(7, *question)));
        // The other site has one.
        let all = 1 + rest.count();
        assert_eq!(
            all,
            (CLAIMS_PASSED_MAX - 1) / 2,
            "what it had is given back"
        );
    }

    #[test]
    fn what_is_judged_waits_no_more() {
        let mut claims = PassedClaims::default();
        let question = claims.wait(of_site(7, 40));
        assert_eq!(claims.judged(question), Some(of_site(7, 40)));
        assert_eq!(claims.judged(question), None);
        assert!(claims.waiting.is_empty());
    }
}
