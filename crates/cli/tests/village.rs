//! A home, a site and the commands, as real processes.

mod common;

use common::thorp;
use std::fs;
#[cfg(feature = "planner")]
use thorp_testing::{HomeProcess, eventually};
use thorp_testing::{OF_A_TEST, Process, finish};

#[test]
fn objects_go_in_and_come_out() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let made = home.out(&[
        "put",
        "thorp://alps/notes",
        "--text",
        "hello",
        "--root",
        "greeting",
    ]);
    let made = made.trim();
    assert!(made.starts_with("thorp://alps/notes#"), "{made}");
    assert_eq!(home.out(&["get", made]), "hello");
    home.out(&["put", made, "--text", "hello again"]);
    assert_eq!(
        home.out(&["get", "thorp://alps/notes", "--root", "greeting"]),
        "hello again"
    );

    let large = dir.path().join("large");
    let bytes: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    fs::write(&large, &bytes).unwrap();
    let second = home.out(&["put", "thorp://alps/notes", large.to_str().unwrap()]);
    let second = second.trim();
    assert!(
        home.out(&["inspect", second, "--bytes", "16"])
            .contains("00 01 02 03"),
        "a dump"
    );
    assert!(home.out(&["ls"]).contains("thorp://alps/notes"));
    let inside = home.out(&["inspect", "thorp://alps/notes", "--objects", "--json"]);
    let inside: serde_json::Value = serde_json::from_str(&inside).unwrap();
    assert_eq!(inside["objects"], 2, "{inside}");
    assert_eq!(inside["bytes"], 300_011, "{inside}");
    assert_eq!(inside["roots"]["greeting"], made, "{inside}");

    assert!(home.out(&["rm", "thorp://alps/notes"]).contains("removed"));
    let gone = finish(home.command(&["rm", "thorp://alps/notes"]));
    assert_eq!(gone.code, 5, "{}", gone.err);
    home.out(&["rm", "--force", "thorp://alps/notes"]);
    assert_eq!(finish(home.command(&["get", made])).code, 5);

    let store = dir.path().join("home").display().to_string();
    assert_eq!(home.process.terminate(), 0, "a clean end");
    let check = thorp().run(&["check", &store]);
    assert_eq!(check.code, 0, "{}", check.err);
    assert!(check.out.contains("no damage"), "{}", check.out);
}

#[test]
fn what_was_put_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    home.out(&[
        "put",
        "thorp://alps/kept",
        "--text",
        "still here",
        "--root",
        "it",
    ]);
    assert_eq!(home.process.terminate(), 0);
    let again = thorp().home(dir.path());
    assert_eq!(
        again.out(&["get", "thorp://alps/kept", "--root", "it"]),
        "still here"
    );
}

#[test]
fn a_site_joins_by_the_printed_command_and_shows_in_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let printed = home
        .welcome
        .iter()
        .find_map(|line| line.trim().strip_prefix("thorp invite "));
    let identity = dir.path().join("valley-identity").display().to_string();
    let words: Vec<String> = printed
        .expect("the command that lets a node in")
        .split_whitespace()
        .map(|word| {
            word.replace("NAME-identity", &identity)
                .replace("NAME", "valley")
                .replace("ROLE", "site")
        })
        .collect();
    let mut invite = vec!["invite"];
    invite.extend(words.iter().map(String::as_str));
    let invited = thorp().run(&invite);
    assert_eq!(invited.code, 0, "{}", invited.err);

    let via = format!("unix:{}/site.sock", dir.path().display());
    let site_dir = dir.path().join("site").display().to_string();
    let parent = format!("alps={}", home.via);
    let site = Process::start(thorp().command(&[
        "site",
        "--name",
        "valley",
        "--dir",
        &site_dir,
        "--identity",
        &identity,
        "--home",
        &parent,
        "--listen",
        &via,
        OF_A_TEST[0],
        OF_A_TEST[1],
    ]));
    let (said, site_http) = site.ready();
    let printed = format!("thorp status {site_http}");
    assert!(said.iter().any(|line| line.trim() == printed), "{said:?}");

    let mut put = thorp().command(&["put", "thorp://alps/by-site", "--text", "x", "--via", &via]);
    put.env("THORP_IDENTITY", &home.identity);
    let said = finish(put);
    assert_eq!(said.code, 0, "{}", said.err);

    let at_home = home.out(&["status", &home.http]);
    assert!(
        at_home.contains("home alps: well") && at_home.contains("valley"),
        "{at_home}"
    );
    let at_site = home.out(&["status", &site_http]);
    assert!(
        at_site.contains("site valley: well") && at_site.contains("connected to alps"),
        "{at_site}"
    );
    let json = home.out(&["status", &site_http, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["role"], "site");

    #[cfg(feature = "planner")]
    planned(&home, &site_http, &via);
    assert_eq!(site.terminate(), 0);
}

/// `thorp plan site` takes from the site how many members it has.
#[cfg(feature = "planner")]
fn planned(home: &HomeProcess, site_http: &str, via: &str) {
    let planned = thorp().run(&["plan", "site", "--from-metrics", site_http]);
    assert_eq!(planned.code, 0, "{}", planned.err);
    let alone = format!("{site_http} does not tell members: none is connected");
    assert!(planned.err.contains(&alone), "{}", planned.err);
    let mut watch = thorp().command(&["watch", "thorp://alps/by-site", "--via", via]);
    watch.env("THORP_IDENTITY", &home.identity);
    let watch = Process::start(watch);
    let measured = format!("measured at {site_http}");
    eventually("a member is counted", || {
        let planned = thorp().run(&["plan", "site", "--from-metrics", site_http]);
        let mut lines = planned.out.lines();
        let members = lines.find(|line| line.starts_with("members at the site"));
        members.is_some_and(|line| line.contains(" 1 ") && line.contains(&measured))
    });
    watch.terminate();
    let asked_a_home = thorp().run(&["plan", "site", "--from-metrics", &home.http]);
    assert_eq!(asked_a_home.code, 2);
    assert!(
        asked_a_home.err.contains("is a home"),
        "{}",
        asked_a_home.err
    );
}

#[test]
fn a_watch_tells_changes_as_they_come() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let made = home.out(&["put", "thorp://alps/watched", "--text", "0", "--root", "n"]);
    let watch =
        Process::start(home.command(&["watch", "thorp://alps/watched", "--json", "--count", "3"]));
    assert_eq!(watch.line(), r#"{"watching":"thorp://alps/watched"}"#);
    for n in 0..3 {
        home.out(&["put", made.trim(), "--text", &n.to_string()]);
        assert!(watch.line().contains("changed"));
    }
}

#[test]
fn a_watch_tells_that_its_segment_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let made = home.out(&["put", "thorp://alps/watched", "--text", "0"]);
    let watch = Process::start(home.command(&["watch", "thorp://alps/watched", "--json"]));
    watch.line();
    home.out(&["put", made.trim(), "--text", "1"]);
    watch.line();
    home.out(&["rm", "thorp://alps/watched"]);
    let lines = watch.lines_until("{\"removed\"");
    // Not a line for each place in its pages.
    assert!(lines.len() < 50, "{}", lines.len());
}
