//! A trace of a home's system calls shows that what it acknowledges was synced before.
//!
//! `strace` follows a real home while a member commits one transaction at a time and notes when it began to wait and when it
//! was answered. Within each such time, by the trace's clock, which is the same:
//!
//! - a *receipt* is a read of bytes from a socket, a *reply* a write to one;
//! - *clear* are those with one receipt and one reply: that must be the commit and its answer. Heartbeats and
//!   acknowledgements, twice a second, make others unclear, and these are counted;
//! - in each clear one there must come, in this order: the receipt; a write to the store's journal; a sync of that journal
//!   that has returned 0. Only then the reply may begin.
//!
//! The order is that of the trace's lines. The tracer stops every thread at the beginning and the end of each call. So a
//! call that waits for the end of a sync begins in a later line. Without `strace` the test skips (see [`skip`]).

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod common;

use common::skip;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thorp_client::{JoinConfig, Member};
use thorp_testing::{PATIENCE, Process};

const COMMITS: usize = 60;
const CALLS: &str = "trace=read,readv,recvfrom,recvmsg,write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync";

/// From before a commit was sent until after its answer, in microseconds since 1970.
type Waited = (u64, u64);

/// What matters of a line of the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// Bytes were read from a socket.
    Receipt,
    /// A write to a socket begins.
    Reply,
    /// Bytes were written to the journal.
    Written,
    /// The journal is synced.
    Synced,
}

/// How many commits were seen.
#[derive(PartialEq, Eq, Debug)]
struct Verdict {
    synced: usize,
    unclear: usize,
    not_synced: usize,
}

#[test]
fn every_acknowledgement_comes_after_a_sync() {
    if !Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|out| out.status.success())
    {
        return skip("strace to check syncs: apt-get install strace");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace");
    let (going, waited) = commit_under_trace(dir.path(), &file);
    assert_eq!(going.terminate(), 0);
    let trace = whole(&file);
    let events = events_of(&trace);
    let verdict = judge(&events, &waited);
    println!("{COMMITS} commits: {verdict:?}");
    assert_eq!(verdict.not_synced, 0, "{verdict:?}");
    assert!(verdict.synced >= COMMITS * 3 / 4, "{verdict:?}");
    // The same trace without the syncs must not pass: what is checked here is really there.
    let unsynced = events.iter().filter(|(_, event)| *event != Event::Synced);
    let verdict = judge(&unsynced.copied().collect::<Vec<_>>(), &waited);
    assert!(
        verdict.synced == 0 && verdict.not_synced >= COMMITS * 3 / 4,
        "{verdict:?}"
    );
}

/// Runs a home under strace, and commits.
fn commit_under_trace(dir: &Path, file: &Path) -> (Process, Vec<Waited>) {
    let via = format!("unix:{}", dir.join("home.sock").display());
    let home = dir.join("home");
    let mut command = Command::new("strace");
    // As the tracer is a grandchild, the child that is ended at the end is the home itself.
    command.args(["-D", "-f", "-y", "-ttt", "-s0", "-e", CALLS, "-o"]);
    command.arg(file).arg(env!("CARGO_BIN_EXE_thorp"));
    command.args(["home", "--name=alps", "--http=off", "--until-stdin-closes"]);
    command.arg(format!("--dir={}", home.display()));
    command.arg(format!("--listen={via}"));
    let going = Process::start(command);
    going.lines_until("ready");

    let config = JoinConfig::new(&via).identity(home.join("identity/local"));
    let member = Member::join(config.join_timeout(PATIENCE)).unwrap();
    let segment = member.create("thorp://alps/traced").unwrap();
    let object = member.transact(|tx| tx.create(&segment, [0; 200])).unwrap();
    let commit = |number: usize| {
        // What the commit before led to besides is over by then.
        std::thread::sleep(Duration::from_millis(5));
        let mut tx = member.begin(member.session());
        tx.write(&object, [number as u8; 200]).unwrap();
        let began = now();
        tx.commit().unwrap();
        (began, now())
    };
    let waited = (0..COMMITS).map(commit).collect();
    member.close();
    (going, waited)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros() as u64
}

