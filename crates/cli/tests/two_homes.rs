//! Two homes, a site and members: money moves between accounts at both while the homes are killed again and again. The sum
//! is kept, what was acknowledged is there, what was refused is not, and nothing stays in doubt.
//!
//! `THORP_KILL_ROUNDS` says how often (`make kill`: 50); `THORP_KILL_SEED` repeats the moments of a run.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::{Going, Home, OF_A_TEST, PATIENCE, finish, run, thorp};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thorp_client::{
    CommitId, Error, ErrorKind, JoinConfig, Member, Outcome, Ref, Result, Session, Transaction,
};

const ROUNDS: u64 = 4;
const WRITERS: usize = 4;
const NAMES: [&str; 2] = ["alps", "dale"];
/// Accounts, every other one at the same home.
const ACCOUNTS: usize = 8;
const BALANCE: i64 = 1000;
/// Transfers over both homes seen in a round before one may be killed.
const TRANSFERS_MIN: u64 = 15;
const KILL_AFTER_MS_MAX: u64 = 120;
const THINK_MS_MAX: u64 = 20;
/// Half of the writers are so impatient that they have to ask for outcomes later.
const IMPATIENCE: Duration = Duration::from_millis(25);

/// Two homes, the second let in by the first, and a site below both.
struct Village {
    dirs: [PathBuf; 2],
    homes: [Option<Home>; 2],
    identity: String,
    site: String,
    _site: Going,
}

impl Village {
    fn start(dir: &Path) -> Self {
        let dirs = NAMES.map(|name| dir.join(name));
        for dir in &dirs {
            std::fs::create_dir(dir).unwrap();
        }
        let alps = start_home(&dirs, 0);
        let authority = dirs[0].join("home").display().to_string();
        let invite = |name: &str, out: &Path| {
            let said = run(&[
                "invite",
                name,
                "--dir",
                &authority,
                "--out",
                out.to_str().unwrap(),
            ]);
            assert_eq!(said.code, 0, "{}", said.err);
        };
        invite("dale", &dirs[1].join("identity"));
        invite("valley", &dir.join("valley"));
        let dale = start_home(&dirs, 1);
        let site = format!("unix:{}/site.sock", dir.display());
        let identity = dir.join("valley").display().to_string();
        let parents = [("alps", &alps), ("dale", &dale)];
        let parents = parents.map(|(name, home)| format!("--home={name}={}", home.via));
        let site_dir = dir.join("site").display().to_string();
        let mut command = thorp(&["site", "--dir", &site_dir, "--identity", &identity]);
        command
            .args(["--listen", &site])
            .args(parents)
            .args(OF_A_TEST);
        let going = Going::start(command);
        going.welcome();
        Village {
            dirs,
            homes: [Some(alps), Some(dale)],
            identity,
            site,
            _site: going,
        }
    }

    fn home(&self, which: usize) -> &Home {
        self.homes[which].as_ref().unwrap()
    }

    /// `kill -9`, and waiting for the end.
    fn kill(&mut self, which: usize) {
        self.homes[which] = None;
    }

    fn restart(&mut self, which: usize) {
        self.homes[which] = Some(start_home(&self.dirs, which));
    }

    /// At the site; the last one straight at both homes.
    fn join(&self, number: usize) -> Member {
        let config = match number % WRITERS {
            3 => JoinConfig::new(&self.home(0).via).and_home(&self.home(1).via),
            _ => JoinConfig::new(&self.site),
        };
        let config = config.identity(&self.identity).join_timeout(PATIENCE);
        Member::join(config.name(format!("member-{number}"))).unwrap()
    }

