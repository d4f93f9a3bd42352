//! How a transaction over several homes ended, and what follows from it here (rule 10).

use crate::home::commit::Whose;
use crate::home::commit::effects::Effects;
use crate::home::commit::refusal::{NotNow, busy};
use crate::home::log::queue::OnDurable;
use crate::home::once::outcomes::{self, Known};
use crate::home::tables::Entry;
use crate::home::two_phase::votes::State;
use crate::home::{Home, Outbox};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Decision, EdgeId, Note, Now, Op, Outcome, PageId, Purpose, Refusal, Stamp, message,
    planted,
};

impl Home {
    /// The news of how a transaction ended. Its member tells it, and is believed as far as the votes
    /// could have come to that.
    pub(in crate::home) fn decide(
        &mut self,
        now: Now,
        edge: EdgeId,
        decide: &message::Decide,
        outbox: &mut Outbox,
    ) {
        let decision = decide.decision;
        let whose = Whose {
            id: decide.commit,
            registration: decide.registration,
        };
        let Some(vote) = self.tables.votes.get_mut(whose.id) else {
            return self.decide_without_vote(edge, whose, decision, outbox);
        };
        // Whatever it says: it hears how that ends, so that nobody on the way keeps it for ever.
        vote.routes.came_by(edge);
        if let State::Ended(outcome) = &vote.state {
            let outcome = outcome.clone();
            return self.log.tell_ended(edge, whose.id, outcome);
        }
        if let Decision::Commit(stamp) = decision
            && !planted::is(Bug::DecisionBelieved)
        {
            if !vote.may_end_at(stamp) {
                return self.disbelieve(edge, "it decides what the votes do not come to", outbox);
            }
            if !self.log.clock.may_be_told(now.wall, stamp) {
                outbox.note(Note::DecisionDoubted);
                vote.doubted = Some(stamp);
                vote.ask_at = now.mono;
                return;
            }
        }
        if vote.state == State::InDoubt {
            outbox.note(Note::DecidedByMember);
        }
        self.decided(now, whose.id, decision, outbox);
    }

    fn decide_without_vote(
        &mut self,
        edge: EdgeId,
        whose: Whose,
        decision: Decision,
        outbox: &mut Outbox,
    ) {
        match self.tables.outcomes.known(whose.registration, whose.id) {
            Known::Ended(outcome) => self.log.tell_ended(edge, whose.id, outcome),
            Known::BelowWindow => self.tell(edge, whose.id, &outcomes::forgotten(), outbox),
            Known::New => {
                let refusal = match decision {
                    Decision::Abort => Refusal::Elsewhere,
                    Decision::Commit(_) => {
                        self.disbelieve(edge, "it decides on a vote that was not given", outbox);
                        Refusal::Unknown
                    }
                };
                // The asking records a no: what comes late finds it (rule 11). If it cannot be
                // recorded now, what comes late is found out as any vote in doubt is.
                let parked = self.parking.of(edge);
                let admission = self.log.admission();
                let full =
                    self.log.is_busy() || admission.has_all_answers(edge, parked, &self.children);
                let refusal = if full { busy() } else { refusal };
                let ended = (refusal, Vec::new());
                self.tables
                    .refuse_id(edge, whose, ended, &mut self.log, outbox);
            }
        }
    }

    /// No right member says so. Below a site there are others, who have done nothing wrong: what
    /// was said is not heeded, and the homes find out by themselves.
    fn disbelieve(&mut self, edge: EdgeId, why: &'static str, outbox: &mut Outbox) {
        outbox.note(Note::DecisionDisbelieved);
        if self.children.is_member(edge) {
            self.cut_off(edge, why, outbox);
        }
    }

    pub(in crate::home) fn decided(
        &mut self,
        now: Now,
        commit: CommitId,
        decision: Decision,
        outbox: &mut Outbox,
    ) {
        if self.tables.votes.decide(commit, decision) {
            self.carry_out(now, commit, outbox);
        }
    }

    /// What was decided and had to wait: pages came, or room.
    pub(in crate::home) fn carry_out_waiting(&mut self, now: Now, outbox: &mut Outbox) {
        for commit in self.tables.votes.decided() {
            self.carry_out(now, commit, outbox);
        }
    }

