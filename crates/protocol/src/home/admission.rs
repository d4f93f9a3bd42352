//! What a child has asked for and got no answer to (rule 15). The home bounds it for each member that
//! is joined to it; a redirector bounds it for those below.

use crate::edge::admission::UnderWay;
use crate::edge::shares::Shares;
use crate::home::log::queue::OnDurable;
use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::{CommitId, EdgeId, NameId};

/// Commits and calls of each edge that wait for the disk. A site asks for all that are
/// below it, and has limited each of them: only members are limited here.
#[derive(Debug, Default)]
pub(super) struct Admission {
    by_edge: BTreeMap<EdgeId, UnderWay>,
    /// Commits and calls of each name, by whatever edge they came (rule R7).
    commits: Shares<NameId>,
    calls: Shares<NameId>,
    /// The outcomes that go down as soon as they may, and to whom.
    telling: BTreeSet<Reply>,
    /// The same of votes.
    voting: BTreeSet<Reply>,
}

/// To whom, of which commit.
type Reply = (EdgeId, CommitId);

impl Admission {
    /// An answer waits for the disk.
    pub(super) fn begin(&mut self, then: &OnDurable) {
        if let Some((replies, key)) = self.once(then) {
            replies.insert(key);
        }
        if let Some(edge) = then.edge()
            && let Some(count) = count_of(self.by_edge.entry(edge).or_default(), then)
        {
            *count += 1;
        }
        if let Some((shares, name)) = self.shares(then) {
            shares.take(Some(name), 1);
        }
    }

    /// The answer went down.
    pub(super) fn end(&mut self, then: &OnDurable) {
        if let Some((replies, key)) = self.once(then) {
            replies.remove(&key);
        }
        if let Some((shares, name)) = self.shares(then) {
            shares.give_back(Some(name), 1);
        }
        let Some(edge) = then.edge() else {
            return;
        };
        let Some(under_way) = self.by_edge.get_mut(&edge) else {
            return;
        };
        if let Some(count) = count_of(under_way, then) {
            *count -= 1;
        }
        if *under_way == UnderWay::default() {
            self.by_edge.remove(&edge);
        }
    }

    /// The shares that an answer is part of, and the name of the member that waits for it.
    fn shares(&mut self, then: &OnDurable) -> Option<(&mut Shares<NameId>, NameId)> {
        match then {
            OnDurable::Reach(reached) => {
                let (_, commit) = reached.origin?;
                Some((&mut self.commits, commit.member.name()))
            }
            OnDurable::Tell(_, commit, _)
            | OnDurable::TellAgain(_, commit, _)
            | OnDurable::Vote(_, commit, _)
            | OnDurable::Reject(_, commit, ..) => Some((&mut self.commits, commit.member.name())),
            OnDurable::Answer(_, call, _)
            | OnDurable::Outcome(_, call, ..)
            | OnDurable::Watermark(_, call) => Some((&mut self.calls, call.member.name())),
            OnDurable::NoPage(..)
            | OnDurable::Ask(..)
            | OnDurable::Recall(..)
            | OnDurable::Nothing => None,
        }
    }

    /// The commits of each name that wait for the disk.
    pub(super) fn commits(&self) -> &Shares<NameId> {
        &self.commits
    }

    /// The calls of each name that do.
    pub(super) fn calls(&self) -> &Shares<NameId> {
        &self.calls
    }

    /// The answers that go down once, however often a child asks before they may.
    fn once(&mut self, then: &OnDurable) -> Option<(&mut BTreeSet<Reply>, Reply)> {
        match then {
            OnDurable::Tell(edge, commit, _) | OnDurable::TellAgain(edge, commit, _) => {
                Some((&mut self.telling, (*edge, *commit)))
            }
            OnDurable::Vote(edge, commit, _) => Some((&mut self.voting, (*edge, *commit))),
            _ => None,
        }
    }

    /// Whether an outcome is to go down an edge already.
    pub(super) fn tells(&self, edge: EdgeId, commit: CommitId) -> bool {
        self.telling.contains(&(edge, commit))
    }

    /// Whether a vote is.
    pub(super) fn tells_vote(&self, edge: EdgeId, commit: CommitId) -> bool {
        self.voting.contains(&(edge, commit))
    }

    /// How many outcomes and votes are to go down.
    pub(super) fn telling(&self) -> usize {
        self.telling.len() + self.voting.len()
    }

    /// What an edge has waiting for the disk.
    pub(super) fn under_way(&self, edge: EdgeId) -> UnderWay {
        self.by_edge.get(&edge).copied().unwrap_or_default()
    }
}

/// The count that an answer is part of.
fn count_of<'a>(under_way: &'a mut UnderWay, then: &OnDurable) -> Option<&'a mut usize> {
    match then {
        OnDurable::Reach { .. }
        | OnDurable::Tell(..)
        | OnDurable::TellAgain(..)
        | OnDurable::Reject(..)
        | OnDurable::Vote(..) => Some(&mut under_way.commits),
        OnDurable::Answer(..) | OnDurable::Outcome(..) | OnDurable::Watermark(..) => {
            Some(&mut under_way.calls)
        }
        OnDurable::NoPage(..) | OnDurable::Ask(..) | OnDurable::Recall(..) | OnDurable::Nothing => {
            None
        }
    }
}