/// The trace, when the tracer has written all of it.
fn whole(file: &Path) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let trace = fs::read_to_string(file).unwrap_or_default();
        if trace
            .lines()
            .last()
            .is_some_and(|line| line.contains("+++ exited"))
        {
            return trace;
        }
        assert!(Instant::now() < end, "the trace has no end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lines are `PID TIME CALL(FD<PATH>, ..) = RESULT`, or such a one in two halves: `.. <unfinished ...>` and
/// `PID TIME <... CALL resumed>..) = RESULT`.
fn events_of(trace: &str) -> Vec<(u64, Event)> {
    let mut begun: HashMap<&str, String> = HashMap::new();
    let mut events = Vec::new();
    for line in trace.lines() {
        let mut parts = line.splitn(2, ' ');
        let (thread, rest) = (parts.next().unwrap(), parts.next().unwrap_or_default());
        let Some((time, call)) = rest.trim_start().split_once(' ') else {
            continue;
        };
        let Some(time) = micros(time) else {
            continue;
        };
        if let Some(first) = call.strip_suffix("<unfinished ...>") {
            if is_write_to_socket(first) {
                events.push((time, Event::Reply));
            }
            begun.insert(thread, first.to_owned());
        } else if let Some((_, last)) = call.strip_prefix("<... ").and_then(|c| c.split_once('>')) {
            let first = begun.remove(thread).unwrap_or_default();
            // Its beginning was noted already.
            events.extend(ended(&format!("{first}{last}")).map(|event| (time, event)));
        } else if is_write_to_socket(call) {
            events.push((time, Event::Reply));
        } else {
            events.extend(ended(call).map(|event| (time, event)));
        }
    }
    events
}

fn micros(time: &str) -> Option<u64> {
    let (seconds, micros) = time.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

fn is_write_to_socket(call: &str) -> bool {
    let name = call.split('(').next().unwrap_or_default();
    matches!(name, "write" | "writev" | "sendto" | "sendmsg") && target(call) == Some("socket")
}

/// What the end of a call means.
fn ended(call: &str) -> Option<Event> {
    let name = call.split('(').next()?;
    let result: i64 = call.rsplit_once(" = ")?.1.split(' ').next()?.parse().ok()?;
    match (name, target(call)?) {
        ("read" | "readv" | "recvfrom" | "recvmsg", "socket") if result > 0 => Some(Event::Receipt),
        ("write" | "writev" | "pwrite64" | "pwritev", "journal") if result > 0 => {
            Some(Event::Written)
        }
        ("fsync" | "fdatasync", "journal") if result == 0 => Some(Event::Synced),
        _ => None,
    }
}

/// What a call's descriptor is: strace prints `12<UNIX-STREAM:[4711]>`, `12<socket:[4711]>` or `12</path>`.
fn target(call: &str) -> Option<&'static str> {
    let (_, from) = call.split_once('<')?;
    let what = from.split_once('>').map_or(from, |(what, _)| what);
    if what.starts_with("socket:") || what.starts_with("UNIX") || what.starts_with("TCP") {
        return Some("socket");
    }
    let is_journal = what.contains("/store/") && what.ends_with(".jnl");
    is_journal.then_some("journal")
}

fn judge(events: &[(u64, Event)], waited: &[Waited]) -> Verdict {
    let mut verdict = Verdict {
        synced: 0,
        unclear: 0,
        not_synced: 0,
    };
    for (from, to) in waited {
        let within = events
            .iter()
            .filter(|(time, _)| (from..=to).contains(&time));
        let seen: Vec<Event> = within.map(|(_, event)| *event).collect();
        let count = |wanted| seen.iter().filter(|event| **event == wanted).count();
        if (count(Event::Receipt), count(Event::Reply)) != (1, 1) {
            verdict.unclear += 1;
        } else if is_synced(&seen) {
            verdict.synced += 1;
        } else {
            verdict.not_synced += 1;
        }
    }
    verdict
}

/// Whether the four come in their order, whatever is between them.
fn is_synced(seen: &[Event]) -> bool {
    let mut rest = seen.iter();
    let wanted = [Event::Receipt, Event::Written, Event::Synced, Event::Reply];
    wanted
        .iter()
        .all(|wanted| rest.any(|event| event == wanted))
}

#[test]
fn the_judge_tells_synced_from_not_synced() {
    let good = "\
1 100.000010 recvfrom(9<UNIX-STREAM:[1]>, \"\"..., 32768, 0, NULL, NULL) = 290
2 100.000020 write(5</d/home/store/thorp-engine/0.jnl>, \"\"..., 300) = 300
2 100.000030 fdatasync(5</d/home/store/thorp-engine/0.jnl> <unfinished ...>
1 100.000040 recvfrom(9<UNIX-STREAM:[1]>, 0x7f, 32768, 0, NULL, NULL) = -1 EAGAIN (again)
2 100.000050 <... fdatasync resumed>) = 0
1 100.000060 sendto(9<UNIX-STREAM:[1]>, \"\"..., 60, MSG_NOSIGNAL, NULL, 0) = 60
";
    let verdict = |trace: &str| {
        let verdict = judge(&events_of(trace), &[(100_000_000, 100_000_100)]);
        (verdict.synced, verdict.unclear, verdict.not_synced)
    };
    assert_eq!(verdict(good), (1, 0, 0));
    // The sync failed, or was of something else, or came before the write, or ended after the reply began.
    assert_eq!(
        verdict(&good.replace("resumed>) = 0", "resumed>) = -1 EIO (x)")),
        (0, 0, 1)
    );
    assert_eq!(
        verdict(&good.replace("0.jnl> <unf", "0.sst> <unf")),
        (0, 0, 1)
    );
    assert_eq!(
        verdict(&good.replace("= 300", "= -1 ENOSPC (x)")),
        (0, 0, 1)
    );
    let mut lines: Vec<&str> = good.lines().collect();
    lines.swap(4, 5);
    assert_eq!(verdict(&lines.join("\n")), (0, 0, 1));
    // A second reply makes it unclear, and none too.
    assert_eq!(
        verdict(&format!("{good}{}", good.lines().last().unwrap())),
        (0, 1, 0)
    );
    assert_eq!(verdict(""), (0, 1, 0));
}
