//! The links that IFC keeps only backwards: a storey does not name its walls, a relationship names both.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::schema::{placement, relation};
use crate::step::{Body, Param};

/// For each object, the relationships that lead from it to its parts, its elements and its properties.
///
/// It names the relationship entities, not what is at their other end: a walk reads those in the model, and so sees
/// changes made to them since. It is plain data, so that a store can keep it beside the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relations<R: Ord> {
    /// All `IFCPROJECT`s; a valid model has one.
    pub projects: Vec<R>,
    /// From a whole, the `IFCRELAGGREGATES` that lead to its parts.
    pub parts: BTreeMap<R, Vec<R>>,
    /// From a place, the `IFCRELCONTAINEDINSPATIALSTRUCTURE` that lead to its elements.
    pub contents: BTreeMap<R, Vec<R>>,
    /// From an object, the `IFCRELDEFINESBYPROPERTIES` that lead to its property sets.
    pub properties: BTreeMap<R, Vec<R>>,
    /// Placements, axes and points that are used by more than one entity: moving them would move more than one thing.
    pub shared: BTreeSet<R>,
}

/// Gathers [`Relations`] from one pass over all entities, in any order.
#[derive(Clone, Debug)]
pub struct RelationsBuilder<R: Ord> {
    relations: Relations<R>,
    used: BTreeSet<R>,
    used_again: BTreeSet<R>,
    movable: BTreeSet<R>,
}

impl<R: Clone + Ord> Relations<R> {
    /// The relations of a model with these entities.
    pub fn of<'a>(entities: impl IntoIterator<Item = (R, &'a Body<R>)>) -> Self
    where
        R: 'a,
    {
        let mut builder = RelationsBuilder::default();
        for (reference, body) in entities {
            builder.add(&reference, body);
        }
        builder.finish()
    }
}

impl<R: Ord> Default for RelationsBuilder<R> {
    fn default() -> Self {
        Self {
            relations: Relations {
                projects: Vec::new(),
                parts: BTreeMap::new(),
                contents: BTreeMap::new(),
                properties: BTreeMap::new(),
                shared: BTreeSet::new(),
            },
            used: BTreeSet::new(),
            used_again: BTreeSet::new(),
            movable: BTreeSet::new(),
        }
    }
}

impl<R: Clone + Ord> RelationsBuilder<R> {
    /// Takes one entity into account.
    pub fn add(&mut self, reference: &R, body: &Body<R>) {
        self.count_uses(body);
        match body.keyword().to_ascii_uppercase().as_str() {
            "IFCPROJECT" => self.relations.projects.push(reference.clone()),
            "IFCRELAGGREGATES" => link(
                &mut self.relations.parts,
                reference,
                body,
                relation::RELATING_OBJECT,
            ),
            "IFCRELCONTAINEDINSPATIALSTRUCTURE" => {
                link(
                    &mut self.relations.contents,
                    reference,
                    body,
                    relation::RELATING_STRUCTURE,
                );
            }
            "IFCRELDEFINESBYPROPERTIES" => {
                link(
                    &mut self.relations.properties,
                    reference,
                    body,
                    relation::DESCRIBED_OBJECTS,
                );
            }
            "IFCLOCALPLACEMENT"
            | "IFCAXIS2PLACEMENT3D"
            | "IFCAXIS2PLACEMENT2D"
            | "IFCCARTESIANPOINT" => {
                self.movable.insert(reference.clone());
            }
            _ => {}
        }
    }

    /// The relations of all entities added.
    #[must_use]
    pub fn finish(mut self) -> Relations<R> {
        self.relations.shared = self
            .used_again
            .intersection(&self.movable)
            .cloned()
            .collect();
        self.relations
    }

    /// A placement that others are relative to is not shared by that: they are meant to move along.
    fn count_uses(&mut self, body: &Body<R>) {
        let mut first_counted = 0;
        if body.is("IFCLOCALPLACEMENT")
            && matches!(
                body.param(placement::PLACEMENT_REL_TO),
                Some(Param::Reference(_))
            )
        {
            first_counted = 1;
        }
        for user in body.references().into_iter().skip(first_counted) {
            if !self.used.insert(user.clone()) {
                self.used_again.insert(user.clone());
            }
        }
    }
}

/// Enters a relationship under every object that it leads from.
fn link<R: Clone + Ord>(
    links: &mut BTreeMap<R, Vec<R>>,
    relationship: &R,
    body: &Body<R>,
    from: usize,
) {
    for object in references_at(body, from) {
        links.entry(object).or_default().push(relationship.clone());
    }
}

/// The references in one attribute, whether it holds one, a list, or a typed list.
pub(super) fn references_at<R: Clone>(body: &Body<R>, index: usize) -> Vec<R> {
    let mut references = Vec::new();
    if let Some(param) = body.param(index) {
        param.for_each_ref(&mut |reference: &R| references.push(reference.clone()));
    }
    references
}
