//! What an operator sees of votes in doubt, and how an operator ends one (rule R7).

use crate::home::Outbox;
use crate::home::audit::Occasion;
use crate::home::log::Log;
use crate::home::operators::{self, Asker};
use crate::home::outcomes::Known;
use crate::home::tables::Tables;
use crate::home::two_phase::decision::Decisions;
use crate::home::two_phase::inquiry::Inquiry;
use crate::home::two_phase::votes::State;
use thorp_model::limits::DOUBTS_LISTED_MAX;
use thorp_model::planted::Bug;
use thorp_model::{
    AuditEvent, CallError, CallResponse, CommitId, Decision, Doubt, DoubtHome, HomeId, Note, Now,
    Outcome, Principal, Refusal, Ruling, Stamp, planted,
};

/// Serves an operator that asks about votes in doubt.
///
/// It ends a vote by the same way as a decision, so a vote ends once, whoever comes first.
#[derive(Debug)]
pub(in crate::home) struct Settlement<'a> {
    pub(in crate::home) inquiry: &'a Inquiry,
    pub(in crate::home) log: &'a mut Log,
    pub(in crate::home) tables: &'a mut Tables,
}

impl Settlement<'_> {
    /// Only an operator on an edge of its own is served.
    ///
    /// # Errors
    ///
    /// *No right*.
    pub(in crate::home) fn check(&mut self, asker: Asker) -> Result<(), CallError> {
        match planted::is(Bug::AnybodySettles) {
            true => Ok(()),
            false => operators::check(&mut self.tables.audit, asker),
        }
    }

    /// The votes in doubt after one, the oldest first.
    ///
    /// # Errors
    ///
    /// *No right*.
    pub(in crate::home) fn list(
        &mut self,
        now: Now,
        asker: Asker,
        after: Option<(Stamp, CommitId)>,
    ) -> Result<CallResponse, CallError> {
        self.check(asker)?;
        let mut in_doubt = self.tables.votes.in_doubt_after(after);
        let page = in_doubt.by_ref().take(DOUBTS_LISTED_MAX);
        let doubts = page.map(|(commit, vote)| Doubt {
            commit,
            name: self.tables.audit.name(commit.member.name()),
            stamp: vote.stamp,
            age_ms: now.mono.since(vote.since),
            others: vote
                .others()
                .map(|other| self.other(other.home, vote.vote_of(other.home)))
                .collect(),
        });
        let doubts = doubts.collect();
        let more = in_doubt.next().is_some();
        Ok(CallResponse::Doubts { doubts, more })
    }

    fn other(&self, home: HomeId, vote: Option<Stamp>) -> DoubtHome {
        DoubtHome {
            home,
            name: self.inquiry.configured().name(home),
            is_reached: self.inquiry.reaches(home),
            vote,
        }
    }

    /// How a commit has ended here, if it is not in doubt any more.
    ///
    /// # Errors
    ///
    /// *Busy*, if its decision waits for pages or for space. *No such vote*, if nothing is known of it.
    pub(in crate::home) fn ended(
        &mut self,
        commit: CommitId,
    ) -> Result<Option<Outcome>, CallError> {
        if let Some(vote) = self.tables.votes.get(commit) {
            return match &vote.state {
                State::InDoubt => Ok(None),
                State::Decided(_) => Err(CallError::Busy),
                State::Ended(outcome) => Ok(Some(outcome.clone())),
            };
        }
        let outcomes = &mut self.tables.outcomes;
        let registration = outcomes.registration(commit.member);
        let known = registration.map(|registration| outcomes.known(registration, commit));
        match known {
            Some(Known::Ended(outcome)) => Ok(Some(outcome)),
            _ => Err(CallError::NoSuchVote),
        }
    }

    /// What is recorded of the end of a vote (rule R8).
    pub(in crate::home) fn occasion(who: Principal, commit: CommitId, ruling: Ruling) -> Occasion {
        Occasion::of(who.name, AuditEvent::DoubtSettled { commit, ruling })
    }

    /// Ends a vote in doubt, as a decision would.
    ///
    /// # Errors
    ///
    /// *Busy*, if the end waits for pages: the vote is decided, and the operator asks again.
    pub(in crate::home) fn settle(
        &mut self,
        now: Now,
        (commit, ruling): (CommitId, Ruling),
        outbox: &mut Outbox,
    ) -> Result<CallResponse, CallError> {
        let vote = self.tables.votes.get(commit).ok_or(CallError::NoSuchVote)?;
        let decision = match ruling {
            Ruling::Commit => Decision::Commit(vote.highest_known()),
            Ruling::Abort => Decision::Abort,
        };
        outbox.note(Note::DoubtSettled);
        if planted::is(Bug::SettlementNotLogged) {
            let outcome = Outcome::Refused(Refusal::Elsewhere);
            let _ = self.tables.votes.end(commit, outcome, now.mono);
        }
        let mut decisions = Decisions {
            log: self.log,
            tables: self.tables,
        };
        decisions.decided(now, commit, decision, outbox);
        self.ended(commit)?
            .map(CallResponse::Settled)
            .ok_or(CallError::Busy)
    }
}
