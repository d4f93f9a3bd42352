//! Makes a building, or reads one, edits it, and writes what `scripts/check_ifc.py` checks:
//!
//! ```text
//! cargo run -p thorp-workloads --example ifc_trial -- generate IFC4 4 12 house.ifc
//! cargo run -p thorp-workloads --example ifc_trial -- edit house.ifc export.ifc edits.json 20
//! python3 scripts/check_ifc.py house.ifc export.ifc edits.json
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::process::ExitCode;

use thorp_workloads::ifc::{self, EditRecord, MemoryModel, Plan, Schema, Tag};
use thorp_workloads::step::{self, EntityId};

const USAGE: &str = "usage: ifc_trial generate IFC2X3|IFC4|IFC4X3 FLOORS ROOMS_PER_FLOOR FILE
       ifc_trial edit ORIGINAL EXPORT EDITS.json EDITS_OF_EACH_KIND";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["generate", schema, floors, rooms, file] => generate(schema, floors, rooms, file),
        ["edit", original, export, edits, count] => edit(original, export, edits, count),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn generate(schema: &str, floors: &str, rooms: &str, file: &str) -> Outcome {
    let schema = match schema {
        "IFC2X3" => Schema::Ifc2x3,
        "IFC4" => Schema::Ifc4,
        "IFC4X3" => Schema::Ifc4x3,
        _ => return Err(USAGE.into()),
    };
    let plan = Plan {
        schema,
        floors: floors.parse()?,
        rooms_per_floor: rooms.parse()?,
        ..Plan::default()
    };
    let building = ifc::generate(&plan);
    step::write(&building, File::create(file)?)?;
    println!("{} entities", building.entities.len());
    Ok(())
}

fn edit(original: &str, export: &str, edits: &str, count: &str) -> Outcome {
    let mut model = MemoryModel::new(step::parse(&fs::read(original)?)?);
    let relations = model.relations();
    let elements: Vec<EntityId> = ifc::walk(&mut model, &relations)?
        .into_iter()
        .filter(|node| relations.properties.contains_key(&node.reference) && node.depth >= 3)
        .map(|node| node.reference)
        .collect();
    let mut records: Vec<EditRecord> = Vec::new();
    // Around the elements again if there are fewer than edits: then some have several.
    for (number, element) in (0..count.parse()?).zip(elements.iter().cycle()) {
        let tag = |kind: &str| format!("{kind}-{number}").parse::<Tag>();
        records.push(ifc::rename(&mut model, element, &tag("r")?)?.record);
        // What stands in a storey by no more than its name has nothing to move.
        if let Ok(moved) = ifc::shift(
            &mut model,
            &relations,
            element,
            [250., 0.5, f64::from(number)],
            &tag("m")?,
        ) {
            records.push(moved.record);
        }
        let Some(set) = ifc::property_sets(&mut model, &relations, element)?
            .into_iter()
            .next()
        else {
            continue;
        };
        records
            .push(ifc::add_property(&mut model, &set.reference, "it's 5 °C", &tag("p")?)?.record);
    }
    step::write(model.file(), File::create(export)?)?;
    fs::write(edits, serde_json::to_vec_pretty(&records)?)?;
    println!("{} elements, {} edits", elements.len(), records.len());
    Ok(())
}
