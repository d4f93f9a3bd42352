//! The authority and the nodes that it lets in: keys, lives, renewals, and a new key of its own (rule R1).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};
use thorp_client::{JoinConfig, Member, Ref};
use thorp_net::{CertificateAuthority, Grant, Identity, NodeRole};
use thorp_testing::{HomeProcess, OF_A_TEST, PATIENCE, Process, Said, eventually};

/// Threat 10: the authority's key lay beside the home's own, in the directory that the home reads.
#[test]
fn a_home_runs_without_the_authoritys_key_and_one_command_moves_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    assert!(!Path::new(&home.own).join("authority.key").exists());
    assert_eq!(home.process.terminate(), 0);
    // A home of an earlier build: all in one directory.
    for file in ["authority.key", "issued"] {
        let of = |dir: &str| Path::new(dir).join(file);
        fs::rename(of(&home.authority), of(&home.own)).unwrap();
    }
    fs::remove_dir_all(&home.authority).unwrap();
    let home = thorp().home(dir.path());
    invite(&path("home"), "anna", &path("anna"));

    // Also while the home runs, and twice.
    for _ in 0..2 {
        let said = thorp().run(&["ca", "init", &path("ca"), "--from", &path("home")]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    assert!(!Path::new(&home.own).join("authority.key").exists());
    invite(&path("ca"), "bert", &path("bert"));
    let said = thorp().run(&[
        "invite",
        "carl",
        "--dir",
        &path("home"),
        "--out",
        &path("c"),
    ]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("authority's directory"), "{}", said.err);
    assert_eq!(home.process.terminate(), 0);
    let home = thorp().home(dir.path());
    for name in ["anna", "bert"] {
        let ls = ["ls", "--via", &home.via, "--identity", &path(name)];
        let said = thorp().run(&ls);
        assert_eq!(said.code, 0, "{}", said.err);
    }

    // A directory with another village's authority is left alone.
    assert_eq!(thorp().run(&["ca", "init", &path("new")]).code, 0);
    let said = thorp().run(&["ca", "init", &path("new"), "--from", &path("ca")]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("another village"), "{}", said.err);
    assert!(dir.path().join("ca/authority.key").exists());
}

/// A site gets a new certificate while it runs, and so does the home above it: the edge between them goes on.
#[test]
fn new_certificates_are_taken_without_dropping_an_edge() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let authority = CertificateAuthority::open(&home.authority).unwrap();
    let site = |life: u64| Grant {
        life: Some(Duration::from_secs(life)),
        ..Grant::new(NodeRole::Site, "valley")
    };
    authority.issue(&site(10), path("valley")).unwrap();
    let via = format!("unix:{}", path("site.sock"));
    let mut command = thorp().command(&["site", "--identity", &path("valley")]);
    command
        .arg(format!("--home=alps={}", home.via))
        .args(["--listen", &via])
        .args(OF_A_TEST);
    let site_process = Process::start(command);
    let (_, http) = site_process.ready();
    let edge_of_home = || {
        let said = thorp().run(&["status", &home.http, "--json"]);
        let status: Value = serde_json::from_str(&said.out).unwrap();
        status["children"][0]["edge"].as_u64()
    };
    eventually("the site is a child of the home", || {
        edge_of_home().is_some()
    });
    let edge = edge_of_home();
    let old = Identity::load(path("valley")).unwrap().validity().until();
    fs::remove_file(dir.path().join("valley/node.pem")).unwrap();
    authority.issue(&site(3_600), path("valley")).unwrap();
    sleep_until(old + SPARE);
    assert_eq!(edge_of_home(), edge, "the edge is the same");
    let anna = ["ls", "--via", &via, "--identity", &home.identity];
    let said = thorp().run(&anna);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = thorp().run(&["status", &http]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(site_process.terminate(), 0);
}

/// The authority's process, beside a home.
struct Ca {
    process: Process,
    dir: String,
}

impl Ca {
    fn start(home: &HomeProcess, dir: &Path) -> Self {
        let listen = format!("unix:{}", dir.join("ca.sock").display());
        let serve = ["ca", "serve", &home.authority, "--listen", &listen];
        let mut command = thorp().command(&serve);
        command.arg("--until-stdin-closes");
        let process = Process::start(command);
        process.ready();
        let dir = home.authority.clone();
        Ca { process, dir }
    }

    /// What `thorp invite` without `--out` prints to be run on the node's machine.
    fn token(&self, name: &str, flags: &[&str]) -> String {
        let invite = ["invite", name, "--dir", &self.dir];
        let said = thorp().run(&[&invite[..], flags].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let mut words = said.out.split_whitespace();
        words
            .find(|word| word.starts_with("thorp2-"))
            .unwrap()
            .to_owned()
    }
}

fn join(token: &str, out: &str) -> Said {
    thorp().run(&["join", token, "--out", out])
}

/// Threat 11: private keys travelled with the directory that `thorp invite` made.
#[test]
fn a_node_makes_its_own_key_and_joins_once_with_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    // Nobody could call it there.
    let everywhere = ["ca", "serve", &home.authority, "--listen=0.0.0.0:0"];
    let said = thorp().run(&everywhere);
    assert_eq!(said.code, 2, "{}", said.out);
    assert!(said.err.contains("--public"), "{}", said.err);
    // Nobody knows yet where the authority's process is.
    let said = thorp().run(&["invite", "anna", "--dir", &home.authority]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("thorp ca serve"), "{}", said.err);
    let ca = Ca::start(&home, dir.path());
    let token = ca.token("anna", &[]);
    let said = join(&token, &path("anna"));
    assert_eq!(said.code, 0, "{}", said.err);
    let said = thorp().run(&["ls", "--via", &home.via, "--identity", &path("anna")]);
    assert_eq!(said.code, 0, "{}", said.err);
    // Again on the same machine changes nothing; elsewhere it is too late, also for the thief of a token.
    assert_eq!(join(&token, &path("anna")).code, 0);
    let said = join(&token, &path("thief"));
    assert_eq!(said.code, 4, "{}", said.out);
    assert!(said.err.contains("it has been used"), "{}", said.err);
    assert!(!dir.path().join("thief/node.pem").exists());
    // One that the authority has forgotten, as one that somebody made up.
    let tokens = Path::new(&home.authority).join("tokens");
    let kept = fs::read(&tokens).unwrap();
    fs::write(&tokens, "").unwrap();
    let said = join(&token, &path("made-up"));
    assert!(said.err.contains("does not know it"), "{}", said.err);
    fs::write(&tokens, kept).unwrap();
    // The answer to the first try was lost: the same key gets its certificate.
    fs::remove_file(dir.path().join("anna/node.pem")).unwrap();
    assert_eq!(join(&token, &path("anna")).code, 0);

    // A token is not wasted on a directory that has somebody's identity.
    let token = ca.token("bodo", &[]);
    let said = join(&token, &path("anna"));
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.err.contains("the identity of member anna already"),
        "{}",
        said.err
    );
    // A try that was cut short before the answer came is completed.
    fs::create_dir(dir.path().join("bodo")).unwrap();
    fs::copy(
        dir.path().join("thief/node.key"),
        dir.path().join("bodo/node.key"),
    )
    .unwrap();
    assert_eq!(join(&token, &path("bodo")).code, 0);

    // Another process that answers there is not taken for the authority.
    let stranger = tempfile::tempdir().unwrap();
    let other = thorp().home(stranger.path());
    let _other_ca = Ca::start(&other, stranger.path());
    let at = |authority: &str| Path::new(authority).join("authority.address");
    let own = fs::read(at(&home.authority)).unwrap();
    fs::copy(at(&other.authority), at(&home.authority)).unwrap();
    let said = join(&ca.token("bert", &[]), &path("bert"));
    fs::write(at(&home.authority), own).unwrap();
    assert_eq!(said.code, 4, "{}", said.out);
    assert!(said.err.contains("another village"), "{}", said.err);

    // A carrier's two certificates, and a home whose store takes over the id.
    let said = join(&ca.token("carl", &["--with-site"]), &path("carl"));
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        Identity::load(path("carl/site")).unwrap().role(),
        NodeRole::Site
    );
    let said = join(&ca.token("dale", &["--role=home"]), &path("dale-identity"));
    assert_eq!(said.code, 0, "{}", said.err);
    let dale = ["--identity", &path("dale-identity")];
    fs::create_dir(dir.path().join("dale")).unwrap();
    let dale = thorp().home_as("dale", &dir.path().join("dale"), &dale);
    assert_eq!(dale.process.terminate(), 0);
    assert_eq!(ca.process.terminate(), 0);
}

