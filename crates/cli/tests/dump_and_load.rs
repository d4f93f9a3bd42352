//! A segment that is dumped, loaded and dumped again is the same: with references in both directions, roots and large values,
//! after a load that was killed, and not with a broken line.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use thorp_client::{JoinConfig, Member, Ref, Segment};
use thorp_testing::{HomeProcess, PATIENCE, eventually};

/// More than one transaction of `thorp load` makes.
const OBJECTS: usize = 1_600;

/// An object of a program: text, and references forth and back.
#[derive(Serialize, Deserialize, Clone)]
struct Person {
    name: String,
    knows: Vec<Ref<Person>>,
}

#[test]
fn what_is_dumped_loaded_and_dumped_again_is_equal() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    fill(&home, "thorp://alps/people");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let told = home.out(&["dump", "thorp://alps/people", &file("a"), "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["objects"], OBJECTS + 2);
    home.out(&["load", &file("a"), "thorp://alps/again"]);
    home.out(&["dump", "thorp://alps/again", &file("b")]);
    assert_same(dir.path(), "a", "b");
    // It is used as the first one.
    let member = join(&home);
    let again = member.open("thorp://alps/again").unwrap();
    let first = Ref::<Person>::new(again.root("first").unwrap().unwrap());
    let (first, last) = member
        .transact(|tx| {
            let first = tx.get(&first)?;
            let last = tx.get(&first.knows[0])?;
            Ok((first, last))
        })
        .unwrap();
    assert_eq!(
        (first.name.as_str(), last.name.as_str()),
        ("person 0", "person 1599")
    );
    assert_eq!(again.root(".load").unwrap(), None);
    // Over a pipe, too.
    for to in [&["-"][..], &[]] {
        let piped = home.out(&[&["dump", "thorp://alps/again"], to].concat());
        assert_eq!(piped, fs::read_to_string(file("a")).unwrap());
    }
    let mut load = home.command(&["load", "thorp://alps/piped"]);
    load.stdin(fs::File::open(file("a")).unwrap());
    let loaded = load.output().unwrap();
    assert!(loaded.status.success(), "{loaded:?}");
    home.out(&["dump", "thorp://alps/piped", &file("c")]);
    assert_same(dir.path(), "a", "c");
    let refused = home.command(&["load", &file("a"), "thorp://alps/again"]);
    let refused = thorp_testing::finish(refused);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("has objects or roots already"),
        "{}",
        refused.err
    );
}

#[test]
fn a_load_that_is_killed_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    fill(&home, "thorp://alps/people");
    let file = |name: &str| dir.path().join(name).display().to_string();
    home.out(&["dump", "thorp://alps/people", &file("a")]);
    let member = join(&home);
    let mut killed = home.command(&["load", &file("a"), "thorp://alps/again"]);
    let mut killed = killed.stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("a part is loaded", || {
        let begun = member.open("thorp://alps/again");
        begun.is_ok_and(|segment| count(&member, &segment) > 1)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let again = member.open("thorp://alps/again").unwrap();
    let part = count(&member, &again);
    println!("killed with {part} of {OBJECTS} objects");
    assert!(
        again.root(".load").unwrap().is_some(),
        "it was not killed in time"
    );
    let refused = thorp_testing::finish(home.command(&["dump", "thorp://alps/again", &file("b")]));
    assert!(refused.err.contains("is being loaded"), "{}", refused.err);
    fs::write(file("other"), "{\"thorp_dump\":1}\n{\"objects\":0}\n").unwrap();
    let refused =
        thorp_testing::finish(home.command(&["load", &file("other"), "thorp://alps/again"]));
    assert!(refused.err.contains("from another file"), "{}", refused.err);
    home.out(&["load", &file("a"), "thorp://alps/again"]);
    home.out(&["dump", "thorp://alps/again", &file("b")]);
    assert_same(dir.path(), "a", "b");
}

#[test]
fn of_a_dump_with_a_broken_line_nothing_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let file = dir.path().join("a");
    fs::write(
        &file,
        "{\"thorp_dump\":1}\n{\"id\":1,\"text\":\"x\"}\n{\"id\":2,\n{\"objects\":2}\n",
    )
    .unwrap();
    let file = file.display().to_string();
    let refused = thorp_testing::finish(home.command(&["load", &file, "thorp://alps/again"]));
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("line 3: "), "{}", refused.err);
    assert!(!home.out(&["ls"]).contains("again"));
}

#[test]
fn an_interrupted_dump_goes_on_with_its_part() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    fill(&home, "thorp://alps/people");
    let file = |name: &str| dir.path().join(name).display().to_string();
    home.out(&["dump", "thorp://alps/people", &file("a")]);
    let whole = fs::read(file("a")).unwrap();
    for part in [
        &whole[..whole.len() / 2],
        b"{\"thorp_dump\":1}\n{\"id\":1,\"text\":\"other\"}\n",
    ] {
        fs::write(file("b.part"), part).unwrap();
        home.out(&["dump", "thorp://alps/people", &file("b")]);
        assert_same(dir.path(), "a", "b");
        assert!(!dir.path().join("b.part").exists());
    }
}