    fn agreement(&self, which: usize) -> serde_json::Value {
        let home = self.home(which);
        let json = home.out(&["status", &home.http, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["agreement"].clone()
    }

    /// The stores are whole just after a kill, by their own checksums.
    fn check(&mut self) {
        for which in 0..2 {
            self.kill(which);
            let report = run(&["check", self.dirs[which].join("home").to_str().unwrap()]);
            assert_eq!(report.code, 0, "{}{}", report.out, report.err);
            self.restart(which);
        }
    }

    fn eventually_no_doubt(&self) {
        let end = Instant::now() + PATIENCE;
        for which in 0..2 {
            while self.agreement(which)["in_doubt"] != 0 {
                assert!(Instant::now() < end, "{}", self.agreement(which));
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn start_home(dirs: &[PathBuf; 2], which: usize) -> Home {
    let other = 1 - which;
    let way = format!("{}=unix:{}/home.sock", NAMES[other], dirs[other].display());
    let identity = dirs[which].join("identity").display().to_string();
    let flags = ["--other-home", &way, "--identity", &identity];
    let flags = if which == 0 { &flags[..2] } else { &flags };
    Home::start_as(NAMES[which], &dirs[which], flags)
}

/// Named objects, alternating between the homes.
fn found(member: &Member, path: &str, count: usize, value: i64) -> Vec<Ref<i64>> {
    let segments = NAMES.map(|name| member.open_or_create(&format!("thorp://{name}/{path}")));
    let segments = segments.map(Result::unwrap);
    let made = member.transact(|tx| {
        let made = (0..count).map(|n| tx.create_typed(&segments[n % 2], &value));
        made.collect()
    });
    made.unwrap()
}

#[test]
fn homes_that_are_killed_keep_the_sum() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let rounds = number("THORP_KILL_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("THORP_KILL_SEED").unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::from(since.subsec_nanos())
    });
    // Whatever fails below, this is printed with it.
    println!("THORP_KILL_SEED={seed} THORP_KILL_ROUNDS={rounds}");
    let mut dice = Dice::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let accounts = found(&village.join(0), "bank", ACCOUNTS, BALANCE);
    let ledger = Ledger::new(accounts);
    for round in 0..rounds {
        let members = (0..WRITERS).map(|number| Writer::new(&village, number, dice.next()));
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
fn run_and_kill(village: &mut Village, writers: Vec<Writer>, ledger: &Ledger, dice: &mut Dice) {
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

/// Says that it is over, also when a test fails: or the writers would be waited for in vain.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What somebody sees who was not there before.
fn newest(village: &Village, accounts: &[Ref<i64>]) -> Vec<i64> {
    let all = |tx: &mut Transaction| accounts.iter().map(|account| tx.get(account)).collect();
    let strict = Session::new().strict(true).attempts_max(1000);
    village.join(3).transact_with(strict, all).unwrap()
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

/// From, to, how much.
type Transfer = (usize, usize, i64);

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
    dice: Dice,
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
            dice: Dice::new(seed),
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

fn pay(tx: &mut Transaction, accounts: &[Ref<i64>], (from, to, sum): Transfer) -> Result<()> {
    let rest = tx.get(&accounts[from])? - sum;
    tx.put(&accounts[from], &rest)?;
    let more = tx.get(&accounts[to])? + sum;
    tx.put(&accounts[to], &more)
}

/// These say that nothing was changed; all others would be wrong here.
fn assert_expected(error: &Error) {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Conflict | ErrorKind::Busy { .. } | ErrorKind::HomeUnreachable
        ),
        "{:?}: {error}",
        error.kind()
    );
}

#[test]
fn while_one_home_is_down_the_other_goes_on_and_status_tells() {
    let dir = tempfile::tempdir().unwrap();
    let mut village = Village::start(dir.path());
    let member = village.join(0);
    let accounts = found(&member, "bank", 2, BALANCE);
    member.transact(|tx| pay(tx, &accounts, (0, 1, 1))).unwrap();
    let alps = village.home(0);
    let told = alps.out(&["status", &alps.http]);
    assert!(
        told.contains("shared with other homes: 0 in doubt"),
        "{told}"
    );
    let metrics = metrics(&alps.http);
    for line in [
        "thorp_votes_in_doubt 0",
        "thorp_votes_resolved_total{by=\"member\"}",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }

    village.kill(1);
    member.transact(|tx| tx.put(&accounts[0], &5)).unwrap();
    let impatient = Session::new()
        .fetch_timeout(Duration::from_millis(300))
        .commit_timeout(Duration::from_millis(300));
    let over_both = |tx: &mut Transaction| {
        tx.put(&accounts[0], &6)?;
        tx.put(&accounts[1], &7)
    };
    let error = loop {
        let error = member.transact_with(impatient, over_both).unwrap_err();
        // The first may have been sent before the site missed the home.
        if !matches!(error.kind(), ErrorKind::OutcomeUnknown(_)) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::HomeUnreachable, "{error}");
    assert!(error.to_string().contains("dale"), "{error}");
    village.restart(1);
    let patient = Session::new().attempts_max(1000);
    member.transact_with(patient, over_both).unwrap();
    village.eventually_no_doubt();
    for home in village.homes {
        assert_eq!(home.unwrap().going.terminate(), 0, "a clean end");
    }
}

#[test]
fn what_a_member_that_is_gone_began_ends_by_asking() {
    let dir = tempfile::tempdir().unwrap();
    let village = Village::start(dir.path());
    let founder = village.join(0);
    let accounts = found(&founder, "bank", 2, BALANCE);
    let asked = || -> u64 {
        (0..2)
            .map(|n| village.agreement(n)["resolved_by_homes"].as_u64().unwrap())
            .sum()
    };
    let end = Instant::now() + PATIENCE;
    let mut dice = Dice::new(1);
    // Its last moment is now and then just between the votes and the news of them.
    while asked() == 0 {
        assert!(Instant::now() < end, "no vote was ever left behind");
        let leaving: Vec<_> = (0..8u64)
            .map(|_| (village.join(3), accounts.clone(), dice.below(8)))
            .map(|(member, accounts, ms)| {
                thread::spawn(move || {
                    let going = member.clone();
                    let paying = thread::spawn(move || {
                        while going.transact(|tx| pay(tx, &accounts, (0, 1, 1))).is_ok() {}
                    });
                    thread::sleep(Duration::from_millis(5 + ms));
                    member.close();
                    paying.join().unwrap();
                })
            })
            .collect();
        leaving
            .into_iter()
            .for_each(|member| member.join().unwrap());
        village.eventually_no_doubt();
    }
    let balances = newest(&village, &accounts);
    assert_eq!(balances.iter().sum::<i64>(), 2 * BALANCE, "{balances:?}");
}

#[test]
fn a_name_that_leads_to_no_home_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let itself = [
        "home",
        "--name=alps",
        "--dir",
        "x",
        "--other-home=alps=unix:/x",
    ];
    let said = run(&itself);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("this home itself"), "{}", said.err);
    let home = Home::start(dir.path());
    let said = finish(home.command(&["put", "thorp://nowhere/x", "--text", "x"]));
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("no home called nowhere"), "{}", said.err);
}

fn metrics(http: &str) -> String {
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(http).unwrap();
    socket
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

/// Random numbers: xorshift.
#[derive(Clone, Copy)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
}
