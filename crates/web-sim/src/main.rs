//! Runs seeds of the simulated web cache.

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::time::Instant;
use thorp_web_sim::{Bug, OF_REQUESTS, Options, Story, Without, catch, plant, run, run_seeds};

#[derive(Parser)]
#[command(about = "The web cache from one seed, with faults and a checker")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs many seeds, until one fails
    Run {
        /// Requests are the source, and no database
        #[arg(long)]
        requests: bool,
        /// The first seed
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// How many
        #[arg(long, default_value_t = 20_000)]
        seeds: u64,
        /// Threads
        #[arg(long, default_value_t = 2)]
        jobs: u64,
    },
    /// Tells what happens in one seed
    Tell {
        /// Requests are the source, and no database
        #[arg(long)]
        requests: bool,
        /// The seed
        #[arg(long)]
        seed: u64,
        /// A planted bug
        #[arg(long)]
        bug: Option<String>,
    },
    /// Looks for each planted bug, and says which seed shows it
    Bugs {
        /// Only this one
        #[arg(long)]
        bug: Option<String>,
        /// At most so many seeds for each
        #[arg(long, default_value_t = 5_000)]
        seeds_max: u64,
        /// Threads
        #[arg(long, default_value_t = 2)]
        jobs: u64,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run {
            requests,
            first,
            seeds,
            jobs,
        } => run_many(requests, (first, seeds, jobs)),
        Command::Tell {
            requests,
            seed,
            bug,
        } => tell(requests, seed, bug.as_deref()),
        Command::Bugs {
            bug,
            seeds_max,
            jobs,
        } => bugs(bug.as_deref(), seeds_max, jobs),
    }
}

fn run_many(of_requests: bool, (first, seeds, jobs): (u64, u64, u64)) -> ExitCode {
    let options = Options {
        of_requests,
        ..Options::default()
    };
    let begun = Instant::now();
    let campaign = run_seeds(first, seeds, jobs, options);
    let seconds = begun.elapsed().as_secs();
    println!(
        "{} seeds in {seconds} s: {:?}",
        campaign.seeds, campaign.counts
    );
    match campaign.failed {
        None => ExitCode::SUCCESS,
        Some(story) => {
            println!("seed {}: {}", story.seed, story.failure.unwrap_or_default());
            let requests = if of_requests { " --requests" } else { "" };
            println!("thorp-web-sim tell --seed {}{requests}", story.seed);
            ExitCode::FAILURE
        }
    }
}

fn tell(of_requests: bool, seed: u64, bug: Option<&str>) -> ExitCode {
    plant(
        Bug::ALL
            .iter()
            .copied()
            .find(|known| Some(known.name()) == bug),
    );
    let Story {
        failure,
        hash,
        counts,
        lines,
        ..
    } = run(
        seed,
        Options {
            keeps_lines: true,
            without: None,
            of_requests,
        },
    );
    for line in lines {
        println!("{line}");
    }
    println!("seed {seed}, digest {hash:016x}: {counts:?}");
    match failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn bugs(only: Option<&str>, seeds_max: u64, jobs: u64) -> ExitCode {
    let planted = Bug::ALL
        .iter()
        .map(|bug| (bug.name().to_owned(), Some(*bug), None));
    let missing = Without::ALL
        .iter()
        .map(|without| (format!("{without:?}"), None, Some(*without)));
    let mut missed = 0;
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    for (name, bug, without) in planted.chain(missing).filter(|(name, ..)| is_wanted(name)) {
        let options = Options {
            keeps_lines: false,
            without,
            of_requests: bug.is_some_and(|bug| OF_REQUESTS.contains(&bug)),
        };
        let caught = catch(bug, options, seeds_max, jobs);
        match caught.seed {
            Some(seed) => println!("{name}: seed {seed}: {}", caught.failure),
            None => {
                missed += 1;
                println!("{name}: NOT CAUGHT in {seeds_max} seeds");
            }
        }
    }
    match missed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
