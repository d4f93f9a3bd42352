//! `thorp doctor` finds what is wrong between a program and its village, says what to do, and goes on.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::dev_village::{DevVillage, User, stopped_home};
use common::one_site::OneSite;
use common::schema::Schema;
use common::thorp;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, SystemTime};
use thorp_net::{CertificateAuthority, Config, Grant, Identity, Listener, NodeRole, Role};
use thorp_testing::{HomeNode, HomeProcess, Said, Village, eventually, finish};

/// What the doctor has found, as its document says.
struct Found(Value);

impl Found {
    /// Of a command that ended with this code.
    fn of(said: &Said, code: i32) -> Self {
        assert_eq!(said.code, code, "{}{}", said.out, said.err);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(Schema::named("doctor").check(&document), Ok(()));
        assert_eq!(document["good"], code == 0, "{document:#}");
        if code != 0 {
            let error: Value = serde_json::from_str(&said.err).unwrap();
            assert_eq!(Schema::named("error").check(&error), Ok(()));
            assert_eq!(error["error"]["kind"], "wrong");
        }
        Found(document)
    }

    /// At a home, with these flags.
    fn at(home: &HomeProcess, flags: &[&str], code: i32) -> Self {
        let said = finish(home.command(&[&["doctor", "--json"], flags].concat()));
        Found::of(&said, code)
    }

    fn all(&self, check: &str) -> Vec<&Value> {
        let all = self.0["checks"].as_array().unwrap().iter();
        all.filter(|found| found["check"] == check).collect()
    }

    /// The one check of this kind.
    fn one(&self, check: &str) -> &Value {
        let all = self.all(check);
        assert_eq!(all.len(), 1, "{check}: {:#}", self.0);
        all[0]
    }

    /// The one check of this kind came to this, in words that contain these; and it has advice, unless it is well.
    fn assert(&self, check: &str, result: &str, words: &str) {
        let found = self.one(check);
        assert_eq!(found["result"], result, "{found:#}");
        assert!(
            found["found"].as_str().unwrap().contains(words),
            "{found:#}"
        );
        let advice = found["advice"].as_array().unwrap();
        assert_eq!(advice.is_empty(), result == "ok", "{found:#}");
    }

    /// Only these kinds of checks found a problem.
    fn assert_problems(&self, kinds: &[&str]) {
        let all = self.0["checks"].as_array().unwrap().iter();
        let bad = all.filter(|found| found["result"] == "problem");
        let bad: Vec<&str> = bad.map(|found| found["check"].as_str().unwrap()).collect();
        assert_eq!(bad, kinds, "{:#}", self.0);
    }

    /// What was not looked at.
    fn not_checked(&self) -> Vec<&str> {
        let all = self.0["not_checked"].as_array().unwrap().iter();
        all.map(|it| it["check"].as_str().unwrap()).collect()
    }
}

