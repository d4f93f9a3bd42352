//! A member fills a home, and uses up what it can of the room that the home keeps back. Its rights are taken away all the same
//! (before, the home refused that as full; rules R5 and R7).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::one_site::OneSite;
use common::thorp;
use std::fs;
use std::path::Path;
use thorp_client::{Error, ErrorKind, JoinConfig, Member, Reference, Segment};
use thorp_model::{Right, Subject};
use thorp_testing::{PATIENCE, eventually};

/// More changes than this never fit in what this home keeps back.
const CHANGES_MAX: usize = 5_000;

fn start(dir: &Path) -> (OneSite, String) {
    // By default a name fills half of what is free.
    let file = dir.join("one-name-fills-it.toml");
    fs::write(&file, "[shares]\nstore_percent_max = 100\n").unwrap();
    let config = file.to_str().unwrap();
    let limit = ["--limit-bytes", "1 MiB", "--config", config];
    let village = OneSite::start_with(dir, &["anna", "mallory"], &limit, &[]);
    let olga = dir.join("olga").display().to_string();
    let authority = &village.home.authority;
    let invite = [
        "invite", "olga", "--role", "operator", "--dir", authority, "--out", &olga,
    ];
    assert_eq!(thorp().run(&invite).code, 0);
    (village, olga)
}

fn join(dir: &Path, name: &str, via: &str) -> Member {
    let config = JoinConfig::new(via).identity(dir.join(name));
    Member::join(config.join_timeout(PATIENCE)).unwrap()
}

/// Brings objects until the home is full.
fn fill(member: &Member, segment: &Segment) -> Vec<Reference> {
    let mut made = Vec::new();
    for bytes in [7_000, 100] {
        loop {
            match member.transact(|tx| tx.create(segment, vec![7; bytes])) {
                Ok(object) => made.push(object),
                Err(error) if error.kind() == ErrorKind::Full => break,
                Err(error) => assert!(is_passing(&error), "{error}"),
            }
            assert!(made.len() < 100_000, "it is never full");
        }
    }
    made
}

fn is_passing(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::HomeUnreachable | ErrorKind::Busy { .. } | ErrorKind::Conflict
    )
}

/// Changes a list of its own again and again; how often the home takes that.
fn use_up_its_share(own: &Segment) -> usize {
    let subjects = ["anna", "ben"].map(|name| name.parse::<Subject>().unwrap());
    let mut changes = 0;
    for number in 0..CHANGES_MAX {
        let right = [Right::Read, Right::Write][number / 2 % 2];
        match own.grant(&subjects[number % 2], right) {
            Ok(_) => changes += 1,
            Err(error) if error.kind() == ErrorKind::Full => return changes,
            Err(error) => assert!(is_passing(&error), "{error}"),
        }
    }
    panic!("one name takes all");
}

fn run(words: &[&str], via: &str, identity: &str) -> String {
    let said = thorp().run(&[words, &["--via", via, "--identity", identity]].concat());
    assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    said.out
}

#[test]
fn who_fills_a_home_loses_its_rights_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (village, olga) = start(dir.path());
    let (home, site) = (&village.home.via, &village.site_via);
    let anna = join(dir.path(), "anna", site);
    let plans = anna.create("thorp://alps/plans").unwrap();
    let secret = anna.transact(|tx| tx.create(&plans, b"plan 42".to_vec()));
    let secret = secret.unwrap();
    let mallory = join(dir.path(), "mallory", home);
    let flooded = mallory.open("thorp://alps/plans").unwrap();
    let own = mallory.create("thorp://alps/own").unwrap();
    let made = fill(&mallory, &flooded);
    let refused = anna.transact(|tx| tx.create(&plans, b"plan 43".to_vec()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Full);

    // It takes what it can of the room that is kept back.
    let changes = use_up_its_share(&own);
    assert!(changes > 0, "a full store takes a change of rights");

    // A process that the home has not met yet takes the right away.
    let words = ["rights", "revoke", "thorp://alps/plans", "@members"];
    run(&words, home, &olga);
    eventually("mallory reads nothing any more", || {
        let read = mallory.transact(|tx| tx.read(&made[0]).map(|_| ()));
        read.is_err_and(|error| !is_passing(&error))
    });
    let read = anna.transact(|tx| Ok(tx.read(&secret)?.to_vec())).unwrap();
    assert_eq!(read, b"plan 42");
    // A group and its segment are made, and who makes segments is changed.
    run(
        &["group", "add", "thorp://alps/@staff", "anna"],
        home,
        &olga,
    );
    eventually("the audit has it", || {
        let said = thorp().run(&["audit", "alps", "--via", home, "--identity", &olga]);
        let is_it = |line: &str| {
            ["olga", "changed the rights", "plans"]
                .iter()
                .all(|word| line.contains(word))
        };
        said.out.lines().any(is_it)
    });

    // An object goes, and then a segment: there is space again.
    let gone = made.len() / 2;
    anna.transact(|tx| {
        made[..gone.min(50)]
            .iter()
            .try_for_each(|object| tx.delete(object))
    })
    .unwrap();
    run(&["rm", "thorp://alps/plans"], home, &olga);
    let (again, kind) = (anna.create("thorp://alps/again"), |error: Error| {
        error.kind()
    });
    let mut again = again.map_err(kind);
    eventually("there is space again", || {
        if again.is_err() {
            again = anna.create("thorp://alps/again").map_err(kind);
        }
        again.is_ok()
    });
    let again = again.unwrap();
    anna.transact(|tx| tx.create(&again, b"plan 44".to_vec()).map(|_| ()))
        .unwrap();
}
