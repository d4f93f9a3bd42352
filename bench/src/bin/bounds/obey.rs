//! How the processes that write and read are told to begin and to end, and how many reads they have made.

use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use thorp_bench::process::Process;
use thorp_bench::village::identity;
use thorp_bench::{Result, process};
use thorp_client::{JoinConfig, Member};
use thorp_net::NodeRole;

/// What the threads of such a process share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    is_over: AtomicBool,
    hard_reads: AtomicU64,
}

impl Shared {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(crate) fn count_hard_read(&self) {
        self.hard_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Sleeps, but not beyond the end.
    pub(crate) fn pause(&self, pause: Duration) {
        let mut left = pause;
        while !self.is_over() && !left.is_zero() {
            let part = left.min(LOOK);
            thread::sleep(part);
            left -= part;
        }
    }
}

/// Joins where a process of the cast has its place.
pub(crate) fn join(
    dir: &Path,
    (name, at): (&str, &str),
    with: impl FnOnce(JoinConfig) -> JoinConfig,
) -> Result<Member> {
    let address = format!("unix:{}", dir.join(format!("{at}.sock")).display());
    let config = JoinConfig::new(address).identity_of(identity(dir, NodeRole::Member, name)?);
    Ok(Member::join(with(config.name(name)))?)
}

/// Runs a thread for each part of the work, from `go` to `over`. Answers all else by the number of reads.
pub(crate) fn work<Part: Sync>(
    parts: &[Part],
    shared: &Shared,
    work: impl Fn(&Part) -> Result<()> + Sync,
) -> Result<()> {
    process::ready();
    let mut lines = std::io::stdin().lock().lines();
    // An end without a word is an end, too.
    let _go = lines.next();
    let done: Vec<Result<()>> = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        for line in lines.map_while(std::io::Result::ok) {
            if line == OVER {
                break;
            }
            println!("{}", shared.hard_reads.load(Ordering::Relaxed));
        }
        shared.is_over.store(true, Ordering::Relaxed);
        threads.into_iter().map(joined).collect()
    });
    done.into_iter().collect::<Result<()>>()?;
    println!("{OVER}");
    Ok(())
}

fn joined(thread: ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    let panicked = |_| Err("a thread has panicked".into());
    thread.join().unwrap_or_else(panicked)
}

/// Lets a process begin.
pub(crate) fn go(process: &mut Process) -> Result<()> {
    process.tell("go")
}

/// Ends a process, which has written everything down then.
pub(crate) fn end(process: &mut Process) -> Result<()> {
    process.tell(OVER)?;
    match process.lines()?.next().as_deref() {
        Some(OVER) => Ok(()),
        _ => Err("a process did not come to its end: its error is above".into()),
    }
}

const OVER: &str = "over";
const LOOK: Duration = Duration::from_millis(50);
