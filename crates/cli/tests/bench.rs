//! `thorp bench` does what it says, counts it, and leaves nothing. No test looks at times.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::DevVillage;
use common::schema::Schema;
use common::thorp;
use serde_json::Value;
use thorp_testing::{Process, eventually, finish, signal};

const OPERATIONS: [&str; 5] = [
    "cold_read",
    "cached_read",
    "commit_one",
    "commit_ten",
    "counter",
];

fn checked(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap();
    assert_eq!(Schema::named("bench").check(&document), Ok(()));
    let operations = document["operations"].as_array().unwrap().iter();
    let names: Vec<&str> = operations
        .map(|each| each["operation"].as_str().unwrap())
        .collect();
    assert_eq!(names, OPERATIONS);
    document
}

fn operation<'a>(document: &'a Value, name: &str) -> &'a Value {
    let mut all = document["operations"].as_array().unwrap().iter();
    all.find(|each| each["operation"] == name).unwrap()
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}

#[test]
fn each_operation_is_done_and_counted_and_the_segment_goes() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let bench = ["bench", "--seconds=2", "--members=3", "--bytes=500"];
    let document = checked(&home.out(&[&bench[..], &["--json"]].concat()));
    let segment = document["segment"].as_str().unwrap();
    assert!(segment.starts_with("thorp://alps/bench-"), "{segment}");
    assert_eq!(
        (&document["members"], &document["object_bytes"]),
        (&3.into(), &500.into())
    );
    assert_eq!(document["interrupted"], false);
    assert!(number(&document, "objects") >= number(&document, "pages"));
    assert!(number(&document, "pages") >= 128);
    for name in OPERATIONS {
        let each = operation(&document, name);
        assert!(number(each, "count") > 0, "{each:#}");
        let ms = |key: &str| each[key].as_f64().unwrap();
        assert!(
            ms("p50_ms") <= ms("p95_ms") && ms("p95_ms") <= ms("p99_ms"),
            "{each:#}"
        );
        assert!(ms("p99_ms") <= ms("max_ms"), "{each:#}");
    }
    // Below a home itself, each cold read is a page from there, and a cached one is none.
    let cold = operation(&document, "cold_read");
    assert_eq!(number(cold, "pages_from_home"), number(cold, "count"));
    assert_eq!(number(cold, "requests"), number(cold, "count"));
    let cached = operation(&document, "cached_read");
    assert_eq!(
        (number(cached, "requests"), number(cached, "conflicts")),
        (0, 0)
    );
    // Nobody else writes these objects.
    for name in ["commit_one", "commit_ten"] {
        let commit = operation(&document, name);
        assert_eq!(number(commit, "conflicts"), 0, "{commit:#}");
        assert_eq!(
            number(commit, "requests"),
            number(commit, "count"),
            "{commit:#}"
        );
    }
    assert_eq!(home.out(&["ls"]), "", "its segment is gone");
}

#[test]
fn a_person_gets_a_table() {
    let village = DevVillage::start();
    let said = village
        .user
        .run(&["bench", "thorp://dev", "--seconds=1", "--members=1"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for words in [
        "1 member,",
        "a second",
        "p99",
        "cold read",
        "contended counter",
        "through the site",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
}

#[test]
fn a_segment_that_is_there_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    home.out(&["put", "thorp://alps/notes", "--text", "mine", "--root", "r"]);
    let bench = |place: &str| finish(home.command(&["bench", place, "--seconds=1"]));
    let said = bench("thorp://alps/notes");
    assert_eq!((said.code, &*said.out), (1, ""), "{}", said.err);
    assert_eq!(
        home.out(&["get", "thorp://alps/notes", "--root", "r"]),
        "mine"
    );
    assert_eq!(bench("thorp://nowhere").code, 5);
    assert_eq!(bench("nonsense").code, 2);
    assert_eq!(bench("thorp://alps/x/").code, 2);
}

#[test]
fn after_an_interrupt_it_removes_its_segment_and_prints_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let bench = ["bench", "thorp://alps/mine", "--seconds=600", "--json"];
    let process = Process::start(home.command(&bench));
    eventually("its segment is there", || {
        home.out(&["ls"]).contains("thorp://alps/mine")
    });
    signal("INT", process.id());
    let lines = process.lines_until("}");
    let document = checked(&lines.join("\n"));
    assert_eq!(document["interrupted"], true);
    assert_eq!(process.end(), 130);
    assert_eq!(home.out(&["ls"]), "");
}
