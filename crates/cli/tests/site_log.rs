//! `thorp site --log-identity`: the log of a site, as a process that is killed (rule C6).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Procedure, Reference, Segment, Visit};
use thorp_testing::{HomeProcess, OF_A_TEST, Process, eventually, finish, signal};

const NOTES: &str = "thorp://alps/notes";

/// A home, and a site that can have a log.
struct Village {
    dir: TempDir,
    home: HomeProcess,
}

impl Village {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = thorp().home(dir.path());
        let village = Village { dir, home };
        for (name, role) in [
            ("valley", "site"),
            ("valley-log", "member"),
            ("anna", "member"),
        ] {
            let invite = [
                "invite",
                name,
                "--role",
                role,
                "--dir",
                &village.home.authority,
            ];
            let said = thorp().run(&[&invite[..], &["--out", &village.text(name)]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
        }
        village
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn via(&self) -> String {
        format!("unix:{}", self.text("site.sock"))
    }

    /// The command that starts the site, with the certificate that its log has.
    fn site(&self, log_identity: &str) -> Command {
        let identity = self.text("valley");
        let mut command = thorp().command(&["site", "--identity", &identity]);
        command
            .args(["--dir", &self.text("site")])
            .args(["--log-identity", &self.text(log_identity)])
            .args(["--listen", &self.via()])
            .arg(format!("--home=alps={}", self.home.via))
            .args(OF_A_TEST);
        command
    }

    fn start_site(&self) -> Process {
        let site = Process::start(self.site("valley-log"));
        site.ready();
        site
    }

    fn join(&self, via: &str, identity: &Path) -> Member {
        Member::join(JoinConfig::new(via).identity(identity)).unwrap()
    }
}

fn add(member: &Member, segment: &Segment, counter: &Reference) -> thorp_client::Result<()> {
    let consistency = "eventual".parse().unwrap();
    let mut visit = Visit::open(member, consistency, &[segment])?;
    visit.apply(counter, Procedure::Add(1))?;
    visit.close()
}

#[test]
fn what_a_killed_site_had_answered_is_saved_once_when_it_is_back() {
    let village = Village::start();
    let site = village.start_site();
    let identity = PathBuf::from(&village.home.identity);
    let ben = village.join(&village.home.via, &identity);
    let notes = ben.open_or_create(NOTES).unwrap();
    let counter = ben
        .transact(|tx| tx.create(&notes, [0].as_slice()))
        .unwrap();
    let seen = || {
        ben.transact(|tx| tx.read(&counter).map(<[u8]>::to_vec))
            .unwrap()
    };
    let anna = village.join(&village.via(), &village.path("anna"));
    let of_anna = anna.open(NOTES).unwrap();
    add(&anna, &of_anna, &counter).unwrap();
    eventually("the home has the first", || seen() == [2]);
    // The home hears nothing; then the site is gone.
    signal("STOP", village.home.process.id());
    for _ in 0..3 {
        add(&anna, &of_anna, &counter).unwrap();
    }
    signal("KILL", site.id());
    site.end();
    signal("CONT", village.home.process.id());
    // While nobody has the log open, it can be looked at.
    let log = village.text("site/log");
    let said = thorp().run(&["updates", "ls", &log, "--json"]);
    assert_eq!((said.code, &*said.err), (0, ""), "{}", said.out);
    let listed: Value = serde_json::from_str(&said.out).unwrap();
    let updates = listed["updates"].as_array().unwrap();
    assert!(updates.len() >= 3, "{updates:?}");
    assert!(
        updates.iter().all(|update| update["author"].is_string()),
        "{updates:?}"
    );
    let site = village.start_site();
    eventually("the home has all, once", || seen() == [8]);
    assert_eq!(site.terminate(), 0);
    eventually("the log hears of that", || {
        let site = village.start_site();
        // Some round trips. If that was too short, the next start asks again.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(site.terminate(), 0);
        let said = thorp().run(&["updates", "ls", &log]);
        said.out.starts_with("nothing")
    });
    assert_eq!(seen(), [8]);
}

#[test]
fn a_command_without_a_log_uses_that_of_its_site() {
    let village = Village::start();
    let home = &village.home;
    let notes = ["--root", "greeting", "--text"];
    home.out(&[&["put", NOTES], &notes[..], &["hello"]].concat());
    let put = [
        &["put", NOTES],
        &notes[..],
        &["hi", "--consistency", "eventual"],
    ]
    .concat();
    let refused = finish(home.command(&put));
    assert_ne!(refused.code, 0, "a home has no log");
    assert!(refused.err.contains("--log"), "{}", refused.err);
    let _site = village.start_site();
    let mut at_site = thorp().command(&put);
    let (via, identity) = (village.via(), village.text("anna"));
    at_site
        .env("THORP_VIA", via)
        .env("THORP_IDENTITY", identity);
    let said = finish(at_site);
    assert_eq!(said.code, 0, "{}", said.err);
    let get = ["get", NOTES, "--root", "greeting"];
    eventually("the home has it", || home.out(&get) == "hi");
}

#[test]
fn a_wrong_certificate_or_directory_for_the_log_is_refused_with_what_to_do() {
    let village = Village::start();
    // That of a site, and one that is not there.
    for (identity, wanted) in [("valley", "valley-log"), ("nobody", "certificate")] {
        assert_refused(village.site(identity), wanted);
    }
    // The log of another name.
    let other = JoinConfig::new(&village.home.via).identity(&village.home.identity);
    drop(Member::join(other.log(village.path("site/log"))).unwrap());
    assert_refused(village.site("valley-log"), "the log of local");
}

/// The site does not start, and says why. Its input stays open: it does not end because of that.
fn assert_refused(command: Command, why: &str) {
    let site = Process::start(command);
    eventually("it says why", || {
        site.log().iter().any(|line| line.contains(why))
    });
    assert_ne!(site.end(), 0);
}
