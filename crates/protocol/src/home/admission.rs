//! What a child has asked for and was not told: bounded for each member that is
//! joined to the home itself, as a redirector bounds it for those below (rule 15).

use crate::home::{Home, OnDurable, Outbox};
use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::limits::{CALLS_PER_CHILD_MAX, COMMITS_IN_FLIGHT_MAX};
use thorp_model::planted::Bug;
use thorp_model::{CommitId, EdgeId, NodeKind, Note, planted};

/// Commits and calls of each edge that wait for the disk.
#[derive(Debug, Default)]
pub(super) struct Admission {
    counts: BTreeMap<EdgeId, Counts>,
    /// Whose outcome is told to whom as soon as it may.
    telling: BTreeSet<Told>,
    /// Whose vote is.
    voting: BTreeSet<Told>,
}

/// To whom, of which commit.
type Told = (EdgeId, CommitId);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    commits: usize,
    calls: usize,
}

impl Counts {
    fn of(&mut self, then: &OnDurable) -> Option<&mut usize> {
        match then {
            OnDurable::Reach { .. } | OnDurable::Tell(..) | OnDurable::Vote(..) => {
                Some(&mut self.commits)
            }
            OnDurable::Answer(..) | OnDurable::Watermark(..) => Some(&mut self.calls),
            OnDurable::NoPage(..) | OnDurable::Nothing => None,
        }
    }
}

impl Admission {
    /// Something is to be told later.
    pub(super) fn begin(&mut self, then: &OnDurable) {
        if let Some((told, key)) = self.once(then) {
            told.insert(key);
        }
        if let Some(edge) = then.edge()
            && let Some(count) = self.counts.entry(edge).or_default().of(then)
        {
            *count += 1;
        }
    }

    /// It is told.
    pub(super) fn end(&mut self, then: &OnDurable) {
        if let Some((told, key)) = self.once(then) {
            told.remove(&key);
        }
        let Some(edge) = then.edge() else {
            return;
        };
        let Some(counts) = self.counts.get_mut(&edge) else {
            return;
        };
        if let Some(count) = counts.of(then) {
            *count -= 1;
        }
        if counts.commits + counts.calls == 0 {
            self.counts.remove(&edge);
        }
    }

    /// What is told once, however often it is asked for before it may be told.
    fn once(&mut self, then: &OnDurable) -> Option<(&mut BTreeSet<Told>, Told)> {
        match then {
            OnDurable::Tell(edge, commit, _) => Some((&mut self.telling, (*edge, *commit))),
            OnDurable::Vote(edge, commit, _) => Some((&mut self.voting, (*edge, *commit))),
            _ => None,
        }
    }

    /// Whether an outcome is to be told to somebody already.
    pub(super) fn tells(&self, edge: EdgeId, commit: CommitId) -> bool {
        self.telling.contains(&(edge, commit))
    }

    /// Whether a vote is.
    pub(super) fn tells_vote(&self, edge: EdgeId, commit: CommitId) -> bool {
        self.voting.contains(&(edge, commit))
    }

    /// How many outcomes and votes are to be told.
    pub(super) fn telling(&self) -> usize {
        self.telling.len() + self.voting.len()
    }

    fn of(&self, edge: EdgeId) -> Counts {
        self.counts.get(&edge).copied().unwrap_or_default()
    }
}

impl OnDurable {
    /// The edge that asked for it.
    fn edge(&self) -> Option<EdgeId> {
        match self {
            OnDurable::Reach { origin, .. } => origin.map(|(edge, _)| edge),
            OnDurable::Tell(edge, ..)
            | OnDurable::Vote(edge, ..)
            | OnDurable::Answer(edge, ..)
            | OnDurable::Watermark(edge, _) => Some(*edge),
            OnDurable::NoPage(..) | OnDurable::Nothing => None,
        }
    }
}

impl Home {
    /// Whether a member has as many commits under way as it may.
    pub(super) fn has_all_commits(&self, edge: EdgeId, outbox: &mut Outbox) -> bool {
        let counted = self.commits_of(edge) >= COMMITS_IN_FLIGHT_MAX;
        self.is_limited(edge, counted, outbox)
    }

    /// Whether a member waits for more than its commits can be answered with: each of them by a
    /// delivery, and by what is told when it decides.
    pub(super) fn has_all_answers(&self, edge: EdgeId) -> bool {
        self.is_member(edge) && self.commits_of(edge) >= 2 * COMMITS_IN_FLIGHT_MAX
    }

    /// Whether a member has as many calls under way as it may.
    pub(super) fn has_all_calls(&self, edge: EdgeId, outbox: &mut Outbox) -> bool {
        let counted = self.admission.of(edge).calls >= CALLS_PER_CHILD_MAX;
        self.is_limited(edge, counted, outbox)
    }

    /// A site asks for all that are below it: it has limited each of them.
    fn is_limited(&self, edge: EdgeId, counted: bool, outbox: &mut Outbox) -> bool {
        let is_limited = counted && self.is_member(edge) && !planted::is(Bug::ChildNotLimited);
        if is_limited {
            outbox.note(Note::ChildLimited);
        }
        is_limited
    }

    pub(super) fn is_member(&self, edge: EdgeId) -> bool {
        let child = self.children.get(edge);
        child.is_some_and(|child| child.kind == NodeKind::Member)
    }

    fn commits_of(&self, edge: EdgeId) -> usize {
        self.parking.of(edge) + self.admission.of(edge).commits
    }

    /// The most commits, and the most calls, that one member has under way.
    pub(super) fn most_under_way(&self) -> (usize, usize) {
        let edges = self.children.edges();
        let members = edges.filter(|edge| self.is_member(*edge));
        members.fold((0, 0), |(commits, calls), edge| {
            let under_way = self.admission.of(edge);
            (
                commits.max(self.commits_of(edge)),
                calls.max(under_way.calls),
            )
        })
    }
}
