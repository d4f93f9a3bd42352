//! Claims of nodes below that a redirector cannot judge: they go up (rule R9).

use crate::edge::upstream::Upstream;
use crate::redirector::Outbox;
use alloc::collections::BTreeMap;
use thorp_model::limits::CLAIMS_PASSED_MAX;
use thorp_model::{Claim, EdgeId, Note, Up, message};

/// Whose claim was passed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    /// A child's own: its stream begins with the verdict.
    OfChild(EdgeId),
    /// One that a site below passed up under this question.
    OfSite(EdgeId, u64),
}

/// The claims of one home that wait for the home's word, at most [`CLAIMS_PASSED_MAX`]. They end with the stream.
#[derive(Debug, Default)]
pub(super) struct PassedClaims {
    last: u64,
    waiting: BTreeMap<u64, Passed>,
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
        if self.waiting.len() >= CLAIMS_PASSED_MAX {
            return false;
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
        self.waiting.remove(&question)
    }

    /// Whether a child waits for the home's word on its own claim.
    pub(super) fn is_waiting(&self, edge: EdgeId) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|whose| *whose == Passed::OfChild(edge))
    }

    /// A child is gone.
    pub(super) fn child_went(&mut self, edge: EdgeId) {
        self.waiting.retain(|_, whose| {
            let (Passed::OfChild(of) | Passed::OfSite(of, _)) = whose;
            *of != edge
        });
    }

    /// The stream has ended: no word comes.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
