//! What a child has asked for and was not told: bounded for each member that is
//! joined to the home itself, as a redirector bounds it for those below (rule 15).

use crate::home::log::queue::OnDurable;
use alloc::collections::{BTreeMap, BTreeSet};
use thorp_model::{CommitId, EdgeId};

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

    /// Commits of an edge that wait for the disk.
    pub(super) fn commits(&self, edge: EdgeId) -> usize {
        self.of(edge).commits
    }

    /// Calls of an edge that do.
    pub(super) fn calls(&self, edge: EdgeId) -> usize {
        self.of(edge).calls
    }

    fn of(&self, edge: EdgeId) -> Counts {
        self.counts.get(&edge).copied().unwrap_or_default()
    }
}
