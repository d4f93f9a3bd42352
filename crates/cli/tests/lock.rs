//! `thorp lock`: a command while nobody else writes.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::DevVillage;
use common::thorp;

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
