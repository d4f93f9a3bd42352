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
    /// A child's own: its stream begins with the verdict.
    OfChild(EdgeId),
    /// One that the site of this name below passed up, under this question.
    OfSite(EdgeId, NameId, u64),
}

/// The claims of one home that wait for the home's word. They end with the stream.
///
/// Those that sites have passed up are at most [`CLAIMS_PASSED_MAX`], and no site's name has more of them than it leaves free
/// (record 0009). A child has one of its own, and there is always a place for that: its stream waits for it.
#[derive(Debug, Default)]
pub(super) struct PassedClaims {
    last: u64,
    waiting: BTreeMap<u64, Passed>,
    of_sites: Shares<NameId>,
}

impl PassedClaims {
    /// Passes a claim up. False: it is one of a site that has as many waiting as it may.
    pub(super) fn pass<W>(
        &mut self,
        up: &Upstream<W>,
        whose: Passed,
        claim: Claim,
        outbox: &mut Outbox,
    ) -> bool {
        if let Passed::OfSite(_, site, _) = whose {
            let limits = (CLAIMS_PASSED_MAX as u64, u64::MAX);
            if !self.of_sites.allows(site, 1, limits) {
                return false;
            }
            self.of_sites.take(Some(site), 1);
        }
        outbox.note(Note::ClaimPassed);
        self.last += 1;
        self.waiting.insert(self.last, whose);
        let judge = message::Judge {
            epoch: up.epoch,
            question: self.last,
            claim,
        };
        up.pass(Up::Judge(judge), outbox);
        true
    }

    /// The home's word has come.
    pub(super) fn judged(&mut self, question: u64) -> Option<Passed> {
        let whose = self.waiting.remove(&question)?;
        self.ended(whose);
        Some(whose)
    }

    fn ended(&mut self, whose: Passed) {
        if let Passed::OfSite(_, site, _) = whose {
            self.of_sites.give_back(Some(site), 1);
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
            let (Passed::OfChild(of) | Passed::OfSite(of, ..)) = whose;
            *of == edge
        };
        let gone: Vec<Passed> = self
            .waiting
            .extract_if(.., is_its)
            .map(|(_, whose)| whose)
            .collect();
        gone.into_iter().for_each(|whose| self.ended(whose));
    }

    /// The stream has ended: no word comes.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.of_sites = Shares::default();
    }
}
