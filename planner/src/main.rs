//! `thorp plan` without the rest of the command `thorp`, so that the planner's tests build nothing else of the house.
//!
//! It asks no node for its status: that takes the command itself.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;
use thorp_plan::{Failure, Options};

/// The command line of `thorp` with one sub-command, as the tests call it.
#[derive(Parser, Debug)]
#[command(name = "thorp", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Tell what sites, neighbours and memory servers would save, before there are any
    Plan(Options),
}

fn main() -> ExitCode {
    let Command::Plan(options) = Cli::parse().command;
    match thorp_plan::run(&options, no_status) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing is left to do if even that cannot be written.
            let _ = writeln!(std::io::stderr().lock(), "thorp: {failure}");
            ExitCode::from(failure.code() as u8)
        }
    }
}

fn no_status(node: &str) -> Result<String, Failure> {
    let what = format!("{node} cannot be asked: this is the planner alone");
    Err(Failure::new(what, "call `thorp plan`"))
}
