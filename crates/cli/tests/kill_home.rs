//! A home is killed again and again while members commit.
//!
//! Every acknowledged commit is there, and no commit is there in part. A commit without an answer ended as the home answers
//! when its member asks.
//!
//! `THORP_KILL_ROUNDS` says how often (`make kill`: 50); `THORP_KILL_SEED` repeats the moments of a run.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::kills::{IMPATIENCE, KILL_AFTER_MS_MAX, Over, assert_expected, rounds_and_seed};
use common::thorp;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{
    CommitId, Committed, Error, ErrorKind, JoinConfig, Member, Outcome, Reference, Segment, Session,
};
use thorp_model::Xoshiro256;
use thorp_testing::{HomeProcess, PATIENCE};

const ROUNDS: u64 = 5;
const WRITERS: u64 = 4;
/// One object of a group lies in each segment, so all of them in different pages.
const SEGMENTS: usize = 4;
const GROUPS: usize = 6;
/// Commits seen in a round before the home may be killed.
const COMMITS_MIN: u64 = 20;

/// A transaction that committed: which values it saw, and which it put in their place.
struct Entry {
    position: u64,
    number: u64,
    /// Objects, by their index, and what was in them.
    saw: Vec<(usize, u64)>,
}

/// All that committed, and how it was learnt.
#[derive(Default)]
struct Ledger {
    entries: Mutex<Vec<Entry>>,
    acknowledged: AtomicU64,
    asked: AtomicU64,
    asked_and_committed: AtomicU64,
}

struct Writer {
    member: Member,
    number: u64,
    dice: Xoshiro256,
    session: Session,
}

#[test]
fn a_home_that_is_killed_keeps_what_it_acknowledged() {
    let (rounds, seed) = rounds_and_seed(ROUNDS);
    let mut dice = Xoshiro256::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut home = thorp().home(dir.path());
    let objects = found(&home);
    let ledger = Ledger::default();
    for round in 0..rounds {
        // Others every time: those who lose their parent soon after they found it wait longer and longer.
        let names = round * WRITERS + 1..(round + 1) * WRITERS + 1;
        let writers = names.map(|number| Writer::new(&home, number, dice.bits()));
        let mut writers: Vec<Writer> = writers.collect();
        home = run_and_kill(dir.path(), home, &mut writers, &objects, &ledger, &mut dice);
        let state = ledger.replayed(objects.len());
        assert_eq!(newest(&home, &objects), state, "round {round}, seed {seed}");
        // A check reads everything, so not every time.
        if round % 10 == 0 {
            home = checked(dir.path(), home);
        }
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{rounds} kills: {} commits acknowledged; {} asked for later, {} of them committed",
        count(&ledger.acknowledged),
        count(&ledger.asked),
        count(&ledger.asked_and_committed),
    );
}

/// Makes the objects, and a zero in each.
fn found(home: &HomeProcess) -> Vec<Reference> {
    let founder = join(home, "founder");
    let segments = (0..SEGMENTS).map(|n| founder.create(&format!("thorp://alps/part-{n}")));
    let segments: Vec<Segment> = segments.collect::<Result<_, _>>().unwrap();
    let made = founder.transact(|tx| {
        let places = segments.iter().flat_map(|s| (0..GROUPS).map(move |_| s));
        let made = places.map(|segment| tx.create(segment, 0u64.to_le_bytes()));
        made.collect()
    });
    made.unwrap()
}

fn join(home: &HomeProcess, name: &str) -> Member {
    let config = JoinConfig::new(&home.via).identity(&home.identity);
    Member::join(config.name(name).join_timeout(PATIENCE)).unwrap()
}

/// Lets the writers commit for a while, kills the home under them, and starts it again.
fn run_and_kill(
    dir: &Path,
    home: HomeProcess,
    writers: &mut [Writer],
    objects: &[Reference],
    ledger: &Ledger,
    dice: &mut Xoshiro256,
) -> HomeProcess {
    let flag = &AtomicBool::new(false);
    let enough = ledger.acknowledged.load(Ordering::Relaxed) + COMMITS_MIN;
    thread::scope(|scope| {
        let _over = Over(flag);
        for writer in writers {
            scope.spawn(|| writer.commit_until(flag, objects, ledger));
        }
        let end = Instant::now() + PATIENCE;
        while ledger.acknowledged.load(Ordering::Relaxed) < enough {
            assert!(Instant::now() < end, "no commits come through");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(dice.below(KILL_AFTER_MS_MAX)));
        // Dropping it is `kill -9`, and waiting for the end.
        drop(home);
        thread::sleep(Duration::from_millis(dice.below(KILL_AFTER_MS_MAX)));
        let mut home = thorp().home(dir);
        if dice.below(4) == 0 {
            // Once more, in the midst of everybody coming back.
            thread::sleep(Duration::from_millis(dice.below(20)));
            drop(home);
            home = thorp().home(dir);
        }
        home
    })
}

