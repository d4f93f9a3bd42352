//! A building made up: storeys of rooms on both sides of a corridor, with walls, slabs, doors, windows and properties.
//!
//! It is valid in its schema, depends on nothing but its plan, and is as large as wanted: about 110 entities a room.

mod builder;
mod parts;
mod storey;

use builder::Builder;

use super::Schema;
use crate::step::{EntityId, Param, Record, StepFile};

/// What building to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The schema of the file.
    pub schema: Schema,
    /// How many storeys; at least one is built.
    pub floors: u32,
    /// How many rooms on each; at least one is built.
    pub rooms_per_floor: u32,
    /// What GlobalIds and properties follow from.
    pub seed: u64,
    /// The building's name.
    pub name: String,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            schema: Schema::Ifc4,
            floors: 4,
            rooms_per_floor: 12,
            seed: 1,
            name: "Thorp House".to_owned(),
        }
    }
}

/// Makes the building. The same plan gives the same file.
#[must_use]
pub fn generate(plan: &Plan) -> StepFile {
    let mut builder = Builder::new(plan.schema, plan.seed);
    let site = site(&mut builder, plan);
    let building = building(&mut builder, plan, site);
    let storeys: Vec<EntityId> = (0..plan.floors.max(1))
        .map(|floor| storey::build(&mut builder, building, floor, plan.rooms_per_floor.max(1)))
        .collect();
    builder.aggregate(building.object, &storeys);
    builder.finish(header(plan))
}

/// An object with a place of its own, that others can be placed in.
#[derive(Clone, Copy, Debug)]
struct Placed {
    object: EntityId,
    placement: EntityId,
}

/// The project and its site.
fn site(builder: &mut Builder, plan: &Plan) -> Placed {
    let project = builder.project(&plan.name);
    let placement = builder.placement(None, [0., 0., 0.], false);
    let tail = vec![
        Param::Null,
        Param::enumeration("ELEMENT"),
        angle(51, 25),
        angle(0, 7),
        Param::Null,
        Param::Null,
        Param::Null,
    ];
    let object = builder.product("IFCSITE", "Green", placement, None, tail);
    builder.aggregate(project, &[object]);
    Placed { object, placement }
}

fn building(builder: &mut Builder, plan: &Plan, site: Placed) -> Placed {
    let placement = builder.placement(Some(site.placement), [0., 0., 0.], false);
    let tail = vec![
        Param::Null,
        Param::enumeration("ELEMENT"),
        Param::Null,
        Param::Null,
        Param::Null,
    ];
    let object = builder.product("IFCBUILDING", &plan.name, placement, None, tail);
    builder.aggregate(site.object, &[object]);
    Placed { object, placement }
}

/// Degrees, minutes and no seconds.
fn angle(degrees: i64, minutes: i64) -> Param {
    Param::List(vec![
        Param::integer(degrees),
        Param::integer(minutes),
        Param::integer(0),
    ])
}

fn header(plan: &Plan) -> Vec<Record> {
    let empty = || Param::List(vec![Param::text("")]);
    // The time of writing would make two files of one plan differ.
    let time = Param::text("2000-01-01T00:00:00");
    vec![
        Record::new(
            "FILE_DESCRIPTION",
            vec![
                Param::List(vec![Param::text("ViewDefinition [CoordinationView]")]),
                Param::text("2;1"),
            ],
        ),
        Record::new(
            "FILE_NAME",
            vec![
                Param::text(&plan.name),
                time,
                empty(),
                empty(),
                Param::text("Thorp"),
                Param::text("Thorp"),
                Param::text(""),
            ],
        ),
        Record::new(
            "FILE_SCHEMA",
            vec![Param::List(vec![Param::text(plan.schema.name())])],
        ),
    ]
}
