//! Parts of objects, and objects that are copied and moved: by the command, also between two homes.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::{DevVillage, User};
use common::two_homes;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use thorp_testing::{Said, Village, finish};

/// Bytes that are no text, none of which looks like its neighbours.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// What a command prints, which succeeds.
fn out(user: &User, arguments: &[&str]) -> String {
    let said = user.run(arguments);
    assert_eq!(said.code, 0, "{arguments:?}: {}", said.err);
    said.out.trim_end().to_owned()
}

/// The bytes that a command prints, which succeeds.
fn bytes(user: &User, arguments: &[&str]) -> Vec<u8> {
    let output = user.command(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output.stdout
}

fn assert_fails(said: &Said, code: i32, words: &str) {
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    assert_eq!(said.out, "");
    assert!(said.err.contains(words), "{}", said.err);
    assert!(said.err.contains("\n  -> "), "{}", said.err);
}

/// The references that the commands print, one each.
fn put(user: &User, segment: &str, text: &str) -> String {
    out(user, &["put", segment, "--text", text])
}

#[test]
fn a_range_is_what_http_calls_one() {
    let village = DevVillage::start();
    let user = &village.user;
    // Small ones lie in a page with others, large ones in pages of their own.
    for size in [1_000, 3 << 20] {
        let value = noise(size);
        fs::write(user.path("value"), &value).unwrap();
        let film = out(
            user,
            &["put", "thorp://dev/films", "value", "--root", "film"],
        );
        let get = |range: &str| bytes(user, &["get", &film, "--range", range]);
        assert_eq!(get("0-99"), value[..100]);
        assert_eq!(get("100-"), value[100..]);
        assert_eq!(get("-100"), value[size - 100..]);
        assert_eq!(get("500-99999999"), value[500..]);
        assert_eq!(get("-99999999"), value);
        assert_eq!(get(&format!("{}-", size - 1)), value[size - 1..]);
        let middle = format!("300-{}", size - 300);
        assert_eq!(get(&middle), value[300..=size - 300]);
        let beyond = user.run(&["get", &film, "--range", &format!("{size}-")]);
        assert_fails(&beyond, 1, &format!("which has {size} bytes"));
    }
}

#[test]
fn a_range_of_a_root_is_a_document_too() {
    let village = DevVillage::start();
    let user = &village.user;
    let films = ["thorp://dev/films", "--root", "film"];
    out(
        user,
        &[&["put"], &films[..], &["--text", "a long film"]].concat(),
    );
    let get = |range: &str| {
        let range = format!("--range={range}");
        user.run(&[&["get"], &films[..], &[&range, "--json"]].concat())
    };
    let document: Value = serde_json::from_str(&get("-4").out).unwrap();
    assert_eq!(document["text"], "film");
    assert_eq!(document["bytes"], 4);
    assert_eq!(document["range"], json!({"from": 7, "size": 11}));
    let beyond = get("11-");
    let document: Value = serde_json::from_str(&beyond.err).unwrap();
    assert_eq!(beyond.code, 1);
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("11 bytes"), "{message}");
    // Nobody is asked.
    for wrong in ["4", "9-3", "-0", "x-", "-"] {
        let range = format!("--range={wrong}");
        let said = User::new().run(&["get", "thorp://dev/films", "--root", "film", &range]);
        assert_eq!(said.code, 2, "{wrong}: {}", said.err);
        assert!(said.err.contains("write 0-99"), "{wrong}: {}", said.err);
    }
}

