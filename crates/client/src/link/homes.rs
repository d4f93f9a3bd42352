//! The homes that a member has heard of, and whether they can be reached.

use super::lock;
use std::sync::Mutex;
use thorp_model::{EdgeId, HomeId};
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Homes {
    known: Mutex<Vec<Known>>,
    changed: watch::Sender<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: HomeId,
    pub(crate) name: String,
    /// The edge that its stream comes down on, while it is live.
    pub(crate) edge: Option<EdgeId>,
}

impl Homes {
    pub(crate) fn new() -> Self {
        Homes {
            known: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// How the homes' streams are now: what the member's state machine took for them, whatever a parent sent.
    pub(crate) fn follow<'a>(
        &self,
        streams: impl Iterator<Item = (HomeId, &'a str, Option<EdgeId>)>,
    ) {
        let mut known = lock(&self.known);
        let mut is_other = false;
        for (id, name, edge) in streams {
            is_other |= follow_one(&mut known, id, name, edge);
        }
        drop(known);
        if is_other {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    pub(crate) fn all(&self) -> Vec<Known> {
        lock(&self.known).clone()
    }

    /// The home of a name: one that is live, if there is one; else the one that was heard of last. A home that was made anew
    /// has the name of the old one and another id.
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

    pub(crate) fn is_live(&self, id: HomeId) -> bool {
        let known = lock(&self.known);
        known.iter().any(|h| h.id == id && h.edge.is_some())
    }

    pub(crate) fn is_any_live(&self) -> bool {
        lock(&self.known).iter().any(|home| home.edge.is_some())
    }

    /// Tells when anything of this changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// Whether anything is other than it was. Whose stream began last, comes last.
fn follow_one(known: &mut Vec<Known>, id: HomeId, name: &str, edge: Option<EdgeId>) -> bool {
    let at = known.iter().position(|home| home.id == id);
    match at.and_then(|at| known.get_mut(at)) {
        Some(home) if home.name == name && home.edge == edge => return false,
        Some(home) if edge.is_none() => {
            home.edge = None;
            return true;
        }
        // What was asked of it, or told of it, does not make a home known.
        None if edge.is_none() => return false,
        _ => {}
    }
    known.retain(|home| home.id != id);
    let name = name.to_owned();
    known.push(Known { id, name, edge });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_made_anew_takes_the_name() {
        let homes = Homes::new();
        let (old, new) = (HomeId(1), HomeId(2));
        homes.follow([(old, "alps", Some(EdgeId(1)))].into_iter());
        homes.follow([(old, "alps", None), (new, "alps", Some(EdgeId(2)))].into_iter());
        assert_eq!(homes.by_name("alps"), Some(new));
        homes.follow([(new, "alps", None)].into_iter());
        assert_eq!(homes.by_name("alps"), Some(new));
        homes.follow([(old, "alps", Some(EdgeId(3)))].into_iter());
        assert_eq!(homes.by_name("alps"), Some(old));
        assert!(homes.is_live(old) && !homes.is_live(new));
    }
}
