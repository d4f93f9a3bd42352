//! A member's commits that have not ended everywhere (rules 6, 10 and 11).

use crate::member::homes::Homes;
use crate::member::in_flight::{AtPart, InFlight};
use crate::member::overlay::{self, Overlay};
use crate::member::withheld::Withheld;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::{
    COMMIT_BYTES_MAX, COMMITS_IN_FLIGHT_MAX, DEPENDS_ON_MAX, PARTICIPANTS_MAX,
};
use thorp_model::planted::Bug;
use thorp_model::{CommitId, HomeId, InvalidCommit, MemberId, ObjectId, Part, Refusal, planted};

/// The commits in flight, in the order in which the program made them.
///
/// Invariant: an id names one commit for ever. At most [`COMMITS_IN_FLIGHT_MAX`] are in flight. None that a home may
/// have to answer for lies so far below the last id that the home might forget its outcome (rule 11).
#[derive(Debug)]
pub(super) struct Commits {
    member: MemberId,
    sequence: u64,
    in_flight: BTreeMap<CommitId, InFlight>,
    pub(super) withheld: Withheld,
}

impl Commits {
    /// A member that has committed nothing yet.
    pub(super) fn new(member: MemberId) -> Self {
        Commits {
            member,
            sequence: 0,
            in_flight: BTreeMap::new(),
            withheld: Withheld::default(),
        }
    }

    /// Commits that have not ended everywhere.
    pub(super) fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// Commits over several homes whose outcome is known here, and not yet at each of their homes.
    pub(super) fn untold(&self) -> usize {
        let commits = self.in_flight.values();
        commits.filter(|commit| commit.is_to_tell()).count()
    }

    /// The id of the next commit.
    pub(super) fn next_id(&mut self) -> CommitId {
        self.sequence += 1;
        CommitId {
            member: self.member,
            sequence: self.sequence,
        }
    }

    /// A commit is in flight from now on.
    pub(super) fn insert(&mut self, id: CommitId, commit: InFlight) {
        self.in_flight.insert(id, commit);
    }

    /// A commit has ended everywhere.
    pub(super) fn remove(&mut self, id: CommitId) -> Option<InFlight> {
        self.in_flight.remove(&id)
    }

    /// A commit in flight.
    pub(super) fn get(&self, id: CommitId) -> Option<&InFlight> {
        self.in_flight.get(&id)
    }

    /// The same.
    pub(super) fn get_mut(&mut self, id: CommitId) -> Option<&mut InFlight> {
        self.in_flight.get_mut(&id)
    }

    /// A commit's part at one of its homes.
    pub(super) fn part_mut(&mut self, home: HomeId, id: CommitId) -> Option<&mut AtPart> {
        self.get_mut(id)?.at(home)
    }

    /// The parts of a commit; none if it is not in flight.
    pub(super) fn parts(&self, id: CommitId) -> &[AtPart] {
        self.get(id).map_or(&[][..], InFlight::parts)
    }

