//! The work that members of the demo do.

use super::member::{measured, progress};
use super::wire::Done;
use crate::commands::ifc as building;
use crate::failure::Failure;
use std::path::Path;
use std::time::{Duration, Instant};
use thorp_client::Reference;
use thorp_workloads::ifc::store::{self, Building, Desk};
use thorp_workloads::ifc::{self, EditRecord, IfcError, Tag};
use thorp_workloads::objects::{MemberStore, Store};
use thorp_workloads::oo7::{self, Config, Module, Traversal};

/// Makes an OO7 module.
pub(super) fn build(store: &MemberStore) -> Result<Done, Failure> {
    let (_, spent) = measured(store.member(), || Ok(oo7::build(store, &Config::small())?))?;
    Ok(Done {
        spent,
        ..Done::default()
    })
}

/// One traversal in one transaction.
pub(super) fn traverse(store: &MemberStore, writing: bool, number: usize) -> Result<Done, Failure> {
    let start = u32::try_from(number).unwrap_or(0);
    let traversal = if writing {
        Traversal::T2b
    } else {
        Traversal::T1
    };
    let (done, spent) = measured(store.member(), || {
        let Some(module) = Module::open(store)? else {
            return Err(Failure::new("the segment holds no OO7 module", ""));
        };
        Ok(store.transact(|objects| oo7::traverse_from(objects, &module, traversal, start))?)
    })?;
    Ok(Done {
        spent,
        count: done.counts.atomic_visits,
        ..Done::default()
    })
}

/// Imports an IFC file.
pub(super) fn import(store: &MemberStore, file: &Path) -> Result<Done, Failure> {
    let model = building::read_file(file)?;
    let (imported, spent) = measured(store.member(), || Ok(store::import(store, &model)?))?;
    Ok(Done {
        spent,
        count: imported.imported(),
        ..Done::default()
    })
}

/// Writes the building to a file, as it is at one moment.
pub(super) fn export(store: &MemberStore, file: &Path) -> Result<Done, Failure> {
    let (model, spent) = measured(store.member(), || Ok(Building::open(store)?.export(store)?))?;
    building::write_file(&model, file)?;
    Ok(Done {
        spent,
        count: model.entities.len() as u64,
        ..Done::default()
    })
}

/// Walks through all of a building, then edits it while others do.
pub(super) fn walk_and_edit(
    store: &MemberStore,
    who: &str,
    number: usize,
    edits: u32,
) -> Result<Done, Failure> {
    let mut watch = store.segment().watch()?;
    let (walked, walk) = measured(store.member(), || look_around(store, number))?;
    let desk = walked.building.take_desk(store)?;
    let mut done = Done {
        walk,
        count: walked.met,
        ..Done::default()
    };
    let mut last = Instant::now();
    let ((), spent) = measured(store.member(), || {
        for turn in 0..edits {
            let start = Instant::now();
            let tag = format!("{who}-{turn}");
            let tag: Tag = tag.parse().map_err(|why: &str| Failure::new(why, ""))?;
            let place = walked.choose(number, turn);
            done.edits
                .push(edit(store, &walked, &desk, place, turn, &tag)?);
            done.edit_ms.push(start.elapsed().as_secs_f64() * 1000.);
            progress(&mut last, || format!("edit {} of {edits}", turn + 1));
        }
        Ok(())
    })?;
    done.spent = spent;
    while let Some(changed) = watch.next(Duration::ZERO)? {
        done.heard += changed.changes.len() as u64;
    }
    Ok(done)
}

/// What a walk has found.
struct Walked {
    building: Building,
    places: Vec<Place>,
    met: u64,
}

/// Something to edit: an element and one of its property sets.
#[derive(Clone)]
struct Place {
    element: Reference,
    properties: Reference,
}

impl Walked {
    /// One edit in three is where all others make one too, at about the same time.
    fn choose(&self, number: usize, turn: u32) -> &Place {
        let turn = turn as usize;
        let own = (number * 31 + turn * 7) % self.places.len();
        let shared = (turn / 3) % self.places.len();
        &self.places[if turn % 3 == (turn / 3) % 3 {
            shared
        } else {
            own
        }]
    }
}

/// Looks at everything in the building in one transaction; each member begins somewhere else.
fn look_around(store: &MemberStore, number: usize) -> Result<Walked, Failure> {
    let building = Building::open(store)?;
    let relations = building.relations();
    let (places, met) = building.read(store, |model| {
        let mut nodes = ifc::walk(model, relations)?;
        let begin = number * nodes.len() / (MEMBERS_ABOUT).max(number + 1);
        let begin = begin.min(nodes.len());
        nodes.rotate_left(begin);
        let mut met = 0;
        let mut places = Vec::new();
        for node in &nodes {
            met += ifc::reach(model, &node.reference, REACH_MAX)?.len() as u64;
            let sets = ifc::property_sets(model, relations, &node.reference)?;
            if let Some(set) = sets.first().filter(|_| node.depth >= 3) {
                places.push(Place {
                    element: node.reference,
                    properties: set.reference,
                });
            }
        }
        Ok((places, met))
    })?;
    let mut places: Vec<Place> = places;
    // The same order for all, wherever they began.
    places.sort_by_key(|place| place.element);
    if places.is_empty() {
        let todo = "give a model in which elements have property sets";
        return Err(Failure::new("nothing in the model can be edited", todo));
    }
    Ok(Walked {
        building,
        places,
        met,
    })
}

/// One edit, in one transaction, of the kind whose turn it is.
fn edit(
    store: &MemberStore,
    walked: &Walked,
    desk: &Desk,
    place: &Place,
    turn: u32,
    tag: &Tag,
) -> Result<EditRecord, Failure> {
    let relations = walked.building.relations();
    let edit = desk.edit(store, |model| match turn % 3 {
        0 => ifc::rename(model, &place.element, tag),
        1 => match ifc::shift(model, relations, &place.element, DELTA, tag) {
            // What has no place of its own cannot be moved, but it has a name.
            Err(IfcError::WrongKind { .. } | IfcError::BadAttribute { .. }) => {
                ifc::rename(model, &place.element, tag)
            }
            moved => moved,
        },
        _ => ifc::add_property(model, &place.properties, "seen at the demo", tag),
    })?;
    Ok(edit.record)
}

/// Between which the beginnings of walks are spread.
const MEMBERS_ABOUT: usize = 6;
/// Entities that are looked at for one object.
const REACH_MAX: usize = 400;
/// Of a move, in the model's unit.
const DELTA: [f64; 3] = [0.25, -0.5, 0.125];
