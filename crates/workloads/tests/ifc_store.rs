//! A building goes into a store, is edited there, and comes out as a file in memory that was edited the same way.

mod common;

use common::real_model_bytes;
use thorp_workloads::ifc::store::{Building, StoreError, import};
use thorp_workloads::ifc::{
    Edit, IfcError, MemoryModel, Model, Plan, Tag, add_property, generate, property_sets, rename,
    shift, walk,
};
use thorp_workloads::objects::MemoryStore;
use thorp_workloads::step::{EntityId, StepFile, parse};

/// Uses before definitions, and a ring of uses.
const FORWARD: &str = "ISO-10303-21;HEADER;FILE_SCHEMA(('IFC4'));ENDSEC;DATA('a',(1));
#5=IFCAXIS2PLACEMENT3D(#9,$,$);
#9=IFCCARTESIANPOINT((1.,2.,3.));
#1=IFCA(#2);
#2=IFCB((#1,#5),IFCLABEL('x'));
#7=IFCPROJECT('2nxdYR2RHCDBiKJulbA_Q0',$,$,$,$,$,$,$,$);
ENDSEC;END-ISO-10303-21;";

fn tag(text: &str) -> Tag {
    text.parse().expect("a good tag")
}

fn imported(file: &StepFile) -> (MemoryStore, Building) {
    let store = MemoryStore::new();
    let building = import(&store, file).expect("memory has room");
    (store, building)
}

fn house() -> StepFile {
    generate(&Plan {
        floors: 2,
        rooms_per_floor: 4,
        ..Plan::default()
    })
}

#[test]
fn files_come_out_as_they_went_in() {
    let forward = parse(FORWARD.as_bytes()).expect("a good file");
    for file in [forward, house(), StepFile::default()] {
        let (store, building) = imported(&file);
        assert!(building.export(&store).expect("whole") == file);
        let opened = Building::open(&store).expect("it is there");
        assert_eq!(opened.relations(), building.relations());
        assert_eq!(opened.imported(), file.entities.len() as u64);
    }
}

#[test]
fn a_segment_has_one_building_or_none() {
    let store = MemoryStore::new();
    assert!(matches!(Building::open(&store), Err(StoreError::NoModel)));
    import(&store, &house()).expect("memory has room");
    let again = import(&store, &house());
    assert!(matches!(again, Err(StoreError::ModelExists)));
}

#[test]
fn a_file_with_a_hole_is_refused() {
    let mut file = house();
    let lost = file.entities.remove(0);
    let refused = import(&MemoryStore::new(), &file);
    assert!(matches!(refused, Err(StoreError::Dangling(id)) if id == lost.id));
}

/// What an edit did, by numbers.
fn record<R>(edit: Edit<R>) -> thorp_workloads::ifc::EditRecord {
    edit.record
}

/// Makes the same edits in memory and in the store: each named object is renamed, moved and noted on.
fn edit_both(file: &StepFile, count: usize) {
    let mut memory = MemoryModel::new(file.clone());
    let (store, building) = imported(file);
    let desk = building.take_desk(&store).expect("a desk");
    let relations = memory.relations();
    let nodes = walk(&mut memory, &relations).expect("a project");
    let walked = building
        .read(&store, |model| walk(model, building.relations()))
        .expect("a project");
    assert_eq!(nodes.len(), walked.len());
    for (here, there) in nodes.iter().zip(&walked) {
        assert_eq!((here.entity.id, here.depth), (there.entity.id, there.depth));
    }
    let pairs = nodes.iter().zip(&walked).take(count);
    for (number, (here, there)) in pairs.enumerate() {
        let mark = tag(&format!("r-{number}"));
        let expected = rename(&mut memory, &here.reference, &mark).map(record);
        let edit = desk.edit(&store, |model| rename(model, &there.reference, &mark));
        assert_eq!(expected.ok(), edit.map(record).ok());
        let mark = tag(&format!("m-{number}"));
        let delta = [1.5, 0., number as f64];
        let expected = shift(&mut memory, &relations, &here.reference, delta, &mark).map(record);
        let edit = desk.edit(&store, |model| {
            shift(model, building.relations(), &there.reference, delta, &mark)
        });
        assert_eq!(expected.ok(), edit.map(record).ok());
        let mark = tag(&format!("p-{number}"));
        let sets = property_sets(&mut memory, &relations, &here.reference).expect("in memory");
        let expected = sets.first().map(|set| {
            add_property(&mut memory, &set.reference, "5 °C", &mark)
                .map(record)
                .expect("a set")
        });
        let edit = desk.edit(&store, |model| {
            let sets = property_sets(model, building.relations(), &there.reference)?;
            let noted = sets
                .first()
                .map(|set| add_property(model, &set.reference, "5 °C", &mark));
            noted.transpose()
        });
        assert_eq!(expected, edit.expect("in memory").map(record));
    }
    assert!(building.export(&store).expect("whole") == *memory.file());
}

#[test]
fn edits_in_the_store_are_edits_in_memory() {
    edit_both(&house(), usize::MAX);
}

#[test]
fn the_real_model_is_edited_like_any() {
    let Some(bytes) = real_model_bytes() else {
        return;
    };
    edit_both(&parse(&bytes).expect("a good file"), 50);
}

#[test]
fn each_editor_has_numbers_of_its_own() {
    let file = house();
    let (store, building) = imported(&file);
    let desks = [0, 1].map(|_| building.take_desk(&store).expect("a desk"));
    let set = building
        .index(&store)
        .expect("memory")
        .into_iter()
        .find(|(id, _)| {
            let entity = file.entities.iter().find(|entity| entity.id == *id);
            entity.is_some_and(|entity| entity.body.is("IFCPROPERTYSET"))
        });
    let (_, set) = set.expect("a set");
    // More than a desk's open page holds, and more than one range of numbers has.
    let edits = 1_100;
    for number in 0..edits {
        let desk = desks[usize::from(number % 11 == 0)];
        let mark = tag(&format!("p-{number}"));
        desk.edit(&store, |model| add_property(model, &set, "x", &mark))
            .expect("a set");
    }
    let exported = building.export(&store).expect("whole");
    assert_eq!(exported.entities.len(), file.entities.len() + edits);
    let reread = parse(&common::written(&exported)).expect("each number once");
    assert!(reread == exported);
}

#[test]
fn an_edit_that_fails_changes_nothing() {
    let file = house();
    let (store, building) = imported(&file);
    let desk = building.take_desk(&store).expect("a desk");
    let (_, first) = building.index(&store).expect("memory")[0];
    let refused = desk.edit(&store, |model| {
        let entity = model.get(&first).map_err(IfcError::Model)?;
        thorp_workloads::ifc::Editor::create(model, entity.body).map_err(IfcError::Model)?;
        Err::<(), _>(IfcError::NoSingleProject)
    });
    assert!(matches!(
        refused,
        Err(StoreError::Ifc(IfcError::NoSingleProject))
    ));
    assert!(building.export(&store).expect("whole") == file);
    assert!(
        building
            .index(&store)
            .expect("memory")
            .iter()
            .all(|(id, _)| *id <= EntityId(file.id_max().0))
    );
}
