//! The inquiry: what a home asks other homes about votes in doubt, and what it finds out (rule 10).

use crate::home::Outbox;
use crate::home::two_phase::other_homes::OtherHomes;
use crate::home::two_phase::otherwise::{decision_of, is_otherwise};
use crate::home::two_phase::votes::{State, Votes};
use alloc::collections::BTreeMap;
use alloc::string::String;
use thorp_model::limits::{IN_DOUBT_MS, OTHER_HOMES_MAX};
use thorp_model::{
    CallError, CallId, CallRequest, CallResponse, CommitId, Decision, EdgeId, HomeId, MemberId,
    Millis, Note, Outcome, Participant, Receipt, Stamp, Up, message,
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

/// What another home was asked and has not answered.
#[derive(Debug)]
struct Question {
    /// The way that it went: the answer comes by the same.
    edge: EdgeId,
    home: HomeId,
    commit: CommitId,
}

/// What an answer says.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::home) enum Finding {
    /// How the transaction ended.
    Decided(Decision),
    /// Every home knows how it ended.
    Settled,
    /// Nothing new: the home is asked again.
    Nothing,
}

/// An answer of another home.
#[derive(Debug)]
pub(in crate::home) struct Answered {
    pub(in crate::home) home: HomeId,
    pub(in crate::home) commit: CommitId,
    pub(in crate::home) finding: Finding,
    /// The home has time for more questions.
    pub(in crate::home) has_time: bool,
}

/// The edges to other homes and from them, and the questions on their way.
///
/// A home is asked once about each vote until it answers or its edge is gone: each question in
/// `asking` is noted at its vote. Only the edge that a question went by may answer it. Each edge is
/// in `others` at most once, and `others` has at most [`OTHER_HOMES_MAX`].
#[derive(Debug)]
pub(in crate::home) struct Inquiry {
    /// Names this home in its questions.
    node: MemberId,
    /// The homes that a transaction may name.
    configured: OtherHomes,
    /// The ways to other homes.
    others: BTreeMap<HomeId, EdgeId>,
    /// Other homes that ask here, and whether each is configured.
    askers: BTreeMap<EdgeId, bool>,
    asking: BTreeMap<CallId, Question>,
    questions: u64,
}

impl Inquiry {
    /// Homes of these names are configured, and there is no way to any of them.
    pub(in crate::home) fn new(node: MemberId, configured: &[String]) -> Self {
        Inquiry {
            node,
            configured: OtherHomes::new(configured),
            others: BTreeMap::new(),
            askers: BTreeMap::new(),
            asking: BTreeMap::new(),
            questions: 0,
        }
    }

    /// Questions that were not answered.
    pub(in crate::home) fn len(&self) -> usize {
        self.asking.len()
    }

