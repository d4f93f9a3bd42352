//! A site hands locks over, as processes that are stopped and killed (rule C5).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::thread;
use tempfile::TempDir;
use thorp_client::{JoinConfig, Member, Segment, Visit};
use thorp_testing::{HomeProcess, OF_A_TEST, Process, eventually, signal};

const PLAN: &str = "thorp://alps/plan";

/// A home, a site, and two members below the site.
struct Village {
    dir: TempDir,
    home: HomeProcess,
    site: Process,
    http: String,
}

impl Village {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = thorp().home_with(dir.path(), &["--lease", "5"]);
        let path = |name: &str| dir.path().join(name).display().to_string();
        for (name, role) in [("valley", "site"), ("anna", "member"), ("ben", "member")] {
            let out = path(name);
            let authority = &home.authority;
            let invite = ["invite", name, "--role", role, "--dir", authority, "--out"];
            let said = thorp().run(&[&invite[..], &[&out]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
        }
        let mut site = thorp().command(&["site", "--identity", &path("valley")]);
        site.args(["--listen", &format!("unix:{}", path("site.sock"))])
            .arg(format!("--home=alps={}", home.via))
            .args(OF_A_TEST);
        let site = Process::start(site);
        let (_, http) = site.ready();
        Village {
            dir,
            home,
            site,
            http,
        }
    }

    fn text(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn via(&self) -> String {
        format!("unix:{}", self.text("site.sock"))
    }

    fn join(&self, name: &str) -> (Member, Segment) {
        let identity = self.dir.path().join(name);
        let member = Member::join(JoinConfig::new(self.via()).identity(identity)).unwrap();
        let segment = member.open_or_create(PLAN).unwrap();
        (member, segment)
    }

    /// How many sessions wait at the site.
    fn waiters(&self) -> u64 {
        let said = thorp().run(&["status", &self.http, "--json"]);
        let status: Value = serde_json::from_str(&said.out).unwrap();
        status["sizes"]["lock_waiters"].as_u64().unwrap()
    }

    fn hand_over(&self, held: Visit, next: &(Member, Segment)) -> Visit {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| locked(next));
            eventually("it waits at the site", || self.waiters() == 1);
            held.close().unwrap();
            waiting.join().unwrap()
        })
    }
}

fn locked((member, segment): &(Member, Segment)) -> Visit {
    Visit::open(member, "locking".parse().unwrap(), &[segment]).unwrap()
}

/// The home's process is stopped while the lock goes from hand to hand: nobody needs a message from it.
#[test]
fn a_lock_is_handed_over_while_the_home_stands_still() {
    let village = Village::start();
    let [anna, ben] = ["anna", "ben"].map(|name| village.join(name));
    let mut held = village.hand_over(locked(&anna), &ben);
    signal("STOP", village.home.process.id());
    for next in [&anna, &ben, &anna] {
        held = village.hand_over(held, next);
    }
    signal("CONT", village.home.process.id());
    held.close().unwrap();
    assert_eq!(village.site.terminate(), 0);
}

/// Whoever has a lent lock is killed. The next one has the lock when the lease is over.
#[test]
fn the_lock_of_a_killed_holder_goes_on_after_its_lease() {
    let village = Village::start();
    let [anna, ben] = ["anna", "ben"].map(|name| village.join(name));
    let held = village.hand_over(locked(&anna), &ben);
    let (via, identity) = (village.via(), village.text("anna"));
    let there = village.text("there");
    let script = format!(": > {there}; exec sleep 20");
    let lock = ["lock", PLAN, "--via", &via, "--identity", &identity];
    let mut killed = thorp()
        .command(&[&lock[..], &["--timeout", "60", "--", "sh", "-c", &script]].concat())
        .spawn()
        .unwrap();
    // It has a process start of its own, so the home says first that it may have the lock.
    eventually("it waits at the site", || village.waiters() == 1);
    held.close().unwrap();
    eventually("it has the lock", || std::path::Path::new(&there).exists());
    signal("KILL", killed.id());
    killed.wait().unwrap();
    locked(&ben).close().unwrap();
    assert_eq!(village.site.terminate(), 0);
}