#[test]
fn a_village_that_is_well() {
    let village = DevVillage::start();
    let doctor = ["doctor", "--json", "--dir", "thorp-dev"];
    let found = Found::of(&village.user.run(&doctor), 0);
    found.assert("configuration", "ok", "context dev (the current one) says");
    found.assert("files", "ok", "for its owner only");
    found.assert("certificate", "ok", "of village");
    found.assert("life", "ok", "30 days are left");
    found.assert("authority", "ok", "its end");
    found.assert("address", "ok", "site site of this village, protocol");
    found.assert("home", "ok", "home dev is reached");
    found.assert("clock", "ok", "the clock of home dev");
    found.assert("store", "ok", "has format");
    found.assert("lock", "ok", "its home runs");
    assert_eq!(found.all("status").len(), 2);
    assert_eq!(found.all("open_files").len(), 1);
    let figures = &found.one("address")["figures"];
    assert!(figures["round_trip_ms"].is_number() && figures["handshake_ms"].is_number());
    assert!(found.not_checked().is_empty());
    // For a person: a line each, and that all is well.
    let said = village.user.run(&["doctor"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("ok       home: home dev is reached"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("problem"), "{}", said.out);
}

#[test]
fn a_context_that_is_not_there() {
    let village = DevVillage::start();
    let said = village
        .user
        .run(&["doctor", "--json", "--context", "nosuch"]);
    let found = Found::of(&said, 3);
    found.assert("configuration", "problem", "there is no context nosuch");
    assert_eq!(found.not_checked(), ["addresses", "homes"]);
    assert!(!found.all("open_files").is_empty(), "it goes on");
    let nobody = User::new();
    let found = Found::of(&nobody.run(&["doctor", "--json"]), 3);
    found.assert("configuration", "problem", "no site or home was named");
    // A wrong call is found by nobody's looking.
    assert_eq!(nobody.run(&["doctor", "--nonsense"]).code, 2);
}

#[test]
fn a_certificate_that_has_expired() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let anna = dir.path().join("anna").display().to_string();
    let authority = CertificateAuthority::open(&home.authority).unwrap();
    let grant = Grant {
        life: Some(Duration::from_secs(1)),
        ..Grant::new(NodeRole::Member, "anna")
    };
    authority.issue(&grant, &anna).unwrap();
    eventually("it expires", || Identity::load(&anna).is_err());
    let found = Found::at(&home, &["--identity", &anna], 3);
    found.assert_problems(&["life"]);
    found.assert("certificate", "ok", "member anna");
    found.assert("life", "problem", "was good until");
    assert!(found.one("life")["figures"]["days_left"].as_f64().unwrap() <= 0.);
    // It still says that somebody is there.
    found.assert("address", "ok", "somebody listens there");
    assert_eq!(found.not_checked(), ["status", "homes"]);
    // One that ends soon is a warning.
    let week = Grant {
        life: Some(Duration::from_secs(6 * 24 * 60 * 60)),
        ..Grant::new(NodeRole::Member, "ben")
    };
    let ben = dir.path().join("ben").display().to_string();
    authority.issue(&week, &ben).unwrap();
    let found = Found::at(&home, &["--identity", &ben], 0);
    found.assert("life", "warning", "6 days are left");
    let end = Identity::load(&ben).unwrap().validity().until();
    assert!(end > SystemTime::now());
}

#[test]
fn a_key_that_others_may_read_or_that_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let key = Path::new(&home.identity).join("node.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let found = Found::at(&home, &[], 3);
    found.assert_problems(&["key"]);
    let problem = found.one("key");
    let words = problem["found"].as_str().unwrap();
    assert!(words.contains("its mode is 0644"), "{words}");
    let advice = problem["advice"][0].as_str().unwrap();
    assert_eq!(advice, format!("chmod 600 {}", key.display()));
    found.assert("home", "ok", "home alps is reached");
    // Advice of a person's own shell.
    assert_eq!(finish(command(advice)).code, 0);
    Found::at(&home, &[], 0);

    fs::remove_file(&key).unwrap();
    let found = Found::at(&home, &[], 3);
    found.assert_problems(&["key"]);
    found.assert("key", "problem", "node.key");
    found.assert("life", "ok", "days are left");
    assert_eq!(found.not_checked(), ["status", "homes"]);
    fs::remove_file(Path::new(&home.identity).join("node.pem")).unwrap();
    Found::at(&home, &[], 3).assert("certificate", "problem", "node.pem");
}

fn command(line: &str) -> std::process::Command {
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", line]);
    command
}

/// A closed port, a port that says nothing, one that speaks HTTP, one of another village, and a name that leads nowhere.
#[test]
fn addresses_are_told_apart_and_a_bad_one_does_not_hide_a_good_one() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = thorp().home(elsewhere.path());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = format!("unix:{}/nobody.sock", dir.path().display());
    let all = [
        "127.0.0.1:1".to_owned(),
        silent.local_addr().unwrap().to_string(),
        home.http.clone(),
        other.via.clone(),
        socket,
        home.via.clone(),
    ];
    let found = Found::at(&home, &["--timeout", "5", "--via", &all.join(",")], 3);
    let addresses = found.all("address");
    let wanted = [
        ("problem", "nobody listens there"),
        ("problem", "nothing came within"),
        ("problem", "speaks HTTP"),
        ("problem", "of village"),
        ("problem", "no such socket"),
        ("ok", "home alps of this village"),
    ];
    assert_eq!(addresses.len(), wanted.len(), "{:#}", found.0);
    for (address, (result, words)) in addresses.iter().zip(wanted) {
        assert_eq!(address["result"], result, "{address:#}");
        let told = address["found"].as_str().unwrap();
        assert!(told.contains(words), "{told}");
    }
    found.assert("home", "ok", "home alps is reached");

    let found = Found::at(&home, &["--via", "nonsense"], 3);
    found.assert("address", "problem", "is not an address");
    assert_eq!(found.not_checked(), ["addresses", "homes"]);
}

