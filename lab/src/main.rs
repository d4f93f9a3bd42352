//! `thorp-lab`: networks of the laboratory, from the command line.

mod commands;
mod options;

use clap::Parser;
use lab::NeedsRoot;
use options::{Cli, Command};
use std::process::ExitCode;

/// What `sysexits.h` calls a lack of permission.
const NEEDS_ROOT: u8 = 77;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Ping(options) => commands::ping(&options),
        Command::Up(options) => commands::up(&options),
        Command::Ctl(options) => commands::ctl(&options),
        Command::Cold(options) => commands::cold(&options),
        Command::Hot(options) => commands::hot(&options),
        Command::Costs(options) => commands::costs(&options),
        Command::Peer(options) => commands::peer(&options),
        Command::Lossy(options) => commands::lossy(&options),
        Command::Idle(options) => commands::idle(&options),
        Command::Chain(options) => commands::chain(&options),
        Command::Scale(options) => commands::scale(&options),
        Command::Paper(options) => commands::paper(&options),
        Command::Ocean(options) => commands::ocean(&options),
        Command::Clean => commands::clean(),
    };
    done.unwrap_or_else(|why| {
        eprintln!("thorp-lab: {why}");
        ExitCode::from(if why.is::<NeedsRoot>() { NEEDS_ROOT } else { 1 })
    })
}
