//! Each crate imports only from floors below it, never sideways and never up. What is not in a manifest cannot be
//! imported, so the check reads manifests. Development dependencies count, too: tests keep to the floors.

use crate::complaint::{Complaint, Verdict};
use crate::packages::{Import, Package};
use crate::tree::Tree;

/// Where a crate stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// It may import from floors with a lower number.
    Floor(u32),
    /// It may import from every floor.
    Roof,
    /// It stands beside the house and may import from every floor. Nobody imports it.
    Wing,
    /// It stands beside the house and shares nothing with it but policies. Only the roof imports it.
    Planner,
}

use Place::{Floor, Planner, Roof, Wing};

/// Each crate and its place, as `docs/architecture.md` draws them. A crate that is still to come may stand here.
const HOUSE: &[(&str, Place)] = &[
    ("thorp-model", Floor(0)),
    ("thorp-policy", Floor(0)),
    ("thorp-protocol", Floor(1)),
    ("thorp-cache", Floor(1)),
    ("thorp-store", Floor(1)),
    ("thorp-net", Floor(1)),
    ("thorp-versions", Floor(1)),
    ("thorp-session", Floor(2)),
    ("thorp-testing", Floor(2)),
    ("thorp-client", Floor(3)),
    ("thorp-server", Floor(3)),
    ("thorp-sim", Floor(3)),
    ("thorp-web", Floor(4)),
    ("thorp-workloads", Floor(4)),
    ("thorp-cli", Roof),
    ("thorp-plan", Planner),
    ("thorp-lab", Wing),
    ("thorp-lab-worker", Wing),
    ("thorp-histories", Wing),
    ("thorp-cache-loom", Wing),
    ("thorp-versions-loom", Wing),
    ("thorp-web-sim", Wing),
    ("thorp-bench", Wing),
    ("thorp-examples", Wing),
    ("thorp-fuzz", Wing),
    ("thorp-spec", Wing),
    ("thorp-rights-elsewhere", Wing),
    ("thorp-floors", Wing),
];

/// What crates without I/O may use beside crates of the house.
const MAY_USE: &[(&str, &[&str])] = &[
    ("thorp-model", &["blake3", "postcard", "serde"]),
    ("thorp-policy", &[]),
    ("thorp-protocol", &["postcard", "serde"]),
];

/// The one crate that the planner may import: what is planned is what runs.
const PLANNER_SHARES: &str = "thorp-policy";

/// Crates that build another crate's library once more. What these files promise is checked in that crate.
const SHARED: &[(&str, &str)] = &[
    ("thorp-cache-loom", "../src/lib.rs"),
    ("thorp-versions-loom", "../src/lib.rs"),
];

/// Checks the manifests of all crates.
pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Verdict {
    let imports = packages.iter().map(Package::imports);
    let ours = imports
        .flatten()
        .filter(|import| place_of(&import.name).is_some());
    Verdict {
        check: "floors",
        seen: vec![
            ("crates", packages.len()),
            ("imports between them", ours.count()),
        ],
        knots: None,
        complaints: packages
            .iter()
            .flat_map(|package| check_crate(tree, package))
            .collect(),
    }
}

fn check_crate(tree: &Tree, package: &Package) -> Vec<Complaint> {
    let path = package.manifest_path();
    let text = tree.text(&path).unwrap_or_default();
    let Some(place) = place_of(&package.name) else {
        let wrong = format!("{} has no place in the house", package.name);
        let remedy = "give it one in `HOUSE` of crates/floors/src/floors.rs";
        return vec![Complaint::new((&path, 1), wrong, remedy)];
    };
    let imports = package.imports();
    let faults = imports.iter().filter_map(|import| {
        let (wrong, remedy) = judge(&package.name, place, import)?;
        Some(Complaint::new(
            (&path, line_of(text, &import.key)),
            wrong,
            remedy,
        ))
    });
    let library = judge_library(tree, package);
    let library = library.map(|(wrong, remedy)| {
        let line = text.lines().position(|line| line.trim() == "[lib]");
        Complaint::new((&path, line.map_or(1, |index| index + 1)), wrong, remedy)
    });
    faults.chain(library).collect()
}

/// What is wrong with the place of a library, and what to do. No check would read a library that is not found.
fn judge_library(tree: &Tree, package: &Package) -> Option<(String, &'static str)> {
    let path = package.library_path()?;
    if SHARED.contains(&(&package.name, path)) || package.library(tree).is_some() {
        return None;
    }
    let wrong = format!("no file of {} is its library `{path}`", package.name);
    Some((wrong, "put the library into the folder of its crate"))
}

/// What is wrong with an import, and what to do.
fn judge(name: &str, place: Place, import: &Import) -> Option<(String, String)> {
    let Some(other) = place_of(&import.name) else {
        return judge_foreign(name, &import.name);
    };
    let open = match (place, other) {
        (Floor(floor), Floor(other)) => other < floor,
        (Roof | Wing, Floor(_)) | (Roof, Planner) => true,
        (Planner, Floor(_)) => import.name == PLANNER_SHARES,
        _ => false,
    };
    (!open).then(|| {
        let (own, others) = (shown(place), shown(other));
        (
            format!("{name} ({own}) imports {} ({others})", import.name),
            "move what it needs to a floor below both".to_owned(),
        )
    })
}

