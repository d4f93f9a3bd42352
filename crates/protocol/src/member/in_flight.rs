//! A commit of a member, and how far it has come at each of its homes (rules 6, 10 and 11).

use alloc::vec::Vec;
use thorp_model::{
    CommitId, Decision, EdgeId, HomeId, Outcome, Part, Participant, Position, Refusal,
    Registration, RequestId, Stamp,
};

/// A commit that has not ended everywhere.
#[derive(Debug)]
pub(super) struct InFlight {
    /// Who waits for the answer; nobody, once it was given.
    pub(super) request_id: Option<RequestId>,
    pub(super) parts: Vec<AtPart>,
    /// The commits that it builds on, and at which home.
    pub(super) depends_on: Vec<(HomeId, CommitId)>,
    /// What it stands above.
    pub(super) after: Stamp,
    /// Its program goes on without its answer, and has what it wrote before its eyes (rule 14).
    pub(super) early: bool,
    /// What the votes came to, if there are several homes.
    pub(super) decision: Option<Decision>,
}

/// A commit at one of its homes.
#[derive(Debug)]
pub(super) struct AtPart {
    pub(super) part: Part,
    pub(super) bytes: usize,
    /// Under which registration it was sent.
    pub(super) registration: Option<Registration>,
    pub(super) state: PartState,
    /// The answer was lost with an edge: it has to be asked for (rule 11).
    pub(super) lost: bool,
    /// The home dropped the decision: it is sent again when the member has signed anew (rule R2).
    pub(super) is_dropped: bool,
    /// Its values are shown before they are delivered (rule 3).
    pub(super) shown: bool,
    /// The home has gone back since it was sent (rule R9).
    pub(super) went_back: bool,
}

/// How far a part has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PartState {
    /// It waits for a registration or for a way to its home.
    Waiting,
    /// It was sent.
    Sent,
    /// Its home has voted.
    Voted(Stamp),
    /// It has ended.
    Ended(Outcome),
}

impl InFlight {
    pub(super) fn new(
        request_id: RequestId,
        parts: Vec<Part>,
        depends_on: Vec<(HomeId, CommitId)>,
        (after, early): (Stamp, bool),
    ) -> Self {
        let with = if parts.len() > 1 { parts.len() } else { 0 };
        let here = |home| depends_on.iter().filter(|(of, _)| *of == home).count();
        let at_part = |part: Part| AtPart {
            bytes: part.bytes_in(with, here(part.home)),
            part,
            registration: None,
            state: PartState::Waiting,
            lost: false,
            is_dropped: false,
            shown: false,
            went_back: false,
        };
        InFlight {
            request_id: Some(request_id),
            parts: parts.into_iter().map(at_part).collect(),
            depends_on,
            after,
            early,
            decision: None,
        }
    }

    pub(super) fn parts(&self) -> &[AtPart] {
        &self.parts
    }

    pub(super) fn at(&mut self, home: HomeId) -> Option<&mut AtPart> {
        self.parts.iter_mut().find(|at| at.part.home == home)
    }

    /// The commits that it names at a home.
    pub(super) fn names_at(&self, home: HomeId) -> impl Iterator<Item = CommitId> + '_ {
        let here = move |(of, id): &(HomeId, CommitId)| (*of == home).then_some(*id);
        self.depends_on.iter().filter_map(here)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.parts.len() > 1
    }

    /// All homes of a commit over several, each with its registration; none, if it has only one.
    pub(super) fn participants(&self, routes: &[(EdgeId, Registration)]) -> Vec<Participant> {
        if !self.is_shared() {
            return Vec::new();
        }
        let participants = self.parts.iter().zip(routes);
        participants
            .map(|(at, (_, registration))| Participant {
                home: at.home(),
                registration: *registration,
            })
            .collect()
    }

    /// What follows from what is known: *abort* from one refusal, *commit* from
    /// all votes, or from one home that was told so by another way.
    pub(super) fn decide(&self) -> Option<Decision> {
        let states = || self.parts.iter().map(|at| &at.state);
        let refused = |state: &PartState| matches!(state, PartState::Ended(Outcome::Refused(_)));
        if states().any(refused) {
            return Some(Decision::Abort);
        }
        let committed = |state: &PartState| match state {
            PartState::Ended(Outcome::Committed { stamp, .. }) => Some(*stamp),
            _ => None,
        };
        if let Some(stamp) = states().find_map(committed) {
            // An operator ended it without knowing all votes. None of the homes takes less than its own (rule R7).
            let voted = states().filter_map(|state| match state {
                PartState::Voted(stamp) => Some(*stamp),
                _ => None,
            });
            return Some(Decision::Commit(voted.fold(stamp, Stamp::max)));
        }
        let votes: Option<Vec<Stamp>> = states()
            .map(|state| match state {
                PartState::Voted(stamp) => Some(*stamp),
                _ => None,
            })
            .collect();
        votes?.into_iter().max().map(Decision::Commit)
    }

    /// Why it was refused: the first reason that is not another home's. None, once all have voted:
    /// a home that has forgotten it since does not change how it ended.
    pub(super) fn refusal(&self) -> Option<(HomeId, Refusal)> {
        if matches!(self.decision, Some(Decision::Commit(_))) {
            // An operator has refused it there, and it stands elsewhere: nobody may run it again (rule R7).
            let mixed = self.parts.iter().find(|at| at.is_refused_elsewhere());
            return mixed.map(|at| (at.home(), Refusal::Forgotten));
        }
        let refusals = self.parts.iter().filter_map(|at| match &at.state {
            PartState::Ended(Outcome::Refused(refusal)) => Some((at.part.home, refusal.clone())),
            _ => None,
        });
        refusals.min_by_key(|(_, refusal)| *refusal == Refusal::Elsewhere)
    }

    /// How it is known to have ended: over several homes before they deliver it. And its home,
    /// if that is the only one.
    pub(super) fn committed(&self) -> Option<(Option<HomeId>, Outcome)> {
        if self.is_shared() {
            let Some(Decision::Commit(stamp)) = self.decision else {
                return None;
            };
            let is_seen = self.parts.iter().all(AtPart::can_be_seen);
            let position = Position::default();
            return is_seen.then_some((None, Outcome::Committed { position, stamp }));
        }
        let first = self.parts.first()?;
        match &first.state {
            PartState::Ended(outcome) => Some((Some(first.part.home), outcome.clone())),
            _ => None,
        }
    }

    /// It is known how it ended, and not every home has said that it knows.
    pub(super) fn is_to_tell(&self) -> bool {
        self.decision.is_some() && !self.has_ended()
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|at| matches!(at.state, PartState::Ended(_)))
    }
}

