//! A member that works until it is told to tell what it has counted.
//!
//! It says `ready` when its cache is warm, then a line for each commit: when it began and ended, in microseconds of the
//! machine's clock. Told `count`, it reads all pages again and tells what it had to fetch for that since it was warm, and goes
//! on. It ends with its standard input.

use std::io::BufRead;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thorp_bench::village::identity;
use thorp_bench::{Result, process};
use thorp_client::{ErrorKind, JoinConfig, Member, Outcome, Reference, Segment, Stats};
use thorp_model::Slot;
use thorp_net::NodeRole;

pub(crate) const ROLE: &str = "worker";
/// Between two transactions.
const THINK: Duration = Duration::from_millis(20);
/// Objects that each transaction reads, of those that others may change.
const READS: usize = 3;

pub(crate) fn play(arguments: &[String]) -> Result<()> {
    let [dir, name, sites, library, every_ms, missed] = arguments else {
        return Err(
            "a worker is told where, who, at which sites, what to read, and its limits".into(),
        );
    };
    let dir = Path::new(dir);
    let mut at = sites
        .split(',')
        .map(|site| format!("unix:{}/{site}.sock", dir.display()));
    let first = at.next().ok_or("no site")?;
    let every = Duration::from_millis(every_ms.parse()?);
    let config = at.fold(JoinConfig::new(first), JoinConfig::or_at);
    // What is fetched again is counted.
    let config = config
        .fetch_ahead(0)
        .identity_of(identity(dir, NodeRole::Member, name)?);
    let config = config.name(name);
    let member = Member::join(config.alive(every, missed.parse()?))?;
    let own = member.create(&format!("thorp://alps/{name}"))?;
    let own = member.transact(|tx| tx.create(&own, 0u64.to_le_bytes()))?;
    let library = member.open(library)?;
    let objects = all(&member, &library)?;
    let warm = member.stats();
    process::ready();

    let (over, counting) = (AtomicBool::new(false), Mutex::new(()));
    thread::scope(|scope| {
        scope.spawn(|| work(&member, own, &objects, &over, &counting));
        for line in std::io::stdin()
            .lock()
            .lines()
            .map_while(std::io::Result::ok)
        {
            if line == "count" {
                // What is fetched is not mixed up with what the load fetches meanwhile.
                let _alone = counting.lock();
                let read = all(&member, &library);
                let now = member.stats().since(&warm);
                let pages = came(&now);
                if read.is_err() {
                    println!("unread");
                }
                println!("counted {pages}");
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    member.close();
    Ok(())
}

/// Reads everything; the references.
fn all(member: &Member, library: &Segment) -> Result<Vec<Reference>> {
    Ok(member.transact(|tx| {
        let mut objects = Vec::new();
        tx.scan(library, |reference, _| {
            objects.push(reference);
            Ok(())
        })?;
        Ok(objects)
    })?)
}

fn work(
    member: &Member,
    own: Reference,
    library: &[Reference],
    over: &AtomicBool,
    counting: &Mutex<()>,
) {
    let mut step = own.object.page.page.0 as usize;
    let is_first = |object: &&Reference| object.object.slot == Slot(0);
    let (firsts, others): (Vec<&Reference>, Vec<&Reference>) = library.iter().partition(is_first);
    while !over.load(Ordering::Relaxed) {
        let alone = counting.lock();
        // A page that others change is fetched anew: nothing but that, or the commit would have it to conflict with.
        let before = member.stats();
        let asked = micros();
        let read = member.transact(|tx| tx.read(firsts[step % firsts.len()]).map(drop));
        let read_us = micros() - asked;
        let fetched = came(&member.stats().since(&before)) * u64::from(read.is_ok());
        let sent = member.stats().traffic.frames_sent;
        let begun = micros();
        let done = member.transact(|tx| {
            for read in 0..READS {
                let object = others[(step * 7919 + read * 104_729) % others.len()];
                tx.read(object)?;
            }
            tx.write(&own, (step as u64).to_le_bytes())
        });
        let sent = member.stats().traffic.frames_sent - sent;
        let committed = || println!("commit {begun} {} {sent} {read_us} {fetched}", micros());
        step += 1;
        match done {
            Ok(()) => committed(),
            Err(error) => match (error.kind(), error) {
                (ErrorKind::OutcomeUnknown(id), _) => match member.outcome(id) {
                    Ok(Outcome::Committed(_)) => committed(),
                    Ok(Outcome::Refused(why)) => println!("refused {why}"),
                    Err(why) => println!("unknown {why}"),
                },
                (_, error) => println!("refused {error}"),
            },
        }
        drop(alone);
        thread::sleep(THINK);
    }
}

/// Pages that had to be fetched.
fn came(stats: &Stats) -> u64 {
    stats.from_home + stats.through_site + stats.from_peers
}

/// The machine's clock: the same for all processes.
pub(crate) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
