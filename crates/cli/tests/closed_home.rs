//! A home that cannot prove that it continues its newest history starts closed: against real processes (rule R9, threat 33).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use thorp_model::records::{self, SegmentRecord};
use thorp_model::{Reader as _, Scan, SegmentId, Table};
use thorp_store::Store;
use thorp_testing::{HomeProcess, Said, finish};

/// A directory with a home's data in `home`, that holds `notes` with one root, and an operator's identity in `olga`.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
        };
        let home = place.start(&[]);
        home.out(&["put", "thorp://alps/notes", "--text", "one", "--root", "a"]);
        let olga = place.path("olga").display().to_string();
        let invite = ["invite", "olga", "--role", "operator"];
        let flags = ["--dir", &home.authority, "--out", &olga];
        let said = thorp().run(&[&invite[..], &flags].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(home.process.terminate(), 0);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("home/store")
    }

    fn olga(&self) -> String {
        self.path("olga").display().to_string()
    }

    fn start(&self, flags: &[&str]) -> HomeProcess {
        thorp().home_with(self.dir.path(), flags)
    }

    /// The home's directory becomes a copy of what it was.
    fn replace_by_copy(&self) {
        let (home, old) = (self.path("home"), self.path("old"));
        fs::rename(&home, &old).unwrap();
        copy(&old, &home);
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// The segments in the store of a stopped home.
fn segments(store: &Path) -> Vec<(SegmentId, String)> {
    let store = Store::open(store, thorp_store::Options::default()).unwrap();
    let (from, to) = records::segment_range();
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        let record: SegmentRecord = records::decode(Table::Meta, key, value).unwrap();
        found.push((records::segment_of(key).unwrap(), record.path));
        Scan::Go
    };
    store.scan(Table::Meta, &from, &to, &mut visit).unwrap();
    found
}

fn get(home: &HomeProcess, identity: &str) -> Said {
    let mut command = home.command(&["get", "thorp://alps/notes", "--root", "a", "--timeout", "2"]);
    command.env("THORP_IDENTITY", identity);
    finish(command)
}

fn history(home: &HomeProcess) -> Value {
    let said = thorp().run(&["status", &home.http, "--json"]);
    let status: Value = serde_json::from_str(&said.out).unwrap();
    status["history"].clone()
}

/// A command at the running home, as somebody.
fn run_as(home: &HomeProcess, identity: &str, args: &[&str]) -> Said {
    let mut command = home.command(args);
    command.env("THORP_IDENTITY", identity);
    finish(command)
}

