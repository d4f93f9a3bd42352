//! OO7's queries: what is found by an index, and joins.

use std::ops::ControlFlow;

use thorp_client::{Reference, Result};

use super::Module;
use super::draws::Draws;
use super::index::all;
use super::layout::{Kind, View, title};
use crate::objects::{Indexed, Objects};

/// Which query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    /// Looks up ten random atomic parts by their ids.
    Q1,
    /// The atomic parts of the newest hundredth of build dates.
    Q2,
    /// Those of the newest tenth.
    Q3,
    /// Looks up a hundred random documents by their titles, and counts the base assemblies that use what they document.
    Q4,
    /// Base assemblies that use a composite with a later build date than their own.
    Q5,
    /// Assemblies of any kind that do so, directly or by way of those below.
    Q6,
    /// All atomic parts, by build date.
    Q7,
    /// Pairs of an atomic part and the document that it names.
    Q8,
}

impl Query {
    /// All of them.
    pub const ALL: [Query; 8] = [
        Query::Q1,
        Query::Q2,
        Query::Q3,
        Query::Q4,
        Query::Q5,
        Query::Q6,
        Query::Q7,
        Query::Q8,
    ];
}

/// Answers a query, inside a transaction; tells how much was found. What is random follows from the seed.
///
/// # Errors
/// Those of the store, or [`Damaged`](crate::objects::Damaged).
pub fn query<O: Objects>(objects: &mut O, module: &Module, query: Query, seed: u64) -> Result<u64> {
    let mut random = Draws::new(seed);
    match query {
        Query::Q1 => look_up_parts(objects, module, &mut random),
        Query::Q2 => parts_from(objects, module, 1990),
        Query::Q3 => parts_from(objects, module, 1900),
        Query::Q4 => look_up_documents(objects, module, &mut random),
        Query::Q5 => bases_older_than_what_they_use(objects, module),
        Query::Q6 => older_below(objects, &module.design).map(|below| below.older),
        Query::Q7 => parts_from(objects, module, 0),
        Query::Q8 => join_documents(objects, module),
    }
}

fn look_up_parts<O: Objects>(objects: &mut O, module: &Module, random: &mut Draws) -> Result<u64> {
    let parts = module.config.composites * module.config.atomics_per_composite;
    let mut found = 0;
    for _ in 0..10 {
        let id = 1 + random.below(parts);
        let atomics = module.indexes.atomics;
        if let Some(part) = atomics.get(&mut Indexed(objects), &id)? {
            let own = View::of(objects.read(&part)?, Kind::Atomic)?.atomic_id()?;
            found += u64::from(own == id);
        }
    }
    Ok(found)
}

/// Every part is read, as a program that asked for it would.
fn parts_from<O: Objects>(objects: &mut O, module: &Module, date: u32) -> Result<u64> {
    let mut parts = Vec::new();
    let dates = module.indexes.dates;
    dates.scan(&mut Indexed(objects), (date, 0).., |_, part| {
        parts.push(part);
        Ok(ControlFlow::Continue(()))
    })?;
    for part in &parts {
        View::of(objects.read(part)?, Kind::Atomic)?.xy()?;
    }
    Ok(parts.len() as u64)
}

fn look_up_documents<O: Objects>(
    objects: &mut O,
    module: &Module,
    random: &mut Draws,
) -> Result<u64> {
    let mut users = Vec::new();
    for _ in 0..100 {
        let title = title(1 + random.below(module.config.composites));
        let titles = module.indexes.titles;
        if let Some(document) = titles.get(&mut Indexed(objects), &title)? {
            let composite = View::of(objects.read(&document)?, Kind::Document)?.documented()?;
            View::of(objects.read(&composite)?, Kind::Composite)?.users(&mut users)?;
        }
    }
    for base in &users {
        View::of(objects.read(base)?, Kind::Base)?.date()?;
    }
    Ok(users.len() as u64)
}

fn bases_older_than_what_they_use<O: Objects>(objects: &mut O, module: &Module) -> Result<u64> {
    let mut older = 0;
    for base in all(objects, module.indexes.bases)? {
        older += older_below(objects, &base)?.older;
    }
    Ok(older)
}

/// What is below an assembly.
struct Below {
    /// The latest build date of a composite.
    latest: u32,
    /// Assemblies that are older than a composite that they use, itself included.
    older: u64,
}

/// Down to the composites. A tree of assemblies has few levels.
fn older_below<O: Objects>(objects: &mut O, assembly: &Reference) -> Result<Below> {
    let (kind, view) = View::assembly(objects.read(assembly)?)?;
    let date = view.date()?;
    let mut below = Vec::new();
    view.below(&mut below)?;
    let (mut latest, mut older) = (0, 0);
    for one in &below {
        if kind == Kind::Base {
            let composite = View::of(objects.read(one)?, Kind::Composite)?;
            latest = latest.max(composite.date()?);
        } else {
            let below = older_below(objects, one)?;
            latest = latest.max(below.latest);
            older += below.older;
        }
    }
    older += u64::from(latest > date);
    Ok(Below { latest, older })
}

fn join_documents<O: Objects>(objects: &mut O, module: &Module) -> Result<u64> {
    let mut pairs = 0;
    for part in all(objects, module.indexes.atomics)? {
        let id = View::of(objects.read(&part)?, Kind::Atomic)?.document_id()?;
        let documents = module.indexes.documents;
        if let Some(document) = documents.get(&mut Indexed(objects), &id)? {
            let document = View::of(objects.read(&document)?, Kind::Document)?;
            pairs += u64::from(document.number_of_document()? == id);
        }
    }
    Ok(pairs)
}
