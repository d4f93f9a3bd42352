//! `thorp top` shows a node, once or on a whole screen.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::DevVillage;
use common::schema::Schema;
use common::terminal::WholeScreen;
use common::thorp;
use serde_json::Value;
use thorp_testing::{eventually, signal};

#[test]
fn one_look_is_a_document_or_lines() {
    let village = DevVillage::start();
    let user = &village.user;
    let said = user.run(&["top", "--json"]);
    assert_eq!((said.code, &*said.err), (0, ""));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(Schema::named("top").check(&document), Ok(()));
    assert_eq!(
        (&document["role"], &document["name"]),
        (&"home".into(), &"dev".into())
    );
    assert_eq!(document["well"], true);
    assert_eq!(document["children"][0]["kind"], "site");
    assert!(document["storage"]["bytes"].is_u64());
    // The site has no store.
    let said = user.run(&["top", village.http(1), "--json"]);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(Schema::named("top").check(&document), Ok(()));
    assert_eq!(
        (&document["role"], &document["storage"]),
        (&"site".into(), &Value::Null)
    );
    // Standard output is no terminal.
    let said = user.run(&["top"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for words in ["home dev: well", "a second:", "child"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(!said.out.contains('\u{1b}'), "{:?}", said.out);
}

#[test]
fn a_node_that_does_not_answer_is_told_before_the_screen_is_taken() {
    let said = thorp().run(&["top", "127.0.0.1:1", "--timeout=1"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("does not answer"), "{}", said.err);
    assert_eq!(thorp().run(&["top", "nowhere"]).code, 2);
}

#[test]
fn the_screen_is_drawn_until_q_and_is_as_before_then() {
    let village = DevVillage::start();
    let mut screen = WholeScreen::start(village.user.command(&["top"]));
    eventually("the home is shown", || {
        screen.seen().contains("home dev: well")
    });
    eventually("its child is shown", || screen.seen().contains("site"));
    assert!(!screen.seen().contains(KEY));
    screen.press("?");
    eventually("the keys are shown", || screen.seen().contains(KEY));
    assert_eq!(screen.ended(), None);
    screen.press("q");
    eventually("it ends", || screen.ended().is_some());
    assert_eq!(screen.ended(), Some(0));
    // What it wrote last may still be on its way here.
    eventually("the screen is given back", || {
        screen.seen().contains(NORMAL)
    });
}

#[test]
fn a_signal_gives_the_screen_back_and_a_lost_node_is_told() {
    let village = DevVillage::start();
    let mut screen = WholeScreen::start(village.user.command(&["top"]));
    eventually("the home is shown", || {
        screen.seen().contains("home dev: well")
    });
    assert_eq!(village.dev.terminate(), 0);
    eventually("it is told that nobody answers", || {
        screen.seen().contains("NO ANSWER")
    });
    signal("TERM", screen.id());
    eventually("it ends", || screen.ended().is_some());
    assert_eq!(screen.ended(), Some(0));
    // What it wrote last may still be on its way here.
    eventually("the screen is given back", || {
        screen.seen().contains(NORMAL)
    });
}

/// A word that only the keys have. Only what differs is drawn, so it has no space.
const KEY: &str = "Ctrl-C";
/// The terminal leaves the screen of the command.
const NORMAL: &str = "\u{1b}[?1049l";
