//! A running transaction as a model that can be walked, or edited.

use thorp_client::{Error, Reference, Result};

use super::desk::Numbering;
use crate::ifc::{Editor, Model};
use crate::objects::{Objects, encoded};
use crate::step::{Body, Entity, EntityId, Order, Stored};

/// A building in a transaction that only reads.
#[derive(Debug)]
pub struct Reading<'a, O> {
    objects: &'a mut O,
}

/// A building in a transaction that edits it.
#[derive(Debug)]
pub struct Editing<'a, O> {
    objects: &'a mut O,
    numbering: Numbering,
}

impl<'a, O: Objects> Reading<'a, O> {
    pub(super) fn new(objects: &'a mut O) -> Self {
        Reading { objects }
    }
}

impl<'a, O: Objects> Editing<'a, O> {
    pub(super) fn new(objects: &'a mut O, numbering: Numbering) -> Self {
        Editing { objects, numbering }
    }

    /// Writes what the transaction keeps of its own; to be called once, at its end.
    pub(super) fn finish(self) -> Result<()> {
        self.numbering.write(self.objects)
    }
}

impl<O: Objects> Model for Reading<'_, O> {
    type Reference = Reference;
    type Error = Error;

    fn get(&mut self, reference: &Reference) -> Result<Entity<Reference>> {
        get(self.objects, reference)
    }
}

impl<O: Objects> Model for Editing<'_, O> {
    type Reference = Reference;
    type Error = Error;

    fn get(&mut self, reference: &Reference) -> Result<Entity<Reference>> {
        get(self.objects, reference)
    }
}

impl<O: Objects> Editor for Editing<'_, O> {
    fn replace(&mut self, reference: &Reference, body: Body<Reference>) -> Result<()> {
        let mut stored: Stored<Reference> = self.objects.get(reference)?;
        stored.body = body;
        self.objects.write(reference, encoded(&stored)?)
    }

    fn create(&mut self, body: Body<Reference>) -> Result<(Reference, EntityId)> {
        let id = self.numbering.next(self.objects)?;
        let stored = Stored {
            id,
            order: Order::Added,
            body,
        };
        let created = self
            .objects
            .create_near(self.numbering.desk(), encoded(&stored)?)?;
        self.numbering.enter(id, created);
        Ok((created, id))
    }
}

fn get<O: Objects>(objects: &mut O, reference: &Reference) -> Result<Entity<Reference>> {
    let stored: Stored<Reference> = objects.get(reference)?;
    Ok(Entity {
        id: stored.id,
        body: stored.body,
    })
}