/// What is in the audit, for each record the event, who did it, and how the home was opened.
fn audit(place: &Place, home: &HomeProcess) -> Vec<(String, String, Value)> {
    let said = run_as(home, &place.olga(), &["audit", "alps", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let entries: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let word = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    // Whether a denial was written before the home ended is left to its heartbeat.
    let told = entries.iter().filter(|entry| entry["event"] != "denied");
    told.map(|entry| {
        let opened = entry["opened"].clone();
        (word(entry, "event"), word(entry, "who"), opened)
    })
    .collect()
}

/// Members hear why, operators get in, and the status says what to do.
fn assert_closed(place: &Place, home: &HomeProcess, why: &str) {
    let said = get(home, &home.identity);
    assert_ne!(said.code, 0, "{}", said.out);
    for words in ["home alps is closed", why, "--restored", "--moved"] {
        assert!(said.err.contains(words), "{words:?} in {}", said.err);
    }
    let said = get(home, place.path("olga").to_str().unwrap());
    assert_eq!((said.code, said.out.as_str()), (0, "one"), "{}", said.err);
    let said = thorp().run(&["status", &home.http]);
    assert_eq!(said.code, 3, "{}", said.out);
    assert!(
        said.out.contains("NOT WELL: home alps is closed"),
        "{}",
        said.out
    );
    assert!(said.out.contains(why), "{}", said.out);
    assert!(history(home)["closed"].as_str().unwrap().contains(why));
}

fn assert_open(home: &HomeProcess, incarnation: u64) {
    let said = get(home, &home.identity);
    assert_eq!((said.code, said.out.as_str()), (0, "one"), "{}", said.err);
    let history = history(home);
    assert_eq!(history["closed"], Value::Null);
    assert_eq!(history["incarnation"], incarnation);
}

/// Threat 33: the journal was cut and its note removed, and the home went on without a third of what was acknowledged.
#[test]
fn a_cut_journal_without_its_note_starts_closed() {
    let place = Place::new();
    let home = place.start(&[]);
    for number in 0..40 {
        let text = number.to_string();
        let to = ["put", "thorp://alps/notes", "--text", &text, "--root", "b"];
        home.out(&to);
    }
    assert_eq!(home.process.terminate(), 0);
    let journal = place.store().join("thorp-engine/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&journal, &bytes[..end * 7 / 10]).unwrap();
    // With the note the cut is damage.
    let data = place.path("home").display().to_string();
    assert_eq!(thorp().run(&["check", &data]).code, 3);
    fs::remove_file(place.store().join("thorp-note")).unwrap();
    let checked = thorp().run(&["check", &data]);
    assert!(
        checked.out.contains("would start closed"),
        "{}",
        checked.out
    );

    for _ in 0..2 {
        let home = place.start(&[]);
        assert_closed(&place, &home, "thorp-note");
        assert_eq!(home.process.terminate(), 0);
    }
    let home = place.start(&["--moved"]);
    assert_closed(&place, &home, "thorp-note");
    assert_eq!(home.process.terminate(), 0);
    let home = place.start(&["--restored"]);
    assert_open(&home, 1);
    assert_eq!(home.process.terminate(), 0);
    assert_open(&place.start(&[]), 1);
}

#[test]
fn a_copy_starts_closed_and_stays_so_until_an_operator_opens_it() {
    let place = Place::new();
    place.replace_by_copy();
    let why = "its directory is not the one where it ran";
    for _ in 0..2 {
        let home = place.start(&[]);
        assert_closed(&place, &home, why);
        let data = place.path("home").display().to_string();
        let running = thorp().run(&["confirm", &data]);
        assert_eq!(running.code, 1, "{}", running.err);
        assert!(running.err.contains("in use"), "{}", running.err);
        assert_eq!(home.process.terminate(), 0);
    }
    let data = place.path("home").display().to_string();
    let confirmed = thorp().run(&["confirm", &data]);
    assert_eq!(confirmed.code, 0, "{}", confirmed.err);
    assert!(confirmed.out.contains("incarnation 1"), "{}", confirmed.out);
    // There is nothing more to confirm, and nobody has to hear of another incarnation.
    let again = thorp().run(&["confirm", &data]);
    assert_eq!(again.code, 1, "{}", again.out);
    assert!(
        again.err.contains("is not closed: nothing was changed"),
        "{}",
        again.err
    );
    let home = place.start(&[]);
    assert_open(&home, 1);
    // What is made now has numbers that the original never gives.
    home.out(&["put", "thorp://alps/new", "--text", "two", "--root", "a"]);
    assert_eq!(home.process.terminate(), 0);
    let segments = segments(&place.store());
    let id = |path: &str| segments.iter().find(|(_, known)| known == path).unwrap().0;
    assert!(
        id("notes").0 < 1 << 20 && id("new").0 > 1 << 20,
        "{segments:?}"
    );
}

/// The operator's word reaches a home that runs. It begins anew in the same process.
#[test]
fn an_operator_opens_a_home_that_runs() {
    let place = Place::new();
    let home = place.start(&[]);
    let olga = place.olga();
    let said = run_as(&home, &olga, &["confirm", "alps"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("alps is not closed"), "{}", said.err);
    let said = run_as(&home, &home.identity, &["confirm", "alps"]);
    assert_eq!(said.code, 8, "{}", said.out);
    assert!(said.err.contains("for operators"), "{}", said.err);
    assert_eq!(home.process.terminate(), 0);

    place.replace_by_copy();
    let home = place.start(&[]);
    assert_closed(&place, &home, "its directory is not the one where it ran");
    let said = run_as(&home, &home.identity, &["confirm", "alps", "--timeout=2"]);
    assert_ne!(said.code, 0, "{}", said.out);
    assert!(said.err.contains("alps is closed"), "{}", said.err);
    assert_ne!(history(&home)["closed"], Value::Null);
    let said = run_as(&home, &olga, &["confirm", "alps", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["incarnation"], 1);
    assert_eq!(told["before"]["incarnation"], 0);
    assert_eq!(told["before"]["life"], 3);
    assert_open(&home, 1);
    home.out(&["put", "thorp://alps/new", "--text", "two", "--root", "a"]);
    let opened = |how: &str, who: &str| ("opened".to_owned(), who.to_owned(), Value::from(how));
    let expected = [opened("confirmed", "olga")];
    assert_eq!(audit(&place, &home), expected);
    let said = run_as(&home, &olga, &["audit", "alps"]);
    let line = "opened the home (confirmed) with incarnation 1, from position ";
    assert!(said.out.contains(line), "{}", said.out);
    // It is so after a restart, too, and nothing is recorded twice.
    assert_eq!(home.process.terminate(), 0);
    let home = place.start(&[]);
    assert_open(&home, 1);
    assert_eq!(audit(&place, &home), expected);
    assert_eq!(home.process.terminate(), 0);
    let segments = segments(&place.store());
    let id = |path: &str| segments.iter().find(|(_, known)| known == path).unwrap().0;
    assert!(id("new").0 > 1 << 20, "{segments:?}");
}

/// A closed home asks no other home. Once it is open, it does so without being started again.
#[test]
fn a_home_that_is_opened_while_it_runs_reaches_the_other_homes() {
    let place = Place::new();
    place.replace_by_copy();
    let dale = place.path("dale.sock").display().to_string();
    let home = place.start(&[&format!("--other-home=dale=unix:{dale}")]);
    let parents = || {
        let said = thorp().run(&["status", &home.http, "--json"]);
        let status: Value = serde_json::from_str(&said.out).unwrap();
        let parents = status["parents"].as_array().unwrap().iter();
        let names = parents.map(|parent| parent["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(parents(), Vec::<String>::new());
    let said = run_as(&home, &place.olga(), &["confirm", "alps"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_open(&home, 1);
    assert_eq!(parents(), ["dale"]);
}

/// A copy for a test has another key: the operator's own receipt proves nothing there, and the call is still answered.
#[test]
fn an_operator_opens_a_running_copy_apart() {
    let place = Place::new();
    place.replace_by_copy();
    let home = place.start(&[]);
    let said = run_as(&home, &place.olga(), &["confirm", "alps", "--apart"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("alps is open, with incarnation 1"),
        "{}",
        said.out
    );
    assert!(said.out.contains("is not known"), "{}", said.out);
    assert_open(&home, 1);
    let kinds: Vec<Value> = audit(&place, &home)
        .into_iter()
        .map(|told| told.2)
        .collect();
    assert_eq!(kinds, ["apart"]);
}

/// `--closed` counts at any start: what is there stays as it is, and what is made from now on is its maker's.
#[test]
fn a_village_that_was_open_is_closed_at_a_later_start() {
    let place = Place::new();
    let home = place.start(&[]);
    let olga = place.olga();
    let put = |home: &HomeProcess, who: &str, to: &str| {
        run_as(home, who, &["put", to, "--text", "x", "--root", "b"])
    };
    assert_eq!(put(&home, &home.identity, "thorp://alps/mine").code, 0);
    assert_eq!(home.process.terminate(), 0);
    for flags in [&["--closed"][..], &[], &["--closed"]] {
        let home = place.start(flags);
        let said = put(&home, &home.identity, "thorp://alps/new");
        assert_eq!(said.code, 8, "{}", said.out);
        assert!(said.err.contains("right"), "{}", said.err);
        assert_eq!(put(&home, &home.identity, "thorp://alps/mine").code, 0);
        assert_eq!(put(&home, &olga, "thorp://alps/hers").code, 0);
        let said = run_as(&home, &olga, &["rights", "show", "thorp://alps/hers"]);
        assert!(!said.out.contains("@members"), "{}", said.out);
        assert_eq!(home.process.terminate(), 0);
    }
}

#[test]
fn what_was_opened_at_the_machine_is_in_the_audit() {
    let place = Place::new();
    place.replace_by_copy();
    let home = place.start(&["--moved"]);
    assert_eq!(home.process.terminate(), 0);
    let home = place.start(&["--moved"]);
    assert_eq!(home.process.terminate(), 0);
    let home = place.start(&["--restored"]);
    assert_eq!(home.process.terminate(), 0);
    fs::remove_file(place.store().join("thorp-note")).unwrap();
    let data = place.path("home").display().to_string();
    let said = thorp().run(&["confirm", &data, "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["incarnation"], 2);
    let home = place.start(&[]);
    let told = audit(&place, &home).into_iter();
    let told: Vec<(String, Value)> = told.map(|(_, who, how)| (who, how)).collect();
    let of_alps = |how: &str| ("alps".to_owned(), Value::from(how));
    assert_eq!(told, ["moved", "restored", "confirmed"].map(of_alps));
}

#[test]
fn a_moved_directory_is_told_from_a_renamed_one() {
    let place = Place::new();
    // Within a file system nothing has to be said.
    let (home, there) = (place.path("home"), place.path("there"));
    fs::rename(&home, &there).unwrap();
    fs::rename(&there, &home).unwrap();
    let home = place.start(&[]);
    assert_open(&home, 0);
    assert_eq!(home.process.terminate(), 0);
    // To another disk it is a copy, whether it has started closed or not.
    place.replace_by_copy();
    let home = place.start(&[]);
    assert_closed(&place, &home, "its directory is not the one where it ran");
    assert_eq!(home.process.terminate(), 0);
    let home = place.start(&["--moved"]);
    assert_open(&home, 0);
    assert_eq!(home.process.terminate(), 0);
    assert_open(&place.start(&[]), 0);
}

#[test]
fn the_configuration_switches_the_proof_by_place_off() {
    let place = Place::new();
    place.replace_by_copy();
    let config = place.path("home.toml");
    fs::write(&config, "[store]\norigin_proof = false\n").unwrap();
    let home = place.start(&["--config", config.to_str().unwrap()]);
    assert_open(&home, 0);
}

#[test]
fn a_store_counts_the_lives_of_its_home() {
    let place = Place::new();
    for lives in 2..5 {
        let home = place.start(&[]);
        assert_eq!(history(&home)["lives"], lives);
        assert_eq!(home.process.terminate(), 0);
    }
}

/// Threat 31: one flipped bit in the journal, and no command saved what was readable.
#[test]
fn what_is_readable_of_a_damaged_home_is_salvaged_and_closed() {
    let place = Place::new();
    let home = place.start(&[]);
    for number in 0..40 {
        let text = number.to_string();
        let to = ["put", "thorp://alps/notes", "--text", &text, "--root", "b"];
        home.out(&to);
    }
    assert_eq!(home.process.terminate(), 0);
    let journal = place.store().join("thorp-engine/0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end * 7 / 10] ^= 1;
    fs::write(&journal, bytes).unwrap();
    let damaged = place.path("damaged");
    fs::rename(place.path("home"), &damaged).unwrap();
    let start = [
        "home",
        "--name",
        "alps",
        "--http=off",
        "--listen=127.0.0.1:0",
    ];
    let damaged = damaged.to_str().unwrap();
    let refused = thorp().run(&[&start[..], &["--dir", damaged]].concat());
    assert_eq!(refused.code, 1, "{}", refused.err);

    let into = place.path("home");
    let into = into.to_str().unwrap();
    let said = thorp().run(&["salvage", damaged, into]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.out.contains("lost: groups "), "{}", said.out);
    assert!(
        said.out.contains("all commits above position "),
        "{}",
        said.out
    );
    copy(
        &Path::new(damaged).join("identity"),
        &place.path("home/identity"),
    );
    let home = place.start(&[]);
    assert_closed(&place, &home, "its store was salvaged");
    assert_eq!(home.process.terminate(), 0);
    let confirmed = thorp().run(&["confirm", into]);
    assert_eq!(confirmed.code, 0, "{}", confirmed.err);
    let home = place.start(&[]);
    assert_open(&home, 1);
    let later: u32 = home
        .out(&["get", "thorp://alps/notes", "--root", "b"])
        .parse()
        .unwrap();
    assert!((1..39).contains(&later), "{later}");
    home.out(&["put", "thorp://alps/notes", "--text", "on", "--root", "b"]);
}
