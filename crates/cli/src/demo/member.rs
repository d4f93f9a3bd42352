//! A member of the demo: a process that joins, does what lines on its standard input order, and leaves when they end.

use super::consistency;
use super::figures::Spent;
use super::rights::{self, Kept};
use super::wire::{Answer, Done, Order};
use super::work;
use crate::failure::Failure;
use clap::Args;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thorp_client::{JoinConfig, Member, Session};
use thorp_workloads::objects::MemberStore;

/// Set by the demo.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Its name
    name: String,
    #[arg(long)]
    via: String,
    #[arg(long)]
    identity: PathBuf,
    /// One way
    #[arg(long, default_value_t = 0)]
    link_delay_ms: u64,
    /// How long a read waits
    #[arg(long)]
    patience_ms: Option<u64>,
    /// Where it keeps updates
    #[arg(long)]
    log: Option<PathBuf>,
    #[arg(long, requires = "alive_missed_max")]
    alive_ms: Option<u64>,
    #[arg(long, requires = "alive_ms")]
    alive_missed_max: Option<u32>,
}

/// Obeys until its standard input ends.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = match Member::join(config(options)) {
        Ok(member) => member,
        Err(error) => {
            answer(&Answer::Failed {
                why: error.to_string(),
            });
            return Err(error.into());
        }
    };
    answer(&Answer::Joined);
    let mut kept = Kept::default();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        answer(&match obey(&member, &mut kept, &line) {
            Ok(done) => Answer::Done(Box::new(done)),
            Err(failure) => Answer::Failed {
                why: failure.to_string(),
            },
        });
    }
    member.close();
    Ok(())
}

fn config(options: &Options) -> JoinConfig {
    let mut config = JoinConfig::new(&options.via)
        .identity(&options.identity)
        .name(&options.name)
        .link_delay(Duration::from_millis(options.link_delay_ms));
    if let Some(patience) = options.patience_ms {
        let patience = Duration::from_millis(patience);
        config = config.session(Session::new().fetch_timeout(patience));
    }
    if let Some(log) = &options.log {
        config = config.log(log);
    }
    match (options.alive_ms, options.alive_missed_max) {
        (Some(every), Some(missed)) => config.alive(Duration::from_millis(every), missed),
        _ => config,
    }
}

fn obey(member: &Member, kept: &mut Kept, line: &str) -> Result<Done, Failure> {
    let order: Order = serde_json::from_str(line)
        .map_err(|error| Failure::new(format!("{line:?} is no order: {error}"), ""))?;
    let open = |segment: &str| -> Result<MemberStore, Failure> {
        Ok(store(member, member.open(segment)?))
    };
    match order {
        Order::Import { file, segment } => {
            let store = store(member, member.create(&segment)?);
            work::import(&store, &file)
        }
        Order::WalkAndEdit {
            segment,
            who,
            number,
            edits,
        } => work::walk_and_edit(&open(&segment)?, &who, number, edits),
        Order::Export { segment, file } => work::export(&open(&segment)?, &file),
        Order::Build { segment } => work::build(&store(member, member.create(&segment)?)),
        Order::Consistency(errand) => consistency::obey(member, errand),
        Order::Rights(errand) => rights::obey(member, kept, errand),
        Order::Traverse {
            segment,
            writing,
            number,
        } => work::traverse(&open(&segment)?, writing, number),
    }
}

fn store(member: &Member, segment: thorp_client::Segment) -> MemberStore {
    MemberStore::new(member.clone(), segment, Session::new().attempts_max(1000))
}

/// Tells how far it is, now and then.
pub(super) fn progress(last: &mut Instant, what: impl FnOnce() -> String) {
    if last.elapsed() >= BETWEEN_PROGRESS {
        *last = Instant::now();
        answer(&Answer::Progress { what: what() });
    }
}

/// Times a stretch of work and tells what was counted in it.
pub(super) fn measured<T>(
    member: &Member,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<(T, Spent), Failure> {
    let before = member.stats();
    let start = Instant::now();
    let result = work()?;
    let elapsed = start.elapsed();
    Ok((result, Spent::between(elapsed, &before, &member.stats())))
}

fn answer(answer: &Answer) {
    let Ok(line) = serde_json::to_string(answer) else {
        return;
    };
    let mut out = io::stdout().lock();
    // If nobody reads any more, the standard input has ended too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

const BETWEEN_PROGRESS: Duration = Duration::from_millis(300);
