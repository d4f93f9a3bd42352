//! Commits over several homes (rule 10): this home votes for its part, hears
//! how it ended, or finds out.

use crate::home::two_phase::votes::State;
use crate::home::{Home, Outbox, responses};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use thorp_model::limits::{IN_DOUBT_MS, IN_DOUBT_RETRY_MS, OTHER_HOMES_MAX};
use thorp_model::planted::Bug;
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, CommitId, Decision, Down, EdgeId, Epoch, HomeId,
    Millis, Note, Now, Outcome, Participant, Position, Stamp, Up, message, planted,
};

/// The votes of a home whose outcomes it does not know (rule 10), for people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Doubts {
    /// How many.
    pub votes: usize,
    /// How long the oldest has been one, in milliseconds; since the start, if it is from before.
    pub oldest_ms: u64,
    /// The other homes of those that are old enough to be asked about, and whether there is a way to them.
    pub homes: BTreeMap<HomeId, bool>,
}

impl Home {
    /// What is in doubt here.
    pub fn doubts(&self, now: Millis) -> Doubts {
        let mut doubts = Doubts::default();
        let in_doubt = self.tables.votes.iter().map(|(_, vote)| vote);
        for vote in in_doubt.filter(|vote| vote.state == State::InDoubt) {
            let age_ms = now.since(vote.since);
            doubts.votes += 1;
            doubts.oldest_ms = doubts.oldest_ms.max(age_ms);
            if age_ms >= IN_DOUBT_MS {
                let others = vote.others().map(|other| other.home);
                let others = others.map(|home| (home, self.others.contains_key(&home)));
                doubts.homes.extend(others);
            }
        }
        doubts
    }

    // --- Finding out ---

    /// The answer to whoever asks how a part ended: another home, or the member.
    pub(in crate::home) fn vote_outcome(&self, commit: CommitId) -> Option<CallResponse> {
        let vote = self.tables.votes.get(commit)?;
        Some(match &vote.state {
            State::InDoubt | State::Decided(_) => CallResponse::Voted(vote.stamp),
            State::Ended(outcome) => CallResponse::Outcome(outcome.clone()),
        })
    }

    /// Asks the other homes of what has been in doubt for too long, and of what
    /// has ended and nobody says to be settled.
    pub(in crate::home) fn ask_others(&mut self, now: Now, outbox: &mut Outbox) {
        let due: Vec<CommitId> = self
            .tables
            .votes
            .iter()
            .filter(|(_, vote)| vote.ask_at <= now.mono)
            .map(|(commit, _)| commit)
            .collect();
        for commit in due {
            if planted::is(Bug::VoteTimesOut) {
                self.decided(now, commit, Decision::Abort, outbox);
            }
            if let Some(decision) = self.not_doubted_any_more(now, commit) {
                self.decided(now, commit, decision, outbox);
            }
            self.ask_other_homes(now, commit, outbox);
        }
    }

    /// What a member said, and this home's clock did not believe: the clock may have been put right.
    fn not_doubted_any_more(&self, now: Now, commit: CommitId) -> Option<Decision> {
        let stamp = self.tables.votes.get(commit)?.doubted?;
        let may_be = self.log.clock.may_be_told(now.wall, stamp);
        may_be.then_some(Decision::Commit(stamp))
    }

    fn ask_other_homes(&mut self, now: Now, commit: CommitId, outbox: &mut Outbox) {
        let Some(vote) = self.tables.votes.get_mut(commit) else {
            return;
        };
        vote.ask_at = now.mono.plus(IN_DOUBT_RETRY_MS);
        let ask: Vec<Participant> = vote.wanted().collect();
        let is_over = !vote.holds_locks() && ask.is_empty();
        if is_over && !planted::is(Bug::VoteKept) {
            // This home was the last one to hear, and has asked for it itself.
            return self.settled(commit, outbox);
        }
        for other in ask {
            self.ask_other(other, commit, outbox);
        }
    }

    fn ask_other(&mut self, other: Participant, commit: CommitId, outbox: &mut Outbox) {
        let Some(edge) = self.others.get(&other.home).copied() else {
            return outbox.note(Note::OtherHomeWanted);
        };
        let Some(vote) = self.tables.votes.get_mut(commit) else {
            return;
        };
        // It answers every question, however far away or busy it is: one of each vote is enough.
        if vote.asked.contains(&other.home) {
            return;
        }
        vote.asked.insert(other.home);
        self.tables.votes.note_asked(commit, other.home);
        outbox.note(Note::InDoubtAsked);
        self.questions += 1;
        let call = CallId {
            member: self.config.node,
            number: self.questions,
        };
        let home = other.home;
        self.asking.insert(call, Question { edge, home, commit });
        let request = CallRequest::Outcome {
            commit,
            registration: other.registration,
        };
        outbox.up(
            edge,
            Up::Call(message::Call {
                call,
                home,
                request,
            }),
        );
    }

