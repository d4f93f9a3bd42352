//! An editor's desk: where its new entities get their numbers and are listed.

use thorp_client::{Error, Reference, Result};

use super::error::transact;
use super::{
    Building, DESKS_MAX, DeskObject, Editing, Editors, NUMBERS, OPEN_PAGE_MAX, StoreError,
};
use crate::ifc::IfcError;
use crate::objects::{Objects, Store, encoded};
use crate::step::EntityId;

/// An editor's place in a building. Each member that edits takes one; two that use the same one are correct, but in each
/// other's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Desk {
    editors: Reference,
    desk: Reference,
}

impl Building {
    /// Takes a new desk for editing.
    ///
    /// # Errors
    /// Those of the store.
    pub fn take_desk<S: Store>(&self, store: &S) -> Result<Desk, StoreError> {
        let editors = self.root.editors;
        let desk = store.transact(|objects| {
            let mut all: Editors = objects.get(&editors)?;
            if all.desks.len() >= DESKS_MAX {
                return Err(Error::aborted(
                    "the building has too many desks: import it anew",
                ));
            }
            // Numbers are given with the first creation: who only renames needs none.
            let desk = objects.create(encoded(&DeskObject::default())?)?;
            all.desks.push(desk);
            objects.write(&editors, encoded(&all)?)?;
            Ok(desk)
        })?;
        Ok(Desk { editors, desk })
    }
}

impl Desk {
    /// Edits the building in one transaction. `work` may be run several times; what it returns counts, as does an
    /// [`EditRecord`](crate::ifc::EditRecord), only if this returns it.
    ///
    /// # Errors
    /// Those of `work` and of the store. Then nothing is changed, except that with
    /// [`OutcomeUnknown`](thorp_client::ErrorKind::OutcomeUnknown) it may be.
    pub fn edit<S: Store, T>(
        &self,
        store: &S,
        mut work: impl for<'a, 'b> FnMut(&mut Editing<'b, S::Objects<'a>>) -> Result<T, IfcError<Error>>,
    ) -> Result<T, StoreError> {
        transact(store, |objects| {
            let mut editing = Editing::new(objects, Numbering::of(*self));
            let done = work(&mut editing)?;
            editing.finish().map_err(IfcError::Model)?;
            Ok(done)
        })
    }
}

/// A desk in a running transaction. It is read when something is created, and written once.
#[derive(Debug)]
pub(super) struct Numbering {
    place: Desk,
    desk: Option<DeskObject>,
}

impl Numbering {
    fn of(place: Desk) -> Self {
        Numbering { place, desk: None }
    }

    /// The object to create near of.
    pub(super) fn desk(&self) -> &Reference {
        &self.place.desk
    }

    /// A number that no other entity has or gets.
    pub(super) fn next<O: Objects>(&mut self, objects: &mut O) -> Result<EntityId> {
        let mut desk = match self.desk.take() {
            Some(desk) => desk,
            None => objects.get(&self.place.desk)?,
        };
        if desk.numbers.0 >= desk.numbers.1 {
            desk.numbers = take_numbers(objects, &self.place.editors)?;
        }
        if desk.open.len() >= OPEN_PAGE_MAX {
            let page = objects.create_near(&self.place.desk, encoded(&desk.open)?)?;
            desk.full.push(page);
            desk.open.clear();
        }
        let number = desk.numbers.0;
        desk.numbers.0 += 1;
        self.desk = Some(desk);
        Ok(EntityId(number))
    }

    /// Enters a created entity.
    pub(super) fn enter(&mut self, id: EntityId, entity: Reference) {
        if let Some(desk) = &mut self.desk {
            desk.open.push((id, entity));
        }
    }

    pub(super) fn write<O: Objects>(self, objects: &mut O) -> Result<()> {
        match self.desk {
            Some(desk) => objects.write(&self.place.desk, encoded(&desk)?),
            None => Ok(()),
        }
    }
}

/// Takes the next free numbers from what all editors share. Two that do so at once conflict, and one runs again.
fn take_numbers<O: Objects>(objects: &mut O, editors: &Reference) -> Result<(u64, u64)> {
    let mut all: Editors = objects.get(editors)?;
    let first = all.next_number;
    let end = first.checked_add(NUMBERS);
    all.next_number =
        end.ok_or_else(|| Error::aborted("the building has no entity numbers left"))?;
    objects.write(editors, encoded(&all)?)?;
    Ok((first, all.next_number))
}