    fn carry_out(&mut self, now: Now, commit: CommitId, outbox: &mut Outbox) {
        let Some(vote) = self.tables.votes.get(commit) else {
            return;
        };
        let State::Decided(decision) = vote.state else {
            return;
        };
        if !self.log.has_space() {
            return outbox.note(Note::DecisionWaited);
        }
        match decision {
            Decision::Abort => self.carry_out_abort(now, commit, outbox),
            Decision::Commit(stamp) => self.carry_out_commit(now, commit, stamp, outbox),
        }
    }

    fn carry_out_abort(&mut self, now: Now, commit: CommitId, outbox: &mut Outbox) {
        outbox.note(Note::VoteAborted);
        let outcome = Outcome::Refused(Refusal::Elsewhere);
        let then = match self
            .tables
            .votes
            .get(commit)
            .and_then(|vote| vote.routes.last())
        {
            Some(edge) => OnDurable::Tell(edge, commit, outcome.clone()),
            None => OnDurable::Nothing,
        };
        let mut ops = Vec::new();
        self.end_vote(now, commit, outcome.clone(), &mut ops);
        self.log
            .append_ops(Purpose::Housekeeping, ops, then, outbox);
        self.tell_others_below(commit, &outcome);
    }

    /// Who passed it up by another way than the last one keeps what it wrote until it hears.
    fn tell_others_below(&mut self, commit: CommitId, outcome: &Outcome) {
        let vote = self.tables.votes.get_mut(commit);
        let others = vote.map(|vote| vote.routes.take_others());
        for edge in others.unwrap_or_default() {
            self.log
                .after_all(OnDurable::Tell(edge, commit, outcome.clone()));
        }
    }

    /// The part gets its position now, under the stamp of all its homes.
    fn carry_out_commit(&mut self, now: Now, commit: CommitId, stamp: Stamp, outbox: &mut Outbox) {
        let Some(vote) = self.tables.votes.get(commit) else {
            return;
        };
        let (request, edge) = (vote.request.clone(), vote.routes.last());
        let unbounded = Effects::unbounded();
        let applier = self
            .tables
            .applier(&self.log, request.registration, unbounded, outbox);
        let effects = match applier.effects(&request.part) {
            Ok(effects) => effects,
            Err(NotNow::Needs(pages)) => return self.decision_needs(commit, pages, outbox),
            // Everything was checked before the vote and is locked since. If it
            // does not hold, this home's tables are wrong: it stays in doubt, for people to see.
            Err(NotNow::Refused(_)) => return outbox.note(Note::DecisionWaited),
        };
        outbox.note(Note::VoteCommitted);
        self.log.clock.observe(stamp);
        let whose = Whose {
            id: commit,
            registration: request.registration,
        };
        let entry = Entry {
            stamp,
            effects,
            whose: Some((edge, whose)),
            removed: None,
        };
        let position = self.tables.accept(now, entry, &mut self.log, outbox);
        self.tell_others_below(commit, &Outcome::Committed { position, stamp });
    }

    fn decision_needs(&mut self, commit: CommitId, pages: Vec<PageId>, outbox: &mut Outbox) {
        outbox.note(Note::DecisionWaited);
        if let Some(vote) = self.tables.votes.get_mut(commit) {
            vote.needs.extend(&pages);
        }
        for page in pages {
            self.tables.pages.load(page, outbox);
        }
    }

    /// Records how a vote ended, if there is one.
    pub(in crate::home) fn end_vote(
        &mut self,
        now: Now,
        commit: CommitId,
        outcome: Outcome,
        ops: &mut Vec<Op>,
    ) {
        let Some(vote) = self.tables.votes.get(commit) else {
            return;
        };
        let registration = vote.request.registration;
        self.tables
            .outcomes
            .record(registration, commit, outcome.clone(), ops);
        ops.extend(self.tables.votes.end(commit, outcome, now.mono));
    }

    /// Every home has heard how it ended.
    pub(in crate::home) fn settled(&mut self, commit: CommitId, outbox: &mut Outbox) {
        if let Some(op) = self.tables.votes.forget(commit) {
            outbox.note(Note::VoteSettled);
            self.log.append_ops(
                Purpose::Housekeeping,
                Vec::from([op]),
                OnDurable::Nothing,
                outbox,
            );
        }
    }
}
