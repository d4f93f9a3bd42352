//! One of two homes goes back under the bank's load, or both to different moments: what is lost is named (rule R9, threats
//! 25 and 27).
//!
//! Each transfer takes 1 from an account at alps, and gives it to an account at dale. So a part that dale lost lowers the
//! bank's total by 1, and one that alps lost raises it by 1. Nothing else may change the total.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::kills::Over;
use common::two_homes::{BALANCE, NAMES, Village, found, newest, pay};
use common::{doubt, thorp};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use thorp_client::{CommitId, Error, ErrorKind, Member, Ref, Session, Transaction};
use thorp_testing::{eventually, signal};

const WRITERS: usize = 3;
/// Each writer has one at each home.
const ACCOUNTS: usize = 2 * WRITERS;
const ALPS: usize = 0;
const DALE: usize = 1;
/// Transfers that are acknowledged before something happens.
const TRANSFERS: usize = 25;
/// A vote that is in doubt for so long was asked about several times: the other home does not know.
const LEFT_MS: u64 = 6_000;
/// The members go on after the homes are back: so many transfers.
const AFTERWARDS: usize = 10;

/// What the writers got.
#[derive(Default)]
struct Bank {
    acknowledged: Mutex<BTreeSet<CommitId>>,
    count: AtomicUsize,
    went_back: AtomicUsize,
}

