//! The demo's edits change exactly what they say, also where entities are shared.

use thorp_workloads::ifc::{
    Edit, EditRecord, IfcError, Kind, MemoryModel, NotFound, Plan, Tag, add_property, generate,
    name_of, rename, shift, walk,
};
use thorp_workloads::step::{EntityId, StepFile, parse};

/// Two walls at #20 and #30 whose placements share a point (#1), two (#40, #50) that share an axis (#3), one (#60)
/// that shares its placement with #70.
const SHARING: &str = "ISO-10303-21;HEADER;ENDSEC;DATA;
#1=IFCCARTESIANPOINT((1.,2.,3.));
#2=IFCCARTESIANPOINT((0.,0.,0.));
#3=IFCAXIS2PLACEMENT3D(#2,$,$);
#21=IFCAXIS2PLACEMENT3D(#1,$,$);#22=IFCLOCALPLACEMENT($,#21);
#20=IFCWALL('2nxdYR2RHCDBiKJulbA_Q0',$,$,$,$,#22,$,$);
#31=IFCAXIS2PLACEMENT3D(#1,$,$);#32=IFCLOCALPLACEMENT(#22,#31);
#30=IFCWALL('2nxdYR2RHCDBiKJulbA_Q1',$,'B',$,$,#32,$,$);
#42=IFCLOCALPLACEMENT(#22,#3);#40=IFCWALL('2nxdYR2RHCDBiKJulbA_Q2',$,'C',$,$,#42,$,$);
#52=IFCLOCALPLACEMENT($,#3);#50=IFCWALL('2nxdYR2RHCDBiKJulbA_Q3',$,'D',$,$,#52,$,$);
#63=IFCCARTESIANPOINT((5,0.,0.));#61=IFCAXIS2PLACEMENT3D(#63,$,$);#62=IFCLOCALPLACEMENT($,#61);
#60=IFCWALL('2nxdYR2RHCDBiKJulbA_Q4',$,'E',$,$,#62,$,$);
#70=IFCWALL('2nxdYR2RHCDBiKJulbA_Q5',$,'F',$,$,#62,$,$);
#83=IFCCARTESIANPOINT((5.,5.));#81=IFCAXIS2PLACEMENT2D(#83,$);#82=IFCLOCALPLACEMENT($,#81);
#80=IFCWALL('2nxdYR2RHCDBiKJulbA_Q6',$,'G',$,$,#82,$,$);
#90=IFCPROPERTYSET('2nxdYR2RHCDBiKJulbA_Q7',$,'Set',$,(#91));
#91=IFCPROPERTYSINGLEVALUE('old',$,IFCLABEL('x'),$);
ENDSEC;END-ISO-10303-21;";

fn tag(text: &str) -> Tag {
    text.parse().expect("a good tag")
}

fn sharing() -> MemoryModel {
    MemoryModel::new(parse(SHARING.as_bytes()).expect("a good file"))
}

fn spelled(file: &StepFile, id: u64) -> String {
    let alone = StepFile {
        entities: file
            .entities
            .iter()
            .filter(|entity| entity.id.0 == id)
            .cloned()
            .collect(),
        ..StepFile::default()
    };
    let mut bytes = Vec::new();
    thorp_workloads::step::write(&alone, &mut bytes).expect("memory takes what is written");
    let text = String::from_utf8(bytes).expect("ASCII");
    text.lines()
        .find(|line| line.starts_with('#'))
        .unwrap_or_default()
        .to_owned()
}

fn move_by_one(model: &mut MemoryModel, element: u64) -> Edit<EntityId> {
    let relations = sharing().relations();
    shift(
        model,
        &relations,
        &EntityId(element),
        [1., 0., 0.25],
        &tag("m"),
    )
    .expect("can be moved")
}

fn ids(edit: &[EntityId]) -> Vec<u64> {
    edit.iter().map(|id| id.0).collect()
}

/// The entities that differ from the original, and those that are new.
fn differing(model: &MemoryModel) -> Vec<u64> {
    let original = sharing();
    let known = &original.file().entities;
    model
        .file()
        .entities
        .iter()
        .filter(|entity| !known.contains(entity))
        .map(|entity| entity.id.0)
        .collect()
}

#[test]
fn names_gather_tags() {
    let mut model = sharing();
    let first = rename(&mut model, &EntityId(30), &tag("a-1")).unwrap();
    assert_eq!(
        first.record.kind,
        Kind::Rename {
            expected: "B [a-1]".into()
        }
    );
    rename(&mut model, &EntityId(30), &tag("a-2")).unwrap();
    rename(&mut model, &EntityId(20), &tag("a-3")).unwrap();
    assert_eq!(
        name_of(&model.file().entities[8].body).as_deref(),
        Some("B [a-1] [a-2]")
    );
    assert_eq!(
        spelled(model.file(), 20),
        "#20=IFCWALL('2nxdYR2RHCDBiKJulbA_Q0',$,'[a-3]',$,$,#22,$,$);"
    );
    assert_eq!(differing(&model), [20, 30]);
}