/// A node renews its certificate by itself, and its edge outlives the first one.
#[test]
fn a_node_renews_itself_while_the_authority_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let ca = Ca::start(&home, dir.path());
    let authority = CertificateAuthority::open(&home.authority).unwrap();
    let grant = Grant {
        life: Some(Duration::from_secs(18)),
        ..Grant::new(NodeRole::Member, "anna")
    };
    let token = authority
        .invite(&grant, Duration::from_secs(60), &[])
        .unwrap();
    assert_eq!(join(&token.to_string(), &path("anna")).code, 0);
    let config = JoinConfig::new(&home.via).identity(dir.path().join("anna"));
    let anna = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let notes = anna.open_or_create("thorp://alps/notes").unwrap();
    let counter = anna.transact(|tx| tx.create_typed(&notes, &0u64)).unwrap();
    let edge = || {
        let said = thorp().run(&["status", &home.http, "--json"]);
        let status: Value = serde_json::from_str(&said.out).unwrap();
        status["children"][0]["edge"].as_u64()
    };
    let before = edge();
    let first = Identity::load(path("anna")).unwrap().validity().until();
    sleep_until(first + SPARE);
    assert!(before.is_some() && edge() == before, "the edge is the same");
    assert_eq!(count(&anna, &counter), 1);
    assert!(Identity::load(path("anna")).unwrap().validity().until() > first);

    assert_eq!(ca.process.terminate(), 0);
}

