//! `thorp updates`: what a log keeps, and what becomes of what a home has refused.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::cut_journal;
use common::schema::Schema;
use common::thorp;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Procedure, Reference, Visit};
use thorp_testing::{HomeProcess, eventually, finish};

const NOTES: &str = "thorp://alps/notes";

/// A home, and a member that writes by a log.
struct Village {
    home: HomeProcess,
    dir: TempDir,
}

impl Village {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = thorp().home(dir.path());
        Village { home, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self) -> String {
        self.path("log").display().to_string()
    }

    /// The member, with its log.
    fn join(&self) -> Member {
        let config = JoinConfig::new(&self.home.via).identity(&self.home.identity);
        Member::join(config.log(self.log())).unwrap()
    }

    /// An object with these bytes.
    fn put(&self, bytes: &str) -> String {
        let put = ["put", NOTES, "--text", bytes];
        self.home.out(&put).trim().to_owned()
    }

    fn replace(&self, object: &str, bytes: &str) {
        self.home.out(&["put", object, "--text", bytes]);
    }

    fn get(&self, object: &str) -> String {
        self.home.out(&["get", object])
    }

    /// Updates an object by the log.
    fn update(&self, object: &str, update: impl Fn(&mut Visit, &Reference)) {
        let member = self.join();
        let segment = member.open(NOTES).unwrap();
        let object = member.parse(object).unwrap();
        let consistency = "eventual".parse().unwrap();
        let mut visit = Visit::open(&member, consistency, &[&segment]).unwrap();
        update(&mut visit, &object);
        visit.close().unwrap();
    }

    /// Lets the member run until its log has so many updates, and so many rejected ones.
    fn settle(&self, updates: usize, rejected: usize) {
        let count = |command: &str| {
            let document = self.document(command, &[]);
            document["updates"].as_array().unwrap().len()
        };
        eventually("homes have answered", || {
            let member = self.join();
            // Some round trips. If that was too short, the next start sends them again.
            thread::sleep(Duration::from_millis(100));
            drop(member);
            (count("ls"), count("rejected")) == (updates, rejected)
        });
    }

    /// The document of `thorp updates COMMAND LOG`, which is as its schema says.
    fn document(&self, command: &str, more: &[&str]) -> Value {
        let log = self.log();
        let call = ["updates", command, &log, "--json"];
        let said = thorp().run(&[&call[..], more].concat());
        assert_eq!((said.code, &*said.err), (0, ""), "{}", said.out);
        let document = serde_json::from_str(&said.out).unwrap();
        let schema = Schema::named(&format!("updates-{command}"));
        assert_eq!(schema.check(&document), Ok(()), "{document}");
        document
    }

    /// The names of the rejected updates.
    fn rejected(&self) -> Vec<String> {
        let document = self.document("rejected", &[]);
        let updates = document["updates"].as_array().unwrap().iter();
        let names = updates.map(|update| update["update"].as_str().unwrap().to_owned());
        names.collect()
    }
}

/// A procedure that met no number runs when it is retried, on what is there by then.
#[test]
fn what_is_retried_counts_once_and_on_what_is_there_by_then() {
    let village = Village::start();
    let object = village.put("hello");
    village.update(&object, |visit, object| {
        visit.apply(object, Procedure::Add(2)).unwrap();
    });
    village.settle(1, 1);
    let refused = village.rejected();
    assert_eq!(village.get(&object), "hello");

    // 5, and 7 after that, as `postcard` encodes them.
    village.replace(&object, "\u{a}");
    let retried = village.document("retry", &[]);
    let [one] = &retried["retried"].as_array().unwrap()[..] else {
        panic!("{retried}")
    };
    assert_eq!(one["update"], *refused[0]);
    assert_ne!(
        one["as"], one["update"],
        "a used number is never given again"
    );
    assert_eq!(village.rejected().len(), 0, "the old one has left the list");
    let listed = village.document("ls", &[]);
    assert_eq!(listed["updates"][0]["update"], one["as"]);
    village.settle(0, 0);
    assert_eq!(village.get(&object), "\u{e}");
    // Whatever is started again, it counts once.
    drop(village.join());
    assert_eq!(village.get(&object), "\u{e}");
}

