//! What a home writes is for its own user: against real processes (threat 12).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thorp_testing::Said;

/// Starts a home, which ends as soon as it is ready.
fn start_and_end(data: &Path) -> Said {
    let socket = format!("unix:{}", data.with_extension("sock").display());
    let data = data.to_str().unwrap();
    let flags = ["--http", "off", "--until-stdin-closes"];
    let home = ["home", "--name", "alps", "--dir", data, "--listen", &socket];
    let said = thorp().run(&[&home[..], &flags].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    said
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

/// Everything below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn nobody_else_can_read_what_a_home_writes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("home");
    start_and_end(&data);
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("store")), 0o700);
    let open: Vec<_> = files_below(&data)
        .into_iter()
        .filter(|file| mode(file) & 0o077 != 0)
        .collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_store_that_others_could_read_is_closed_and_check_names_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("home");
    start_and_end(&data);
    // As an earlier build left it.
    let store = data.join("store");
    let note = store.join("thorp-note");
    for (path, mode) in [(&data, 0o755), (&store, 0o755), (&note, 0o644)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let check = |wanted: &str| {
        let said = thorp().run(&["check", data.to_str().unwrap()]);
        assert_eq!(said.code, 0, "{}", said.err);
        let remark = format!("others can read {}", note.display());
        assert_eq!(
            said.out.contains(&remark),
            wanted == "named",
            "{}",
            said.out
        );
    };
    check("named");
    let said = start_and_end(&data);
    assert_eq!(mode(&store), 0o700);
    let line = "other users could read";
    assert_eq!(said.err.matches(line).count(), 1, "{}", said.err);
    check("not named");
    let said = start_and_end(&data);
    assert!(!said.err.contains(line), "{}", said.err);
}
