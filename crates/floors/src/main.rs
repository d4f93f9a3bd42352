//! The check that every room imports only from floors below it.
//!
//! It reads the manifests of the workspace, not the code: what is not a
//! dependency cannot be imported. Development dependencies count too, so that
//! tests hold to the same floors. Exit code 0 if the house stands, 1 if not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Each room and its floor, as `docs/architecture.md` draws them.
const HOUSE: &[(&str, u32)] = &[
    ("thorp-model", 0),
    ("thorp-protocol", 1),
    ("thorp-net", 1),
    ("thorp-store", 1),
    ("thorp-cache", 1),
    ("thorp-plan", 1),
    ("thorp-testing", 2),
    ("thorp-server", 3),
    ("thorp-client", 3),
    ("thorp-sim", 3),
    ("thorp-workloads", 4),
    ("thorp-cli", 6),
    // The yard around the house: it may look in through every window.
    ("thorp-bench", 7),
    ("thorp-examples", 7),
    ("thorp-histories", 7),
    ("thorp-floors", 0),
];

/// What model and protocol may use: nothing that does I/O.
const CORE_MAY_USE: &[&str] = &["postcard", "serde"];

fn main() -> ExitCode {
    let root = std::env::args_os().nth(1).map_or_else(root, PathBuf::from);
    match check(&root) {
        Ok(complaints) if complaints.is_empty() => {
            println!("floors: {} rooms, each on its floor", HOUSE.len());
            ExitCode::SUCCESS
        }
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("floors: {complaint}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("floors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(root: &Path) -> Result<Vec<String>, String> {
    let house: BTreeMap<&str, u32> = HOUSE.iter().copied().collect();
    let workspace = read(&root.join("Cargo.toml"))?;
    let members = workspace["workspace"]["members"].as_array();
    let members = members.ok_or("the workspace lists no members")?;
    let mut complaints = Vec::new();
    for member in members.iter().filter_map(|member| member.as_str()) {
        let manifest = read(&root.join(member).join("Cargo.toml"))?;
        complaints.extend(check_room(&house, &manifest));
    }
    Ok(complaints)
}

fn read(path: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    text.parse()
        .map_err(|error| format!("{} is no manifest: {error}", path.display()))
}

/// What is wrong with one room's imports.
fn check_room(house: &BTreeMap<&str, u32>, manifest: &toml::Table) -> Vec<String> {
    let name = manifest["package"]["name"].as_str().unwrap_or_default();
    let Some(floor) = house.get(name) else {
        return vec![format!("{name} has no floor: give it one in crates/floors")];
    };
    let mut complaints = Vec::new();
    for import in imports(manifest) {
        match house.get(import.as_str()) {
            Some(other) if other >= floor => complaints.push(format!(
                "{name} (floor {floor}) imports {import} (floor {other}): only floors below are open"
            )),
            None if import.starts_with("thorp-") => {
                complaints.push(format!("{name} imports {import}, which has no floor"));
            }
            None if ["thorp-model", "thorp-protocol"].contains(&name) && !CORE_MAY_USE.contains(&import.as_str()) => {
                complaints.push(format!("{name} does no I/O and may not import {import}"));
            }
            _ => {}
        }
    }
    complaints
}

/// All dependencies of a manifest, of any kind and for any target.
fn imports(manifest: &toml::Table) -> Vec<String> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(|target| target.as_table());
    let tables = targets.into_iter().flat_map(|targets| targets.values());
    let tables = tables.filter_map(|target| target.as_table());
    [manifest]
        .into_iter()
        .chain(tables)
        .flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind)))
        .filter_map(|dependencies| dependencies.as_table())
        .flat_map(|dependencies| dependencies.keys().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(manifest: &str) -> Vec<String> {
        let house = HOUSE.iter().copied().collect();
        check_room(&house, &manifest.parse().expect("a manifest"))
    }

    #[test]
    fn only_floors_below_are_open() {
        let down = "[package]\nname='thorp-server'\n[dependencies]\nthorp-net.workspace=true";
        assert!(complaints(down).is_empty());
        let up = "[package]\nname='thorp-net'\n[dependencies]\nthorp-client={path='x'}";
        assert_eq!(complaints(up).len(), 1);
        let sideways = "[package]\nname='thorp-client'\n[dev-dependencies]\nthorp-server='1'";
        assert_eq!(complaints(sideways).len(), 1);
        let target =
            "[package]\nname='thorp-store'\n[target.'cfg(unix)'.dependencies]\nthorp-net='1'";
        assert_eq!(complaints(target).len(), 1);
    }

    #[test]
    fn the_core_stays_without_io() {
        let core = "[package]\nname='thorp-protocol'\n[dependencies]\ntokio='1'";
        assert_eq!(complaints(core).len(), 1);
        let unknown = "[package]\nname='thorp-new'";
        assert_eq!(complaints(unknown).len(), 1);
    }

    #[test]
    fn this_house_stands() {
        assert_eq!(check(&root()), Ok(Vec::new()));
    }
}