    /// The commits with a part at a home that is as wanted and has not ended.
    pub(super) fn open_at(&self, home: HomeId, wanted: impl Fn(&AtPart) -> bool) -> Vec<CommitId> {
        let open = |at: &AtPart| at.home() == home && at.is_open();
        let commits = self.in_flight.iter();
        commits
            .filter(|(_, commit)| commit.parts().iter().any(|at| open(at) && wanted(at)))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The commits that wait to be sent to a home.
    pub(super) fn waiting_at(&self, home: HomeId) -> Vec<CommitId> {
        self.open_at(home, AtPart::is_waiting)
    }

    /// The commits with a part at a home that may go when there is a way to that home: they wait to be sent there, or to
    /// another of their homes, which has dropped its part (rule R2). A commit goes to all of its homes at once.
    pub(super) fn to_send_by(&self, home: HomeId) -> Vec<CommitId> {
        let commits = self.in_flight.iter();
        let waits = |commit: &InFlight| {
            let mut parts = commit.parts().iter();
            parts.any(|at| at.home() == home) && commit.parts().iter().any(AtPart::is_waiting)
        };
        let waiting = commits.filter(|(_, commit)| waits(commit));
        waiting.map(|(id, _)| *id).collect()
    }

    /// The parts whose answers were lost, and which no home is asked for.
    pub(super) fn unasked(&self, asked: &BTreeSet<(HomeId, CommitId)>) -> Vec<(HomeId, CommitId)> {
        let commits = self.in_flight.iter();
        commits
            .flat_map(|(id, commit)| commit.parts().iter().map(|at| (*id, at)))
            .filter(|(id, at)| at.is_lost() && !asked.contains(&(at.home(), *id)))
            .map(|(id, at)| (at.home(), id))
            .collect()
    }

    /// Whether a commit, whose id is the last one, may be in flight.
    pub(super) fn may_commit(&self, commit: &InFlight) -> Result<(), Refusal> {
        let parts = commit.parts();
        let ascending = parts.windows(2).all(|pair| pair[0].home() < pair[1].home());
        if !ascending || parts.is_empty() || parts.len() > PARTICIPANTS_MAX {
            let reason = InvalidCommit::Participants;
            return Err(Refusal::Invalid { reason });
        }
        let bytes: usize = parts.iter().map(|at| at.bytes).sum();
        if bytes > COMMIT_BYTES_MAX {
            let reason = InvalidCommit::TooLarge;
            return Err(Refusal::Invalid { reason });
        }
        let outruns = parts.iter().any(|at| self.would_outrun(at.home()));
        // Some of these are going to be delivered, and are evidence no more then.
        let names = |at: &AtPart| commit.names_at(at.home()).count();
        let names_many = parts.iter().any(|at| names(at) > DEPENDS_ON_MAX);
        if self.len() + self.withheld.len() >= COMMITS_IN_FLIGHT_MAX || outruns || names_many {
            return Err(Refusal::busy());
        }
        Ok(())
    }

    /// Whether the last id lies so far above a commit that waits for its
    /// answer that the home might forget that one's outcome (rule 11). What a home
    /// has voted for it keeps, however far its member goes on.
    fn would_outrun(&self, home: HomeId) -> bool {
        let mut open = self.open_at(home, |at| !at.has_voted()).into_iter();
        open.any(|id| self.is_outrun(id) && !self.may_give_way(id))
    }

    fn is_outrun(&self, id: CommitId) -> bool {
        self.sequence - id.sequence >= COMMITS_IN_FLIGHT_MAX as u64
    }

    /// Whether it waits for the way to one of several homes: nothing of it was sent.
    fn may_give_way(&self, id: CommitId) -> bool {
        let commit = self.get(id);
        commit.is_some_and(|commit| {
            commit.is_shared() && commit.parts().iter().all(AtPart::is_waiting)
        })
    }

    /// The commits at a home that have to give way to the last id: what waits for one home must not hold up the others.
    pub(super) fn giving_way(&self, home: HomeId) -> Vec<CommitId> {
        let mut waiting = self.waiting_at(home);
        waiting.retain(|id| self.is_outrun(*id) && self.may_give_way(*id));
        waiting
    }

    /// Whether a commit has to wait for an earlier one that its program has made: one over which it writes, and which is
    /// not shown any more, so that it names it no more. What was made first would stay otherwise, if it comes last.
    pub(super) fn writes_over_withdrawn(&self, home: HomeId, id: CommitId, homes: &Homes) -> bool {
        let Some(at) = self.parts(id).iter().find(|at| at.home() == home) else {
            return false;
        };
        let shown = homes.get(home).map(|replica| &replica.pages.overlay);
        let mut hidden = self.hidden_before(home, id, shown);
        hidden.any(|earlier| writes_over(&at.part, earlier))
            && !planted::is(Bug::WithdrawnOvertaken)
    }

    /// The same at one of the other homes of a commit, all parts of which are sent at once; or what it names there is not sent yet.
    pub(super) fn waits_elsewhere(&self, home: HomeId, id: CommitId, homes: &Homes) -> bool {
        let Some(commit) = self.get(id) else {
            return false;
        };
        let is_waiting = |named: CommitId| self.parts(named).iter().any(AtPart::is_waiting);
        let others = commit.parts().iter().map(AtPart::home);
        let mut others = others.filter(|of| *of != home);
        let waits =
            |of| self.writes_over_withdrawn(of, id, homes) || commit.names_at(of).any(is_waiting);
        others.any(waits) && !planted::is(Bug::OtherHomesAhead)
    }

    /// What a program has committed here before another commit, was shown, and is not any more, and not answered.
    pub(super) fn hidden_before<'a>(
        &'a self,
        home: HomeId,
        id: CommitId,
        shown: Option<&'a Overlay>,
    ) -> impl Iterator<Item = &'a Part> + 'a {
        let earlier = self
            .in_flight
            .range(..id)
            .filter(|(_, commit)| commit.early);
        let hidden = earlier.filter(move |(id, _)| shown.is_some_and(|own| !own.has(**id)));
        let parts = hidden.flat_map(|(_, commit)| commit.parts());
        let open = parts.filter(move |at| at.home() == home && at.is_open());
        open.map(|at| &at.part)
    }
}

