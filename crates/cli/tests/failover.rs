//! Two sites below one home, as real processes: the first is stopped, or killed, and its members go on at the second with what
//! they have (rule 13). What is fetched anew is counted, never timed.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::thorp;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use thorp_client::{
    ErrorKind, JoinConfig, Member, Outcome, Reference, Result, Session, Transaction,
};
use thorp_testing::{HomeProcess, OF_A_TEST, PATIENCE, Process, eventually, signal};

/// Short enough for a test, and long enough for a machine that is busy: a second.
const ALIVE_MS: u64 = 100;
const MISSED_MAX: u32 = 10;
const MEMBERS: usize = 3;
/// Each in a page of its own: objects that no other fits beside.
const PAGES: usize = 40;
const CHANGED: usize = 7;
const OBJECT_BYTES: usize = 5000;
/// What is moved about under load.
const ACCOUNTS: usize = 8;
const BALANCE: u64 = 1000;
/// Commits of each member before the site is killed, and after that.
const COMMITS_EACH: u64 = 30;

struct Village {
    home: HomeProcess,
    sites: [Option<Site>; 2],
}

struct Site {
    process: Process,
    via: String,
    http: String,
}

impl Village {
    fn start(dir: &Path) -> Self {
        let (every, missed) = (ALIVE_MS.to_string(), MISSED_MAX.to_string());
        let alive = ["--alive-ms", &every, "--alive-missed-max", &missed];
        let home = thorp().home_with(dir, &alive);
        let identity = dir.join("valley").display().to_string();
        let authority = dir.join("home").display().to_string();
        let invite = ["invite", "valley", "--role=site", "--dir", &authority];
        let said = thorp().run(&[&invite[..], &["--out", &identity]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let site = |name: &str| {
            let via = format!("unix:{}/{name}.sock", dir.display());
            let site_dir = dir.join(name).display().to_string();
            let parent = format!("--home=alps={}", home.via);
            let mut command =
                thorp().command(&["site", "--dir", &site_dir, "--identity", &identity]);
            command.args(["--listen", &via, &parent]);
            command.args(OF_A_TEST).args(alive);
            let process = Process::start(command);
            let (_, http) = process.ready();
            Some(Site { process, via, http })
        };
        let sites = [site("first"), site("second")];
        Village { home, sites }
    }

    fn site(&self, which: usize) -> &Site {
        self.sites[which].as_ref().unwrap()
    }

    /// `kill -9`, and waiting for the end.
    fn kill(&mut self, which: usize) {
        self.sites[which] = None;
    }

    /// At the first site, or the second.
    fn join(&self, name: &str) -> Member {
        let (first, second) = (&self.site(0).via, &self.site(1).via);
        self.join_at(JoinConfig::new(first).or_at(second), name)
    }

    fn join_at(&self, config: JoinConfig, name: &str) -> Member {
        let every = Duration::from_millis(ALIVE_MS);
        let config = config.identity(&self.home.identity).join_timeout(PATIENCE);
        Member::join(config.name(name).alive(every, MISSED_MAX)).unwrap()
    }

    /// How many members a site has, whether it is well or not.
    fn members(&self, which: usize) -> usize {
        let said = thorp().run(&["status", &self.site(which).http, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        json["children"].as_array().unwrap().len()
    }
}

fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0; OBJECT_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

fn made(member: &Member, path: &str, objects: usize, first: u64) -> Vec<Reference> {
    let segment = member.create(&format!("thorp://alps/{path}")).unwrap();
    let made = member.transact(|tx| {
        let numbers = 0..objects;
        let made = numbers.map(|_| tx.create(&segment, value(first)));
        made.collect()
    });
    made.unwrap()
}

fn read_all(member: &Member, objects: &[Reference]) -> Vec<u64> {
    let read = |tx: &mut Transaction| -> Result<Vec<u64>> {
        let read = objects.iter().map(|object| Ok(number(tx.read(object)?)));
        read.collect()
    };
    member.transact(read).unwrap()
}

#[test]
fn members_of_a_site_that_says_nothing_go_on_at_the_second_with_what_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let far = village.join_at(JoinConfig::new(&village.home.via), "far");
    let pages = made(&far, "pages", PAGES, 0);
    let members: Vec<Member> = (0..MEMBERS)
        .map(|n| village.join(&format!("member-{n}")))
        .collect();
    for member in &members {
        assert_eq!(read_all(member, &pages), [0; PAGES]);
    }
    assert_eq!((village.members(0), village.members(1)), (MEMBERS, 0));
    let fetches = |member: &Member| member.stats().fetches;
    let before: Vec<u64> = members.iter().map(fetches).collect();
    // One is in the middle of a transaction: what it has read does not change.
    let (first, last) = (pages[CHANGED], pages[PAGES - 1]);
    let mut running = members[0].begin(Session::default());
    assert_eq!(number(running.read(&first).unwrap()), 0);

    let stopped = village.site(0).process.id();
    signal("STOP", stopped);
    far.transact(|tx| {
        let mut changed = pages[..CHANGED].iter();
        changed.try_for_each(|page| tx.write(page, value(1)))
    })
    .unwrap();
    eventually("all are at the second site", || {
        village.members(1) == MEMBERS
    });

    running.write(&last, value(5)).unwrap();
    running.commit().unwrap();
    let mut expected = [0; PAGES];
    expected[..CHANGED].fill(1);
    expected[PAGES - 1] = 5;
    for (number, (member, before)) in members.iter().zip(before).enumerate() {
        eventually("the member stands at the second site", || {
            read_all(member, &pages) == expected
        });
        let fetched = fetches(member) - before;
        // The last page came to the others as a change of what they hold, or is fetched once.
        let changed = CHANGED as u64..=CHANGED as u64 + u64::from(number > 0);
        assert!(changed.contains(&fetched), "{fetched} pages fetched anew");
    }

    // Nobody leaves a site that is there only because another one is back.
    signal("CONT", stopped);
    eventually("the first site has seen that they are gone", || {
        village.members(0) == 0
    });
    let again = village.join("late");
    assert_eq!(read_all(&again, &pages), expected);
    assert_eq!((village.members(0), village.members(1)), (1, MEMBERS));
}

/// What a member did under load.
#[derive(Default)]
struct Work {
    commits: AtomicU64,
    unknown: AtomicU64,
}

/// Moves money between two accounts, and finds out how that ended.
fn transfer(member: &Member, accounts: &[Reference], step: u64, work: &Work) {
    let from = accounts[(step % ACCOUNTS as u64) as usize];
    let to = accounts[((step * 5 + 3) % ACCOUNTS as u64) as usize];
    let moved = member.transact(|tx| {
        let taken = number(tx.read(&from)?).saturating_sub(1);
        tx.write(&from, value(taken))?;
        let given = number(tx.read(&to)?) + 1;
        tx.write(&to, value(given))
    });
    match moved {
        Ok(()) => _ = work.commits.fetch_add(1, Ordering::Relaxed),
        Err(error) => match error.kind() {
            ErrorKind::OutcomeUnknown(id) => match member.outcome(id) {
                Ok(Outcome::Committed(_)) => _ = work.commits.fetch_add(1, Ordering::Relaxed),
                Ok(_) => {}
                Err(_) => _ = work.unknown.fetch_add(1, Ordering::Relaxed),
            },
            ErrorKind::Conflict | ErrorKind::Busy { .. } => {}
            _ => panic!("{error}"),
        },
    }
}

#[test]
fn a_site_that_is_killed_under_load_stops_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let far = village.join_at(JoinConfig::new(&village.home.via), "far");
    let library = made(&far, "library", PAGES, 7);
    let accounts = made(&far, "accounts", ACCOUNTS, BALANCE);
    let members: Vec<Member> = (0..MEMBERS)
        .map(|n| village.join(&format!("member-{n}")))
        .collect();
    for member in &members {
        assert_eq!(read_all(member, &library), [7; PAGES]);
    }
    let (works, done) = (
        [(); MEMBERS].map(|()| Work::default()),
        AtomicBool::new(false),
    );
    let all_have = |commits: u64| {
        let mut works = works.iter();
        works.all(|work| work.commits.load(Ordering::Relaxed) >= commits)
    };
    thread::scope(|scope| {
        for (number, (member, work)) in (0..).zip(members.iter().zip(&works)) {
            let (accounts, done) = (&accounts, &done);
            scope.spawn(move || {
                let mut step = number;
                while !done.load(Ordering::Relaxed) {
                    transfer(member, accounts, step, work);
                    step += 7;
                }
            });
        }
        eventually("all work", || all_have(COMMITS_EACH));
        village.kill(0);
        let most = works
            .iter()
            .map(|work| work.commits.load(Ordering::Relaxed));
        let goal = most.max().unwrap() + COMMITS_EACH;
        eventually("all go on", || all_have(goal));
        done.store(true, Ordering::Relaxed);
    });
    let unknown: u64 = works
        .iter()
        .map(|work| work.unknown.load(Ordering::Relaxed))
        .sum();
    assert_eq!(unknown, 0, "outcomes that nobody could tell");
    assert_eq!(village.members(1), MEMBERS);
    let sum: u64 = read_all(&far, &accounts).iter().sum();
    assert_eq!(sum, BALANCE * ACCOUNTS as u64);
    for member in &members {
        // Nobody has changed the library, and nobody has read it since.
        let before = member.stats().fetches;
        assert_eq!(read_all(member, &library), [7; PAGES]);
        assert_eq!(member.stats().fetches - before, 0, "pages fetched anew");
    }
}