    /// What is in doubt here.
    pub(in crate::home) fn doubts(&self, votes: &Votes, now: Millis) -> Doubts {
        let mut doubts = Doubts::default();
        let in_doubt = votes.iter().map(|(_, vote)| vote);
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

    // --- Edges ---

    /// All edges to other homes and from them.
    pub(in crate::home) fn edges(&self) -> impl Iterator<Item = EdgeId> {
        self.askers.keys().chain(self.others.values()).copied()
    }

    /// The edges by which other homes ask.
    pub(in crate::home) fn askers(&self) -> impl Iterator<Item = EdgeId> {
        self.askers.keys().copied()
    }

    /// Whether another home asks by this edge.
    pub(in crate::home) fn is_asker(&self, edge: EdgeId) -> bool {
        self.askers.contains_key(&edge)
    }

    /// Whether the home that asks by this edge is one that this home is configured for. Another one never shared a vote
    /// with it, so its question about an unknown id ends nothing (rule R2).
    pub(in crate::home) fn is_configured(&self, edge: EdgeId) -> bool {
        self.askers.get(&edge).copied().unwrap_or_default()
    }

    /// The home of this name has come to ask. False at the limit.
    pub(in crate::home) fn asker_came(&mut self, edge: EdgeId, name: &str) -> bool {
        let has_space = self.askers.len() < OTHER_HOMES_MAX;
        if has_space {
            self.askers.insert(edge, self.configured.has(name));
        }
        has_space
    }

    /// Whether there is a way to another home.
    pub(in crate::home) fn reaches(&self, home: HomeId) -> bool {
        self.others.contains_key(&home)
    }

    /// The way to another home, if there is one.
    pub(in crate::home) fn way_to(&self, home: HomeId) -> Option<EdgeId> {
        self.others.get(&home).copied()
    }

    /// The homes that a transaction may name.
    pub(in crate::home) fn configured(&self) -> &OtherHomes {
        &self.configured
    }

    /// Has the configured homes dialed until each of them was heard once (rule R7).
    pub(in crate::home) fn look_for_missing(&self, outbox: &mut Outbox) {
        if self.configured.is_missing() {
            outbox.note(Note::OtherHomeWanted);
        }
    }

    /// The stream of another home begins: this is a way to it. An edge stands for one home, the
    /// last that it named; so a home that names many has one place here.
    pub(in crate::home) fn found(&mut self, begin: &message::Begin, edge: EdgeId) {
        let home = begin.home;
        self.configured.heard(&begin.name, home);
        self.others.retain(|_, other| *other != edge);
        if self.others.contains_key(&home) || self.others.len() < OTHER_HOMES_MAX {
            self.others.insert(home, edge);
        }
    }

    // --- Receipts (rule R9) ---

    /// The name of the home that proves by this edge how far it is. None: it is not the way to that home, or that home is
    /// not configured.
    pub(in crate::home) fn prover(&self, edge: EdgeId, receipt: &Receipt) -> Option<String> {
        let way = self.others.get(&receipt.home);
        way.filter(|way| **way == edge)?;
        self.configured.name(receipt.home)
    }

    /// An edge to another home, or from one, is gone.
    pub(in crate::home) fn went(&mut self, edge: EdgeId, votes: &mut Votes) {
        self.askers.remove(&edge);
        self.others.retain(|_, other| *other != edge);
        for (_, lost) in self.asking.extract_if(.., |_, asked| asked.edge == edge) {
            votes.end_asking(lost.commit, lost.home);
        }
        votes.edge_gone(edge);
    }

    // --- Questions ---

    /// Asks another home how a transaction ended, unless it was asked.
    pub(in crate::home) fn ask(
        &mut self,
        other: Participant,
        commit: CommitId,
        votes: &mut Votes,
        outbox: &mut Outbox,
    ) {
        let home = other.home;
        let Some(edge) = self.others.get(&home).copied() else {
            return outbox.note(Note::OtherHomeWanted);
        };
        if !votes.begin_asking(commit, home) {
            return;
        }
        outbox.note(Note::InDoubtAsked);
        self.questions += 1;
        let call = CallId {
            member: self.node,
            number: self.questions,
        };
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

    /// Another home answers. None if it was not asked by this edge.
    pub(in crate::home) fn answered(
        &mut self,
        edge: EdgeId,
        answer: message::CallResult,
        votes: &mut Votes,
        outbox: &mut Outbox,
    ) -> Option<Answered> {
        let message::CallResult { call, result, .. } = answer;
        self.asking.get(&call).filter(|asked| asked.edge == edge)?;
        let Question { home, commit, .. } = self.asking.remove(&call)?;
        votes.end_asking(commit, home);
        let has_time = result.is_ok();
        if let Ok(CallResponse::Outcome(outcome)) = &result
            && let Some(State::Ended(ended)) = votes.get(commit).map(|vote| &vote.state)
            && decision_of(outcome).is_some_and(|said| is_otherwise(ended, said))
        {
            outbox.note(Note::EndedOtherwise);
        }
        let finding = match result {
            Ok(response) => find(commit, home, response, votes),
            Err(CallError::Busy) => {
                votes.turned_away(commit, home);
                Finding::Nothing
            }
            Err(_) => Finding::Nothing,
        };
        if matches!(finding, Finding::Decided(_)) {
            outbox.note(Note::InDoubtResolved);
        }
        Some(Answered {
            home,
            commit,
            finding,
            has_time,
        })
    }

    /// A home has time: it is asked on about votes for which it was too busy.
    pub(in crate::home) fn ask_on(&mut self, home: HomeId, votes: &mut Votes, outbox: &mut Outbox) {
        for (commit, other) in votes.take_turned_away(home) {
            self.ask(other, commit, votes, outbox);
        }
    }
}

fn find(commit: CommitId, home: HomeId, response: CallResponse, votes: &mut Votes) -> Finding {
    let in_doubt = votes.get(commit).is_some_and(|v| v.state == State::InDoubt);
    match response {
        CallResponse::Voted(stamp) => {
            let decision = votes.voted(commit, home, stamp);
            decision.map_or(Finding::Nothing, Finding::Decided)
        }
        CallResponse::Outcome(outcome) if in_doubt => {
            votes.heard(commit, home);
            let own = votes
                .get(commit)
                .map_or(Stamp::default(), |vote| vote.stamp);
            Finding::Decided(match outcome {
                // An operator who did not know this home's vote may have ended it lower. What this home
                // promises is bounded by its own vote (rule R7).
                Outcome::Committed { stamp, .. } => Decision::Commit(stamp.max(own)),
                // Also one that was forgotten: that home did not vote for it, or it would remember
                // the vote until this home has learned the outcome.
                Outcome::Refused(_) => Decision::Abort,
            })
        }
        CallResponse::Outcome(_) if votes.heard(commit, home) => Finding::Settled,
        _ => Finding::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::home::two_phase::locks::Locks;
    use crate::home::two_phase::votes::Vote;
    use alloc::vec::Vec;
    use thorp_model::{CommitRequest, Part, Position, Registration};

    const OTHER: HomeId = HomeId(2);

    fn voted() -> (Votes, CommitId, Participant) {
        let registration = Registration(7);
        let other = Participant {
            home: OTHER,
            registration,
        };
        let id = CommitId {
            member: MemberId(3),
            sequence: 1,
        };
        let own = Participant {
            home: HomeId(1),
            registration,
        };
        let request = CommitRequest {
            id,
            registration,
            part: Part {
                home: HomeId(1),
                evidence: Position(0),
                reads: Vec::new(),
                writes: Vec::new(),
                under: None,
            },
            with: Vec::from([own, other]),
            depends_on: Vec::new(),
            after: Stamp::default(),
        };
        let mut votes = Votes::default();
        let vote = Vote::new(request, Stamp::default(), Locks::default(), Millis(0));
        votes.vote(vote, EdgeId(9));
        (votes, id, other)
    }

    fn asked(outbox: &Outbox) -> usize {
        outbox.actions.len() / 2
    }

    #[test]
    fn a_home_is_asked_once_by_each_way() {
        let (mut votes, commit, other) = voted();
        let mut inquiry = Inquiry::new(MemberId(1), &[]);
        let mut outbox = Outbox::new();
        inquiry.found(&fixture::begin(OTHER, "other", 0, 0), EdgeId(4));
        for _ in 0..2 {
            inquiry.ask(other, commit, &mut votes, &mut outbox);
        }
        assert_eq!((asked(&outbox), inquiry.len()), (1, 1));
        inquiry.went(EdgeId(4), &mut votes);
        inquiry.found(&fixture::begin(OTHER, "other", 0, 0), EdgeId(5));
        inquiry.ask(other, commit, &mut votes, &mut outbox);
        assert_eq!((asked(&outbox), inquiry.len()), (2, 1));
    }

    #[test]
    fn an_edge_stands_for_one_home_however_many_it_names() {
        let mut inquiry = Inquiry::new(MemberId(1), &[]);
        inquiry.found(&fixture::begin(OTHER, "other", 0, 0), EdgeId(4));
        for home in 0..3 * OTHER_HOMES_MAX as u32 {
            inquiry.found(
                &fixture::begin(HomeId(100 + home), "other", 0, 0),
                EdgeId(5),
            );
        }
        assert_eq!(inquiry.others.len(), 2);
        assert_eq!(inquiry.others.get(&OTHER), Some(&EdgeId(4)));
    }

    #[test]
    fn there_are_ways_to_so_many_homes() {
        let mut inquiry = Inquiry::new(MemberId(1), &[]);
        for home in 0..=OTHER_HOMES_MAX as u32 {
            inquiry.found(
                &fixture::begin(HomeId(100 + home), "other", 0, 0),
                EdgeId(u64::from(home)),
            );
        }
        assert_eq!(inquiry.others.len(), OTHER_HOMES_MAX);
        // A home that is known may come by another edge.
        inquiry.found(&fixture::begin(HomeId(100), "other", 0, 0), EdgeId(1_000));
        assert_eq!(inquiry.others.get(&HomeId(100)), Some(&EdgeId(1_000)));
    }

    #[test]
    fn only_the_edge_that_was_asked_answers() {
        let (mut votes, commit, other) = voted();
        let mut inquiry = Inquiry::new(MemberId(1), &[]);
        let mut outbox = Outbox::new();
        inquiry.found(&fixture::begin(OTHER, "other", 0, 0), EdgeId(4));
        inquiry.ask(other, commit, &mut votes, &mut outbox);
        let stamp = Stamp {
            clock: 5,
            home: OTHER,
        };
        let answer = message::CallResult {
            home: OTHER,
            call: CallId {
                member: MemberId(1),
                number: 1,
            },
            result: Ok(CallResponse::Voted(stamp)),
        };
        let by_other = inquiry.answered(EdgeId(5), answer.clone(), &mut votes, &mut outbox);
        assert!(by_other.is_none());
        let answered = inquiry.answered(EdgeId(4), answer, &mut votes, &mut outbox);
        let finding = answered.expect("it was asked").finding;
        assert_eq!(finding, Finding::Decided(Decision::Commit(stamp)));
    }
}
