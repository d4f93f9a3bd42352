//! How a transaction over several homes ended, and what follows from it here (rule 10).

use crate::edge::downstream::cut_off;
use crate::home::Outbox;
use crate::home::commit::Whose;
use crate::home::commit::effects::Effects;
use crate::home::commit::refusal::NotNow;
use crate::home::log::Log;
use crate::home::log::queue::OnDurable;
use crate::home::outcomes::{self, Known};
use crate::home::tables::{Entry, Tables};
use crate::home::two_phase::otherwise::is_otherwise;
use crate::home::two_phase::votes::State;
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    CommitId, Decision, Down, EdgeId, Note, Now, Op, Outcome, PageId, Purpose, Refusal, Stamp,
    message, planted,
};

/// The child that sends a decision.
#[derive(Clone, Copy, Debug)]
pub(in crate::home) struct Sender {
    pub(in crate::home) edge: EdgeId,
    /// It is a member, and speaks for itself. A site passes on what others say.
    pub(in crate::home) is_member: bool,
    /// It waits for as many answers as it may.
    pub(in crate::home) has_all_answers: bool,
}

/// Ends votes.
///
/// A vote ends once, as its member decided or as the other homes know. Its locks go in the same
/// batch that gives the part its position, or records that it is refused.
#[derive(Debug)]
pub(in crate::home) struct Decisions<'a> {
    pub(in crate::home) log: &'a mut Log,
    pub(in crate::home) tables: &'a mut Tables,
}

impl Decisions<'_> {
    /// A child sends how a transaction ended. The home believes it as far as the votes could have
    /// come to that.
    pub(in crate::home) fn decide(
        &mut self,
        now: Now,
        sender: Sender,
        decide: &message::Decide,
        outbox: &mut Outbox,
    ) {
        let (commit, decision) = (decide.commit, decide.decision);
        // Whatever it says: it learns how that ends, so that no node on the way keeps it for ever.
        let Some((state, _)) = self.tables.votes.came_again(commit, sender.edge) else {
            return self.decide_without_vote(sender, decide, outbox);
        };
        if let State::Ended(outcome) = state {
            if is_otherwise(&outcome, decision) {
                outbox.note(Note::EndedOtherwise);
            }
            return self.log.tell_ended(sender.edge, commit, outcome);
        }
        if let Decision::Commit(stamp) = decision
            && !planted::is(Bug::DecisionBelieved)
        {
            let vote = self.tables.votes.get(commit);
            if vote.is_some_and(|vote| vote.may_be_settled_at(stamp)) {
                // Perhaps the member only repeats what an operator did elsewhere: this home asks there.
                return outbox.note(Note::DecisionDisbelieved);
            }
            if !vote.is_some_and(|vote| vote.may_end_at(stamp)) {
                let why = "it decides what the votes do not come to";
                return disbelieve(sender, why, outbox);
            }
            self.log.clock.see(now, stamp, commit.member.name());
            if !self.log.clock.may_be_told(now.wall, stamp) {
                outbox.note(Note::DecisionDoubted);
                return self.tables.votes.doubt(commit, stamp, now.mono);
            }
        }
        if state == State::InDoubt {
            outbox.note(Note::DecidedByMember);
        }
        self.decided(now, commit, decision, outbox);
    }

    fn decide_without_vote(
        &mut self,
        sender: Sender,
        decide: &message::Decide,
        outbox: &mut Outbox,
    ) {
        let (edge, home) = (sender.edge, self.log.home());
        let whose = Whose {
            id: decide.commit,
            registration: decide.registration,
        };
        match self.tables.outcomes.known(whose.registration, whose.id) {
            Known::Ended(outcome) => self.log.tell_ended(edge, whose.id, outcome),
            Known::Left | Known::BelowWindow => {
                let forgotten = Down::outcome(home, whose.id, outcomes::forgotten());
                outbox.down(edge, forgotten);
            }
            Known::New => {
                let refusal = match decide.decision {
                    Decision::Abort => Refusal::Elsewhere,
                    Decision::Commit(_) => {
                        let why = "it decides on a vote that was not given";
                        disbelieve(sender, why, outbox);
                        Refusal::Unknown
                    }
                };
                // The question records a no: a part that comes late finds it (rule 11). If that
                // cannot be recorded now, the part is found out as any vote in doubt is.
                let full = self.log.is_busy() || sender.has_all_answers;
                let refusal = if full { Refusal::busy() } else { refusal };
                self.tables
                    .refuse_id(edge, whose, refusal, self.log, outbox);
            }
        }
    }

    /// A doubted decision may be believed by now: the clock may have been put right.
    pub(in crate::home) fn believe(&mut self, now: Now, commit: CommitId, outbox: &mut Outbox) {
        let doubted = self.tables.votes.doubted(commit);
        if let Some(stamp) = doubted.filter(|s| self.log.clock.may_be_told(now.wall, *s)) {
            self.decided(now, commit, Decision::Commit(stamp), outbox);
        }
    }

    /// The outcome of a vote is known.
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

    /// Carries out decisions that waited: pages came, or space.
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
        let then = match self.tables.votes.get(commit).and_then(|vote| vote.route()) {
            Some(edge) => OnDurable::Tell(edge, commit, outcome.clone()),
            None => OnDurable::Nothing,
        };
        let mut ops = Vec::new();
        self.end_vote(now, commit, outcome.clone(), &mut ops);
        self.log
            .append_ops(Purpose::Housekeeping, ops, then, outbox);
        self.tell_others_below(commit, &outcome);
    }

    /// A child that passed the part up by another way than the last one keeps what it wrote until
    /// it learns the outcome.
    fn tell_others_below(&mut self, commit: CommitId, outcome: &Outcome) {
        for edge in self.tables.votes.take_other_routes(commit) {
            self.log
                .after_all(OnDurable::TellAgain(edge, commit, outcome.clone()));
        }
    }

    /// The part gets its position now, under the stamp of all its homes.
    fn carry_out_commit(&mut self, now: Now, commit: CommitId, stamp: Stamp, outbox: &mut Outbox) {
        let Some(vote) = self.tables.votes.get(commit) else {
            return;
        };
        let (request, edge) = (vote.request.clone(), vote.route());
        let unbounded = Effects::unbounded();
        let applier = self
            .tables
            .applier(self.log, request.registration, unbounded, outbox);
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
            executed: request.part.digest(),
            removed: None,
            carrier: None,
            saving: None,
        };
        let position = self.tables.accept(now, entry, self.log, outbox);
        self.tell_others_below(commit, &Outcome::Committed { position, stamp });
    }

    fn decision_needs(&mut self, commit: CommitId, pages: Vec<PageId>, outbox: &mut Outbox) {
        outbox.note(Note::DecisionWaited);
        self.tables.votes.wait_for(commit, &pages);
        for page in pages {
            self.tables.pages.load(page, outbox);
        }
    }

    /// Records how a vote ended, if there is one.
    fn end_vote(&mut self, now: Now, commit: CommitId, outcome: Outcome, ops: &mut Vec<Op>) {
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

/// No member that follows the rules sends this. Below a site there are others, which have done
/// nothing wrong: the home ignores the message, and the homes find out by themselves.
fn disbelieve(sender: Sender, why: &'static str, outbox: &mut Outbox) {
    outbox.note(Note::DecisionDisbelieved);
    if sender.is_member {
        cut_off(sender.edge, why, outbox);
    }
}
