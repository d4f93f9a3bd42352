//! A module's indexes.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use thorp_client::collections::TreeMap;
use thorp_client::{Reference, Result};

use super::layout::title;
use crate::objects::{Damaged, Indexed, Objects};

/// Where a module's objects are found by their numbers, dates and titles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Indexes {
    /// Atomic parts by id.
    pub atomics: TreeMap<u32, Reference>,
    /// Atomic parts by build date; of one date by id.
    pub dates: TreeMap<(u32, u32), Reference>,
    /// Documents by id.
    pub documents: TreeMap<u32, Reference>,
    /// Documents by title.
    pub titles: TreeMap<String, Reference>,
    /// Composites by id.
    pub composites: TreeMap<u32, Reference>,
    /// Base assemblies by id.
    pub bases: TreeMap<u32, Reference>,
}

/// An atomic part, as the indexes know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) id: u32,
    pub(super) date: u32,
    pub(super) at: Reference,
}

impl Indexes {
    /// Empty ones.
    pub(super) fn create<O: Objects>(objects: &mut O) -> Result<Self> {
        let mut root = || objects.create(TreeMap::<u32, Reference>::empty()?);
        Ok(Indexes {
            atomics: TreeMap::at(root()?),
            dates: TreeMap::at(root()?),
            documents: TreeMap::at(root()?),
            titles: TreeMap::at(root()?),
            composites: TreeMap::at(root()?),
            bases: TreeMap::at(root()?),
        })
    }

    /// Base assemblies, whose ids follow one another.
    pub(super) fn add_bases<O: Objects>(
        &self,
        objects: &mut O,
        first: u32,
        bases: &[Reference],
    ) -> Result<()> {
        for (id, base) in (first..).zip(bases) {
            self.bases.insert(&mut Indexed(objects), id, *base)?;
        }
        Ok(())
    }

    pub(super) fn add_part<O: Objects>(&self, objects: &mut O, part: &Part) -> Result<()> {
        let old = self
            .atomics
            .insert(&mut Indexed(objects), part.id, part.at)?;
        none(old)
    }

    pub(super) fn add_date<O: Objects>(&self, objects: &mut O, part: &Part) -> Result<()> {
        let key = (part.date, part.id);
        none(self.dates.insert(&mut Indexed(objects), key, part.at)?)
    }

    pub(super) fn remove_part<O: Objects>(
        &self,
        objects: &mut O,
        (id, date): (u32, u32),
    ) -> Result<()> {
        let objects = &mut Indexed(objects);
        some(self.atomics.remove(objects, &id)?)?;
        some(self.dates.remove(objects, &(date, id))?)
    }

    /// An atomic part has another build date.
    pub(super) fn redate<O: Objects>(&self, objects: &mut O, old: u32, part: &Part) -> Result<()> {
        some(self.dates.remove(&mut Indexed(objects), &(old, part.id))?)?;
        self.add_date(objects, part)
    }

    /// A composite and its document, which have the same number.
    pub(super) fn add_composite<O: Objects>(
        &self,
        objects: &mut O,
        id: u32,
        composite: Reference,
        document: Reference,
    ) -> Result<()> {
        let objects = &mut Indexed(objects);
        none(self.composites.insert(objects, id, composite)?)?;
        none(self.documents.insert(objects, id, document)?)?;
        none(self.titles.insert(objects, title(id), document)?)
    }

    pub(super) fn remove_composite<O: Objects>(&self, objects: &mut O, id: u32) -> Result<()> {
        let objects = &mut Indexed(objects);
        some(self.composites.remove(objects, &id)?)?;
        some(self.documents.remove(objects, &id)?)?;
        some(self.titles.remove(objects, &title(id))?)
    }
}

/// There was no such key.
fn none(old: Option<Reference>) -> Result<()> {
    match old {
        None => Ok(()),
        Some(_) => Err(Damaged("an index of OO7 has what is new").into()),
    }
}

/// There was one.
fn some(old: Option<Reference>) -> Result<()> {
    old.map(drop)
        .ok_or_else(|| Damaged("an index of OO7 lacks what is there").into())
}

/// All references of an index by number, in the order of the numbers.
pub(super) fn all<O: Objects>(
    objects: &mut O,
    index: TreeMap<u32, Reference>,
) -> Result<Vec<Reference>> {
    let mut found = Vec::new();
    index.scan(&mut Indexed(objects), .., |_, reference| {
        found.push(reference);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
