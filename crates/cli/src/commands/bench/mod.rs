//! `thorp bench`: how fast a village reads and commits.

mod latencies;
mod operation;
mod own_segment;
mod report;
mod worker;

use super::{say, say_json, signals};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::progress::Progress;
use crate::{names, text};
use clap::Args;
use operation::Operation;
use own_segment::{Filled, OwnSegment, fill, fresh_name};
use report::Row;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thorp_client::{JoinConfig, Member};
use worker::{Measured, Until, Worker};

/// What `thorp bench` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME, or a segment that is not there: thorp://HOME/path [default: a segment at the first home]
    #[arg(value_parser = names::prefix)]
    place: Option<String>,
    /// How long to measure, for all operations together
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Members that work at the same time, each with a cache of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    members: u16,
    /// The size of an object
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=(1 << 20)))]
    bytes: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Measures in a segment of its own, which it removes.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let config = options.via.config_for_long()?;
    let member = options.via.join_for_long()?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_when_interrupted(&stop)?;
    let name = options.segment(&member)?;
    let (own, segment) = OwnSegment::make(&member, name)?;
    let filled = fill(&member, &segment, options.bytes as usize)?;
    let rows = options.measure(&config, (own.name(), &filled), &stop)?;
    check_counter(&member, &filled, &rows)?;
    let name = own.name().to_owned();
    own.remove()?;
    let is_interrupted = stop.load(Ordering::Relaxed);
    match options.json {
        true => say_json(&options.as_json(&name, &filled, (&rows, is_interrupted)))?,
        false => options.show(&name, &filled, &rows)?,
    }
    member.close();
    if is_interrupted {
        std::process::exit(INTERRUPTED);
    }
    Ok(())
}

impl Options {
    /// The segment that was named, or a new name at the home.
    fn segment(&self, member: &Member) -> Result<String, Failure> {
        let Some(place) = &self.place else {
            let names = member.home_names()?.names;
            let first = names.first().ok_or_else(|| {
                let what = "nobody has said which homes there are";
                Failure::new(what, "name one: `thorp bench thorp://HOME`").with(Code::Unreachable)
            })?;
            return Ok(fresh_name(first));
        };
        let (_, rest) = place.split_once("://").unwrap_or(("", place));
        match rest.trim_end_matches('/').split_once('/') {
            Some(_) => names::segment(place).map_err(|why| {
                let (what, todo) = why.split_once("\n  -> ").unwrap_or((&why, ""));
                Failure::new(what, todo).with(Code::Usage)
            }),
            None => Ok(fresh_name(rest.trim_end_matches('/'))),
        }
    }

    /// One operation after the other, all members at the same time.
    fn measure(
        &self,
        config: &JoinConfig,
        (name, filled): (&str, &Filled),
        stop: &AtomicBool,
    ) -> Result<Vec<Row>, Failure> {
        let workers = (0..u64::from(self.members))
            .map(|seed| Worker::join((config, seed), (name, filled), self.bytes as usize));
        let mut workers = workers.collect::<Result<Vec<_>, _>>()?;
        let mut progress = Progress::of("operations");
        let each = Duration::from_secs(self.seconds) / Operation::ALL.len() as u32;
        let mut rows = Vec::new();
        for operation in Operation::ALL {
            progress.tell(rows.len() as u64, Operation::ALL.len() as u64);
            all_at_once(&mut workers, |worker| worker.prepare(operation))?;
            let until = Until {
                end: Instant::now() + each,
                stop,
            };
            let all = all_at_once(&mut workers, |worker| worker.run(operation, until))?;
            let mut measured = Measured::default();
            all.iter().for_each(|one| measured.add(one));
            rows.push(Row {
                operation,
                measured,
            });
        }
        Ok(rows)
    }

    fn show(&self, name: &str, filled: &Filled, rows: &[Row]) -> Result<(), Failure> {
        say(&format!(
            "{name}: {}, objects of {}, {} pages",
            text::count(u64::from(self.members), "member"),
            text::bytes(u64::from(self.bytes)),
            filled.leaders.len()
        ))?;
        say("")?;
        say(&report::table(rows).render())?;
        match report::sources(rows) {
            Some(line) => say(&format!("\n{line}")),
            None => Ok(()),
        }
    }

    fn as_json(
        &self,
        name: &str,
        filled: &Filled,
        (rows, is_interrupted): (&[Row], bool),
    ) -> serde_json::Value {
        serde_json::json!({
            "segment": name,
            "seconds": self.seconds,
            "members": self.members,
            "object_bytes": self.bytes,
            "objects": filled.objects,
            "pages": filled.leaders.len(),
            "interrupted": is_interrupted,
            "operations": report::as_json(rows),
        })
    }
}

/// All members do it, a thread each. The first failure of a member is that of the command.
fn all_at_once<'a, T: Send>(
    workers: &mut [Worker<'a>],
    what: impl Fn(&mut Worker<'a>) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    thread::scope(|scope| {
        let what = &what;
        let threads = workers.iter_mut();
        let threads = threads.map(|worker| scope.spawn(move || what(worker)));
        // All run before one is waited for.
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| {
            let panicked = |_| Failure::new("a member has ended with a panic", "report it");
            thread.join().map_err(panicked).flatten()
        });
        joined.collect()
    })
}

/// No increment was lost, and none was done twice.
fn check_counter(member: &Member, filled: &Filled, rows: &[Row]) -> Result<(), Failure> {
    let of_counter = rows
        .iter()
        .filter(|row| row.operation == Operation::Counter);
    let wanted: u64 = of_counter.map(|row| row.measured.latencies.count()).sum();
    let strict = member.session().strict(true);
    let found = member.transact_with(strict, |tx| tx.get(&filled.counter))?;
    if found == wanted {
        return Ok(());
    }
    let what = format!("{wanted} increments were committed, and the counter says {found}");
    let todo = "keep the home's directory as it is, and report it: that must never happen";
    Err(Failure::new(what, todo).with(Code::Wrong))
}

/// The first signal ends the measuring, a second one the process.
fn stop_when_interrupted(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let stop = Arc::clone(stop);
    signals::on_each(move || {
        if stop.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        let _ = text::note("it ends, and removes its segment; again to leave it there");
    })
}

/// As a shell shows an end by Ctrl-C.
const INTERRUPTED: i32 = 130;

const HELP: &str = "\
Makes a segment `bench-RANDOM` at the home, measures one operation after the other in it with several \
members, and removes it, also after Ctrl-C. A cold read is one of a page that the member does not have: \
the site, a neighbour or the home sends it. Requests are pages that were asked for, and commits that a \
home had to judge: each takes a round trip. All members run in this process; where that is the limit, run \
the command on several machines.

Examples:
  thorp bench --seconds 1
  thorp bench thorp://dev --members 2 --bytes 1000 --seconds 1 --json
  thorp bench thorp://dev/my-bench --seconds 1";