/// As an export of models does (edge 20): a dump replaces no pipe and no device.
#[test]
fn a_dump_is_written_into_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    home.out(&["put", "thorp://alps/notes", "--text", "hello"]);
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    home.out(&["dump", "thorp://alps/notes", pipe.to_str().unwrap()]);
    let told = reader.join().unwrap();
    assert_eq!(told, home.out(&["dump", "thorp://alps/notes", "-"]));
    let kind = fs::symlink_metadata(&pipe).unwrap().file_type();
    assert!(kind.is_fifo(), "{kind:?}");
}

#[test]
fn a_load_into_a_full_store_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    // One name may fill it (rule R7).
    let config = dir.path().join("one-name.toml");
    fs::write(&config, "[shares]\nstore_percent_max = 100\n").unwrap();
    let config = config.display().to_string();
    let with_limit = |limit: &str| {
        let flags = ["--limit-bytes", limit, "--config", &config];
        thorp().home_with(dir.path(), &flags)
    };
    let home = with_limit("1 MiB");
    let file = dir.path().join("a");
    let lines = (1..=300).map(|id| format!("{{\"id\":{id},\"text\":\"{}\"}}\n", "x".repeat(8_000)));
    let dump = format!(
        "{{\"thorp_dump\":1}}\n{}{{\"objects\":300}}\n",
        lines.collect::<String>()
    );
    fs::write(&file, &dump).unwrap();
    let file = file.display().to_string();
    let refused = thorp_testing::finish(home.command(&["load", &file, "thorp://alps/again"]));
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(
        refused.err.contains("full") && refused.err.contains("of 300 objects are there"),
        "{}",
        refused.err
    );
    home.process.terminate();
    let home = with_limit("64 MiB");
    home.out(&["load", &file, "thorp://alps/again"]);
    let again = home.out(&["dump", "thorp://alps/again", "-"]);
    assert_eq!(again, dump);
}

#[test]
fn roots_are_set_listed_and_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let object = home.out(&["put", "thorp://alps/notes", "--text", "hello"]);
    let object = object.trim();
    home.out(&["root", "set", "thorp://alps/notes", "greeting", object]);
    let listed = home.out(&["root", "ls", "thorp://alps/notes"]);
    assert!(
        listed.contains("greeting") && listed.contains(object),
        "{listed}"
    );
    assert_eq!(
        home.out(&["get", "thorp://alps/notes", "--root", "greeting"]),
        "hello"
    );
    home.out(&["root", "rm", "thorp://alps/notes", "greeting"]);
    let missing =
        thorp_testing::finish(home.command(&["root", "rm", "thorp://alps/notes", "greeting"]));
    assert_eq!(missing.code, 5, "{}", missing.err);
    assert_eq!(home.out(&["get", object]), "hello");
}

/// Each person knows the last one and the one before it; a large value, and bytes that are no text.
fn fill(home: &HomeProcess, name: &str) {
    let member = join(home);
    let segment = member.create(name).unwrap();
    let mut people: Vec<Ref<Person>> = Vec::new();
    for part in (0..OBJECTS).collect::<Vec<_>>().chunks(400) {
        let made = member.transact(|tx| {
            let made = part.iter().map(|number| {
                let knows = Vec::new();
                let name = format!("person {number}");
                tx.create_typed(&segment, &Person { name, knows })
            });
            made.collect::<Result<Vec<_>, _>>()
        });
        people.extend(made.unwrap());
    }
    for part in (0..OBJECTS).collect::<Vec<_>>().chunks(400) {
        let linked = member.transact(|tx| {
            for number in part {
                let mut person = tx.get(&people[*number])?;
                person.knows = vec![people[OBJECTS - 1], people[number.saturating_sub(1)]];
                tx.put(&people[*number], &person)?;
            }
            Ok(())
        });
        linked.unwrap();
    }
    member
        .transact(|tx| {
            tx.create(&segment, vec![0xfe; 300_000])?;
            let odd = tx.create(&segment, "a \u{0} b\n\"c\"")?;
            tx.set_root(&segment, "odd", Some(odd))?;
            tx.set_root(&segment, "first", Some(people[0].reference()))
        })
        .unwrap();
}

fn join(home: &HomeProcess) -> Member {
    let config = JoinConfig::new(&home.via).identity(&home.identity);
    Member::join(config.name("writer").join_timeout(PATIENCE)).unwrap()
}

fn count(member: &Member, segment: &Segment) -> usize {
    let counted = member.transact(|tx| {
        let mut objects = 0;
        tx.scan_references(segment, |_| {
            objects += 1;
            Ok(())
        })?;
        Ok(objects)
    });
    counted.unwrap_or(0)
}

fn assert_same(dir: &Path, one: &str, other: &str) {
    let [one, other] = [one, other].map(|name| fs::read_to_string(dir.join(name)).unwrap());
    let differs = one
        .lines()
        .zip(other.lines())
        .find(|(one, other)| one != other);
    assert!(differs.is_none(), "{differs:?}");
    assert_eq!(one.len(), other.len());
}

/// What a dump that fails leaves for the load behind it.
#[test]
fn an_empty_standard_input_is_called_so() {
    let mut load = thorp().command(&["load", "thorp://alps/again"]);
    load.stdin(std::process::Stdio::null());
    let said = thorp_testing::finish(load);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.err.starts_with("thorp: standard input is empty"),
        "{}",
        said.err
    );
}
