//! A home opens the store that an earlier build wrote.
//!
//! `data/store-of-0.1-8282d3a.tar.gz` is the store of a home that the build of commit 8282d3a
//! ran, and that was killed: its log has commits that are not installed.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use std::fs;
use std::path::Path;
use std::process::Command;
use thorp_testing::HomeProcess;

const STORE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/store-of-0.1-8282d3a.tar.gz"
);

#[test]
fn a_home_goes_on_from_the_store_of_an_earlier_build() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    // Only for its certificates: the earlier home's are not kept here.
    assert_eq!(home.process.terminate(), 0, "a clean end");
    let data = dir.path().join("home");
    replace_store(&data);
    let checked = thorp().run(&["check", "--json", data.to_str().unwrap()]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    assert!(log_records(&checked.out) > 0, "{}", checked.out);

    // Their id is not that of the store: so the home does not start, and says how it will.
    let [path, out] = [&data, &data.join("identity")].map(|path| path.display().to_string());
    let said = thorp().run(&[
        "home",
        "--name=alps",
        "--dir",
        &path,
        "--http=off",
        "--listen=127.0.0.1:0",
    ]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.err.contains("thorp ca issue --role home --store"),
        "{}",
        said.err
    );
    let issue = [
        "ca",
        "issue",
        "--role=home",
        "--store",
        &path,
        "--dir",
        &path,
        "--out",
        &out,
    ];
    let said = thorp().run(&issue);
    assert_eq!(said.code, 0, "{}", said.err);

    let home = thorp().home(dir.path());
    let says_so = |line: &String| line.contains("every member may read and write in");
    assert!(home.welcome.iter().any(says_so), "{:?}", home.welcome);
    assert_eq!(get(&home, "greeting1"), "hello 1 again\n");
    assert_eq!(get(&home, "greeting4"), "hello 4\n");
    let large = home.out(&["get", "thorp://alps/shop/large", "--root", "big"]);
    assert_eq!(large, "x".repeat(30_000));
    home.out(&[
        "put",
        "thorp://alps/notes",
        "--text",
        "hello 5",
        "--root",
        "greeting5",
    ]);
    assert_eq!(get(&home, "greeting5"), "hello 5");
    assert_eq!(home.process.terminate(), 0, "a clean end");

    // It has a history from now on.
    let checked = thorp().run(&["check", "--json", data.to_str().unwrap()]);
    let checked: serde_json::Value = serde_json::from_str(&checked.out).expect("JSON");
    assert_eq!(checked["incarnation"], 0);
    assert!(checked["closed"].is_null(), "{checked}");

    // What this build added to the earlier one's store is durable there.
    let home = thorp().home(dir.path());
    assert_eq!(get(&home, "greeting1"), "hello 1 again\n");
    assert_eq!(get(&home, "greeting5"), "hello 5");
}

fn get(home: &HomeProcess, root: &str) -> String {
    home.out(&["get", "thorp://alps/notes", "--root", root])
}

/// How many records the log has, by what `thorp check` prints.
fn log_records(checked: &str) -> u64 {
    let checked: serde_json::Value = serde_json::from_str(checked).expect("JSON");
    let tables = checked["tables"].as_array().expect("tables");
    let log = tables.iter().find(|table| table["table"] == "log");
    log.expect("a log")["records"].as_u64().expect("a count")
}

fn replace_store(data: &Path) {
    fs::remove_dir_all(data.join("store")).expect("the new store goes");
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(STORE)
        .arg("-C")
        .arg(data)
        .status()
        .expect("tar runs");
    assert!(unpacked.success(), "tar unpacks the store");
}
