//! The module object, where everything begins.

use serde::{Deserialize, Serialize};
use thorp_client::{Reference, Result};

use super::index::all;
use super::{Config, Indexes};
use crate::objects::{Objects, Store};

/// The name of the segment's root that is the module.
pub const ROOT: &str = "oo7";

/// A module: how it was made and where its parts are. It does not change after it was built; what changes lies below it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Module {
    /// How it was made.
    pub config: Config,
    /// Its number.
    pub id: u32,
    /// Its build date.
    pub date: u32,
    /// The manual, a large object.
    pub manual: Reference,
    /// The topmost assembly.
    pub design: Reference,
    /// Where objects are found by number, date and title.
    pub indexes: Indexes,
}

impl Module {
    /// The module in a segment, if one was built there.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open<S: Store>(store: &S) -> Result<Option<Self>> {
        store.transact(|objects| match objects.root(ROOT)? {
            Some(root) => objects.get(&root).map(Some),
            None => Ok(None),
        })
    }

    /// All composites, in the order of their ids.
    ///
    /// # Errors
    /// Those of the store.
    pub fn composites<O: Objects>(&self, objects: &mut O) -> Result<Vec<Reference>> {
        all(objects, self.indexes.composites)
    }

    /// All base assemblies, in the order of their ids.
    ///
    /// # Errors
    /// Those of the store.
    pub fn bases<O: Objects>(&self, objects: &mut O) -> Result<Vec<Reference>> {
        all(objects, self.indexes.bases)
    }
}