/// A node of this village that speaks another version of the protocol.
fn node_of_version(village: &Village, version: u16) -> String {
    let identity = village.identity();
    let address = village.socket(&format!("version-{version}"));
    let config = Config {
        version,
        ..Config::new(Role::HOME)
    };
    let shown = address.to_string();
    let (ready, is_ready) = channel();
    thread::spawn(move || {
        let runtime = thorp_server::runtime().unwrap();
        runtime.block_on(async {
            let mut listener = Listener::bind(&address, &identity, config).await.unwrap();
            ready.send(()).unwrap();
            // It turns everybody away before that.
            while listener.accept().await.is_err() {}
        });
    });
    is_ready.recv().unwrap();
    shown
}

#[test]
fn the_older_side_is_to_be_updated() {
    let village = Village::new();
    let identity = village.path("member").display().to_string();
    for (version, who) in [(1, "update that node"), (u16::MAX, "update this program")] {
        let via = node_of_version(&village, version);
        let doctor = ["doctor", "--json", "--via", &via, "--identity", &identity];
        let found = Found::of(&thorp().run(&doctor), 3);
        found.assert("address", "problem", &format!("speaks protocol {version}"));
        let advice = found.one("address")["advice"][0].as_str().unwrap();
        assert!(advice.starts_with(who), "{advice}");
    }
}

#[test]
fn a_home_whose_clock_is_ahead() {
    let home = HomeNode::new();
    let identity = home.village().path("member").display().to_string();
    let via = home.address().to_string();
    let doctor = ["doctor", "--json", "--via", &via, "--identity", &identity];
    // The home makes its first promise a little later.
    let is_known = |said: &Said| said.out.contains("\"clock\"");
    eventually("its clock is known", || is_known(&thorp().run(&doctor)));
    Found::of(&thorp().run(&doctor), 0).assert("clock", "ok", "the clock of home alps");
    home.stop();
    home.put_clock_ahead(Duration::from_secs(600));
    home.restart();
    eventually("its clock is ahead", || thorp().run(&doctor).code == 3);
    let found = Found::of(&thorp().run(&doctor), 3);
    found.assert_problems(&["clock"]);
    found.assert("clock", "problem", "s ahead of that of this machine");
    assert!(found.one("clock")["figures"]["ahead_ms"].as_f64().unwrap() > 300_000.);
}

#[test]
fn a_home_that_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["anna"], &[]);
    let anna = dir.path().join("anna").display().to_string();
    let doctor = [
        "doctor",
        "--json",
        "--via",
        &village.site_via,
        "--identity",
        &anna,
    ];
    let found = Found::of(&thorp().run(&doctor), 0);
    found.assert("home", "ok", "home alps is reached");
    let OneSite { home, site, .. } = village;
    let via = home.via.clone();
    assert_eq!(home.process.terminate(), 0);
    eventually("the site misses it", || thorp().run(&doctor).code == 3);
    let found = Found::of(&thorp().run(&doctor), 3);
    found.assert_problems(&["home"]);
    found.assert("address", "ok", "site valley of this village");
    found.assert("home", "problem", "home alps is out of reach");
    // At the home itself.
    let direct = ["doctor", "--json", "--via", &via, "--identity", &anna];
    let found = Found::of(&thorp().run(&direct), 3);
    found.assert_problems(&["address"]);
    assert_eq!(found.not_checked(), ["status", "homes"]);
    assert_eq!(site.terminate(), 0);
}

#[test]
fn the_directory_of_a_home_that_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let stopped = stopped_home(dir.path());
    let look = |at: &Path| {
        let said = User::new().run(&["doctor", "--json", "--dir", at.to_str().unwrap()]);
        // Nothing says where to join.
        Found::of(&said, 3)
    };
    let found = look(&stopped);
    found.assert_problems(&["configuration"]);
    found.assert("lock", "ok", "no process has the store open");
    let room = &found.one("room")["figures"];
    assert!(room["free_bytes"].is_u64());
    // It has a share of the volume, and more for its engine.
    assert!(room["needed_bytes"].as_u64().unwrap() > 3 << 20, "{room}");
    let key = stopped.join("readable");
    fs::write(&key, "").unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&stopped, Permissions::from_mode(0o755)).unwrap();
    look(&stopped).assert("store_files", "warning", "others can read");
    let nothing = look(&dir.path().join("nothing"));
    nothing.assert("directory", "problem", "is no directory");
    look(dir.path()).assert("store", "problem", "is no store");
}
