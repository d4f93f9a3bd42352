//! A decision made elsewhere: random rights lists and requests on real processes, compared with the crate `casbin` on
//! the same list (rules R3 to R5).
//!
//! A home and two sites run as processes of the `thorp` command. One site has memory. The other has none, so that
//! neighbours help each other. Members of the same names are at the home and at both sites. In each round:
//!
//! 1. an operator sets a random list for each segment, and then the number of the round;
//! 2. each member waits until it has read that number at the home. So its stream has passed all lists of the round;
//! 3. each member makes each [`Request`](request::Request) in each segment, in an order of its own;
//! 4. the [`Judge`](judge::Judge) decides the same requests on the texts of the same lists.
//!
//! The home and the sites inherit `THORP_PLANTED_BUG`. If it names a bug, the comparison has to notice it.

mod judge;
mod list;
mod member;
mod plot;
mod request;
mod rounds;
mod village;

use clap::Parser;
use rounds::{Ran, Rounds};
use std::path::PathBuf;
use std::process::ExitCode;
use thorp_model::Xoshiro256;
use village::Village;

/// Compares what homes and sites answer about rights with what casbin decides.
#[derive(Parser)]
struct Arguments {
    /// The thorp command: of a build with planted-bugs, where `THORP_PLANTED_BUG` names one.
    #[arg(long)]
    thorp: PathBuf,
    /// How many answers to compare, at least.
    #[arg(long, default_value_t = 1_000)]
    answers: usize,
    /// From which lists and orders are drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let bug = std::env::var("THORP_PLANTED_BUG").ok();
    let village = Village::start(&arguments.thorp);
    let mut rounds = Rounds::begin(&village, Xoshiro256::new(arguments.seed));
    let ran = rounds.run(arguments.answers, bug.is_some());
    print(arguments.seed, &ran, bug.as_deref());
    match ran.differ.is_empty() == bug.is_none() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn print(seed: u64, ran: &Ran, bug: Option<&str>) {
    for difference in ran.differ.iter().take(DIFFERENCES_SHOWN) {
        println!("  {difference}");
    }
    let (answers, rounds, given) = (ran.answers, ran.rounds, ran.given);
    let differ = ran.differ.len();
    println!(
        "seed {seed}: {answers} answers in {rounds} rounds, {given} given and the others refused, {differ} differ"
    );
    match (bug, differ) {
        (Some(bug), 0) => println!("NOT NOTICED, although {bug} is planted"),
        (Some(bug), _) => println!("noticed, as it must be with {bug} planted"),
        (None, 0) => {}
        (None, _) => println!("Thorp and casbin DIFFER: the lists and requests are above"),
    }
}

/// More than these say nothing new.
const DIFFERENCES_SHOWN: usize = 20;
