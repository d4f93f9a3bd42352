//! A building out of a store, as it is at one moment: all is read in one transaction, which conflicts with nobody.

use std::collections::HashMap;

use thorp_client::{Reference, Result};

use super::{DeskObject, Editors, IndexPage, Root, StoreError};
use crate::objects::{Damaged, Objects, Store};
use crate::step::{EntityId, StepFile, Stored, restore};

pub(super) fn export<S: Store>(store: &S, root: &Root) -> Result<StepFile, StoreError> {
    let entities = store.transact(|objects| read_all(objects, root))?;
    Ok(restore(
        root.header.clone(),
        root.data.params.clone(),
        entities,
    )?)
}

/// All entities and their numbers.
pub(super) fn index<O: Objects>(objects: &mut O, root: &Root) -> Result<IndexPage> {
    let editors: Editors = objects.get(&root.editors)?;
    objects.prefetch(&root.index);
    objects.prefetch(&editors.desks);
    let mut entries = Vec::new();
    for page in &root.index {
        entries.extend(objects.get::<IndexPage>(page)?);
    }
    for desk in &editors.desks {
        let desk: DeskObject = objects.get(desk)?;
        for page in &desk.full {
            entries.extend(objects.get::<IndexPage>(page)?);
        }
        entries.extend(desk.open);
    }
    Ok(entries)
}

fn read_all<O: Objects>(objects: &mut O, root: &Root) -> Result<Vec<Stored<EntityId>>> {
    let entries = index(objects, root)?;
    let ids: HashMap<Reference, EntityId> = entries
        .iter()
        .map(|&(id, reference)| (reference, id))
        .collect();
    let references: Vec<Reference> = entries.iter().map(|&(_, reference)| reference).collect();
    let mut entities = Vec::with_capacity(references.len());
    // One part is on its way while the one before is read: a far home is waited for once, not page by page.
    let mut parts = references.chunks(PREFETCH).peekable();
    objects.prefetch(parts.peek().copied().unwrap_or_default());
    while let Some(part) = parts.next() {
        objects.prefetch(parts.peek().copied().unwrap_or_default());
        for reference in part {
            entities.push(read(objects, reference, &ids)?);
        }
    }
    Ok(entities)
}

fn read<O: Objects>(
    objects: &mut O,
    reference: &Reference,
    ids: &HashMap<Reference, EntityId>,
) -> Result<Stored<EntityId>> {
    let stored: Stored<Reference> = objects.get(reference)?;
    let body = stored
        .body
        .try_map_refs(&mut |part| ids.get(&part).copied().ok_or(UNLISTED))?;
    Ok(Stored {
        id: stored.id,
        order: stored.order,
        body,
    })
}

/// Entities asked for ahead: some dozens of pages.
const PREFETCH: usize = 4_096;
const UNLISTED: Damaged = Damaged("an entity uses one that is in no index");
