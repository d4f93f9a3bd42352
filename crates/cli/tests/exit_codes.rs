//! Each exit code of `docs/exit-codes-and-json.md`, of commands that run, with the document that goes with it.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::{DevVillage, User, cut_journal, stopped_home};
use common::schema::Schema;
use common::thorp;
use common::two_homes;
use common::votes::leave_a_vote;
use serde_json::Value;
use std::fs;
use std::process::Command;
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Reference};
use thorp_testing::{HomeNode, HomeProcess, Intruder, PATIENCE, Process, Said, eventually, finish};

/// The command failed with this code and this kind, and its document is as the schema says.
fn assert_fails(said: &Said, code: i32, kind: &str) {
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    assert_is_failure(&said.err, code, kind);
}

fn assert_is_failure(text: &str, code: i32, kind: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    assert_eq!(Schema::named("error").check(&document), Ok(()));
    let error = &document["error"];
    assert_eq!(
        (&error["code"], &error["kind"]),
        (&code.into(), &kind.into()),
        "{text}"
    );
}

#[test]
fn code_0_what_was_asked_is_done() {
    let village = DevVillage::start();
    let said = village
        .user
        .run(&["put", "thorp://dev/notes", "--text", "hello", "--json"]);
    assert_eq!((said.code, &*said.err), (0, ""));
}

#[test]
fn code_1_a_file_that_cannot_be_read() {
    let said = User::new().run(&["put", "thorp://dev/notes", "nowhere", "--json"]);
    assert_fails(&said, 1, "failed");
}

#[test]
fn code_2_a_malformed_name() {
    let said = User::new().run(&["get", "notes", "--json"]);
    assert_fails(&said, 2, "usage");
}

/// A store whose journal was cut short.
#[test]
fn code_3_a_damaged_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = stopped_home(dir.path());
    cut_journal(&home);
    let said = thorp().run(&["check", home.to_str().unwrap(), "--json"]);
    assert_fails(&said, 3, "wrong");
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["good"], false);
    assert_eq!(Schema::named("check").check(&report), Ok(()));
}

#[test]
fn code_4_nobody_answers() {
    let village = DevVillage::start();
    let nobody = ["--via", "unix:/nobody.sock", "--timeout", "1"];
    let said = village.user.run(&[&["ls", "--json"], &nobody[..]].concat());
    assert_fails(&said, 4, "unreachable");
}

#[test]
fn code_5_a_segment_that_is_not_there() {
    let village = DevVillage::start();
    let get = ["get", "thorp://dev/nosuch", "--root", "x", "--json"];
    assert_fails(&village.user.run(&get), 5, "not_there");
}

/// An object is locked by a transaction that nobody ends. The command tries as often as it may, and is refused each time.
#[test]
fn code_6_others_are_busy_with_the_object() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = two_homes::Village::start(dir.path());
    let member = village.join(3);
    let notes = member.create("thorp://alps/notes").unwrap();
    let object = member.transact(|tx| tx.create(&notes, "old")).unwrap();
    let name = member.format(&object).unwrap();
    two_homes::found(&member, "bank", 2, two_homes::BALANCE);
    village.eventually_no_doubt();
    let homes = member.homes();
    let dale = homes.iter().find(|home| home.name == "dale").unwrap().id;
    village.kill(1);
    let mut lost = Intruder::enter(village.identity(), &village.home(0).via);
    leave_a_vote(&mut lost, dale, (1, &object));
    let mut put = village
        .home(0)
        .command(&["put", &name, "--text", "mine", "--json"]);
    put.args(["--timeout", "30"]);
    assert_fails(&finish(put), 6, "refused");
    let get = village.home(0).out(&["get", &name]);
    assert_eq!(get, "old");
}

/// The home takes a commit, and its disk never makes it durable.
#[test]
fn code_7_the_disk_never_answers() {
    let home = HomeNode::new();
    let (via, identity) = (home.address().to_string(), home.village().path("member"));
    let config = JoinConfig::new(&via).identity(&identity);
    let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let notes = member.create("thorp://alps/notes").unwrap();
    let made = member.transact(|tx| (0..3_000).map(|_| tx.create(&notes, "x")).collect());
    let made: Vec<Reference> = made.unwrap();
    // Each is a commit of its own.
    let names = made.iter().map(|object| member.format(object).unwrap());
    let mut rm = thorp().command(&["rm", "--via", &via, "--timeout", "5"]);
    rm.arg("--identity").arg(&identity).args(names);
    let rm = Process::start(rm);
    rm.line_with("removed");
    home.hold_disk();
    eventually("it says what happened", || {
        rm.log().concat().contains("look whether it was done")
    });
    assert_eq!(rm.end(), 7);
}

#[test]
fn code_8_who_is_no_operator_makes_no_group() {
    let village = DevVillage::start();
    let add = ["group", "add", "thorp://dev/@staff", "anna", "--json"];
    assert_fails(&village.user.run(&add), 8, "no_right");
}

/// A home is restored from a backup while somebody watches.
#[test]
fn code_9_a_home_goes_back_under_a_watch() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    put(&home);
    stop(home);
    copy(&dir, "home/store", "backup");
    let home = thorp().home(dir.path());
    for _ in 0..10 {
        put(&home);
    }
    let watch = home.command(&["watch", "thorp://alps/notes", "--json"]);
    let watch = Process::start(watch);
    watch.line_with("watching");
    stop(home);
    fs::remove_dir_all(dir.path().join("home/store")).unwrap();
    copy(&dir, "backup", "home/store");
    let home = thorp().home_with(dir.path(), &["--restored"]);
    eventually("the watch has ended", || {
        put(&home);
        !watch.log().is_empty()
    });
    let told = watch.lines_now();
    let went_back = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["home_went_back"] == true
    };
    assert!(told.iter().any(went_back), "{told:?}");
    let mut log = Vec::new();
    eventually("the whole document has come", || {
        log = watch.log();
        log.last().is_some_and(|line| line == "}")
    });
    assert_is_failure(&log.join("\n"), 9, "went_back");
    assert_eq!(watch.end(), 9);
}

fn put(home: &HomeProcess) {
    home.out(&["put", "thorp://alps/notes", "--text", "x", "--root", "r"]);
}

fn stop(home: HomeProcess) {
    assert_eq!(home.process.terminate(), 0);
}

fn copy(dir: &TempDir, from: &str, to: &str) {
    let [from, to] = [from, to].map(|name| dir.path().join(name));
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}
