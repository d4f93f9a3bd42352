//! The homes that a member knows.

use crate::member::MemberConfig;
use crate::member::replica::Replica;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thorp_model::limits::CLAIMS_MAX;
use thorp_model::planted::Bug;
use thorp_model::{Claim, CommitId, EdgeId, HomeId, Part, Registration, Stamp, planted};

/// What a member knows of each home.
///
/// Invariant: a home's replica is there from the first time that the program or a parent names the home. It never goes.
#[derive(Debug)]
pub(super) struct Homes {
    config: MemberConfig,
    replicas: BTreeMap<HomeId, Replica>,
}

impl Homes {
    /// No home is known yet.
    pub(super) fn new(config: MemberConfig) -> Self {
        Homes {
            config,
            replicas: BTreeMap::new(),
        }
    }

    /// A home's replica, which begins if it is not there.
    pub(super) fn at(&mut self, home: HomeId) -> &mut Replica {
        let config = &self.config;
        let replica = self.replicas.entry(home);
        replica.or_insert_with(|| Replica::new(home, config))
    }

    /// A home's replica, if the home is known.
    pub(super) fn get(&self, home: HomeId) -> Option<&Replica> {
        self.replicas.get(&home)
    }

    /// The same.
    pub(super) fn get_mut(&mut self, home: HomeId) -> Option<&mut Replica> {
        self.replicas.get_mut(&home)
    }

    /// All of them, in the order of their homes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HomeId, &Replica)> + Clone {
        self.replicas.iter().map(|(home, replica)| (*home, replica))
    }

    /// The same.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (HomeId, &mut Replica)> {
        let replicas = self.replicas.iter_mut();
        replicas.map(|(home, replica)| (*home, replica))
    }

    /// What the member holds of each home, and what that rests on (rule R9). At most [`CLAIMS_MAX`] of them are claimed.
    pub(super) fn claims(&self) -> Vec<(HomeId, Claim)> {
        let all = self.iter();
        let claims = all.filter_map(|(home, replica)| Some((home, replica.up.claim()?)));
        claims.take(CLAIMS_MAX).collect()
    }

    /// The same of one home.
    pub(super) fn claim_of(&self, home: HomeId) -> Vec<(HomeId, Claim)> {
        let claim = self.get(home).and_then(|replica| replica.up.claim());
        claim.map(|claim| (home, claim)).into_iter().collect()
    }

    /// A home that has gone back since a part was read there.
    pub(super) fn left(&self, parts: &[Part], histories: &[u64]) -> Option<HomeId> {
        let histories = histories.iter().copied().chain(core::iter::repeat(0));
        let mut parts = parts.iter().map(|part| part.home).zip(histories);
        let history = |home| self.get(home).map_or(0, |replica| replica.history);
        parts.find_map(|(home, read)| (history(home) != read).then_some(home))
    }

    /// The edge that a home's live stream comes down on.
    pub(super) fn edge(&self, home: HomeId) -> Option<EdgeId> {
        self.get(home)?.up.edge
    }

    /// Whether a home's live stream comes down on this edge.
    pub(super) fn is_on(&self, home: HomeId, edge: EdgeId) -> bool {
        self.edge(home) == Some(edge)
    }

    /// The edge and the registration of each home, once each has registered this member
    /// and can be reached: nobody votes, and locks, for what cannot be sent to the others.
    pub(super) fn routes(
        &self,
        homes: impl Iterator<Item = HomeId>,
    ) -> Option<Vec<(EdgeId, Registration)>> {
        let route = |home| {
            let replica = self.get(home)?;
            Some((replica.up.edge?, replica.registration?))
        };
        homes.map(route).collect()
    }

    /// The commits that a transaction depends on at its homes (rules 4 and 14, trap 23). It has read their values, or it
    /// overwrites them blindly, and the stream did not deliver them within its evidence. The program did
    /// not know the stamps of the delivered ones when it read their values. The highest of these comes with the commits:
    /// the transaction stands above it (rule 5).
    pub(super) fn depends_on(
        &self,
        parts: &[Part],
        read: &[(HomeId, CommitId)],
    ) -> (Vec<(HomeId, CommitId)>, Stamp) {
        let (mut names, mut stamp) = (Vec::new(), Stamp::default());
        for part in parts {
            let here = read.iter().filter(|(home, _)| *home == part.home);
            let known = self.get(part.home).map(Replica::speculation);
            let over = known
                .iter()
                .flat_map(|known| known.written_over(part, read));
            for id in here.map(|(_, id)| *id).chain(over) {
                let delivered = known.as_ref();
                let delivered =
                    delivered.and_then(|known| known.delivered_within(id, part.evidence));
                match delivered {
                    Some(_) if planted::is(Bug::EarlyStampNotKnown) => {}
                    Some(past) => stamp = stamp.max(past),
                    None if names.contains(&(part.home, id)) => {}
                    None => names.push((part.home, id)),
                }
            }
        }
        (names, stamp)
    }
}
