//! The homes that a member knows, and whether they can be reached.

use super::requests::Requests;
use crate::limits::RETRY_PAUSE;
use crate::lock::lock;
use crate::{Error, Result};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};
use thorp_model::{EdgeId, Generation, HomeId, HomeNames, Incarnation};
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Homes {
    known: Mutex<Vec<KnownHome>>,
    /// What the site at the other end of an edge has said that it is to reach.
    told: Mutex<Option<(EdgeId, HomeNames)>>,
    changed: watch::Sender<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct KnownHome {
    pub(crate) id: HomeId,
    pub(crate) name: String,
    /// The edge that its stream comes down on, while it is live.
    pub(crate) edge: Option<EdgeId>,
    /// How often an operator has opened it as closed (rule R9).
    pub(crate) incarnation: Incarnation,
    /// When this member first heard of that, if it was open before.
    pub(crate) reopened: Option<SystemTime>,
}

impl Homes {
    pub(crate) fn new() -> Self {
        Homes {
            known: Mutex::default(),
            told: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// A home's stream has begun. Of the homes with its name it is the last from now on.
    pub(crate) fn began(&self, id: HomeId, name: String, edge: EdgeId, incarnation: Incarnation) {
        let mut known = lock(&self.known);
        let before = known.iter().find(|home| home.id == id);
        let reopened = before.and_then(|before| match before.incarnation == incarnation {
            true => before.reopened,
            false => Some(SystemTime::now()),
        });
        known.retain(|home| home.id != id);
        known.push(KnownHome {
            id,
            name,
            edge: Some(edge),
            incarnation,
            reopened,
        });
        drop(known);
        self.changed.send_modify(|count| *count += 1);
    }

    /// A home's stream has ended.
    pub(crate) fn ended(&self, id: HomeId) {
        let mut known = lock(&self.known);
        let mut homes = known.iter_mut();
        if let Some(home) = homes.find(|home| home.id == id) {
            home.edge = None;
        }
        drop(known);
        self.changed.send_modify(|count| *count += 1);
    }

    /// The site has said which homes it is to reach.
    pub(crate) fn told(&self, edge: EdgeId, homes: HomeNames) {
        *lock(&self.told) = Some((edge, homes));
        self.changed.send_modify(|count| *count += 1);
    }

    /// The homes that the site on this edge is to reach, if it has said so. Another site may be to reach others.
    pub(crate) fn names_told(&self, edge: EdgeId) -> Option<HomeNames> {
        let told = lock(&self.told).clone();
        told.filter(|(of, _)| *of == edge).map(|(_, homes)| homes)
    }

    pub(crate) fn all(&self) -> Vec<KnownHome> {
        lock(&self.known).clone()
    }

    /// The home of a name: a live one, if there is one; else the one that began last. A home that was made anew has the
    /// name of the old one and another id.
    pub(crate) fn by_name(&self, name: &str) -> Option<HomeId> {
        let known = lock(&self.known);
        let of_name = || known.iter().rev().filter(|home| home.name == name);
        let live = of_name().find(|home| home.edge.is_some());
        live.or_else(|| of_name().next()).map(|home| home.id)
    }

    pub(crate) fn name(&self, id: HomeId) -> Option<String> {
        let known = lock(&self.known);
        let home = known.iter().find(|home| home.id == id)?;
        Some(home.name.clone())
    }

    /// The generation of a new object in a slot that has never had one.
    pub(crate) fn first_generation(&self, id: HomeId) -> Generation {
        let known = lock(&self.known);
        let home = known.iter().find(|home| home.id == id);
        let incarnation = home.map_or(Incarnation::default(), |home| home.incarnation);
        let first = incarnation.generation_after(Generation(0));
        first.unwrap_or(Generation(1))
    }

    /// Whether the stream of a home has ever begun here.
    pub(crate) fn is_known(&self, id: HomeId) -> bool {
        lock(&self.known).iter().any(|home| home.id == id)
    }

    pub(crate) fn is_live(&self, id: HomeId) -> bool {
        let known = lock(&self.known);
        known.iter().any(|h| h.id == id && h.edge.is_some())
    }

    pub(crate) fn is_any_live(&self) -> bool {
        lock(&self.known).iter().any(|home| home.edge.is_some())
    }

    /// Waits until a home's stream is live; not where this member is turned away.
    pub(crate) async fn reach(
        &self,
        home: HomeId,
        requests: &Arc<Requests>,
        due: Instant,
    ) -> Result<()> {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            if self.is_live(home) {
                return Ok(());
            }
            self.check_refused(home, requests)?;
            let next = due.min(Instant::now() + RETRY_PAUSE);
            if !requests.changed(&mut changes, next).await? && next == due {
                let home = self.name_for_people(home);
                return Err(Error::unreachable(format!("{home} cannot be reached")));
            }
        }
    }

    /// A home that is closed says so, and so does one that knows a certificate as revoked: it is in vain to wait for it.
    pub(crate) fn check_refused(&self, home: HomeId, requests: &Requests) -> Result<()> {
        match requests.sender.refusal().filter(|_| !self.is_live(home)) {
            None => Ok(()),
            Some(why) => {
                let home = self.name_for_people(home);
                let words = format!("{home} cannot be reached: {why}");
                Err(Error::unreachable(words))
            }
        }
    }

    /// `home alps`.
    pub(super) fn name_for_people(&self, home: HomeId) -> String {
        match self.name(home) {
            Some(name) => format!("home {name}"),
            None => UNKNOWN_HOME.to_owned(),
        }
    }

    /// Tells when anything of this changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// A home whose stream has never begun here has a number, and that tells nobody anything.
const UNKNOWN_HOME: &str = "a home that this member has never heard of";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_site_has_told_does_not_count_at_another() {
        let homes = Homes::new();
        let told = HomeNames {
            names: vec!["alps".to_owned()],
            is_all: true,
        };
        homes.told(EdgeId(1), told.clone());
        assert_eq!(homes.names_told(EdgeId(1)), Some(told));
        assert_eq!(homes.names_told(EdgeId(2)), None);
    }

    #[test]
    fn a_home_made_anew_takes_the_name() {
        let homes = Homes::new();
        let (old, new) = (HomeId(1), HomeId(2));
        homes.began(old, "alps".to_owned(), EdgeId(1), Incarnation::default());
        homes.ended(old);
        homes.began(new, "alps".to_owned(), EdgeId(2), Incarnation::default());
        assert_eq!(homes.by_name("alps"), Some(new));
        homes.ended(new);
        assert_eq!(homes.by_name("alps"), Some(new));
        homes.began(old, "alps".to_owned(), EdgeId(3), Incarnation::default());
        assert_eq!(homes.by_name("alps"), Some(old));
        assert!(homes.is_live(old) && !homes.is_live(new));
    }
}
