//! A real building model, from the folder of test data that `THORP_TEST_DATA` names.

mod common;

use common::{real_model_bytes, written};
use thorp_workloads::ifc::{MemoryModel, Schema, property_sets, rename, shift, walk};
use thorp_workloads::step::{Body, EntityId, Stored, parse, restore};

/// The file without comments, and without the blanks and ends of lines that mean nothing. No string of this model
/// holds `= ` or two slashes and a star, which makes it this simple.
fn essence(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("= ", "=");
    let text = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    match (text.find("/*"), text.find("*/\n")) {
        (Some(from), Some(to)) => format!("{}{}", &text[..from], &text[to + 3..]),
        _ => text,
    }
}

#[test]
fn it_comes_out_as_it_went_in() {
    let Some(bytes) = real_model_bytes() else {
        return;
    };
    let file = parse(&bytes).unwrap();
    assert!(
        (20_700..20_800).contains(&file.entities.len()),
        "{}",
        file.entities.len()
    );
    assert_eq!(Schema::of(&file), Some(Schema::Ifc2x3));
    let out = written(&file);
    assert_eq!(parse(&out).as_ref(), Ok(&file));
    assert!(
        essence(&out) == essence(&bytes),
        "the export differs from the original"
    );
}

#[test]
fn it_goes_through_stored_bytes_and_back() {
    let Some(bytes) = real_model_bytes() else {
        return;
    };
    let file = parse(&bytes).unwrap();
    let mut total = 0;
    let mut stored = Vec::new();
    for entity in file.stored() {
        let Stored { id, order, body } = entity;
        let value = postcard::to_allocvec(&Stored {
            id,
            order,
            body: body.map_refs(&mut |id| (id.0, 7_u8)),
        })
        .unwrap();
        total += value.len();
        let Stored { id, order, body } = postcard::from_bytes::<Stored<(u64, u8)>>(&value).unwrap();
        let body: Body = body.map_refs(&mut |(number, _)| EntityId(number));
        stored.push(Stored { id, order, body });
    }
    eprintln!(
        "{} objects, {} bytes on average",
        stored.len(),
        total / stored.len()
    );
    stored.reverse();
    assert!(restore(file.header.clone(), file.data.clone(), stored).unwrap() == file);
}

#[test]
fn it_is_walked_and_edited() {
    let Some(bytes) = real_model_bytes() else {
        return;
    };
    let file = parse(&bytes).unwrap();
    let count = |keyword: &str| {
        file.entities
            .iter()
            .filter(|entity| entity.body.is(keyword))
            .count()
    };
    let (doors, walls, spaces) = (
        count("IFCDOOR"),
        count("IFCWALLSTANDARDCASE"),
        count("IFCSPACE"),
    );
    let mut model = MemoryModel::new(file);
    let relations = model.relations();
    let nodes = walk(&mut model, &relations).unwrap();
    let met = |keyword: &str| {
        nodes
            .iter()
            .filter(|node| node.entity.body.is(keyword))
            .count()
    };
    assert_eq!(
        (met("IFCDOOR"), met("IFCWALLSTANDARDCASE"), met("IFCSPACE")),
        (doors, walls, spaces)
    );
    let wall = &nodes
        .iter()
        .find(|node| node.entity.body.is("IFCWALLSTANDARDCASE"))
        .unwrap()
        .reference;
    assert!(
        !property_sets(&mut model, &relations, wall)
            .unwrap()
            .is_empty()
    );
    rename(&mut model, wall, &"r-1".parse().unwrap()).unwrap();
    shift(
        &mut model,
        &relations,
        wall,
        [100., 0., 0.],
        &"m-1".parse().unwrap(),
    )
    .unwrap();
    assert_eq!(parse(&written(model.file())).as_ref(), Ok(model.file()));
}
