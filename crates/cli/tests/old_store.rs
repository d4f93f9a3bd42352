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

    let home = thorp().home(dir.path());
    let get = |root| home.out(&["get", "thorp://alps/notes", "--root", root]);
    assert_eq!(get("greeting1"), "hello 1 again\n");
    assert_eq!(get("greeting4"), "hello 4\n");
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
    assert_eq!(get("greeting5"), "hello 5");
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
