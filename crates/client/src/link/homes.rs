//! The homes that a member has heard of, and whether they can be reached.

use super::lock;
use std::sync::Mutex;
use thorp_core::ids::{EdgeId, HomeId};
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

    /// A home's stream began.
    pub(crate) fn began(&self, id: HomeId, name: &str, edge: EdgeId) {
        self.change(|known| {
            known.retain(|home| home.id != id);
            known.push(Known {
                id,
                name: name.to_owned(),
                edge: Some(edge),
            });
        });
    }

    /// A home's stream ended.
    pub(crate) fn ended(&self, id: HomeId) {
        self.change(|known| {
            let of_it = known.iter_mut().filter(|home| home.id == id);
            of_it.for_each(|home| home.edge = None);
        });
    }

    /// An edge was lost, with all streams on it.
    pub(crate) fn lost(&self, edge: EdgeId) {
        self.change(|known| {
            let on_it = known.iter_mut().filter(|home| home.edge == Some(edge));
            on_it.for_each(|home| home.edge = None);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Known>)) {
        change(&mut lock(&self.known));
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn all(&self) -> Vec<Known> {
        lock(&self.known).clone()
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<HomeId> {
        let known = lock(&self.known);
        known.iter().find(|home| home.name == name).map(|h| h.id)
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
