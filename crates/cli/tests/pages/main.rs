//! Runs every command of the README, the tutorial, the reference pages and the how-to pages, as a reader would.
//!
//! A page marks its fenced blocks for this test. GitHub shows them without the marks.
//!
//! | block | the test |
//! |---|---|
//! | `sh` | runs it in the reader's shell: directory and exported variables stay for the next block |
//! | `sh terminal=1` | starts it in terminal 1, after it has ended what runs there, and waits until it is ready |
//! | `sh stop=1` | ends what runs in terminal 1, and then runs the block |
//! | `sh exit=4` | expects this exit code |
//! | `sh skip=REASON` | does not run it |
//! | `text` after `sh` | finds its lines, in order, in what was printed there |
//! | `text terminal=3` | waits for its lines in terminal 3 |
//! | `text example` | does not compare it |
//! | `rust program=DIR` | puts it into the main file of the package there |
//! | `rust file=PATH` | puts it into this file, seen from where the reader's shell is |
//!
//! A page says 127.0.0.1. The test puts an address of this machine in its place that no other page has, so all pages
//! may use the usual ports.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod alike;
#[path = "../common/mod.rs"]
mod common;
mod limits;
mod markdown;
mod reader;

use markdown::blocks;
use reader::Reader;
use std::fs;
use std::path::{Path, PathBuf};

/// A test for each page.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $test() {
            run($page);
        })*
    };
}

pages! {
    readme: "../README.md",
    tutorial: "tutorial.md",
    using: "using.md",
    consistency: "consistency.md",
    exit_codes_and_json: "exit-codes-and-json.md",
    changing_types: "changing-types.md",
    backup: "how-to/backup.md",
    certificates: "how-to/certificates.md",
    full_disk: "how-to/full-disk.md",
    moving_a_home: "how-to/moving-a-home.md",
    second_site: "how-to/second-site.md",
    something_does_not_work: "how-to/something-does-not-work.md",
    testing_your_program: "how-to/testing-your-program.md",
}

#[test]
fn every_how_to_page_has_a_test() {
    let mut found: Vec<String> = fs::read_dir(docs().join("how-to"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| format!("how-to/{name}"))
        .collect();
    found.sort();
    let mut tested: Vec<&str> = PAGES.to_vec();
    tested.retain(|page| page.starts_with("how-to/"));
    tested.sort_unstable();
    assert_eq!(found, tested);
}

fn run(page: &str) {
    let text = fs::read_to_string(docs().join(page)).unwrap();
    let blocks = blocks(&text);
    let run = blocks.iter().filter(|block| block.is_run()).count();
    assert!(run > 0, "docs/{page} has no `sh` block that is run");
    let number = PAGES.iter().position(|one| *one == page).unwrap();
    let mut reader = Reader::of_page(page, number);
    for block in &blocks {
        reader.read(block);
    }
    reader.leave();
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}
