//! A model in memory: a STEP file whose entities can be found and changed.

use std::collections::BTreeMap;
use std::fmt;

use super::{Editor, Model, Relations};
use crate::step::{Body, Entity, EntityId, StepFile};

/// A STEP file as a [`Model`]; references are the file's numbers.
#[derive(Clone, Debug)]
pub struct MemoryModel {
    file: StepFile,
    places: BTreeMap<EntityId, usize>,
}

/// No entity has that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound(pub EntityId);

impl MemoryModel {
    /// A model over that file.
    #[must_use]
    pub fn new(file: StepFile) -> Self {
        let places = file
            .entities
            .iter()
            .enumerate()
            .map(|(place, entity)| (entity.id, place))
            .collect();
        Self { file, places }
    }

    /// The file with all changes.
    #[must_use]
    pub fn file(&self) -> &StepFile {
        &self.file
    }

    /// The model's relations as they are now.
    #[must_use]
    pub fn relations(&self) -> Relations<EntityId> {
        Relations::of(
            self.file
                .entities
                .iter()
                .map(|entity| (entity.id, &entity.body)),
        )
    }

    fn place(&self, id: EntityId) -> Result<usize, NotFound> {
        self.places.get(&id).copied().ok_or(NotFound(id))
    }
}

impl Model for MemoryModel {
    type Reference = EntityId;
    type Error = NotFound;

    fn get(&mut self, reference: &EntityId) -> Result<Entity, NotFound> {
        self.place(*reference)
            .map(|place| self.file.entities[place].clone())
    }
}

impl Editor for MemoryModel {
    fn replace(&mut self, reference: &EntityId, body: Body) -> Result<(), NotFound> {
        let place = self.place(*reference)?;
        self.file.entities[place].body = body;
        Ok(())
    }

    fn create(&mut self, body: Body) -> Result<(EntityId, EntityId), NotFound> {
        let above_all = self
            .places
            .last_key_value()
            .map_or(1, |(highest, _)| highest.0 + 1);
        let id = EntityId(above_all);
        self.places.insert(id, self.file.entities.len());
        self.file.entities.push(Entity { id, body });
        Ok((id, id))
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "there is no entity {}", self.0)
    }
}

impl std::error::Error for NotFound {}
