//! An entity as it lies in a store, and the way back into a file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Body, Entity, EntityId, Param, Reason, Record, StepError, StepFile};

/// What a store keeps of one entity: enough to put it back into the file at its place and under its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(
    serialize = "R: Clone + Serialize",
    deserialize = "R: Deserialize<'de>"
))]
pub struct Stored<R> {
    /// The entity's number.
    pub id: EntityId,
    /// Its place in the file.
    pub order: Order,
    /// Its type and attributes.
    pub body: Body<R>,
}

/// An entity's place in the file. Entities that came with the file keep their order; added ones follow by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Order {
    /// The n-th entity of the imported file, from 0.
    Imported(u64),
    /// Added later.
    Added,
}

impl StepFile {
    /// The entities as a store keeps them, with the file's own numbers as references.
    pub fn stored(&self) -> impl Iterator<Item = Stored<EntityId>> + '_ {
        (0..)
            .zip(&self.entities)
            .map(|(place, Entity { id, body })| Stored {
                id: *id,
                order: Order::Imported(place),
                body: body.clone(),
            })
    }
}

/// The file of a header and of stored entities in any order.
///
/// # Errors
/// Two entities have the same number, or one refers to a number that none has. There is no line to name: the place
/// given is the entity's place in the list, as a line.
pub fn restore(
    header: Vec<Record>,
    data: Vec<Param>,
    mut stored: Vec<Stored<EntityId>>,
) -> Result<StepFile, StepError> {
    stored.sort_by_key(|entity| (entity.order, entity.id));
    let mut ids = BTreeSet::new();
    for (place, entity) in stored.iter().enumerate() {
        if !ids.insert(entity.id) {
            return Err(fault(place, Reason::DuplicateId(entity.id)));
        }
    }
    for (place, entity) in stored.iter().enumerate() {
        if let Some(&dangling) = entity
            .body
            .references()
            .into_iter()
            .find(|id| !ids.contains(id))
        {
            return Err(fault(place, Reason::DanglingReference(dangling)));
        }
    }
    let entities = stored
        .into_iter()
        .map(|Stored { id, body, .. }| Entity { id, body })
        .collect();
    Ok(StepFile {
        header,
        data,
        entities,
    })
}

fn fault(place: usize, reason: Reason) -> StepError {
    StepError {
        line: place + 1,
        column: 1,
        reason,
    }
}
