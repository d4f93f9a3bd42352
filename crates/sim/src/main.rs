//! `thorp-sim`: campaigns of simulated villages.

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::time::Instant;
use thorp_core::planted::{self, Bug};
use thorp_sim::campaign::{self, Catch};
use thorp_sim::counts::Counts;
use thorp_sim::{Mode, Options, Story};

/// Simulates villages from seeds and checks what must hold.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Run villages.
    Run {
        /// Only this seed.
        #[arg(long)]
        seed: Option<u64>,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 100)]
        seeds: u64,
        /// Threads.
        #[arg(long, default_value_t = 1)]
        jobs: u64,
        /// Print every event of the one seed.
        #[arg(long)]
        trace: bool,
        /// Plant a bug.
        #[arg(long)]
        bug: Option<String>,
    },
    /// Plant each bug in turn, and see whether a checker catches it.
    Bugs {
        /// Only this one.
        #[arg(long)]
        bug: Option<String>,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// Seeds to try for each.
        #[arg(long, default_value_t = 500)]
        seeds_max: u64,
        /// Threads.
        #[arg(long, default_value_t = 1)]
        jobs: u64,
    },
}

fn main() -> ExitCode {
    campaign::keep_panics();
    match Arguments::parse().what {
        What::Run {
            seed,
            first,
            seeds,
            jobs,
            trace,
            bug,
        } => {
            let Ok(bug) = find(bug.as_deref()) else {
                return ExitCode::from(2);
            };
            planted::plant(bug);
            match seed {
                Some(seed) => run_one(seed, trace, bug),
                None => run_many(first, seeds, jobs, bug),
            }
        }
        What::Bugs {
            bug,
            first,
            seeds_max,
            jobs,
        } => match find(bug.as_deref()) {
            Ok(bug) => catch_all(bug, first, seeds_max, jobs),
            Err(()) => ExitCode::from(2),
        },
    }
}

fn find(name: Option<&str>) -> Result<Option<Bug>, ()> {
    let Some(name) = name else {
        return Ok(None);
    };
    let bug = Bug::ALL.iter().copied().find(|bug| bug.name() == name);
    if bug.is_none() {
        let names: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        eprintln!("there is no bug {name}; there are {}", names.join(", "));
    }
    bug.map(Some).ok_or(())
}

fn run_one(seed: u64, trace: bool, bug: Option<Bug>) -> ExitCode {
    let mode = if trace { Mode::Print } else { Mode::Keep };
    let story = thorp_sim::run(seed, Options { trace: mode });
    match &story.result {
        Ok(()) => {
            print!("{}", story.counts);
            println!(
                "seed {seed} holds; its trace has the hash {:016x}",
                story.hash
            );
            ExitCode::SUCCESS
        }
        Err(_) => {
            if !trace {
                story.tail.iter().for_each(|line| println!("{line}"));
            }
            print_failure(&story, bug);
            ExitCode::FAILURE
        }
    }
}

fn run_many(first: u64, seeds: u64, jobs: u64, bug: Option<Bug>) -> ExitCode {
    let begun = Instant::now();
    let campaign = campaign::run_seeds(first, seeds, jobs);
    print!("{}", campaign.counts);
    println!("time: {:.1} s", begun.elapsed().as_secs_f64());
    let Some(failed) = campaign.failed else {
        println!("all {seeds} seeds from {first} hold");
        return print_missing(&campaign.counts, seeds);
    };
    let again = campaign::retell(failed.seed);
    again.tail.iter().for_each(|line| println!("{line}"));
    print_failure(&failed, bug);
    if again.result != failed.result {
        println!("told again, the seed ends otherwise: {:?}", again.result);
    }
    ExitCode::FAILURE
}

/// A large campaign has to see everything that can happen: what it never saw is not tried.
fn print_missing(counts: &Counts, seeds: u64) -> ExitCode {
    let missing = counts.missing();
    if seeds < SEEDS_FOR_ALL || missing.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("never seen in {seeds} seeds: {}", missing.join(", "));
    ExitCode::FAILURE
}

/// Seeds in which everything has to be seen.
const SEEDS_FOR_ALL: u64 = 1_000;

fn print_failure(story: &Story, bug: Option<Bug>) {
    if let Err(failure) = &story.result {
        println!("seed {} fails: {failure}", story.seed);
        println!("{}", campaign::command(story.seed, bug));
    }
}

fn catch_all(only: Option<Bug>, first: u64, seeds_max: u64, jobs: u64) -> ExitCode {
    let mut missed = Vec::new();
    for bug in Bug::ALL.iter().copied() {
        if only.is_some_and(|only| only != bug) {
            continue;
        }
        let begun = Instant::now();
        let caught = campaign::catch(bug, first, seeds_max, jobs);
        print_catch(&caught, begun.elapsed().as_secs_f64());
        if caught.story.is_none() {
            missed.push(bug.name());
        }
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("not caught: {}", missed.join(", "));
    ExitCode::FAILURE
}

fn print_catch(caught: &Catch, seconds: f64) {
    let name = caught.bug.name();
    match &caught.story {
        Some(story) => {
            let failure = story.result.as_ref().err();
            let checker = failure.map_or("", |failure| failure.checker);
            println!(
                "{name}: caught by \"{checker}\" after {} seeds ({seconds:.1} s)",
                caught.seeds
            );
        }
        None => println!(
            "{name}: NOT caught in {} seeds ({seconds:.1} s)",
            caught.seeds
        ),
    }
}
