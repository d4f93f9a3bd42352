//! Answers that homes keep back until readers with hard bounds have seen what they tell (rule C2).

use crate::member::Response;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::{CommitId, HomeId, Registration, RequestId};

/// The answer to one commit.
#[derive(Debug, Default)]
struct Answer {
    /// The homes that keep it back. Of those that have ended their part: the registration under which they are asked for the outcome.
    homes: BTreeMap<HomeId, Option<Registration>>,
    /// What the program is told then, once the commit has ended.
    response: Option<(RequestId, Response)>,
}

/// The answers that are kept back, by commit.
///
/// Invariant: the program is told how a commit ended when each home that said *withheld* has answered the question for its outcome, or
/// has gone back in time.
#[derive(Debug, Default)]
pub(super) struct Withheld(BTreeMap<CommitId, Answer>);

impl Withheld {
    /// A home says that its answer to a commit follows.
    pub(super) fn told(&mut self, home: HomeId, commit: CommitId) {
        let answer = self.0.entry(commit).or_default();
        answer.homes.insert(home, None);
    }

    /// A home has ended its part of a commit. Whether it keeps the answer back: then it is to be asked for that.
    pub(super) fn ended(
        &mut self,
        home: HomeId,
        commit: CommitId,
        registration: Registration,
    ) -> bool {
        let answer = self.0.get_mut(&commit);
        let at = answer.and_then(|answer| answer.homes.get_mut(&home));
        let is_kept = at.is_some();
        at.into_iter().for_each(|at| *at = Some(registration));
        is_kept
    }

    /// A home has answered, or it refused the commit. Returns what the program is told, if nobody else keeps it back.
    pub(super) fn released(
        &mut self,
        home: HomeId,
        commit: CommitId,
    ) -> Option<(RequestId, Response)> {
        let answer = self.0.get_mut(&commit)?;
        answer.homes.remove(&home);
        if !answer.homes.is_empty() {
            return None;
        }
        self.0.remove(&commit)?.response
    }

    /// The commit has ended. Returns the answer, if nobody keeps it back.
    pub(super) fn answer(
        &mut self,
        commit: CommitId,
        response: (RequestId, Response),
    ) -> Option<(RequestId, Response)> {
        match self.0.get_mut(&commit) {
            Some(answer) => {
                answer.response = Some(response);
                None
            }
            None => Some(response),
        }
    }

    /// A stream of a home begins. What is on its way there is asked for anyway, or the home says anew that its answer follows.
    pub(super) fn stream_began(&mut self, home: HomeId, is_asked: impl Fn(CommitId) -> bool) {
        self.0.retain(|commit, answer| {
            if answer.homes.get(&home) == Some(&None) && is_asked(*commit) {
                answer.homes.remove(&home);
            }
            !answer.homes.is_empty() || answer.response.is_some()
        });
    }

    /// A home has gone back in time: it owes nothing any more (rule R9). Returns what programs are told.
    pub(super) fn went_back(&mut self, home: HomeId) -> Vec<(RequestId, Response)> {
        let of_home = self
            .0
            .iter()
            .filter(|(_, answer)| answer.homes.contains_key(&home));
        let commits: Vec<CommitId> = of_home.map(|(commit, _)| *commit).collect();
        let released = commits.into_iter();
        released
            .filter_map(|commit| self.released(home, commit))
            .collect()
    }

    /// The homes that are to be asked, and are not.
    pub(super) fn to_ask(
        &self,
        asked: &BTreeSet<(HomeId, CommitId)>,
    ) -> Vec<(HomeId, CommitId, Registration)> {
        let of = |(commit, answer): (&CommitId, &Answer)| {
            let ended = answer.homes.iter();
            let ended = ended.filter_map(|(home, at)| Some((*home, *commit, (*at)?)));
            ended.collect::<Vec<_>>()
        };
        let all = self.0.iter().flat_map(of);
        all.filter(|(home, commit, _)| !asked.contains(&(*home, *commit)))
            .collect()
    }

    /// Whether a home keeps back the answer to a commit that it has ended.
    pub(super) fn is_asked(&self, home: HomeId, commit: CommitId) -> bool {
        let answer = self.0.get(&commit);
        let at = answer.and_then(|answer| answer.homes.get(&home));
        at.is_some_and(Option::is_some)
    }

    /// The program wants the response to a request no more.
    pub(super) fn forget(&mut self, request_id: RequestId) {
        for answer in self.0.values_mut() {
            answer.response.take_if(|(of, _)| *of == request_id);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::MemberId;

    const HERE: HomeId = HomeId(1);
    const THERE: HomeId = HomeId(2);
    const COMMIT: CommitId = CommitId {
        member: MemberId(1),
        sequence: 1,
    };

    fn response() -> (RequestId, Response) {
        (RequestId(7), Response::Busy)
    }

    #[test]
    fn the_program_is_told_when_each_home_that_keeps_it_back_has_answered() {
        let mut withheld = Withheld::default();
        assert!(withheld.answer(COMMIT, response()).is_some());
        withheld.told(HERE, COMMIT);
        withheld.told(THERE, COMMIT);
        assert!(withheld.ended(HERE, COMMIT, Registration(3)));
        assert!(withheld.answer(COMMIT, response()).is_none());
        let to_ask = withheld.to_ask(&BTreeSet::new());
        assert_eq!(to_ask, [(HERE, COMMIT, Registration(3))]);
        assert!(withheld.to_ask(&[(HERE, COMMIT)].into()).is_empty());
        assert!(withheld.released(HERE, COMMIT).is_none());
        assert!(withheld.ended(THERE, COMMIT, Registration(3)));
        assert!(withheld.is_asked(THERE, COMMIT));
        assert_eq!(withheld.released(THERE, COMMIT), Some(response()));
        assert!(!withheld.ended(HERE, COMMIT, Registration(3)));
        assert_eq!(withheld.len(), 0);
    }

    #[test]
    fn a_new_stream_asks_again_and_a_home_that_goes_back_owes_nothing() {
        let mut withheld = Withheld::default();
        withheld.told(HERE, COMMIT);
        withheld.stream_began(HERE, |_| false);
        assert_eq!(withheld.len(), 1, "it has voted, and says so no more");
        withheld.stream_began(HERE, |_| true);
        assert_eq!(withheld.len(), 0);
        withheld.told(HERE, COMMIT);
        withheld.ended(HERE, COMMIT, Registration(3));
        withheld.answer(COMMIT, response());
        withheld.stream_began(HERE, |_| true);
        assert_eq!(withheld.went_back(HERE), [response()]);
        withheld.told(HERE, COMMIT);
        withheld.answer(COMMIT, response());
        withheld.forget(RequestId(7));
        assert!(withheld.went_back(HERE).is_empty());
    }
}