fn writes_over(later: &Part, earlier: &Part) -> bool {
    let earlier: BTreeSet<ObjectId> = overlay::objects(earlier).collect();
    overlay::objects(later).any(|object| earlier.contains(&object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::in_flight::PartState;
    use alloc::vec;
    use thorp_model::{Position, RequestId, Stamp};

    const HOME: HomeId = HomeId(1);
    const OTHER: HomeId = HomeId(2);

    fn commit(homes: &[HomeId]) -> InFlight {
        let part = |home: &HomeId| Part {
            home: *home,
            evidence: Position(0),
            reads: Vec::new(),
            writes: Vec::new(),
            under: None,
        };
        let parts = homes.iter().map(part).collect();
        InFlight::new(RequestId(1), parts, Vec::new(), (Stamp::default(), false))
    }

    /// A commit in flight, and after it so many ids that it is outrun.
    fn outrun(homes: &[HomeId]) -> (Commits, CommitId) {
        let mut commits = Commits::new(MemberId(1));
        let id = commits.next_id();
        commits.insert(id, commit(homes));
        for _ in 0..COMMITS_IN_FLIGHT_MAX {
            commits.next_id();
        }
        (commits, id)
    }

    #[test]
    fn parts_are_in_the_order_of_their_homes() {
        let commits = Commits::new(MemberId(1));
        assert!(commits.may_commit(&commit(&[HOME, OTHER])).is_ok());
        for homes in [&[][..], &[OTHER, HOME], &[HOME, HOME]] {
            assert!(commits.may_commit(&commit(homes)).is_err());
        }
    }

    #[test]
    fn no_commit_outruns_one_that_waits_for_its_answer_until_its_home_has_voted() {
        let (mut commits, id) = outrun(&[HOME]);
        assert!(commits.may_commit(&commit(&[HOME])).is_err());
        assert!(commits.may_commit(&commit(&[OTHER])).is_ok());
        let at = commits.part_mut(HOME, id).expect("it is in flight");
        at.state = PartState::Voted(Stamp::default());
        assert!(commits.may_commit(&commit(&[HOME])).is_ok());
    }

    #[test]
    fn a_shared_commit_of_which_nothing_was_sent_gives_way() {
        let (mut commits, id) = outrun(&[HOME, OTHER]);
        assert_eq!(commits.giving_way(HOME), vec![id]);
        assert!(commits.may_commit(&commit(&[HOME])).is_ok());
        let at = commits.part_mut(OTHER, id).expect("it is in flight");
        at.state = PartState::Sent;
        assert_eq!(commits.giving_way(HOME), vec![]);
        assert!(commits.may_commit(&commit(&[HOME])).is_err());
    }
}
