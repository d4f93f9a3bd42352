//! The module object, where everything begins.

use serde::{Deserialize, Serialize};
use thorp_client::{Reference, Result};

use super::Config;
use super::layout::{Kind, LIST_MAX, View, list};
use crate::objects::{Objects, Store};

/// The name of the segment's root that is the module.
pub const ROOT: &str = "oo7";

/// A module: how it was made and where its parts are. It does not change after it was built.
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
    pub(super) composite_lists: Vec<Reference>,
    pub(super) base_lists: Vec<Reference>,
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
        read_lists(objects, &self.composite_lists)
    }

    /// All base assemblies, in the order of their ids.
    ///
    /// # Errors
    /// Those of the store.
    pub fn bases<O: Objects>(&self, objects: &mut O) -> Result<Vec<Reference>> {
        read_lists(objects, &self.base_lists)
    }
}

/// Makes list objects that hold all of `references`.
pub(super) fn write_lists<O: Objects>(
    objects: &mut O,
    references: &[Reference],
) -> Result<Vec<Reference>> {
    references
        .chunks(LIST_MAX)
        .map(|some| objects.create(list(some)))
        .collect()
}

fn read_lists<O: Objects>(objects: &mut O, lists: &[Reference]) -> Result<Vec<Reference>> {
    let mut references = Vec::new();
    for list in lists {
        View::of(objects.read(list)?, Kind::List)?.listed(&mut references)?;
    }
    Ok(references)
}
