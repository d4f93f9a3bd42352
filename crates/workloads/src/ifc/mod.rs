//! Building models in IFC: walking one, editing one, and making one up.
//!
//! Everything here works over a [`Model`], which gives the entity behind a reference, and an [`Editor`], which can
//! also change and create entities. [`MemoryModel`] is both over a file in memory; [`store`] is both by the
//! transactions of a village, whose references stand in the entities. [`Relations`] are the links that IFC keeps only backwards.

mod edit;
mod generate;
mod global_id;
mod memory;
mod movement;
mod relations;
mod schema;
pub mod store;
mod walk;

pub use edit::{Edit, EditRecord, Kind, Tag, add_property, rename};
pub use generate::{Plan, generate};
pub use global_id::GlobalIds;
pub use memory::{MemoryModel, NotFound};
pub use movement::shift;
pub use relations::{Relations, RelationsBuilder};
pub use schema::{Schema, name_of};
pub use walk::{Node, property_sets, reach, walk};

use std::fmt;

use crate::step::{Body, Entity, EntityId};

/// Where the entities of a building model come from.
pub trait Model {
    /// What names an entity here: a number in a file, a store's own reference in a store.
    type Reference: Clone + Ord;
    /// Why an entity could not be had.
    type Error;

    /// The entity behind `reference`.
    ///
    /// # Errors
    /// Those of the store: it does not exist, cannot be reached, the transaction has failed.
    fn get(&mut self, reference: &Self::Reference) -> Result<Entity<Self::Reference>, Self::Error>;
}

/// A model that can be changed. A store puts all calls of one edit into one transaction.
pub trait Editor: Model {
    /// Gives the entity another body. Its number stays.
    ///
    /// # Errors
    /// Those of the store.
    fn replace(
        &mut self,
        reference: &Self::Reference,
        body: Body<Self::Reference>,
    ) -> Result<(), Self::Error>;

    /// Creates an entity under a number that no other entity has or gets.
    ///
    /// # Errors
    /// Those of the store.
    fn create(
        &mut self,
        body: Body<Self::Reference>,
    ) -> Result<(Self::Reference, EntityId), Self::Error>;
}

/// Why a walk or an edit could not be done. Nothing has been changed, unless the store failed half-way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IfcError<E> {
    /// The store's own error.
    Model(E),
    /// The model has no `IFCPROJECT`, or more than one.
    NoSingleProject,
    /// The entity is not of the kind that the edit is about.
    WrongKind {
        /// The entity.
        entity: EntityId,
        /// What it would have to be.
        wanted: &'static str,
    },
    /// An attribute does not hold what the schema says.
    BadAttribute {
        /// The entity.
        entity: EntityId,
        /// The attribute's name in the schema.
        attribute: &'static str,
    },
    /// The new text is longer than the schema allows.
    TooLong(EntityId),
}

impl<E: fmt::Display> fmt::Display for IfcError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => error.fmt(out),
            Self::NoSingleProject => {
                out.write_str("the model does not have exactly one IFCPROJECT")
            }
            Self::WrongKind { entity, wanted } => write!(out, "{entity} is not {wanted}"),
            Self::BadAttribute { entity, attribute } => {
                write!(out, "{entity} has an unusable attribute {attribute}")
            }
            Self::TooLong(entity) => {
                write!(out, "the new text for {entity} is longer than IFC allows")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for IfcError<E> {}