/// What somebody sees who was not there before.
fn newest(home: &HomeProcess, objects: &[Reference]) -> Vec<u64> {
    let member = join(home, "newcomer");
    let read = |session: Session| {
        member.transact_with(session, |tx| {
            let values = objects.iter().map(|object| Ok(value(tx.read(object)?)));
            values.collect::<Result<Vec<u64>, Error>>()
        })
    };
    let strict = read(Session::new().strict(true)).unwrap();
    assert_eq!(read(Session::new()).unwrap(), strict);
    strict
}

fn value(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// The store is whole just after a kill, by its own checksums.
fn checked(dir: &Path, home: HomeProcess) -> HomeProcess {
    drop(home);
    let report = thorp().run(&["check", dir.join("home").to_str().unwrap()]);
    assert_eq!(report.code, 0, "{}{}", report.out, report.err);
    thorp().home(dir)
}

impl Writer {
    fn new(home: &HomeProcess, number: u64, seed: u64) -> Self {
        let session = match number % 2 {
            0 => Session::new().commit_timeout(IMPATIENCE),
            _ => Session::new(),
        };
        Writer {
            member: join(home, &format!("writer-{number}")),
            number: number << 32,
            dice: Xoshiro256::new(seed),
            session,
        }
    }

    fn commit_until(&mut self, over: &AtomicBool, objects: &[Reference], ledger: &Ledger) {
        let mut unanswered: Vec<(CommitId, Entry)> = Vec::new();
        while !over.load(Ordering::Relaxed) {
            self.number += 1;
            if let Some(unknown) = self.commit(objects, ledger) {
                unanswered.push(unknown);
            }
        }
        // It is over only when the home is there again.
        for (id, entry) in unanswered {
            ledger.asked.fetch_add(1, Ordering::Relaxed);
            match self.member.outcome(id).unwrap() {
                Outcome::Committed(committed) => {
                    ledger.asked_and_committed.fetch_add(1, Ordering::Relaxed);
                    ledger.enter(entry, &committed);
                }
                Outcome::Refused(error) => assert_expected(&error),
            }
        }
    }

    /// Puts a number that was never there before into two to four objects of a group, all at once. Gives back what has no
    /// answer.
    fn commit(&mut self, objects: &[Reference], ledger: &Ledger) -> Option<(CommitId, Entry)> {
        let (group, first) = (self.dice.below(GROUPS as u64), self.dice.below(3));
        let segments = first as usize..(first as usize + 2 + self.dice.below(3) as usize);
        let chosen = segments.map(|n| (n % SEGMENTS) * GROUPS + group as usize);
        let mut tx = self.member.begin(self.session);
        let written = chosen.map(|index| {
            let saw = value(tx.read(&objects[index])?);
            tx.write(&objects[index], self.number.to_le_bytes())?;
            Ok((index, saw))
        });
        let entry = |saw| Entry {
            position: 0,
            number: self.number,
            saw,
        };
        let saw = match written.collect::<Result<Vec<_>, Error>>() {
            Ok(saw) => saw,
            Err(error) => {
                assert_expected(&error);
                return None;
            }
        };
        match tx.commit() {
            Ok(committed) => {
                ledger.enter(entry(saw), &committed);
                ledger.acknowledged.fetch_add(1, Ordering::Relaxed);
                None
            }
            Err(error) => match error.kind() {
                ErrorKind::OutcomeUnknown(id) => Some((id, entry(saw))),
                _ => {
                    assert_expected(&error);
                    None
                }
            },
        }
    }
}

impl Ledger {
    fn enter(&self, entry: Entry, committed: &Committed) {
        let position = committed.position.unwrap().0;
        self.entries
            .lock()
            .unwrap()
            .push(Entry { position, ..entry });
    }

    /// Runs everything that committed again, one after the other in the home's order: each must have seen just what was
    /// there. What is there at the end.
    fn replayed(&self, objects: usize) -> Vec<u64> {
        let mut entries = self.entries.lock().unwrap();
        entries.sort_by_key(|entry| entry.position);
        let mut state = vec![0; objects];
        let mut last = 0;
        for entry in entries.iter() {
            assert!(entry.position > last, "two commits at position {last}");
            last = entry.position;
            for (index, saw) in &entry.saw {
                assert_eq!(state[*index], *saw, "object {index} at position {last}");
                state[*index] = entry.number;
            }
        }
        state
    }
}
