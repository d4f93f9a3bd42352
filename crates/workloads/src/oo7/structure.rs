//! OO7's structural changes: composites are inserted, and taken out again.

use std::ops::ControlFlow;

use thorp_client::{Reference, Result};

use super::draws::Draws;
use super::graph::Graph;
use super::index::all;
use super::layout::{Kind, View};
use super::{Indexes, Module};
use crate::objects::{Damaged, Indexed, Objects};

/// S1: makes five composites, with their parts and documents, and has ten random base assemblies use them, two each. Tells
/// their ids, which are the next ones. What is random follows from the seed.
///
/// # Errors
/// Those of the store, or [`Damaged`].
pub fn insert<O: Objects>(objects: &mut O, module: &Module, seed: u64) -> Result<Vec<u32>> {
    let indexes = &module.indexes;
    let last = indexes.composites.last(&mut Indexed(objects))?;
    let first = last.map_or(1, |(id, _)| id + 1);
    let bases = all(objects, indexes.bases)?;
    if bases.is_empty() {
        return Err(Damaged("a module of OO7 has no base assemblies").into());
    }
    let mut random = Draws::new(seed);
    let mut any = || bases[random.below(bases.len() as u32) as usize];
    let ids: Vec<u32> = (first..first + INSERTED).collect();
    for &id in &ids {
        let users = [any(), any()];
        let graph = Graph::make(objects, &module.config, id, users.len())?;
        let document = graph.finish(objects, &module.config, &users)?;
        for base in &users {
            use_composites(objects, base, |below| below.push(graph.composite))?;
        }
        indexes.add_composite(objects, id, graph.composite, document)?;
        for part in graph.parts(&module.config) {
            indexes.add_part(objects, &part)?;
            indexes.add_date(objects, &part)?;
        }
    }
    Ok(ids)
}

/// S2: takes out the five composites with the greatest ids, if they are not of those that the module was built with. Tells
/// their ids.
///
/// # Errors
/// Those of the store, or [`Damaged`].
pub fn remove<O: Objects>(objects: &mut O, module: &Module) -> Result<Vec<u32>> {
    let mut last = Vec::new();
    let inserted = module.config.composites + 1..;
    let composites = module.indexes.composites;
    composites.scan_down(&mut Indexed(objects), inserted, |id, composite| {
        last.push((id, composite));
        Ok(match last.len() < INSERTED as usize {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    last.reverse();
    for (id, composite) in &last {
        remove_composite(objects, &module.indexes, *id, composite)?;
    }
    Ok(last.into_iter().map(|(id, _)| id).collect())
}

fn remove_composite<O: Objects>(
    objects: &mut O,
    indexes: &Indexes,
    id: u32,
    composite: &Reference,
) -> Result<()> {
    let (mut parts, mut users) = (Vec::new(), Vec::new());
    let view = View::of(objects.read(composite)?, Kind::Composite)?;
    view.parts(&mut parts)?;
    view.users(&mut users)?;
    let document = view.document()?;
    for base in &users {
        use_composites(objects, base, |below| {
            below.retain(|used| used != composite)
        })?;
    }
    for part in &parts {
        let mut connections = Vec::new();
        let view = View::of(objects.read(part)?, Kind::Atomic)?;
        view.outgoing(&mut connections)?;
        let known = (view.atomic_id()?, view.atomic_date()?);
        indexes.remove_part(objects, known)?;
        for connection in connections.iter().chain([part]) {
            objects.delete(connection)?;
        }
    }
    indexes.remove_composite(objects, id)?;
    objects.delete(&document)?;
    objects.delete(composite)
}

/// A base assembly uses other composites than before.
fn use_composites<O: Objects>(
    objects: &mut O,
    base: &Reference,
    change: impl FnOnce(&mut Vec<Reference>),
) -> Result<()> {
    let mut below = Vec::new();
    let view = View::of(objects.read(base)?, Kind::Base)?;
    view.below(&mut below)?;
    change(&mut below);
    let bytes = view.with_below(&below)?;
    objects.write(base, bytes)
}

/// Composites of one S1.
const INSERTED: u32 = 5;
