//! In-doubt resolution: the home asks the other homes, and ends votes by what it finds out (rule 10).

use crate::home::Outbox;
use crate::home::two_phase::decision::Decisions;
use crate::home::two_phase::inquiry::{Finding, Inquiry};
use crate::home::two_phase::votes::Inquire;
use thorp_model::planted::Bug;
use thorp_model::{Decision, EdgeId, Now, message, planted};

/// Joins the inquiry with the decisions that follow from it.
#[derive(Debug)]
pub(in crate::home) struct Resolution<'a> {
    pub(in crate::home) inquiry: &'a mut Inquiry,
    pub(in crate::home) decisions: Decisions<'a>,
}

impl Resolution<'_> {
    /// Asks the other homes about votes that have been in doubt for too long, and about those that
    /// have ended and were not settled.
    pub(in crate::home) fn ask_others(&mut self, now: Now, outbox: &mut Outbox) {
        for commit in self.decisions.tables.votes.due(now.mono) {
            if planted::is(Bug::VoteTimesOut) {
                self.decisions.decided(now, commit, Decision::Abort, outbox);
            }
            self.decisions.believe(now, commit, outbox);
            let votes = &mut self.decisions.tables.votes;
            match votes.inquire(commit, now.mono) {
                Inquire::Settled => self.decisions.settled(commit, outbox),
                Inquire::Ask(others) => {
                    for other in others {
                        self.inquiry.ask(other, commit, votes, outbox);
                    }
                }
            }
        }
    }

    /// Another home answers.
    pub(in crate::home) fn answered(
        &mut self,
        now: Now,
        edge: EdgeId,
        answer: message::CallResult,
        outbox: &mut Outbox,
    ) {
        let votes = &mut self.decisions.tables.votes;
        let Some(answered) = self.inquiry.answered(edge, answer, votes, outbox) else {
            return;
        };
        let commit = answered.commit;
        match answered.finding {
            Finding::Decided(decision) => {
                votes.left_to_homes(commit, now.mono);
                self.decisions.decided(now, commit, decision, outbox);
            }
            Finding::Settled => self.decisions.settled(commit, outbox),
            Finding::Nothing => {}
        }
        if answered.has_time {
            let votes = &mut self.decisions.tables.votes;
            self.inquiry.ask_on(answered.home, votes, outbox);
        }
    }
}
