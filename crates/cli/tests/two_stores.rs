//! Two stores under one home name, and names that are taken (rule R1).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use std::path::Path;
use thorp_client::{JoinConfig, Member};
use thorp_testing::{HomeProcess, OF_A_TEST, PATIENCE, Process, eventually, finish};

/// A home called `alps`, and another one with an empty store whose certificate has a new id.
struct TwoStores {
    dir: tempfile::TempDir,
    first: HomeProcess,
    second: HomeProcess,
}

impl TwoStores {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("one")).unwrap();
        std::fs::create_dir(path("two")).unwrap();
        let first = thorp().home(&path("one"));
        let identity = path("two/identity").display().to_string();
        // The authority lets the name go to another key only when the first one is revoked.
        let revoke = ["ca", "revoke", "alps", "--dir", &first.authority];
        assert_eq!(thorp().run(&revoke).code, 4);
        let issue = [
            "ca",
            "issue",
            "--name=alps",
            "--role=home",
            "--new-id",
            "--dir",
            &first.authority,
        ];
        let said = thorp().run(&[&issue[..], &["--out", &identity]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let second = thorp().home_as("alps", &path("two"), &["--identity", &identity]);
        TwoStores { dir, first, second }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }
}

/// A site went from one home to the other, and its status said that it was well.
#[test]
fn a_site_does_not_go_on_with_another_store_of_the_same_name() {
    let TwoStores { dir, first, second } = TwoStores::new();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let invite = ["invite", "valley", "--role=site", "--dir", &first.authority];
    assert_eq!(
        thorp()
            .run(&[&invite[..], &["--out", &path("valley")]].concat())
            .code,
        0
    );
    let via = format!("unix:{}", path("site.sock"));
    let mut site = thorp().command(&["site", "--identity", &path("valley"), "--listen", &via]);
    for home in [&first, &second] {
        site.arg(format!("--home=alps={}", home.via));
    }
    let site = Process::start({
        site.args(OF_A_TEST);
        site
    });
    let (_, http) = site.ready();
    let identity = first.identity.clone();
    let at_site = |command: &[&str]| {
        let mut command = thorp().command(command);
        command
            .env("THORP_VIA", &via)
            .env("THORP_IDENTITY", &identity);
        finish(command)
    };
    let put = at_site(&["put", "thorp://alps/notes", "--text", "inA", "--root", "x"]);
    assert_eq!(put.code, 0, "{}", put.err);
    let at_second = ["put", "thorp://alps/notes", "--text", "inB", "--root", "x"];
    let mut other = thorp().command(&at_second);
    other
        .env("THORP_VIA", &second.via)
        .env("THORP_IDENTITY", &identity);
    assert_eq!(finish(other).code, 0);

    let gone = first.via.clone();
    drop(first);
    // `kill -9`: the site turns to the other address, and does not stay.
    eventually("the site says why it is not well", || {
        let status = thorp().run(&["status", &http]);
        status.code == 3 && status.out.contains("two homes are called alps")
    });
    let status = thorp().run(&["status", &http]).out;
    assert!(
        status.contains(&gone) && status.contains(&second.via),
        "{status}"
    );
    let get = at_site(&["get", "thorp://alps/notes", "--root", "x", "--timeout", "2"]);
    assert_eq!((get.code, &*get.out), (4, ""), "{}", get.err);
}

/// A member that joins homes itself is its own redirector.
#[test]
fn a_member_does_not_go_on_with_another_store_of_the_same_name() {
    let two = TwoStores::new();
    let config = JoinConfig::new(&two.first.via).or_at(&two.second.via);
    let member = Member::join(config.identity(&two.first.identity).join_timeout(PATIENCE)).unwrap();
    member.open_or_create("thorp://alps/notes").unwrap();
    let _dir = two.path("");
    drop(two.first);
    eventually("the member says why", || {
        let lost = member.site().out_of_reach;
        lost.iter()
            .any(|lost| lost.why.contains("two homes are called alps"))
    });
}

/// `thorp invite alps` was accepted in the village of the home `alps`.
#[test]
fn an_invitation_for_a_name_that_is_taken_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let invite = |name: &str, role: &str, out: &str| {
        let flags = ["--role", role, "--dir", &home.authority, "--out"];
        thorp().run(&[&["invite", name], &flags[..], &[&path(out)]].concat())
    };
    for role in ["home", "site", "member"] {
        let said = invite("alps", role, "a");
        assert_eq!(said.code, 1, "{role}: {}", said.out);
        assert!(
            said.err.contains("alps") && said.err.contains("another name"),
            "{}",
            said.err
        );
        assert!(!Path::new(&path("a")).exists());
    }
    assert_eq!(invite("anna", "member", "anna").code, 0);
    // The same again changes nothing; elsewhere it is another node.
    let before = std::fs::read(path("anna/node.pem")).unwrap();
    assert_eq!(invite("anna", "member", "anna").code, 0);
    assert_eq!(std::fs::read(path("anna/node.pem")).unwrap(), before);
    let said = invite("Anna", "member", "other");
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("the name anna is taken"), "{}", said.err);
    assert!(!Path::new(&path("other")).exists());
    // A node that was revoked makes room for another one.
    assert_eq!(
        thorp()
            .run(&["ca", "revoke", "anna", "--dir", &home.authority])
            .code,
        4
    );
    assert_eq!(invite("anna", "member", "other").code, 0);
}
