//! Real homes, a site and members, as processes under faults; what their transactions did is recorded in Jepsen's format and
//! judged by `adya`, a checker that was not written here.
//!
//! ```text
//!  worker ──link──> site ──link──> alps (home)        link: cut, or refusing, when a fault says so
//!  worker ──link──> worker ──link──> dale (home)      every process: killed, or stopped for a while
//!  worker ──link──────────────────>
//!    │
//!    └── a line for each beginning and end ──> told ──> record ──> judge ──> sum
//! ```
//!
//! Two workloads. *Lists*: transactions read lists and append to them; every read shows the order of all appends before it.
//! *Registers*: transactions read and overwrite, also without reading; there the checker sees no order of what was overwritten,
//! so it is GIVEN one, that of the commits' stamps, or blind writes could do anything.

mod append;
mod appends;
mod faults;
mod identity;
mod judge;
mod link;
mod lists;
mod outcome;
mod place;
mod planted;
mod process;
mod record;
mod roster;
mod saved;
mod saying;
mod snapshots;
mod sum;
mod told;
mod village;
mod weak;
mod worker;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use thorp_model::Xoshiro256;
use told::Ended;

/// Whatever goes wrong here is told and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(about = "Records what real villages do under faults, and has it judged")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a village under faults, record what its transactions did, and judge it
    Run(Options),
    /// Add up what several runs wrote down with --tally
    Sum(sum::Options),
    /// A member's process, told by its standard input
    #[command(hide = true)]
    Worker(worker::Options),
}

#[derive(Args, Clone)]
struct Options {
    /// The thorp command
    #[arg(long, value_name = "FILE")]
    thorp: PathBuf,
    /// What transactions do
    #[arg(long, value_enum, default_value = "registers")]
    workload: Workload,
    /// All sessions are strict, and the history is judged as strictly serializable; else one in five is, and it is judged as
    /// serializable in an order that keeps that of each session
    #[arg(long)]
    strict: bool,
    /// So many transactions are to commit; it goes on until each kind of fault has happened, too
    #[arg(long, default_value_t = 10_000)]
    transactions: u64,
    /// Repeats the choices of a run; not its timing
    #[arg(long)]
    seed: Option<u64>,
    /// Nothing goes wrong
    #[arg(long)]
    calm: bool,
    /// Certificates change instead, with failovers in between: takes --workload lists
    #[arg(long, conflicts_with_all = ["calm", "bug"])]
    identities: bool,
    /// Plants this bug in all processes (this command and thorp must be built with planted-bugs): the history must be rejected
    #[arg(long, value_name = "BUG")]
    bug: Option<String>,
    /// Who has to reject it
    #[arg(long, value_enum, default_value = "adya", requires = "bug")]
    by: By,
    /// So many weak sessions in each member: visits of other presets append to the same lists, or read snapshots. Takes
    /// --workload lists
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        conflicts_with = "identities"
    )]
    weak: u64,
    /// Where to write the history; a rejected one is written in any case
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where to add a line that says what was done, for `sum`
    #[arg(long, value_name = "FILE")]
    tally: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Workload {
    /// Read lists, append to them
    Lists,
    /// Read registers, overwrite them
    Registers,
}

/// A judge.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// The checker that was not written here
    Adya,
    /// Ours: each answered append is in its list once
    Appends,
    /// Ours: each snapshot is of one moment
    Snapshots,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(options) => run(&options),
        Command::Sum(options) => sum::sum(&options),
        Command::Worker(options) => worker::run(&options).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("histories: {error}");
            ExitCode::from(2)
        }
    }
}

/// A seed that nobody chose.
fn unchosen_seed() -> u64 {
    RandomState::new().hash_one(0) >> 32
}

/// Whether it came out as it must.
fn run(options: &Options) -> Outcome<bool> {
    if options.identities && options.workload != Workload::Lists {
        // What a revoked member had begun has no place in the order that registers need.
        return Err("--identities takes --workload lists".into());
    }
    if options.weak > 0 && options.workload != Workload::Lists {
        // Blind appends make no order of registers.
        return Err("--weak takes --workload lists".into());
    }
    let seed = match options.seed {
        Some(seed) => seed,
        None => unchosen_seed(),
    };
    println!(
        "{:?}{}, {} transactions, seed {seed}{}",
        options.workload,
        if options.strict { ", strict" } else { "" },
        options.transactions,
        match &options.bug {
            Some(bug) => format!(", with {bug} planted"),
            None => String::new(),
        },
    );
    let dir = tempfile::tempdir()?;
    let mut dice = Xoshiro256::new(seed);
    let mut village = village::Village::start(dir.path(), options, dice.bits())?;
    let begun = Instant::now();
    let tally = match options.identities {
        true => identity::change_all(&mut village, options.transactions)?,
        false => faults::strike_until_done(&mut village, options, &mut dice)?,
    };
    println!("{tally}");
    let Ended {
        events,
        snapshots,
        turns,
    } = village.end()?;
    let ran = begun.elapsed();
    println!(
        "members turned to another redirector {} times; one began to carry it for others {} times",
        turns.turned, turns.carried
    );
    let appends = appends::Appends::of(&events);
    let history = record::History::of(events, options.workload)?;
    println!("{}", history.summary());
    let begun = Instant::now();
    let verdicts = judge::Verdicts {
        report: judge::judge(&history, options)?,
        appends: appends.wrong(),
        snapshots: snapshots::judge(&appends, snapshots),
    };
    let judged = begun.elapsed();
    println!(
        "{:.0} s, and {:.1} s for the judges",
        ran.as_secs_f64(),
        judged.as_secs_f64()
    );
    let as_it_must_be = verdicts.tell(&history, options)?;
    // A broken build that was rejected has shown what it can.
    let missing = sum::missing(&history, turns, &tally, options)
        .or_else(|| verdicts.missing(options))
        .filter(|_| options.bug.is_none());
    if let Some(missing) = missing {
        return Err(format!("{missing}: that says nothing").into());
    }
    if let Some(path) = options.tally.as_deref().filter(|_| as_it_must_be) {
        sum::note(path, (&history, &verdicts), &tally, (ran, judged), options)?;
    }
    Ok(as_it_must_be)
}