impl AtPart {
    pub(super) fn home(&self) -> HomeId {
        self.part.home
    }

    /// Its home refused it for the sake of another home.
    fn is_refused_elsewhere(&self) -> bool {
        self.state == PartState::Ended(Outcome::Refused(Refusal::Elsewhere))
    }

    /// Whether the program finds what it wrote there.
    fn can_be_seen(&self) -> bool {
        self.shown || self.part.writes.is_empty() || matches!(self.state, PartState::Ended(_))
    }

    /// It waits for its answer, which has to be asked for.
    pub(super) fn is_lost(&self) -> bool {
        self.lost && self.is_unanswered()
    }

    /// It has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.is_waiting() || self.is_under_way()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state == PartState::Waiting
    }

    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.state, PartState::Sent | PartState::Voted(_))
    }

    /// It was sent, and its home has neither voted nor ended it.
    pub(super) fn is_unanswered(&self) -> bool {
        self.state == PartState::Sent
    }

    pub(super) fn has_voted(&self) -> bool {
        matches!(self.state, PartState::Voted(_))
    }

    /// An id that was sent once, and answered as forgotten, was not executed:
    /// no other copy of it is on its way. So it is as good as unknown to the home.
    pub(super) fn certain(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Refused(Refusal::Forgotten | Refusal::Unknown) if self.went_back => {
                Outcome::Refused(Refusal::Lost)
            }
            Outcome::Refused(Refusal::Forgotten) if !self.lost => {
                Outcome::Refused(Refusal::Unknown)
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: HomeId = HomeId(1);
    const THERE: HomeId = HomeId(2);

    fn over_both(here: PartState, there: PartState) -> InFlight {
        let part = |home| Part {
            home,
            evidence: Position(0),
            reads: Vec::new(),
            writes: Vec::new(),
            under: None,
        };
        let parts = Vec::from([part(HERE), part(THERE)]);
        let last = (Stamp::default(), false);
        let mut commit = InFlight::new(RequestId(1), parts, Vec::new(), last);
        commit.parts[0].state = here;
        commit.parts[1].state = there;
        commit
    }

    fn stamp(clock: u64, home: HomeId) -> Stamp {
        Stamp { clock, home }
    }

    fn committed(stamp: Stamp) -> PartState {
        let position = Position(7);
        PartState::Ended(Outcome::Committed { position, stamp })
    }

    /// An operator ended it here, and knew no other vote (rule R7).
    #[test]
    fn no_home_is_told_less_than_it_voted_for() {
        let (low, high) = (stamp(5, HERE), stamp(9, THERE));
        let ended = over_both(committed(low), PartState::Voted(high));
        assert_eq!(ended.decide(), Some(Decision::Commit(high)));
        let ended = over_both(committed(high), PartState::Voted(low));
        assert_eq!(ended.decide(), Some(Decision::Commit(high)));
    }

    /// Run again, it would count twice at the other home.
    #[test]
    fn what_an_operator_refused_after_all_votes_is_lost_and_not_run_again() {
        let refused = |refusal| PartState::Ended(Outcome::Refused(refusal));
        let there = committed(stamp(9, THERE));
        let mut mixed = over_both(refused(Refusal::Elsewhere), there);
        mixed.decision = Some(Decision::Commit(stamp(9, THERE)));
        assert_eq!(mixed.refusal(), Some((HERE, Refusal::Forgotten)));
        let forgotten = refused(Refusal::Forgotten);
        let mut known = over_both(forgotten, committed(stamp(9, THERE)));
        known.decision = Some(Decision::Commit(stamp(9, THERE)));
        assert_eq!(known.refusal(), None, "it is committed at both");
    }
}
