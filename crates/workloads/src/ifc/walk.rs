//! Walking a building from its project down to its elements.

use std::collections::BTreeSet;

use super::relations::references_at;
use super::schema::{name_of, relation};
use super::{IfcError, Model, Relations};
use crate::step::{Body, Entity};

/// One object met on a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node<R> {
    /// Its name in the model.
    pub reference: R,
    /// The object itself.
    pub entity: Entity<R>,
    /// How many steps it is below the project.
    pub depth: usize,
}

impl<R> Node<R> {
    /// The object's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        name_of(&self.entity.body)
    }
}

type Found<M> = Result<Vec<Node<<M as Model>::Reference>>, IfcError<<M as Model>::Error>>;

/// Walks from the project through sites, buildings, storeys and spaces to the elements in them: each object once, a
/// whole before its parts, parts before contents, depth first.
///
/// # Errors
/// The model's, or [`IfcError::NoSingleProject`].
pub fn walk<M: Model>(model: &mut M, relations: &Relations<M::Reference>) -> Found<M> {
    let [project] = relations.projects.as_slice() else {
        return Err(IfcError::NoSingleProject);
    };
    let mut seen = BTreeSet::from([project.clone()]);
    let mut waiting = vec![(project.clone(), 0)];
    let mut nodes = Vec::new();
    while let Some((reference, depth)) = waiting.pop() {
        let mut below = parts(model, relations, &reference)?;
        below.retain(|part| seen.insert(part.clone()));
        waiting.extend(below.into_iter().rev().map(|part| (part, depth + 1)));
        let entity = model.get(&reference).map_err(IfcError::Model)?;
        nodes.push(Node {
            reference,
            entity,
            depth,
        });
    }
    Ok(nodes)
}

/// The property sets that describe an object.
///
/// # Errors
/// The model's.
pub fn property_sets<M: Model>(
    model: &mut M,
    relations: &Relations<M::Reference>,
    object: &M::Reference,
) -> Found<M> {
    let mut sets = Vec::new();
    for relationship in relations.properties.get(object).into_iter().flatten() {
        let entity = model.get(relationship).map_err(IfcError::Model)?;
        for reference in references_at(&entity.body, relation::RELATING_PROPERTY_DEFINITION) {
            let entity = model.get(&reference).map_err(IfcError::Model)?;
            if entity.body.is("IFCPROPERTYSET") {
                sets.push(Node {
                    reference,
                    entity,
                    depth: 0,
                });
            }
        }
    }
    Ok(sets)
}

/// Reads all that an object is made of (its placement, its geometry down to the last point, its history), breadth
/// first, as somebody does who looks at it. At most `limit` entities are read.
///
/// # Errors
/// The model's.
pub fn reach<M: Model>(model: &mut M, from: &M::Reference, limit: usize) -> Found<M> {
    let mut seen = BTreeSet::from([from.clone()]);
    let mut level = vec![from.clone()];
    let mut nodes = Vec::new();
    for depth in 0.. {
        let mut next = Vec::new();
        for reference in level {
            if nodes.len() >= limit {
                return Ok(nodes);
            }
            let entity = model.get(&reference).map_err(IfcError::Model)?;
            next.extend(
                entity
                    .body
                    .references()
                    .into_iter()
                    .filter(|part| seen.insert((*part).clone()))
                    .cloned(),
            );
            nodes.push(Node {
                reference,
                entity,
                depth,
            });
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    Ok(nodes)
}

/// What lies directly below an object, in the order of the relationships.
fn parts<M: Model>(
    model: &mut M,
    relations: &Relations<M::Reference>,
    whole: &M::Reference,
) -> Result<Vec<M::Reference>, IfcError<M::Error>> {
    let kinds = [
        (&relations.parts, relation::RELATED_OBJECTS),
        (&relations.contents, relation::RELATED_ELEMENTS),
    ];
    let mut found = Vec::new();
    for (links, index) in kinds {
        for relationship in links.get(whole).into_iter().flatten() {
            let body: Body<M::Reference> = model.get(relationship).map_err(IfcError::Model)?.body;
            found.extend(references_at(&body, index));
        }
    }
    Ok(found)
}