#[test]
fn what_cannot_be_done_still_is_rejected_again_under_its_new_name() {
    let village = Village::start();
    let object = village.put("hello");
    // It is gone before the update leaves.
    village.update(&object, |visit, reference| {
        visit.write(reference, "mine").unwrap();
        village.home.out(&["rm", &object]);
    });
    village.settle(1, 1);
    let refused = village.rejected();
    let log = village.log();
    let said = thorp().run(&["updates", "retry", &log, &refused[0]]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with(&format!("retried {} as ", refused[0])));
    assert!(said.err.contains("rejected again"), "{}", said.err);
    village.settle(1, 1);
    assert_ne!(village.rejected(), refused);
    let said = thorp().run(&["updates", "retry", &log, &refused[0]]);
    assert_eq!(said.code, 5, "it is not there any more: {}", said.err);

    let dropped = village.document("drop", &[]);
    assert_eq!(dropped["dropped"].as_array().unwrap().len(), 1);
    let said = thorp().run(&["updates", "retry", &log]);
    assert_eq!(said.out, "nothing: no update was rejected\n");
}

/// The name of its object alone would look like success.
#[test]
fn a_put_by_a_log_fails_if_the_home_refuses_it() {
    let village = Village::start();
    let object = village.put("hello");
    village.home.out(&["rm", &object]);
    let log = village.log();
    let put = ["put", &object, "--text", "late"];
    let by_log = ["--consistency", "eventual", "--log", &log];
    let command = village.home.command(&[&put[..], &by_log].concat());
    let said = finish(command);
    assert_eq!((said.code, &*said.out), (1, ""), "{}", said.err);
    assert!(said.err.contains("thorp updates rejected"), "{}", said.err);
    assert_eq!(village.rejected().len(), 1);
}

#[test]
fn what_is_exported_can_be_done_by_hand() {
    let village = Village::start();
    let object = village.put("hello");
    village.update(&object, |visit, object| {
        let append = Procedure::Append(b"\xff"[..].into());
        visit.apply(object, append).unwrap();
        visit.apply(object, Procedure::Add(2)).unwrap();
    });
    village.settle(1, 1);
    let file = village.path("refused.jsonl").display().to_string();
    let told = village.document("export", &["--out", &file]);
    assert_eq!((&told["updates"], &told["file"]), (&json!(1), &json!(file)));
    let text = fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["update"], *village.rejected()[0]);
    let procedures = json!([
        {"procedure": "append", "value": {"hex": "ff"}},
        {"procedure": "add", "number": 2},
    ]);
    let (_, in_segment) = object.split_once('#').unwrap();
    let writes = json!([{"object": format!("#{in_segment}"), "run": procedures}]);
    assert_eq!(line["writes"], writes);
    assert!(
        line["rejected"].as_str().unwrap().contains("number"),
        "{line}"
    );

    let log = village.log();
    let said = thorp().run(&["updates", "export", &log, "--all"]);
    assert_eq!((said.code, said.out), (0, text), "{}", said.err);
    assert_eq!(village.rejected().len(), 1, "the log keeps it");
    let both = ["updates", "export", &log, "1/2/3/4", "--all"];
    assert_eq!(thorp().run(&both).code, 2);
    let other = ["updates", "export", &log, "1/2/3/4"];
    let said = thorp().run(&other);
    assert_eq!(said.code, 5, "{}", said.err);
    let nowhere = ["updates", "export", &log, "--out", "/no/such/dir/file"];
    let said = thorp().run(&nowhere);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("/no/such/dir/file"), "{}", said.err);
}

/// Each command says what is wrong with a directory, and changes nothing.
#[test]
fn a_log_that_is_foreign_damaged_or_in_use_is_refused() {
    let village = Village::start();
    let object = village.put("hello");
    village.update(&object, |visit, object| {
        visit.write(object, "mine").unwrap();
    });
    let refused = |log: &Path, code: i32, words: &str| {
        let log = log.display().to_string();
        for command in ["ls", "rejected", "retry", "drop", "export"] {
            let said = thorp().run(&["updates", command, &log]);
            assert_eq!(
                (said.code, &*said.out),
                (code, ""),
                "{command}: {}",
                said.err
            );
            assert!(said.err.contains(words), "{command}: {}", said.err);
        }
    };
    let member = village.join();
    refused(&village.path("log"), 1, "stop the program");
    drop(member);
    refused(&village.path("nothing"), 1, "no store at");
    let files = village.path("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("letter.txt"), "hello").unwrap();
    refused(&files, 1, "not a Thorp store");
    let Village { home, dir } = village;
    assert_eq!(home.process.terminate(), 0);
    let path = |name: &str| dir.path().join(name);
    refused(&path("home/store"), 1, "the store of home alps");

    let damaged = path("damaged");
    fs::create_dir(&damaged).unwrap();
    fs::rename(path("log"), damaged.join("store")).unwrap();
    cut_journal(&damaged);
    refused(&damaged.join("store"), 3, "from a backup");
}
