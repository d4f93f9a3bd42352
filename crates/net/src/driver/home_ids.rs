//! Two stores under one name: a node that has followed one of them does not go on with the other (rule R1).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use thorp_model::HomeId;

use crate::Peer;

/// The id under which each home was heard first, and where. Of one parent that is dialed: its addresses are those of one
/// home, or of sites.
#[derive(Clone, Default)]
pub(super) struct HomeIds {
    first: Arc<Mutex<BTreeMap<String, First>>>,
}

#[derive(Clone)]
struct First {
    id: HomeId,
    address: String,
}

/// What answers has the name of a home that was heard before, and another id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherStore {
    name: String,
    first: (HomeId, String),
    now: (HomeId, String),
}

impl HomeIds {
    /// Whether a parent is what it was. A site has no id.
    pub(super) fn check(&self, peer: &Peer) -> Result<(), OtherStore> {
        let (Some(id), name) = (peer.certified.home(), peer.certified.name()) else {
            return Ok(());
        };
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let now = First {
            id,
            address: peer.address.clone(),
        };
        // Names come from certificates of the village; no configuration has so many.
        if first.len() >= NAMES_MAX && !first.contains_key(name) {
            return Ok(());
        }
        let known = first.entry(name.to_owned()).or_insert_with(|| now.clone());
        match known.id == id {
            true => Ok(()),
            false => Err(OtherStore {
                name: name.to_owned(),
                first: (known.id, known.address.clone()),
                now: (id, now.address),
            }),
        }
    }
}

impl fmt::Display for OtherStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, first, now } = self;
        write!(
            f,
            "two homes are called {name}: the one at {} has the id {:08x}, the one at {} the id {:08x}, and they have different \
             stores; take the wrong address out of the configuration, and start this node again if the home has a new id",
            first.1, first.0.0, now.1, now.0.0
        )
    }
}

const NAMES_MAX: usize = 256;