/// As [`judge`], for an import that has no place in the house.
fn judge_foreign(name: &str, import: &str) -> Option<(String, String)> {
    if import.starts_with("thorp-") {
        return Some((
            format!("{name} imports {import}, which has no place in the house"),
            "give it one in `HOUSE` of crates/floors/src/floors.rs".to_owned(),
        ));
    }
    let (_, allowed) = MAY_USE.iter().find(|(crate_name, _)| *crate_name == name)?;
    (!allowed.contains(&import)).then(|| {
        (
            format!("{name} does no I/O and may not import {import}"),
            "do without it, or move what needs it to a floor above".to_owned(),
        )
    })
}

fn place_of(name: &str) -> Option<Place> {
    let room = HOUSE.iter().find(|(crate_name, _)| *crate_name == name);
    room.map(|(_, place)| *place)
}

fn shown(place: Place) -> String {
    match place {
        Floor(floor) => format!("floor {floor}"),
        Roof => "the roof".to_owned(),
        Wing | Planner => "a wing".to_owned(),
    }
}

/// The first line that begins with a key; the first line of all if there is none.
fn line_of(text: &str, key: &str) -> usize {
    let begins = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    text.lines().position(begins).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::packages;

    fn complaints(name: &str, rest: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = '{name}'\n{rest}\n");
        let tree = Tree::of(&[("crates/x/Cargo.toml", &manifest)]);
        let verdict = check(&tree, &packages(&tree).expect("a manifest"));
        let complaints = verdict.complaints.iter();
        complaints.map(|complaint| complaint.to_string()).collect()
    }

    #[test]
    fn only_floors_below_are_open() {
        for (name, rest) in [
            ("thorp-server", "[dependencies]\nthorp-net.workspace = true"),
            (
                "thorp-session",
                "[dependencies]\nthorp-protocol.workspace = true",
            ),
            ("thorp-cli", "[dependencies]\nthorp-workloads = '1'"),
            ("thorp-lab-worker", "[dependencies]\nthorp-workloads = '1'"),
        ] {
            assert_eq!(complaints(name, rest), Vec::<String>::new());
        }
        let up = complaints("thorp-net", "[dependencies]\nthorp-client = { path = 'x' }");
        assert_eq!(
            up,
            [
                "crates/x/Cargo.toml:4: thorp-net (floor 1) imports thorp-client (floor 3) \
                 -> move what it needs to a floor below both"
            ]
        );
        for (name, rest) in [
            ("thorp-client", "[dev-dependencies]\nthorp-server = '1'"),
            (
                "thorp-store",
                "[target.'cfg(unix)'.dependencies]\nthorp-net = '1'",
            ),
            ("thorp-model", "[dependencies]\nthorp-policy = '1'"),
            (
                "thorp-net",
                "[build-dependencies]\nnet = { package = 'thorp-client' }",
            ),
            ("thorp-workloads", "[dependencies]\nthorp-cli = '1'"),
            ("thorp-cli", "[dependencies]\nthorp-new = '1'"),
        ] {
            assert_eq!(complaints(name, rest).len(), 1, "{name}: {rest}");
        }
    }

    #[test]
    fn no_floor_imports_a_wing_and_the_roof_only_the_planner() {
        let wing = "[dependencies]\nthorp-plan = '1'";
        assert_eq!(complaints("thorp-cli", wing), Vec::<String>::new());
        let shared = "[dependencies]\nthorp-policy = '1'";
        assert_eq!(complaints("thorp-plan", shared), Vec::<String>::new());
        for (name, rest) in [
            ("thorp-workloads", wing),
            ("thorp-bench", wing),
            ("thorp-cli", "[dependencies]\nthorp-bench = '1'"),
            ("thorp-sim", "[dev-dependencies]\nthorp-examples = '1'"),
            ("thorp-plan", "[dev-dependencies]\nthorp-model = '1'"),
        ] {
            assert_eq!(complaints(name, rest).len(), 1, "{name}: {rest}");
        }
    }

    #[test]
    fn a_library_stands_in_the_folder_of_its_crate() {
        let outside = "[lib]\npath = '../src/lib.rs'";
        assert_eq!(
            complaints("thorp-net", outside),
            [
                "crates/x/Cargo.toml:3: no file of thorp-net is its library `../src/lib.rs` \
                 -> put the library into the folder of its crate"
            ]
        );
        let absent = "[lib]\npath = 'src/head.rs'";
        assert_eq!(complaints("thorp-net", absent).len(), 1);
        let shared = complaints("thorp-cache-loom", outside);
        assert_eq!(shared, Vec::<String>::new());
    }

    #[test]
    fn crates_without_io_keep_to_their_lists() {
        for name in ["thorp-model", "thorp-protocol"] {
            let rest = "[dependencies]\npostcard = '1'\nserde = '1'";
            assert_eq!(complaints(name, rest), Vec::<String>::new());
        }
        for (name, import) in [
            ("thorp-model", "tokio"),
            ("thorp-protocol", "getrandom"),
            ("thorp-policy", "serde"),
        ] {
            let rest = format!("[dependencies]\n{import} = '1'");
            assert_eq!(complaints(name, &rest).len(), 1, "{name}");
        }
    }

    #[test]
    fn every_crate_has_a_place() {
        assert_eq!(
            complaints("thorp-new", ""),
            [
                "crates/x/Cargo.toml:1: thorp-new has no place in the house \
                 -> give it one in `HOUSE` of crates/floors/src/floors.rs"
            ]
        );
    }
}
