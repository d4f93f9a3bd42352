//! Long work shows a person at a terminal how far it has come, and nobody else.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::terminal::{WholeScreen, run_at_terminal};
use common::{MODEL, thorp};
use std::fs;
use std::time::{Duration, Instant};
use thorp_testing::{eventually, finish};

/// A far home: joining, opening and each transaction take a round trip, and together they take more than a second.
const FAR: [&str; 2] = ["--link-delay", "local=400"];

#[test]
fn an_import_from_far_away_shows_how_far_it_has_come() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home_with(dir.path(), &FAR);
    let file = dir.path().join("house.ifc");
    fs::write(&file, MODEL).unwrap();
    let file = file.to_str().unwrap();
    let import = |segment: &str, flags: &[&str]| {
        home.command(&[&["ifc", "import", file, segment], flags].concat())
    };
    let said = run_at_terminal(import("thorp://alps/one", &[]));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("1 of 1 entities"), "{:?}", said.err);
    // The line is erased at the end.
    assert!(said.err.ends_with("\r\u{1b}[K"), "{:?}", said.err);
    assert_eq!(said.out, "1 entities imported into thorp://alps/one\n");
    let said = run_at_terminal(import("thorp://alps/two", &["--json"]));
    assert_eq!((said.code, &*said.err), (0, ""));
    let said = finish(import("thorp://alps/three", &[]));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("entities"), "{}", said.err);
}

#[test]
fn short_work_shows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let file = dir.path().join("house.ifc");
    fs::write(&file, MODEL).unwrap();
    let import = ["ifc", "import", file.to_str().unwrap(), "thorp://alps/one"];
    let begun = Instant::now();
    let said = run_at_terminal(home.command(&import));
    assert_eq!(said.code, 0, "{}", said.err);
    // On a busy machine it may take long.
    let is_short = begun.elapsed() < Duration::from_secs(1);
    assert!(!is_short || said.err.is_empty(), "{:?}", said.err);
}

/// Nobody knew what it waited for.
#[test]
fn a_command_that_reads_a_terminal_says_so() {
    for arguments in [
        &["load", "thorp://alps/again"][..],
        &[
            "put",
            "thorp://alps/notes",
            "--via",
            "unix:/nobody.sock",
            "--timeout",
            "1",
        ],
    ] {
        let mut screen = WholeScreen::start(thorp().command(arguments));
        eventually("it says what it waits for", || {
            screen
                .seen()
                .contains("reading standard input, from this terminal: Ctrl-D ends it")
        });
        assert_eq!(screen.ended(), None);
        screen.press("\u{4}");
        eventually("it ends", || screen.ended().is_some());
        assert_ne!(screen.ended(), Some(0));
    }
}