/// The authority gets a new key. A running home takes both authorities without a restart, and lets in nodes of either.
#[test]
fn a_running_home_goes_along_with_a_new_authority() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let done = |arguments: &[&str]| {
        let said = thorp().run(arguments);
        assert_eq!(said.code, 0, "{}", said.err);
    };
    invite(&home.authority, "anna", &path("anna"));
    let early = thorp().run(&["ca", "rotate", &home.authority, "--switch"]);
    assert!(
        early.code == 1 && early.err.contains("--begin"),
        "{}",
        early.err
    );
    done(&["ca", "rotate", &home.authority, "--begin"]);
    let issue = [
        "ca",
        "issue",
        "--role=home",
        "--name=alps",
        "--dir",
        &home.authority,
    ];
    done(&[&issue[..], &["--out", &home.own]].concat());
    done(&["ca", "rotate", &home.authority, "--switch"]);
    invite(&home.authority, "bert", &path("bert"));
    let ls = |name: &str| {
        let identity = path(name);
        thorp().run(&[
            "ls",
            "--via",
            &home.via,
            "--identity",
            &identity,
            "--timeout=1",
        ])
    };
    eventually("bert is let in", || ls("bert").code == 0);
    invite(&home.authority, "anna", &path("anna"));
    let said = ls("anna");
    assert_eq!(said.code, 0, "{}", said.err);
    // Who has not renewed would be turned away by everybody.
    let finish = ["ca", "rotate", &home.authority, "--finish"];
    let said = thorp().run(&finish);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("home alps, member local"), "{}", said.err);
    assert!(!said.err.contains("anna"), "{}", said.err);
    done(&[&issue[..], &["--out", &home.own]].concat());
    assert_eq!(thorp().run(&finish).code, 1);
    done(&[&finish[..], &["--leave-behind"]].concat());
    let local = home.identity.clone();
    assert_eq!(home.process.terminate(), 0);
    // What was left behind is let in again with the key that it has.
    invite(&home.authority, "local", &local);
    let home = thorp().home(dir.path());
    home.out(&["ls"]);
    assert_eq!(home.process.terminate(), 0);
}

fn sleep_until(time: SystemTime) {
    // Of a time that is past, nothing is left.
    std::thread::sleep(time.duration_since(SystemTime::now()).unwrap_or_default());
}

/// A node looks at its edges in the second after a certificate has expired.
const SPARE: Duration = Duration::from_secs(3);

fn invite(authority: &str, name: &str, out: &str) {
    let said = thorp().run(&["invite", name, "--dir", authority, "--out", out]);
    assert_eq!(said.code, 0, "{}", said.err);
}

fn count(member: &Member, counter: &Ref<u64>) -> u64 {
    let counted = member.transact(|tx| {
        let count = tx.get(counter)? + 1;
        tx.put(counter, &count)?;
        Ok(count)
    });
    counted.unwrap()
}
