//! What a commit builds on: earlier commits that it lists, and staged values that it names (rules 4 and 14).

use crate::home::commit::parking::Parking;
use crate::home::commit::refusal::NotNow;
use crate::home::outcomes::Outcomes;
use crate::home::staging::named_by;
use crate::home::two_phase::votes::{Vote, Votes};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{CommitId, CommitRequest, Position, Refusal, Stamp, planted};

/// Judges what a commit builds on, by what became of it here. It changes nothing.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Dependencies<'a> {
    pub(in crate::home) outcomes: &'a Outcomes,
    pub(in crate::home) votes: &'a Votes,
    pub(in crate::home) parking: &'a Parking,
}

impl Dependencies<'_> {
    /// The positions of the commits that a request lists. They must be committed, and are its
    /// evidence for the objects that they changed last. One that was voted for, and is not ended,
    /// is in doubt here. If a listed commit is parked, this one parks with it: the member sent it
    /// later.
    pub(in crate::home) fn positions(
        &self,
        request: &CommitRequest,
    ) -> Result<Vec<Position>, NotNow> {
        let is_known = |id: &&CommitId| {
            !planted::is(Bug::BuiltOnAnything) || self.outcomes.committed(**id).is_some()
        };
        let named = request.depends_on.iter().filter(is_known).map(|id| {
            if let Some(pages) = self.parking.missing_of(*id) {
                return Err(NotNow::Needs(pages));
            }
            if self.votes.get(*id).is_some_and(Vote::holds_locks) {
                return Err(NotNow::Refused(Refusal::InDoubt));
            }
            let committed = self.outcomes.committed(*id);
            let position = committed.map(|(position, _)| position);
            position.ok_or(NotNow::Refused(Refusal::BuiltOnRefused))
        });
        named.collect()
    }

    /// The stamp that a request stands above. A transaction that read the values of listed commits
    /// before they were answered did not know their stamps (rule 5).
    pub(in crate::home) fn stamp_above(&self, request: &CommitRequest) -> Stamp {
        if planted::is(Bug::EarlyStampNotKnown) {
            return request.after;
        }
        let named = request.depends_on.iter();
        let named = named.filter_map(|id| self.outcomes.committed(*id));
        named
            .map(|(_, stamp)| stamp)
            .fold(request.after, Stamp::max)
    }

    /// A staged value is one commit's: while a vote in doubt names it, no other may.
    pub(in crate::home) fn check_values(&self, request: &CommitRequest) -> Result<(), NotNow> {
        let taken = |of| self.votes.name_staged(request.registration, of);
        if named_by(request).any(taken) && !planted::is(Bug::VoteNotLocked) {
            return Err(NotNow::Refused(Refusal::InDoubt));
        }
        Ok(())
    }
}
