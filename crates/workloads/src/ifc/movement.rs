//! Moving an element, without moving what happens to share its coordinates.

use super::edit::{Edited, Recorder, set};
use super::schema::{is_root, placement, product};
use super::{Editor, IfcError, Kind, Model, Relations, Tag};
use crate::step::{Body, Entity, EntityId, Param};

/// Moves a product by `delta`, along the axes of what it is placed in and in the model's unit of length. What is
/// placed relative to it moves along.
///
/// Exporters let many placements share one point (the origin above all). What is shared is therefore copied first,
/// and only the product's own way to its coordinates is changed. `relations` tell what is shared; edits never make
/// anything shared, so relations taken at the import stay good.
///
/// # Errors
/// The entity is no product with a local placement in three dimensions, the sum is not a number, or the model fails.
pub fn shift<M: Editor>(
    model: &mut M,
    relations: &Relations<M::Reference>,
    element: &M::Reference,
    delta: [f64; 3],
    tag: &Tag,
) -> Edited<M> {
    let mut edit = Recorder::new(model);
    let way = way_to_point(&mut edit, element)?;
    let entity = way.product.entity.id;
    let (body, expected) = moved(&way.point, delta)?;
    let chain = [way.product, way.placement, way.axis, way.point];
    rewrite(&mut edit, relations, &chain, body)?;
    Ok(edit.finish(tag, entity, Kind::Move { delta, expected }))
}

/// An entity on the way from a product to its coordinates.
struct Step<R> {
    reference: R,
    entity: Entity<R>,
    /// The attribute that holds the next entity, or the coordinates.
    index: usize,
    attribute: &'static str,
}

struct Way<R> {
    product: Step<R>,
    placement: Step<R>,
    axis: Step<R>,
    point: Step<R>,
}

type Fallible<M, T> = Result<T, IfcError<<M as Model>::Error>>;

fn way_to_point<M: Editor>(
    edit: &mut Recorder<'_, M>,
    element: &M::Reference,
) -> Fallible<M, Way<M::Reference>> {
    let entity = edit.get(element)?;
    if !is_root(&entity.body)
        || !matches!(
            entity.body.param(product::OBJECT_PLACEMENT),
            Some(Param::Reference(_))
        )
    {
        return Err(IfcError::WrongKind {
            entity: entity.id,
            wanted: "a product with a placement",
        });
    }
    let reference = element.clone();
    let product = Step {
        reference,
        entity,
        index: product::OBJECT_PLACEMENT,
        attribute: "ObjectPlacement",
    };
    let placement = follow(
        edit,
        &product,
        "IFCLOCALPLACEMENT",
        placement::RELATIVE_PLACEMENT,
        "RelativePlacement",
    )?;
    let axis = follow(
        edit,
        &placement,
        "IFCAXIS2PLACEMENT3D",
        placement::LOCATION,
        "Location",
    )?;
    let point = follow(
        edit,
        &axis,
        "IFCCARTESIANPOINT",
        placement::COORDINATES,
        "Coordinates",
    )?;
    Ok(Way {
        product,
        placement,
        axis,
        point,
    })
}

fn follow<M: Editor>(
    edit: &mut Recorder<'_, M>,
    from: &Step<M::Reference>,
    keyword: &'static str,
    index: usize,
    attribute: &'static str,
) -> Fallible<M, Step<M::Reference>> {
    let fault = IfcError::BadAttribute {
        entity: from.entity.id,
        attribute: from.attribute,
    };
    let Some(reference) = from
        .entity
        .body
        .param(from.index)
        .and_then(Param::as_reference)
    else {
        return Err(fault);
    };
    let entity = edit.get(reference)?;
    if !entity.body.is(keyword) {
        return Err(IfcError::WrongKind {
            entity: entity.id,
            wanted: keyword,
        });
    }
    Ok(Step {
        reference: reference.clone(),
        entity,
        index,
        attribute,
    })
}

/// The point's new body, and its coordinates.
fn moved<R: Clone, E>(
    point: &Step<R>,
    delta: [f64; 3],
) -> Result<(Body<R>, [f64; 3]), IfcError<E>> {
    let entity: EntityId = point.entity.id;
    let fault = || IfcError::BadAttribute {
        entity,
        attribute: "Coordinates",
    };
    let mut body = point.entity.body.clone();
    let Some([Some(x), Some(y), Some(z)]) = body
        .param(point.index)
        .and_then(Param::as_list)
        .and_then(numbers)
    else {
        return Err(fault());
    };
    let expected = [x + delta[0], y + delta[1], z + delta[2]];
    let coordinates: Option<Vec<Param<R>>> = expected.into_iter().map(Param::real).collect();
    set(
        &mut body,
        entity,
        point.index,
        Param::List(coordinates.ok_or_else(fault)?),
        "Coordinates",
    )?;
    Ok((body, expected))
}

fn numbers<R>(members: &[Param<R>]) -> Option<[Option<f64>; 3]> {
    let [x, y, z] = members else { return None };
    Some([x, y, z].map(Param::as_number))
}

/// Gives the last entity of the chain a new body; from the first shared one on, everything is copied instead, and
/// the last one before that gets to refer to the copy.
fn rewrite<M: Editor>(
    edit: &mut Recorder<'_, M>,
    relations: &Relations<M::Reference>,
    chain: &[Step<M::Reference>],
    mut body: Body<M::Reference>,
) -> Fallible<M, ()> {
    let own = chain
        .iter()
        .position(|step| relations.shared.contains(&step.reference))
        .unwrap_or(chain.len());
    for (place, step) in chain.iter().enumerate().rev() {
        if place < own {
            return edit.replace(&step.reference, step.entity.id, body);
        }
        let copy = edit.create(body)?;
        let Some(user) = place.checked_sub(1).and_then(|before| chain.get(before)) else {
            break;
        };
        body = user.entity.body.clone();
        set(
            &mut body,
            user.entity.id,
            user.index,
            Param::Reference(copy),
            user.attribute,
        )?;
    }
    Ok(())
}