#[test]
fn only_the_pages_of_a_range_are_fetched() {
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(Duration::ZERO);
    let identity = village.member("anna");
    let user = User::new();
    fs::write(user.path("value"), noise(3 << 20)).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command
            .env("THORP_VIA", link.address().to_string())
            .env("THORP_IDENTITY", &identity);
        finish(command).out
    };
    let film = command(&["put", "thorp://alps/films", "value"]);
    let carried = |more: &[&str]| {
        let before = link.carried().down;
        // Bytes that are no text become digits.
        let get = ["get", film.trim_end(), "--json", "--range"];
        assert!(!command(&[&get[..], more].concat()).is_empty());
        link.carried().down - before
    };
    let (part, whole) = (carried(&["1500000-1500099"]), carried(&["0-"]));
    assert!(part < 200_000, "{part} bytes");
    assert!(whole > 3 << 20, "{whole} bytes");
}

#[test]
fn a_copy_is_a_new_object_or_replaces_one() {
    let village = DevVillage::start();
    let user = &village.user;
    let hello = put(user, "thorp://dev/notes", "hello");
    let copy = out(user, &["cp", &hello, "thorp://dev/archive"]);
    assert!(copy.starts_with("thorp://dev/archive#"), "{copy}");
    let other = put(user, "thorp://dev/plans", "a plan that is longer");
    assert_eq!(out(user, &["cp", &hello, &other]), other);
    for name in [&hello, &copy, &other] {
        assert_eq!(out(user, &["get", name]), "hello");
    }
    // Also in its own segment.
    let again = out(user, &["cp", &hello, "thorp://dev/notes"]);
    assert_ne!(again, hello);
    assert_eq!(out(user, &["get", &again]), "hello");
}

#[test]
fn roots_name_what_is_copied_and_what_it_becomes() {
    let village = DevVillage::start();
    let user = &village.user;
    let notes = ["thorp://dev/notes", "--root", "greeting"];
    out(user, &[&["put"], &notes[..], &["--text", "hello"]].concat());
    let cp = ["thorp://dev/archive", "--as-root", "first", "--json"];
    let cp = [&["cp"], &notes[..], &cp[..]].concat();
    let document = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let copied = document(out(user, &cp));
    assert_eq!(copied["bytes"], 5);
    out(
        user,
        &[&["put"], &notes[..], &["--text", "good evening"]].concat(),
    );
    // The object of that root is replaced.
    assert_eq!(document(out(user, &cp))["object"], copied["object"]);
    let get = ["get", "thorp://dev/archive", "--root", "first"];
    assert_eq!(out(user, &get), "good evening");
    assert_eq!(out(user, &[&["get"], &notes[..]].concat()), "good evening");
}

#[test]
fn a_move_leaves_neither_object_nor_root() {
    let village = DevVillage::start();
    let user = &village.user;
    let notes = ["thorp://dev/notes", "--root", "greeting"];
    let hello = out(user, &[&["put"], &notes[..], &["--text", "hello"]].concat());
    let mv = ["thorp://dev/archive", "--as-root", "old"];
    let moved = out(user, &[&["mv"], &notes[..], &mv[..]].concat());
    assert_eq!(out(user, &["get", &moved]), "hello");
    assert_eq!(user.run(&["get", &hello]).code, 5);
    assert_fails(
        &user.run(&[&["get"], &notes[..]].concat()),
        5,
        "has no root greeting",
    );
    // By its name; onto another one.
    let other = put(user, "thorp://dev/plans", "plan");
    assert_eq!(out(user, &["mv", &moved, &other]), other);
    assert_eq!(out(user, &["get", &other]), "hello");
    assert_eq!(user.run(&["get", &moved]).code, 5);
    // In one segment a root gets another name.
    let plans = "thorp://dev/plans";
    out(user, &["root", "set", plans, "draft", &other]);
    out(
        user,
        &["mv", plans, "--root", "draft", plans, "--as-root", "final"],
    );
    assert_eq!(out(user, &["get", plans, "--root", "final"]), "hello");
    let roots = out(user, &["root", "ls", plans]);
    assert!(
        roots.contains("final") && !roots.contains("draft"),
        "{roots}"
    );
}

