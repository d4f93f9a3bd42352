//! `thorp lock`: a command while nobody else writes.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::DevVillage;
use common::metrics;
use common::schema::Schema;
use common::thorp;
use rustix::process::{Pid, Signal, kill_process};
use thorp_testing::eventually;

const PLAN: &str = "thorp://dev/plan";

#[test]
fn a_command_writes_alone() {
    let village = DevVillage::start();
    let user = &village.user;
    let put = |text: &str, timeout: &str| {
        user.run(&[
            "put",
            PLAN,
            "--root",
            "step",
            "--text",
            text,
            "--timeout",
            timeout,
        ])
    };
    assert_eq!(put("one", "10").code, 0);
    let program = env!("CARGO_BIN_EXE_thorp");
    // The command itself writes; without the lock's number it is refused as anybody else is.
    let script = format!(
        "{program} put {PLAN} --root step --text two && \
         THORP_LOCK= {program} put {PLAN} --root step --text three --timeout 1; exit $((40 + $?))"
    );
    let said = user.run(&["lock", PLAN, "--", "sh", "-c", &script]);
    assert_eq!(said.code, 46, "{}{}", said.out, said.err);
    assert!(said.err.contains("holds a lock"), "{}", said.err);
    let get = ["get", PLAN, "--root", "step"];
    assert_eq!(user.run(&get).out, "two");
    assert_eq!(put("four", "10").code, 0, "the lock was given back");
    // Two readers are beside each other, and a writer waits in vain.
    let inner = format!(
        "{program} lock {PLAN} --read -- {program} get {PLAN} --root step && \
         {program} lock {PLAN} --timeout 1 -- true"
    );
    let said = user.run(&["lock", PLAN, "--read", "--", "sh", "-c", &inner]);
    assert_eq!((said.code, &*said.out), (6, "four"), "{}", said.err);
    let said = user.run(&["lock", PLAN, "--", "/no/such/program"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("cannot be started"), "{}", said.err);
}

/// A service manager ends `thorp lock`: the command ends, and the next one does not wait for a lease.
#[test]
fn the_end_of_the_lock_is_the_end_of_the_command() {
    let village = DevVillage::start();
    let user = &village.user;
    let put = |text: &str| {
        user.run(&[
            "put",
            PLAN,
            "--root",
            "step",
            "--text",
            text,
            "--timeout",
            "10",
        ])
    };
    assert_eq!(put("one").code, 0);
    let runs = user.path("runs");
    let script = format!(
        "trap 'exit 9' TERM; : > {}; while :; do sleep 0.1; done",
        runs.display()
    );
    let mut locked = user
        .command(&["lock", PLAN, "--", "sh", "-c", &script])
        .spawn()
        .unwrap();
    eventually("the command runs", || runs.exists());
    let pid = Pid::from_child(&locked);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(locked.wait().unwrap().code(), Some(9));
    let said = put("two");
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn status_and_metrics_show_who_holds_locks_and_who_waits() {
    let village = DevVillage::start();
    let (user, http) = (&village.user, village.http(0));
    let put = ["put", PLAN, "--root", "step", "--text", "one"];
    assert_eq!(user.run(&put).code, 0);
    let has = |line: &str| metrics::of(http).lines().any(|found| found == line);
    assert!(has("thorp_locks 0.0") && has("thorp_lock_waiters 0.0"));
    let ends = user.path("ends");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done", ends.display());
    let lock = ["lock", PLAN, "--timeout", "60", "--", "sh", "-c", &script];
    let mut first = user.command(&lock).spawn().unwrap();
    eventually("one holds the lock", || has("thorp_locks 1.0"));
    let mut second = user.command(&lock).spawn().unwrap();
    eventually("one waits", || has("thorp_lock_waiters 1.0"));
    let said = user.run(&["status", http]);
    let words = "privileges: 1 lock, 1 session waits for one";
    assert!(said.out.contains(words), "{}", said.out);
    let said = user.run(&["status", http, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(Schema::named("status").check(&document), Ok(()));
    assert_eq!(document["privileges"]["locks"], 1);
    std::fs::write(&ends, "").unwrap();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    eventually("nobody holds it", || has("thorp_locks 0.0"));
}

#[test]
fn one_command_writes_under_one_lock_of_a_home() {
    let village = DevVillage::start();
    let user = &village.user;
    let other = "thorp://dev/other";
    for url in [PLAN, other] {
        assert_eq!(
            user.run(&["put", url, "--root", "step", "--text", "one"])
                .code,
            0
        );
    }
    let program = env!("CARGO_BIN_EXE_thorp");
    let said = user.run(&["lock", PLAN, "--", program, "lock", other, "--", "true"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("in one `thorp lock`"), "{}", said.err);
    let put = format!(
        "{program} put {PLAN} --root step --text two && {program} put {other} --root step --text two"
    );
    let said = user.run(&[
        "lock", PLAN, "--", program, "lock", "--read", other, "--", "sh", "-c", &put,
    ]);
    assert_eq!(said.code, 6, "{}", said.err);
    assert_eq!(
        user.run(&["get", PLAN, "--root", "step"]).out,
        "two",
        "under the outer lock"
    );
    assert_eq!(
        user.run(&["get", other, "--root", "step"]).out,
        "one",
        "nobody writes there"
    );
}

#[test]
fn what_is_no_lock_is_wrong_usage() {
    for (args, words) in [
        (&["lock", "thorp://a/b"][..], "COMMAND"),
        (&["lock", "--", "true"], "<URL>"),
        (&["lock", "nonsense", "--", "true"], "thorp://HOME/path"),
    ] {
        let said = thorp().run(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
}
