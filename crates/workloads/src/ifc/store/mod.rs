//! A building in a store: one object for each entity, edited by many at once, and exported as it is at one moment.
//!
//! ```text
//! root "ifc" ──► Root: header, number of entities
//!                 ├─► relations           one object, never changed
//!                 ├─► pages of the index  of what came with the file, never changed
//!                 └─► Editors: next free number
//!                      └─► Desk of each editor: its numbers
//!                           └─► pages of the index of what it has added
//! ```
//!
//! Two editors that work on different entities share nothing that changes: each has a desk with a range of entity
//! numbers and lists there what it creates. Only a new editor, or one that needs another range, touches what all share.

mod desk;
mod error;
mod export;
mod import;
mod model;

pub use desk::Desk;
pub use error::StoreError;
pub use import::{import, import_and_tell};
pub use model::{Editing, Reading};

use serde::{Deserialize, Serialize};
use thorp_client::{Reference, Result};

use super::{IfcError, Relations};
use crate::objects::{Objects, Store};
use crate::step::{EntityId, Param, Record, StepFile};

/// The name of the segment's root that is the building.
pub const ROOT: &str = "ifc";

/// A building in a store, as it was imported.
#[derive(Clone, Debug)]
pub struct Building {
    root: Root,
    relations: Relations<Reference>,
}

impl Building {
    /// The building in a segment.
    ///
    /// # Errors
    /// [`StoreError::NoModel`], or those of the store.
    pub fn open<S: Store>(store: &S) -> Result<Self, StoreError> {
        let found = store.transact(|objects| {
            let Some(root) = objects.root(ROOT)? else {
                return Ok(None);
            };
            let root: Root = objects.get(&root)?;
            let relations = objects.get(&root.relations)?;
            Ok(Some(Building { root, relations }))
        })?;
        found.ok_or(StoreError::NoModel)
    }

    /// The relations at the import. Edits add none and take none away.
    #[must_use]
    pub fn relations(&self) -> &Relations<Reference> {
        &self.relations
    }

    /// How many entities were imported.
    #[must_use]
    pub fn imported(&self) -> u64 {
        self.root.entities
    }

    /// The entities as they are now, with their numbers: those of the file in the file's order, then what each editor
    /// has added.
    ///
    /// # Errors
    /// Those of the store.
    pub fn index<S: Store>(&self, store: &S) -> Result<Vec<(EntityId, Reference)>, StoreError> {
        Ok(store.transact(|objects| export::index(objects, &self.root))?)
    }

    /// Reads the building in one transaction: a walk sees one state of it. `work` may be run several times.
    ///
    /// # Errors
    /// Those of `work` and of the store.
    pub fn read<S: Store, T>(
        &self,
        store: &S,
        mut work: impl for<'a, 'b> FnMut(
            &mut Reading<'b, S::Objects<'a>>,
        ) -> Result<T, IfcError<thorp_client::Error>>,
    ) -> Result<T, StoreError> {
        error::transact(store, |objects| work(&mut Reading::new(objects)))
    }

    /// The building as a file, as it is at one moment.
    ///
    /// # Errors
    /// Those of the store, or what is stored is no whole model.
    pub fn export<S: Store>(&self, store: &S) -> Result<StepFile, StoreError> {
        export::export(store, &self.root)
    }
}

/// The root object. It never changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Root {
    header: Vec<Record>,
    data: Record,
    entities: u64,
    relations: Reference,
    index: Vec<Reference>,
    editors: Reference,
}

/// A page of the index.
type IndexPage = Vec<(EntityId, Reference)>;

/// All desks, and the numbers that no desk has.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Editors {
    next_number: u64,
    desks: Vec<Reference>,
}

/// What an editor has: numbers for new entities, and the index of those it has created. It changes with each creation,
/// so full pages are put away.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct DeskObject {
    /// The numbers from the first up to and without the second are its own.
    numbers: (u64, u64),
    full: Vec<Reference>,
    open: IndexPage,
}

/// A DATA section's parameters, as something that can be stored.
fn data_record(data: &[Param]) -> Record {
    Record::new("DATA", data.to_vec())
}

/// Entities in a page of the index: about 4 KB.
const INDEX_PAGE_MAX: usize = 256;
/// Entities in a desk's open page: it is written with each creation.
const OPEN_PAGE_MAX: usize = 64;
/// Numbers that a desk gets at a time.
const NUMBERS: u64 = 1_000;
/// Desks of a building. A program takes one each time it starts to edit.
const DESKS_MAX: usize = 100_000;
