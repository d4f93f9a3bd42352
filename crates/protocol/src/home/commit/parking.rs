//! Commits that wait for pages from disk, bounded by their number and by what
//! they keep in memory (rule 15).

use crate::edge::shares::Shares;
use crate::home::saved::Saving;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::limits::PAGE_BYTES;
use thorp_model::planted::Bug;
use thorp_model::{CommitId, CommitRequest, EdgeId, NameId, PageId, Principal, planted};

/// A commit that waits for pages from disk.
#[derive(Debug)]
pub(in crate::home) struct Parked {
    pub(in crate::home) edge: EdgeId,
    /// Whose rights count when it is judged.
    pub(in crate::home) who: Principal,
    /// The node whose edge brought it, while that is a child.
    pub(in crate::home) carrier: Option<NameId>,
    pub(in crate::home) request: CommitRequest,
    /// The update that it is, if a log sent it.
    pub(in crate::home) saving: Option<Saving>,
    /// All pages that it was found to need: they stay in memory until it is judged.
    pub(in crate::home) needs: BTreeSet<PageId>,
    /// Those of them that have not come.
    pub(in crate::home) missing: BTreeSet<PageId>,
}

impl Parked {
    /// The name of its member.
    fn name(&self) -> NameId {
        self.request.id.member.name()
    }

    /// What it keeps in memory: itself, and every page that may not go before it.
    fn bytes(&self) -> usize {
        PARKED_ENTRY_BYTES + self.request.bytes() + self.needs.len() * PAGE_BYTES
    }
}

/// Tells the commits that wait apart, in the order in which they began to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Place(u64);

/// All commits that wait.
#[derive(Debug)]
pub(in crate::home) struct Parking {
    commits: BTreeMap<Place, Parked>,
    last: Place,
    /// Who needs each page.
    by_page: BTreeMap<PageId, BTreeSet<Place>>,
    by_edge: BTreeMap<EdgeId, BTreeSet<Place>>,
    bytes: usize,
    /// Commits and bytes of each name (rule R7).
    commits_of: Shares<NameId>,
    bytes_of: Shares<NameId>,
    commits_max: usize,
    bytes_max: usize,
}

impl Parking {
    /// Nothing waits. One commit alone may wait whatever its size.
    pub(in crate::home) fn new(commits_max: usize, bytes_max: usize) -> Self {
        Parking {
            commits: BTreeMap::new(),
            last: Place::default(),
            by_page: BTreeMap::new(),
            by_edge: BTreeMap::new(),
            bytes: 0,
            commits_of: Shares::default(),
            bytes_of: Shares::default(),
            commits_max,
            bytes_max,
        }
    }

    /// How many wait.
    pub(in crate::home) fn len(&self) -> usize {
        self.commits.len()
    }

    /// How many of an edge wait.
    pub(in crate::home) fn of(&self, edge: EdgeId) -> usize {
        self.by_edge.get(&edge).map_or(0, BTreeSet::len)
    }

    /// How many of a name wait.
    pub(in crate::home) fn of_name(&self, name: NameId) -> u64 {
        self.commits_of.of(name)
    }

    /// Bytes that they keep in memory.
    pub(in crate::home) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Parks a commit. False at a limit, and if its name had more than it leaves free: then it is not parked.
    pub(in crate::home) fn park(&mut self, parked: Parked) -> bool {
        let (own, name) = (parked.bytes(), parked.name());
        let bytes = self.bytes + own;
        let is_shared = self.has_share(name, own as u64);
        let fits = (bytes <= self.bytes_max && is_shared)
            || self.commits.is_empty()
            || planted::is(Bug::ParkedBytesNotCounted);
        if !fits || self.commits.len() >= self.commits_max {
            return false;
        }
        self.bytes = bytes;
        self.commits_of.take(Some(name), 1);
        self.bytes_of.take(Some(name), own as u64);
        self.last.0 += 1;
        for page in &parked.needs {
            self.by_page.entry(*page).or_default().insert(self.last);
        }
        let of_edge = self.by_edge.entry(parked.edge).or_default();
        of_edge.insert(self.last);
        self.commits.insert(self.last, parked);
        true
    }

    /// Whether a name may park a commit of so many bytes.
    fn has_share(&self, name: NameId, bytes: u64) -> bool {
        let (commits_max, bytes_max) = (self.commits_max as u64, self.bytes_max as u64);
        let has_place = self.commits_of.allows(name, 1, (commits_max, u64::MAX));
        let has_bytes = self.bytes_of.allows(name, bytes, (bytes_max, u64::MAX));
        (has_place && has_bytes) || planted::is(Bug::ProcessesNotCounted)
    }

    /// A page has come: takes out those that missed nothing else, to be judged
    /// again. The others would only find out what else they miss.
    pub(in crate::home) fn take_complete(&mut self, page: PageId) -> Vec<Parked> {
        let places = self.by_page.get(&page).cloned().unwrap_or_default();
        let mut complete = Vec::new();
        for place in places {
            if let Some(parked) = self.commits.get_mut(&place)
                && parked.missing.remove(&page)
                && parked.missing.is_empty()
            {
                complete.extend(self.take(place));
            }
        }
        complete
    }

    /// Drops what came from an edge that is gone.
    pub(in crate::home) fn forget(&mut self, edge: EdgeId) {
        for place in self.by_edge.get(&edge).cloned().unwrap_or_default() {
            self.take(place);
        }
    }

    /// The pages that a commit waits for, if it does.
    pub(in crate::home) fn missing_of(&self, id: CommitId) -> Option<Vec<PageId>> {
        let mut parked = self.commits.values();
        let found = parked.find(|parked| parked.request.id == id)?;
        Some(found.missing.iter().copied().collect())
    }

    /// Whether any of them needs a page.
    pub(in crate::home) fn needs(&self, page: PageId) -> bool {
        self.by_page.contains_key(&page)
    }

    fn take(&mut self, place: Place) -> Option<Parked> {
        let parked = self.commits.remove(&place)?;
        self.bytes -= parked.bytes();
        self.commits_of.give_back(Some(parked.name()), 1);
        self.bytes_of
            .give_back(Some(parked.name()), parked.bytes() as u64);
        for page in &parked.needs {
            leave(&mut self.by_page, *page, place);
        }
        leave(&mut self.by_edge, parked.edge, place);
        Some(parked)
    }
}

fn leave<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Place>>, key: K, place: Place) {
    if let Some(places) = index.get_mut(&key) {
        places.remove(&place);
        if places.is_empty() {
            index.remove(&key);
        }
    }
}

/// What a parked commit is charged beside its request and its pages, in bytes.
const PARKED_ENTRY_BYTES: usize = 256;
