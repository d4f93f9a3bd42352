//! Homes that go back in time under members that were there before, on real processes (rule R9, threats 23, 24 and 26).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::{metrics, thorp};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use thorp_client::{ErrorKind, JoinConfig, Lost, Member, Reference, Result, Session};
use thorp_net::Address;
use thorp_testing::{HomeProcess, Link, PATIENCE, eventually};

/// A home, and anna, who joins by a way that can be cut. `money` is what she counts up.
struct Place {
    dir: tempfile::TempDir,
    way: Link,
    home: Option<HomeProcess>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = thorp().home(dir.path());
        let path = |name: &str| dir.path().join(name);
        for (name, role) in [("anna", "member"), ("olga", "operator")] {
            let out = path(name).display().to_string();
            let invite = ["invite", name, "--role", role, "--dir", &home.authority];
            let said = thorp().run(&[&invite[..], &["--out", &out]].concat());
            assert_eq!(said.code, 0, "{}", said.err);
        }
        std::os::unix::fs::symlink(path("home.sock"), path("now.sock")).unwrap();
        let socket = |name: &str| Address::Unix(path(name));
        let way = Link::new(&socket("way.sock"), &socket("now.sock"));
        Place {
            way,
            home: Some(home),
            dir,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn home(&self) -> &HomeProcess {
        self.home.as_ref().unwrap()
    }

    fn stop(&mut self) {
        let home = self.home.take().unwrap();
        assert_eq!(home.process.terminate(), 0);
    }

    fn start(&mut self, flags: &[&str]) {
        self.home = Some(thorp().home_with(self.dir.path(), flags));
    }

    fn anna(&self) -> Member {
        let config = JoinConfig::new(self.way.address()).identity(self.path("anna"));
        Member::join(config.join_timeout(PATIENCE)).unwrap()
    }

    /// Keeps what is on the disk of the stopped home.
    fn back_up(&self) {
        copy(&self.path("home/store"), &self.path("backup"));
    }

    /// The disk is as it was, and no file shows that: each of them is the same file as before.
    fn roll_back(&self) {
        let (store, backup) = (self.path("home/store"), self.path("backup"));
        fs::remove_dir_all(store.join("thorp-engine")).unwrap();
        copy(&backup.join("thorp-engine"), &store.join("thorp-engine"));
        let note = fs::read(backup.join("thorp-note")).unwrap();
        fs::write(store.join("thorp-note"), note).unwrap();
    }

    /// Others go on with the home.
    fn others_commit(&self, times: u32) {
        for number in 0..times {
            let text = number.to_string();
            let put = ["put", "thorp://alps/others", "--text", &text, "--root", "a"];
            self.home().out(&put);
        }
    }

    fn history(&self) -> Value {
        let said = thorp().run(&["status", &self.home().http, "--json"]);
        let status: Value = serde_json::from_str(&said.out).unwrap();
        status["history"].clone()
    }

    /// The home has met the other history, says by whom, and turns others away with that.
    fn eventually_closed_by_anna(&self) {
        eventually("the home closes", || !self.history()["closed"].is_null());
        let said = thorp().run(&["status", &self.home().http]);
        assert_eq!(said.code, 3, "{}", said.out);
        for words in ["NOT WELL: home alps is closed", "anna", "another history"] {
            assert!(said.out.contains(words), "{words:?} in {}", said.out);
        }
        assert_eq!(self.history()["met"]["by"], "anna");
        let metrics = metrics::of(&self.home().http);
        let line = "thorp_other_history_position{by=\"anna\"";
        assert!(metrics.contains(line), "{metrics}");
        let ls = ["ls", "--timeout", "2"];
        let said = thorp_testing::finish(self.home().command(&ls));
        assert_ne!(said.code, 0, "{}", said.out);
        assert!(said.err.contains("home alps is closed"), "{}", said.err);
    }

    fn as_olga(&self, args: &[&str]) -> Value {
        let mut command = self.home().command(args);
        command.env("THORP_IDENTITY", self.path("olga"));
        let said = thorp_testing::finish(command);
        assert_eq!(said.code, 0, "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    }

    /// An operator opens what is there, while it runs.
    fn confirm_running(&self) -> Value {
        let told = self.as_olga(&["confirm", "alps", "--json"]);
        assert_eq!(self.history()["closed"], Value::Null);
        told
    }

    /// An operator opens what is there.
    fn confirm(&mut self) {
        self.stop();
        let dir = self.path("home").display().to_string();
        let said = thorp().run(&["confirm", &dir]);
        assert_eq!(said.code, 0, "{}", said.err);
        self.start(&[]);
        assert_eq!(self.history()["closed"], Value::Null);
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

fn found(member: &Member) -> Reference {
    let bank = member.create("thorp://alps/bank").unwrap();
    let mut tx = member.begin(Session::new());
    let money = tx.create(&bank, 1_000_u64.to_le_bytes()).unwrap();
    tx.commit().unwrap();
    money
}

/// One transaction, which its home validates.
fn read(member: &Member, money: &Reference) -> Result<u64> {
    let mut tx = member.begin(Session::new().strict(true));
    let value = number(tx.read(money)?);
    tx.commit()?;
    Ok(value)
}

fn increment(member: &Member, money: &Reference) -> Result<u64> {
    let mut tx = member.begin(Session::new().strict(true));
    let value = number(tx.read(money)?) + 1;
    tx.write(money, value.to_le_bytes().to_vec())?;
    tx.commit()?;
    Ok(value)
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn eventually_increments(member: &Member, money: &Reference, to: u64) {
    let words = format!("the money comes to {to}");
    eventually(&words, || {
        increment(member, money).is_ok_and(|now| now >= to)
    });
}

/// What anna gets while the home is closed: nothing is done, and nothing waits for its timeout.
fn assert_nothing_is_done(member: &Member, money: &Reference) {
    let Err(error) = increment(member, money) else {
        panic!("a value of the lost history was committed");
    };
    let kinds = [
        ErrorKind::HomeUnreachable,
        ErrorKind::HomeWentBack,
        ErrorKind::Conflict,
    ];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// The program learns that the home has gone back before it sees it as it is. It may learn so twice: a transaction that it
/// begins while the cache is being emptied reads what is lost, and its commit is refused.
fn assert_goes_on(member: &Member, money: &Reference) {
    let mut told = 0;
    eventually("the member hears of it, and goes on", || {
        match read(member, money) {
            Err(error) if error.kind() == ErrorKind::HomeWentBack => told += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::HomeUnreachable, "{error}"),
            Ok(value) => {
                assert!(
                    told > 0,
                    "{value} was read, and nobody said that the home has gone back"
                );
                assert_eq!(value, 1_000);
                return true;
            }
        }
        assert!(told <= 2, "it is told again and again");
        false
    });
    assert_eq!(increment(member, money).unwrap(), 1_001);
    let homes = member.homes();
    assert_eq!(homes[0].incarnation, 1);
    assert!(homes[0].reopened.is_some());
}

/// Threat 23: nothing that the members reported lay above the tip of the home. They read old values, also in strict
/// sessions, and committed what rested on them.
#[test]
fn a_home_that_ran_past_its_old_position_closes_when_a_member_comes_back() {
    let mut place = Place::new();
    let anna = place.anna();
    let money = found(&anna);
    place.stop();
    place.back_up();
    place.start(&[]);
    eventually_increments(&anna, &money, 1_010);
    place.way.cut();
    place.stop();
    place.roll_back();
    place.start(&[]);
    assert_eq!(place.history()["closed"], Value::Null, "no file shows it");
    place.others_commit(30);
    place.way.mend();
    place.eventually_closed_by_anna();
    assert_nothing_is_done(&anna, &money);
    let told = place.confirm_running();
    let other = &told["other"];
    assert_eq!(other["by"], "anna");
    // The life that is lost began after the backup.
    assert_eq!(told["shared_position"], Value::Null);
    assert_eq!(
        (&other["life"], &told["before"]["life"]),
        (&Value::from(2), &Value::from(2))
    );
    assert!(other["position"].as_u64().unwrap() >= 10, "{told}");
    assert_goes_on(&anna, &money);
    let audit = place.as_olga(&["audit", "alps", "--json"]);
    let audit = audit.as_array().unwrap().iter();
    let told: Vec<[&str; 2]> = audit
        .map(|entry| ["event", "who"].map(|key| entry[key].as_str().unwrap()))
        .collect();
    assert_eq!(told, [["other_history", "anna"], ["opened", "olga"]]);
}

/// What the member holds of a home that is closed is as old as a session allows, as while the home is unreachable.
#[test]
fn what_is_cached_of_a_closed_home_is_read_as_long_as_a_session_allows() {
    let mut place = Place::new();
    let anna = place.anna();
    let money = found(&anna);
    place.stop();
    place.back_up();
    place.start(&[]);
    eventually_increments(&anna, &money, 1_003);
    place.stop();
    place.roll_back();
    place.start(&[]);
    place.eventually_closed_by_anna();
    let look = |session: Session| {
        let mut tx = anna.begin(session);
        let value = number(tx.read(&money)?);
        tx.commit()?;
        Ok::<u64, thorp_client::Error>(value)
    };
    let short = Session::new().max_staleness(Duration::from_millis(200));
    eventually("the home is too long silent for this session", || {
        look(short).is_err_and(|error| error.kind() == ErrorKind::HomeUnreachable)
    });
    assert_eq!(look(Session::new().optimistic_reads(true)).unwrap(), 1_003);
    place.confirm_running();
    assert_goes_on(&anna, &money);
    // Right after a word from the home: such words come once in a second.
    eventually("the session is allowed again", || {
        look(short).is_ok_and(|money| money == 1_001)
    });
}

/// Threat 24: the home stood below its old position, and every call of its members timed out.
#[test]
fn a_home_below_its_old_position_closes_when_a_member_comes_back() {
    let mut place = Place::new();
    let anna = place.anna();
    let money = found(&anna);
    place.stop();
    place.back_up();
    place.start(&[]);
    eventually_increments(&anna, &money, 1_010);
    place.stop();
    place.roll_back();
    place.start(&[]);
    place.eventually_closed_by_anna();
    assert_nothing_is_done(&anna, &money);
    place.confirm();
    assert_goes_on(&anna, &money);
}

/// A restored backup, which its operator opens at the start: the members of before only forget.
#[test]
fn a_restored_home_is_not_closed_by_its_old_members() {
    let mut place = Place::new();
    let anna = place.anna();
    let money = found(&anna);
    place.stop();
    place.back_up();
    place.start(&[]);
    eventually_increments(&anna, &money, 1_010);
    let mut watch = anna.open("thorp://alps/bank").unwrap().watch().unwrap();
    place.stop();
    fs::remove_dir_all(place.path("home/store")).unwrap();
    copy(&place.path("backup"), &place.path("home/store"));
    place.start(&["--restored"]);
    assert_goes_on(&anna, &money);
    assert_eq!(place.history()["closed"], Value::Null);
    let changed = watch.next(PATIENCE).unwrap().expect("it was lost");
    assert_eq!(changed.lost, Some(Lost::HomeWentBack));
    eventually_increments(&anna, &money, 1_002);
    let changed = watch.next(PATIENCE).unwrap().expect("a change");
    assert_eq!((changed.lost, changed.changes.is_empty()), (None, false));
}

/// Threat 26: two copies of one home ran, and acknowledged commits vanished where members passed from one to the other.
#[test]
fn a_copy_closes_when_a_member_of_the_other_one_comes() {
    let mut place = Place::new();
    let anna = place.anna();
    let money = found(&anna);
    place.stop();
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    copy(&place.path("home"), &other.join("home"));
    place.start(&[]);
    eventually_increments(&anna, &money, 1_010);
    // Somebody starts the copy, and says that its old place is gone.
    place.way.cut();
    let first = place.home.take().unwrap();
    let second = thorp().home_with(&other, &["--moved"]);
    let now = place.path("now.sock");
    fs::remove_file(&now).unwrap();
    std::os::unix::fs::symlink(other.join("home.sock"), &now).unwrap();
    place.way.mend();
    place.home = Some(second);
    place.eventually_closed_by_anna();
    assert_nothing_is_done(&anna, &money);
    // The first one goes on.
    place.way.cut();
    fs::remove_file(&now).unwrap();
    std::os::unix::fs::symlink(place.path("home.sock"), &now).unwrap();
    place.way.mend();
    eventually_increments(&anna, &money, 1_011);
    place.home = Some(first);
    assert_eq!(place.history()["closed"], Value::Null);
}

/// Trap R41: a backup is tried out in another room, and a member visits it.
#[test]
fn a_copy_that_is_opened_apart_never_closes_the_original() {
    let mut place = Place::new();
    let anna = place.anna();
    let money = found(&anna);
    place.stop();
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    copy(&place.path("home"), &other.join("home"));
    place.start(&[]);
    eventually_increments(&anna, &money, 1_003);
    let trial = thorp().home_with(&other, &["--restored", "--apart"]);
    let now = place.path("now.sock");
    place.way.cut();
    fs::remove_file(&now).unwrap();
    std::os::unix::fs::symlink(other.join("home.sock"), &now).unwrap();
    place.way.mend();
    eventually_increments(&anna, &money, 1_001);
    place.way.cut();
    assert_eq!(trial.process.terminate(), 0);
    fs::remove_file(&now).unwrap();
    std::os::unix::fs::symlink(place.path("home.sock"), &now).unwrap();
    place.way.mend();
    eventually_increments(&anna, &money, 1_004);
    assert_eq!(place.history()["closed"], Value::Null);
}
