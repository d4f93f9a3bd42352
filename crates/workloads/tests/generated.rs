//! The generated building: whole, repeatable, and walked from top to bottom.

use std::collections::BTreeSet;

use thorp_workloads::ifc::{
    MemoryModel, Plan, Schema, generate, name_of, property_sets, reach, walk,
};
use thorp_workloads::step::{EntityId, StepFile, parse, write};

const SCHEMAS: [Schema; 3] = [Schema::Ifc2x3, Schema::Ifc4, Schema::Ifc4x3];

fn plan(schema: Schema) -> Plan {
    Plan {
        schema,
        floors: 2,
        rooms_per_floor: 5,
        ..Plan::default()
    }
}

fn written(file: &StepFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(file, &mut bytes).expect("memory takes what is written");
    bytes
}

fn count(file: &StepFile, keyword: &str) -> usize {
    file.entities
        .iter()
        .filter(|entity| entity.body.is(keyword))
        .count()
}

#[test]
fn it_reads_back_as_it_was_made() {
    for schema in SCHEMAS {
        let building = generate(&plan(schema));
        assert_eq!(parse(&written(&building)).as_ref(), Ok(&building));
        assert_eq!(Schema::of(&building), Some(schema));
    }
}

#[test]
fn the_plan_alone_decides() {
    let one = plan(Schema::Ifc4);
    assert_eq!(generate(&one), generate(&one));
    assert_ne!(generate(&one), generate(&Plan { seed: 2, ..one }));
}

#[test]
fn global_ids_are_distinct() {
    let building = generate(&plan(Schema::Ifc4));
    let roots: Vec<_> = building
        .entities
        .iter()
        .filter(|entity| {
            entity.body.as_simple().is_some_and(|record| {
                record
                    .params
                    .first()
                    .and_then(|param| param.as_text())
                    .is_some_and(|text| text.as_bytes().len() == 22)
            })
        })
        .collect();
    let ids: BTreeSet<_> = roots
        .iter()
        .map(|entity| entity.body.param(0).unwrap().as_text().unwrap())
        .collect();
    assert_eq!(ids.len(), roots.len());
    assert!(ids.len() > 100);
}

#[test]
fn everything_planned_is_built_and_met_on_the_walk() {
    let building = generate(&plan(Schema::Ifc2x3));
    for (keyword, expected) in [
        ("IFCBUILDINGSTOREY", 2),
        ("IFCSPACE", 10),
        ("IFCDOOR", 10),
        ("IFCWINDOW", 10),
        ("IFCSLAB", 2),
        ("IFCWALL", 34),
    ] {
        assert_eq!(count(&building, keyword), expected, "{keyword}");
    }
    let mut model = MemoryModel::new(building);
    let relations = model.relations();
    let nodes = walk(&mut model, &relations).unwrap();
    // The project, site and building, and all of the above; openings belong to their walls only.
    assert_eq!(nodes.len(), 3 + 2 + 10 + 10 + 10 + 2 + 34);
    assert_eq!(nodes[0].depth, 0);
    assert!(nodes[1].entity.body.is("IFCSITE") && nodes[2].entity.body.is("IFCBUILDING"));
    assert_eq!(nodes[3].name().as_deref(), Some("Level 0"));
    let wall = nodes
        .iter()
        .find(|node| node.entity.body.is("IFCWALL"))
        .unwrap();
    let sets = property_sets(&mut model, &relations, &wall.reference).unwrap();
    assert_eq!(sets.len(), 1);
    assert_eq!(name_of(&sets[0].entity.body).as_deref(), Some("Thorp_Wall"));
    let seen = reach(&mut model, &wall.reference, 1_000).unwrap();
    assert!(
        seen.iter()
            .any(|node| node.entity.body.is("IFCRECTANGLEPROFILEDEF"))
    );
    assert_eq!(reach(&mut model, &wall.reference, 3).unwrap().len(), 3);
}

#[test]
fn the_smallest_plan_is_a_building_still() {
    let nothing = Plan {
        floors: 0,
        rooms_per_floor: 0,
        ..Plan::default()
    };
    let building = generate(&nothing);
    assert_eq!(count(&building, "IFCSPACE"), 1);
    assert_eq!(
        building.entities.first().map(|entity| entity.id),
        Some(EntityId(1))
    );
}