impl Bank {
    /// One writer moves money until it is over.
    fn transfer_until(
        &self,
        over: &AtomicBool,
        member: &Member,
        accounts: &[Ref<i64>],
        writer: usize,
    ) {
        while !over.load(Ordering::Relaxed) {
            match transfer(member, accounts, writer) {
                Ok(id) => {
                    self.acknowledged.lock().unwrap().insert(id);
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => self.note(&error),
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// An error has to name what happened. None of these is that an answer did not come in time.
    fn note(&self, error: &Error) {
        assert!(
            !error.to_string().contains("did not answer in time"),
            "{error}"
        );
        match error.kind() {
            ErrorKind::HomeWentBack | ErrorKind::OutcomeLost => {
                self.went_back.fetch_add(1, Ordering::Relaxed);
            }
            ErrorKind::Conflict | ErrorKind::Busy { .. } | ErrorKind::HomeUnreachable => {}
            kind => panic!("{kind:?}: {error}"),
        }
    }

    fn eventually_transfers(&self, more: usize) {
        let enough = self.count.load(Ordering::Relaxed) + more;
        eventually("transfers come through", || {
            self.count.load(Ordering::Relaxed) >= enough
        });
    }
}

fn transfer(
    member: &Member,
    accounts: &[Ref<i64>],
    writer: usize,
) -> thorp_client::Result<CommitId> {
    let mut tx = member.begin(Session::new());
    pay(&mut tx, accounts, (2 * writer, 2 * writer + 1, 1))?;
    Ok(tx.commit()?.id.unwrap())
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

/// The store of a home that does not run is a copy.
fn put_back(village: &Village, which: usize, backup: &Path) {
    let store = village.home_dir(which).join("store");
    fs::remove_dir_all(&store).unwrap();
    copy(backup, &store);
}

/// The home is closed, and says so.
fn is_closed(village: &Village, which: usize) -> bool {
    let said = thorp().run(&["status", &village.home(which).http, "--json"]);
    let status: Value = serde_json::from_str(&said.out).unwrap();
    !status["history"]["closed"].is_null()
}

/// What a home says of lost parts, once it reaches the other one.
fn lost_parts(village: &Village, operator: &str, which: usize) -> Value {
    let mut found = Value::Null;
    eventually("all homes can be asked", || {
        let said = doubt(
            &village.home(which).via,
            operator,
            &["list", NAMES[which], "--lost", "--json"],
        );
        found = serde_json::from_str(&said.out).unwrap_or_default();
        let is_complete = found["not_reached"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(said.code == 0, is_complete, "{}{}", said.out, said.err);
        is_complete
    });
    found
}

/// The commits that one home has and the other one has lost.
fn lost_at(found: &Value, which: usize) -> BTreeSet<String> {
    let lost = found["lost"].as_array().unwrap().iter();
    let lost = lost.filter(|part| part["lost_at"] == serde_json::json!([NAMES[which]]));
    lost.map(|part| part["commit"].as_str().unwrap().to_owned())
        .collect()
}

/// An operator ends what is in doubt and stays so: it is in no history of the other home. How many there were.
fn settle(village: &Village, operator: &str) -> usize {
    let mut settled = 0;
    for which in [ALPS, DALE] {
        let via = &village.home(which).via;
        let mut left = Vec::new();
        eventually("the homes have ended what they know", || {
            let listed = doubt(via, operator, &["list", NAMES[which], "--json"]);
            left = serde_json::from_str::<Vec<Value>>(&listed.out).unwrap();
            let is_old = |one: &Value| one["age_ms"].as_u64().is_some_and(|age| age >= LEFT_MS);
            left.iter().all(is_old)
        });
        for one in &left {
            let id = one["commit"].as_str().unwrap();
            let said = doubt(via, operator, &["settle", NAMES[which], id, "--abort"]);
            settled += usize::from(said.code == 0);
        }
    }
    village.eventually_no_doubt();
    settled
}

fn total(village: &Village, accounts: &[Ref<i64>]) -> i64 {
    newest(village, accounts).iter().sum()
}

/// The total differs only by the parts that are named.
fn assert_named(village: &Village, accounts: &[Ref<i64>], found: &Value) {
    let [at_alps, at_dale] = [ALPS, DALE].map(|which| lost_at(found, which).len() as i64);
    let all = found["lost"].as_array().unwrap().len() as i64;
    assert_eq!(at_alps + at_dale, all, "{found}");
    let whole = BALANCE * ACCOUNTS as i64;
    assert_eq!(
        total(village, accounts),
        whole + at_alps - at_dale,
        "{found}"
    );
}

/// Threat 25.
#[test]
fn what_a_restored_home_has_lost_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let olga = village.operator(dir.path());
    let accounts = found(&village.join(0), "bank", ACCOUNTS, BALANCE);
    village.eventually_no_doubt();
    village.kill(DALE);
    let backup = dir.path().join("backup");
    copy(&village.home_dir(DALE).join("store"), &backup);
    village.restart(DALE);

    // One writer joins straight at both homes.
    let members = [0, 1, 3].map(|number| village.join(number));
    let (bank, flag) = (Bank::default(), AtomicBool::new(false));
    let lost = thread::scope(|scope| {
        let _over = Over(&flag);
        for (writer, member) in members.iter().enumerate() {
            let (bank, flag, accounts) = (&bank, &flag, &accounts);
            scope.spawn(move || bank.transfer_until(flag, member, accounts, writer));
        }
        bank.eventually_transfers(TRANSFERS);
        let before = bank.acknowledged.lock().unwrap().clone();
        village.kill(DALE);
        put_back(&village, DALE, &backup);
        village.restart_with(DALE, &["--restored"]);
        bank.eventually_transfers(AFTERWARDS);
        before
    });
    assert!(
        bank.went_back.load(Ordering::Relaxed) > 0,
        "nobody was told"
    );
    settle(&village, &olga);

    let found = lost_parts(&village, &olga, ALPS);
    let at_dale = lost_at(&found, DALE);
    for id in &lost {
        assert!(at_dale.contains(&id.to_string()), "{id} is not in {found}");
    }
    assert_eq!(lost_at(&found, ALPS), BTreeSet::new());
    assert_named(&village, &accounts, &found);
    // Both homes say the same, and to nobody else.
    let of_dale = lost_parts(&village, &olga, DALE);
    assert_eq!(of_dale["lost"], found["lost"]);
    let refused = doubt(
        &village.home(DALE).via,
        village.identity(),
        &["list", "dale", "--lost"],
    );
    assert_eq!(refused.code, 8, "{}", refused.out);
    assert!(refused.err.contains("operator"), "{}", refused.err);
    // What the old members see is what somebody sees who was not there before.
    let now = newest(&village, &accounts);
    let strict = Session::new().strict(true).attempts_max(1000);
    for member in &members {
        let see = || {
            let all =
                |tx: &mut Transaction| accounts.iter().map(|account| tx.get(account)).collect();
            member.transact_with(strict, all)
        };
        // The program may not have been told yet.
        let seen: thorp_client::Result<Vec<i64>> = see().or_else(|error| {
            bank.note(&error);
            see()
        });
        assert_eq!(seen.unwrap(), now);
    }
    village.kill(DALE);
    let said = doubt(&village.home(ALPS).via, &olga, &["list", "alps", "--lost"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("dale could not be asked"), "{}", said.err);
}

/// Threat 27.
#[test]
fn what_copies_of_two_homes_have_lost_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let olga = village.operator(dir.path());
    let accounts = found(&village.join(0), "bank", ACCOUNTS, BALANCE);
    let backups = NAMES.map(|name| dir.path().join(format!("copy-of-{name}")));
    let (bank, flag) = (Bank::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let _over = Over(&flag);
        for writer in 0..WRITERS {
            let (bank, flag, accounts, member) = (&bank, &flag, &accounts, village.join(writer));
            scope.spawn(move || bank.transfer_until(flag, &member, accounts, writer));
        }
        for (which, backup) in backups.iter().enumerate() {
            bank.eventually_transfers(TRANSFERS);
            // As a snapshot of the volume: all files are of one moment.
            let process = village.home(which).process.id();
            signal("STOP", process);
            copy(&village.home_dir(which).join("store"), backup);
            signal("CONT", process);
        }
    });
    for (which, backup) in backups.iter().enumerate() {
        village.kill(which);
        put_back(&village, which, backup);
    }
    for which in [ALPS, DALE] {
        village.restart(which);
        assert!(is_closed(&village, which), "{}", NAMES[which]);
    }
    for which in [ALPS, DALE] {
        village.kill(which);
        let dir = village.home_dir(which).display().to_string();
        let said = thorp().run(&["confirm", &dir]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    for which in [ALPS, DALE] {
        village.restart(which);
        assert!(!is_closed(&village, which), "{}", NAMES[which]);
    }
    let found = lost_parts(&village, &olga, ALPS);
    let settled = settle(&village, &olga);
    let found_later = lost_parts(&village, &olga, ALPS);
    println!(
        "{} parts lost at alps, {} at dale, {settled} votes in doubt settled",
        lost_at(&found_later, ALPS).len(),
        lost_at(&found_later, DALE).len(),
    );
    // The copy of alps is the older one: between the two moments only dale went on.
    assert!(!lost_at(&found, ALPS).is_empty(), "{found}");
    assert_named(&village, &accounts, &found_later);
}