    /// Another home answers.
    pub(in crate::home) fn other_answered(
        &mut self,
        now: Now,
        call: CallId,
        result: Result<CallResponse, CallError>,
        outbox: &mut Outbox,
    ) {
        let Some(question) = self.asking.remove(&call) else {
            return;
        };
        self.may_ask_again(&question);
        let Question { home, commit, .. } = question;
        let in_doubt = self
            .tables
            .votes
            .get(commit)
            .map(|v| v.state == State::InDoubt);
        let has_time = result.is_ok();
        match result {
            Err(CallError::Busy) => self.tables.votes.turned_away(commit, home),
            Ok(CallResponse::Voted(stamp)) => {
                if let Some(decision) = self.tables.votes.voted(commit, home, stamp) {
                    outbox.note(Note::InDoubtResolved);
                    self.decided(now, commit, decision, outbox);
                }
            }
            Ok(CallResponse::Outcome(outcome)) if in_doubt == Some(true) => {
                outbox.note(Note::InDoubtResolved);
                let decision = match outcome {
                    Outcome::Committed { stamp, .. } => Decision::Commit(stamp),
                    // Also one that was forgotten: it was not voted for there, or
                    // it would be kept until this home has heard.
                    Outcome::Refused(_) => Decision::Abort,
                };
                self.tables.votes.heard(commit, home);
                self.decided(now, commit, decision, outbox);
            }
            Ok(CallResponse::Outcome(_)) if self.tables.votes.heard(commit, home) => {
                self.settled(commit, outbox);
            }
            // It is asked again.
            _ => {}
        }
        let asked_again = match has_time {
            true => self.tables.votes.take_turned_away(home),
            false => Vec::new(),
        };
        for (commit, other) in asked_again {
            self.ask_other(other, commit, outbox);
        }
    }

    /// Another home asks; it does nothing else here. From all other edges that
    /// are no child's, what comes is late.
    pub(in crate::home) fn asked_by_other(
        &mut self,
        now: Now,
        edge: EdgeId,
        message: Up,
        outbox: &mut Outbox,
    ) {
        match message {
            Up::Call(message::Call {
                call,
                request: request @ CallRequest::Outcome { .. },
                ..
            }) if self.askers.contains(&edge) => match self.log.is_busy() {
                // It asks again.
                true => {
                    let busy = Err(CallError::Busy);
                    outbox.down(edge, responses::call_result(self.config.home, call, busy));
                }
                false => self.call(now, edge, call, request, outbox),
            },
            _ => outbox.note(Note::OtherEpochDropped),
        }
    }

    /// Another home has come to ask: it is told whose this is, and hears no stream.
    pub(in crate::home) fn other_came(
        &mut self,
        edge: EdgeId,
        name: String,
        at: (Position, Stamp),
        outbox: &mut Outbox,
    ) {
        if self.askers.len() >= OTHER_HOMES_MAX {
            outbox.note(Note::ChildLimited);
            return outbox.close(edge, "too many other homes");
        }
        self.askers.insert(edge);
        self.neighbours.came(edge);
        outbox.down(
            edge,
            Down::Begin(message::Begin {
                home: self.config.home,
                name,
                epoch: Epoch(0),
                position: at.0,
                watermark: at.1,
                silent_ms: 0,
            }),
        );
    }

    /// A way to another home is there: its stream begins, which says whose it is.
    pub(in crate::home) fn heard_other(
        &mut self,
        now: Now,
        edge: EdgeId,
        message: Down,
        outbox: &mut Outbox,
    ) {
        match message {
            Down::Begin(message::Begin { home, .. }) => {
                self.others.insert(home, edge);
            }
            Down::CallResult(message::CallResult { call, result, .. }) => {
                let asked = self.asking.get(&call);
                // Only who was asked is heard.
                if asked.is_some_and(|asked| asked.edge == edge) {
                    self.other_answered(now, call, result, outbox);
                }
            }
            // The rest of the stream is not for a home.
            _ => {}
        }
    }

    /// An edge to another home, or from one, is gone.
    pub(in crate::home) fn other_gone(&mut self, edge: EdgeId) {
        self.askers.remove(&edge);
        self.others.retain(|_, other| *other != edge);
        let unanswered = self.asking.extract_if(.., |_, asked| asked.edge == edge);
        for question in unanswered.map(|(_, question)| question).collect::<Vec<_>>() {
            self.may_ask_again(&question);
        }
        self.tables.votes.edge_gone(edge);
    }

    fn may_ask_again(&mut self, question: &Question) {
        if let Some(vote) = self.tables.votes.get_mut(question.commit) {
            vote.asked.remove(&question.home);
        }
    }
}

/// What another home was asked and has not answered.
#[derive(Debug)]
pub(in crate::home) struct Question {
    /// The way that it went: the answer comes by the same.
    edge: EdgeId,
    home: HomeId,
    commit: CommitId,
}