#[test]
fn what_has_no_name_is_not_renamed() {
    let mut model = sharing();
    let refused = rename(&mut model, &EntityId(1), &tag("a")).unwrap_err();
    assert!(
        matches!(
            refused,
            IfcError::WrongKind {
                entity: EntityId(1),
                ..
            }
        ),
        "{refused}"
    );
    let missing = rename(&mut model, &EntityId(1_000), &tag("a")).unwrap_err();
    assert_eq!(missing, IfcError::Model(NotFound(EntityId(1_000))));
    for number in 0.. {
        if let Err(error) = rename(&mut model, &EntityId(30), &tag(&format!("t-{number}"))) {
            assert_eq!(error, IfcError::TooLong(EntityId(30)));
            break;
        }
    }
}

#[test]
fn a_shared_point_is_copied_before_it_moves() {
    let mut model = sharing();
    let edit = move_by_one(&mut model, 20);
    assert_eq!(
        (ids(&edit.rewritten), ids(&edit.created)),
        (vec![21], vec![92])
    );
    assert_eq!(ids(&edit.read), [20, 22, 21, 1]);
    assert_eq!(
        edit.record.kind,
        Kind::Move {
            delta: [1., 0., 0.25],
            expected: [2., 2., 3.25]
        }
    );
    assert_eq!(
        spelled(model.file(), 92),
        "#92=IFCCARTESIANPOINT((2.,2.,3.25));"
    );
    assert_eq!(differing(&model), [21, 92]);
    // The copy is the wall's own, so the next move changes just that.
    let again = move_by_one(&mut model, 20);
    assert_eq!(
        (ids(&again.rewritten), ids(&again.created)),
        (vec![92], vec![])
    );
}

#[test]
fn a_shared_axis_or_placement_is_copied_too() {
    let mut model = sharing();
    let edit = move_by_one(&mut model, 40);
    assert_eq!(
        (ids(&edit.rewritten), ids(&edit.created)),
        (vec![42], vec![92, 93])
    );
    assert_eq!(spelled(model.file(), 42), "#42=IFCLOCALPLACEMENT(#22,#93);");
    let edit = move_by_one(&mut model, 60);
    assert_eq!(
        (ids(&edit.rewritten), ids(&edit.created)),
        (vec![60], vec![94, 95, 96])
    );
    assert_eq!(
        spelled(model.file(), 94),
        "#94=IFCCARTESIANPOINT((6.,0.,0.25));"
    );
    assert_eq!(differing(&model), [42, 60, 92, 93, 94, 95, 96]);
}

#[test]
fn what_cannot_be_moved_is_refused_and_left_alone() {
    let mut model = sharing();
    let relations = model.relations();
    for element in [80, 90, 1] {
        let refused = shift(
            &mut model,
            &relations,
            &EntityId(element),
            [1.; 3],
            &tag("m"),
        )
        .unwrap_err();
        assert!(matches!(refused, IfcError::WrongKind { .. }), "{refused}");
    }
    let refused = shift(
        &mut model,
        &relations,
        &EntityId(20),
        [f64::NAN, 0., 0.],
        &tag("m"),
    )
    .unwrap_err();
    assert_eq!(
        refused,
        IfcError::BadAttribute {
            entity: EntityId(1),
            attribute: "Coordinates"
        }
    );
    assert!(differing(&model).is_empty());
}

#[test]
fn a_property_is_added_to_its_set() {
    let mut model = sharing();
    let edit = add_property(&mut model, &EntityId(90), "it's", &tag("p-1")).unwrap();
    assert_eq!(
        (ids(&edit.rewritten), ids(&edit.created)),
        (vec![90], vec![92])
    );
    assert_eq!(
        spelled(model.file(), 90),
        "#90=IFCPROPERTYSET('2nxdYR2RHCDBiKJulbA_Q7',$,'Set',$,(#91,#92));"
    );
    assert_eq!(
        spelled(model.file(), 92),
        "#92=IFCPROPERTYSINGLEVALUE('Note [p-1]',$,IFCLABEL('it''s'),$);"
    );
    assert!(matches!(
        add_property(&mut model, &EntityId(20), "", &tag("p")),
        Err(IfcError::WrongKind { .. })
    ));
}

#[test]
fn records_are_the_json_that_the_checker_reads() {
    let mut model = sharing();
    let record = move_by_one(&mut model, 20).record;
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(
        json,
        "{\"tag\":\"m\",\"entity\":20,\"kind\":\"move\",\"delta\":[1.0,0.0,0.25],\"expected\":[2.0,2.0,3.25],\
         \"rewritten\":[21],\"created\":[92]}"
    );
    assert_eq!(serde_json::from_str::<EditRecord>(&json).unwrap(), record);
    assert!(serde_json::from_str::<Tag>("\"a]b\"").is_err());
    assert!("".parse::<Tag>().is_err());
}

#[test]
fn every_element_of_a_generated_building_can_be_edited() {
    let mut model = MemoryModel::new(generate(&Plan {
        floors: 1,
        rooms_per_floor: 3,
        ..Plan::default()
    }));
    let relations = model.relations();
    for node in walk(&mut model, &relations).unwrap().into_iter().skip(1) {
        let moved = shift(
            &mut model,
            &relations,
            &node.reference,
            [0., 0., 1.],
            &tag("m"),
        )
        .unwrap();
        assert_eq!((moved.rewritten.len(), moved.created.len()), (1, 0));
        rename(&mut model, &node.reference, &tag("r")).unwrap();
    }
}

#[test]
fn a_model_without_a_project_is_not_walked() {
    let mut model = sharing();
    let relations = model.relations();
    assert_eq!(walk(&mut model, &relations), Err(IfcError::NoSingleProject));
}
