//! Two homes, a site and members: money moves between accounts at both while the homes are killed again and again. The sum
//! is kept, what was acknowledged is there, what was refused is not, and nothing stays in doubt.
//!
//! `THORP_KILL_ROUNDS` says how often (`make kill`: 50); `THORP_KILL_SEED` repeats the moments of a run.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::kills::{IMPATIENCE, KILL_AFTER_MS_MAX, Over, assert_expected, rounds_and_seed};
use common::two_homes::{BALANCE, Transfer, Village, found, newest, pay};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{CommitId, ErrorKind, Member, Outcome, Ref, Session, Transaction};
use thorp_model::Xoshiro256;
use thorp_testing::PATIENCE;

const ROUNDS: u64 = 4;
const WRITERS: usize = 4;
/// Accounts, every other one at the same home.
const ACCOUNTS: usize = 8;
/// Transfers over both homes seen in a round before one may be killed.
const TRANSFERS_MIN: u64 = 15;
const THINK_MS_MAX: u64 = 20;

#[test]
fn homes_that_are_killed_keep_the_sum() {
    let (rounds, seed) = rounds_and_seed(ROUNDS);
    let mut dice = Xoshiro256::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let accounts = found(&village.join(0), "bank", ACCOUNTS, BALANCE);
    let ledger = Ledger::new(accounts);
    for round in 0..rounds {
        let members = (0..WRITERS).map(|number| Writer::new(&village, number, dice.bits()));
        let writers: Vec<Writer> = members.collect();
        run_and_kill(&mut village, writers, &ledger, &mut dice);
        let found = newest(&village, &ledger.accounts);
        let known = ledger.balances.lock().unwrap().clone();
        assert_eq!(found, known, "round {round}, seed {seed}");
        village.eventually_no_doubt();
    }
    village.check();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{rounds} rounds: {} transfers over both homes acknowledged; {} of any kind asked for later, {} of them committed; {} sums",
        count(&ledger.acknowledged),
        count(&ledger.asked),
        count(&ledger.asked_and_committed),
        count(&ledger.sums),
    );
    assert!(count(&ledger.sums) > 0);
}

/// Lets money move for a while, kills a home or both under it, and starts them again.
fn run_and_kill(
    village: &mut Village,
    writers: Vec<Writer>,
    ledger: &Ledger,
    dice: &mut Xoshiro256,
) {
    let flag = &AtomicBool::new(false);
    let enough = ledger.acknowledged.load(Ordering::Relaxed) + TRANSFERS_MIN;
    let reader = village.join(0);
    thread::scope(|scope| {
        let _over = Over(flag);
        for mut writer in writers {
            scope.spawn(move || writer.transfer_until(flag, ledger));
        }
        scope.spawn(|| ledger.sum_until(flag, &reader));
        let end = Instant::now() + PATIENCE;
        while ledger.acknowledged.load(Ordering::Relaxed) < enough {
            assert!(Instant::now() < end, "no transfers come through");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(dice.below(KILL_AFTER_MS_MAX)));
        let first = dice.below(2) as usize;
        village.kill(first);
        thread::sleep(Duration::from_millis(dice.below(KILL_AFTER_MS_MAX)));
        if dice.below(2) == 0 {
            // The other one too, while this one is gone.
            village.kill(1 - first);
            village.restart(1 - first);
        }
        village.restart(first);
        if dice.below(4) == 0 {
            // Once more, in the midst of everybody coming back.
            thread::sleep(Duration::from_millis(dice.below(20)));
            village.kill(first);
            village.restart(first);
        }
    });
}

/// All that committed.
struct Ledger {
    accounts: Vec<Ref<i64>>,
    balances: Mutex<Vec<i64>>,
    acknowledged: AtomicU64,
    asked: AtomicU64,
    asked_and_committed: AtomicU64,
    sums: AtomicU64,
}

impl Ledger {
    fn new(accounts: Vec<Ref<i64>>) -> Self {
        Ledger {
            balances: Mutex::new(vec![BALANCE; accounts.len()]),
            accounts,
            acknowledged: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            asked_and_committed: AtomicU64::new(0),
            sums: AtomicU64::new(0),
        }
    }

    fn enter(&self, (from, to, sum): Transfer) {
        let mut balances = self.balances.lock().unwrap();
        balances[from] -= sum;
        balances[to] += sum;
    }

    /// Who only reads sees the whole sum, whenever that is.
    fn sum_until(&self, over: &AtomicBool, reader: &Member) {
        let few = Session::new().attempts_max(20);
        while !over.load(Ordering::Relaxed) {
            let all =
                |tx: &mut Transaction| self.accounts.iter().map(|account| tx.get(account)).sum();
            match reader.transact_with(few, all) {
                Ok::<i64, _>(sum) => {
                    assert_eq!(sum, BALANCE * ACCOUNTS as i64);
                    self.sums.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => assert_expected(&error),
            }
        }
    }
}

struct Writer {
    member: Member,
    dice: Xoshiro256,
    session: Session,
}

impl Writer {
    fn new(village: &Village, number: usize, seed: u64) -> Self {
        let session = match number % 2 {
            0 => Session::new().commit_timeout(IMPATIENCE),
            _ => Session::new(),
        };
        Writer {
            member: village.join(number),
            dice: Xoshiro256::new(seed),
            session,
        }
    }

    fn transfer_until(&mut self, over: &AtomicBool, ledger: &Ledger) {
        let mut unanswered: Vec<(CommitId, Transfer)> = Vec::new();
        while !over.load(Ordering::Relaxed) {
            unanswered.extend(self.transfer(ledger));
            // Or nobody would ever see all accounts unlocked.
            thread::sleep(Duration::from_millis(self.dice.below(THINK_MS_MAX)));
        }
        // It is over only when the homes are there again.
        for (id, transfer) in unanswered {
            ledger.asked.fetch_add(1, Ordering::Relaxed);
            match self.member.outcome(id).unwrap() {
                Outcome::Committed(_) => {
                    ledger.asked_and_committed.fetch_add(1, Ordering::Relaxed);
                    ledger.enter(transfer);
                }
                Outcome::Refused(error) => assert_expected(&error),
            }
        }
    }

    /// Moves money between any two accounts. Gives back what has no answer.
    fn transfer(&mut self, ledger: &Ledger) -> Option<(CommitId, Transfer)> {
        let from = self.dice.below(ACCOUNTS as u64) as usize;
        let to = (from + 1 + self.dice.below(ACCOUNTS as u64 - 1) as usize) % ACCOUNTS;
        let transfer = (from, to, self.dice.below(100) as i64);
        let mut tx = self.member.begin(self.session);
        let moved = pay(&mut tx, &ledger.accounts, transfer);
        match moved.and_then(|()| tx.commit()) {
            Ok(_) => {
                ledger.enter(transfer);
                let both = from % 2 != to % 2;
                ledger
                    .acknowledged
                    .fetch_add(u64::from(both), Ordering::Relaxed);
                None
            }
            Err(error) => match error.kind() {
                ErrorKind::OutcomeUnknown(id) => Some((id, transfer)),
                _ => {
                    assert_expected(&error);
                    None
                }
            },
        }
    }
}