#[test]
fn nothing_is_copied_onto_itself() {
    let village = DevVillage::start();
    let user = &village.user;
    let notes = "thorp://dev/notes";
    let hello = out(
        user,
        &["put", notes, "--text", "hello", "--root", "greeting"],
    );
    for command in ["cp", "mv"] {
        let all: [&[&str]; 4] = [
            &[&hello, &hello],
            &[notes, "--root", "greeting", &hello],
            &[notes, "--root", "greeting", notes, "--as-root", "greeting"],
            &[&hello, notes, "--as-root", "greeting"],
        ];
        for same in all {
            let said = user.run(&[&[command], same].concat());
            assert_fails(&said, 2, "are the same object");
        }
    }
    assert_eq!(out(user, &["get", notes, "--root", "greeting"]), "hello");
}

#[test]
fn what_cannot_be_copied_is_said() {
    let village = DevVillage::start();
    let user = &village.user;
    let notes = "thorp://dev/notes";
    let hello = put(user, notes, "hello");
    for (call, code, words) in [
        (&["cp", notes, "thorp://dev/a"][..], 2, "names a segment"),
        (
            &["cp", &hello, "--root", "r", notes],
            2,
            "is an object already",
        ),
        (
            &["cp", &hello, "thorp://dev/notes#1.0.1", "--as-root", "r"],
            2,
            "is an object already",
        ),
        (
            &["mv", "thorp://dev/notes#1.0.1+2", notes],
            2,
            "leads into an object",
        ),
        (
            &["cp", notes, "--root", "nosuch", "thorp://dev/a"],
            5,
            "has no root nosuch",
        ),
        (
            &["mv", "thorp://dev/notes#1.7.1", "thorp://dev/a"],
            5,
            "thorp://dev/notes#1.7",
        ),
        (
            &["mv", &hello, "thorp://dev/notes#1.7.1"],
            5,
            "thorp://dev/notes#1.7",
        ),
    ] {
        assert_fails(&user.run(call), code, words);
    }
    // No segment was made for what is not there, and the source stays.
    assert!(!out(user, &["ls"]).contains("thorp://dev/a"));
    assert_eq!(out(user, &["get", &hello]), "hello");
}

/// A large value travels from one home to the other. Without the other one the source stays.
#[test]
fn a_move_between_homes_is_whole_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = two_homes::Village::start(dir.path());
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let value = noise(5 << 20);
    fs::write(&from, &value).unwrap();
    let put = [
        "put",
        "thorp://alps/films",
        from.to_str().unwrap(),
        "--root",
        "film",
    ];
    let film = village.out_at_site(&put);
    let mv = [
        "mv",
        "thorp://alps/films",
        "--root",
        "film",
        "thorp://dale/films",
        "--as-root",
        "film",
    ];
    let at_site = |village: &two_homes::Village, command: &[&str], timeout: &str| {
        let (via, identity) = (village.site(), village.identity());
        let at_site = ["--via", via, "--identity", identity, "--timeout", timeout];
        common::thorp().command(&[command, &at_site].concat())
    };
    let said = finish(at_site(&village, &mv, "30"));
    assert_eq!(said.code, 0, "{}", said.err);
    let get = ["get", "thorp://dale/films", "--root", "film"];
    let got = at_site(&village, &get, "30")
        .stdout(fs::File::create(&to).unwrap())
        .status();
    assert!(got.unwrap().success());
    assert!(fs::read(&to).unwrap() == value);
    assert_eq!(
        finish(at_site(&village, &["get", film.trim()], "30")).code,
        5
    );

    village.out_at_site(&[
        "put",
        "thorp://alps/films",
        "--text",
        "short",
        "--root",
        "film",
    ]);
    village.kill(1);
    let said = finish(at_site(&village, &mv, "2"));
    assert_eq!(said.code, 4, "{}{}", said.out, said.err);
    let get = ["get", "thorp://alps/films", "--root", "film"];
    assert_eq!(finish(at_site(&village, &get, "30")).out, "short");
}
