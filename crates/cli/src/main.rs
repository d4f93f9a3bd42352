//! The `thorp` command: homes, sites, what one wants to see of them, and the demo.
//!
//! The exit codes are those of [`failure::Code`], also told by `thorp --help`.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod connect;
mod demo;
mod destination;
mod dump;
mod failure;
mod http;
mod names;
#[cfg(feature = "planted-bugs")]
mod planted;
mod progress;
mod range;
mod stream;
mod text;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches, Parser};
use commands::shell::Line;
use failure::{Code, Failure};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(feature = "planted-bugs")]
    planted::from_environment();
    let json = wants_json();
    text::be_quiet(json);
    match parsed(Cli::try_parse(), json)
        .and_then(|command| run(command, json))
        .map_err(connect::explained)
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(json);
            ExitCode::from(failure.code() as u8)
        }
    }
}

/// Whether errors are documents, also where the command line is none.
fn wants_json() -> bool {
    let mut words = std::env::args_os().take_while(|word| word != "--");
    words.any(|word| word == "--json")
}

/// The command. Help, and what is wrong where nobody wants a document, is printed as clap does.
fn parsed(parsed: Result<Cli, clap::Error>, json: bool) -> Result<Command, Failure> {
    match parsed {
        Ok(cli) => Ok(cli.command),
        Err(error) if json && error.use_stderr() => {
            let words = error.to_string();
            let words = words.trim_start_matches("error: ");
            // Without the usage and the hint that follow for people.
            let words = words.split("\n\n").next().unwrap_or(words);
            let (what, todo) = words.split_once("\n  -> ").unwrap_or((words, ""));
            let failure = Failure::new(what, todo).with(Code::Usage);
            Err(failure.or("--help tells how it is called"))
        }
        Err(error) => error.exit(),
    }
}

/// A line of a shell is parsed by the same definition.
fn run_line(line: &Line, json: bool) -> Result<(), Failure> {
    let matches = line.parse(Cli::command());
    if let Ok(matches) = &matches {
        line.check_input(matches)?;
    }
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    run(parsed(cli, json)?, json)
}

fn run(command: Command, json: bool) -> Result<(), Failure> {
    match command {
        Command::Dev(options) => commands::dev::run(&options),
        Command::Context(command) => commands::context::run(&command),
        Command::Home(options) => commands::home::run(&options),
        Command::Web(options) => commands::web::run(&options),
        Command::Site(options) => commands::site::run(&options),
        Command::Invite(options) => commands::invite::run(&options),
        Command::Join(options) => commands::join::run(&options),
        Command::Ca(command) => commands::ca::run(&command),
        Command::Confirm(options) => commands::confirm::run(&options),
        Command::Salvage(options) => commands::salvage::run(&options),
        Command::Check(options) => commands::check::run(&options),
        Command::Ls(options) => commands::ls::run(&options),
        Command::Inspect(options) => commands::inspect::run(&options),
        Command::Rm(options) => commands::rm::run(&options),
        Command::Root(options) => commands::root::run(&options),
        Command::Dump(options) => commands::dump::run(&options),
        Command::Load(options) => commands::load::run(&options),
        Command::Rights(options) => commands::rights::run(&options),
        Command::Group(options) => commands::group::run(&options),
        Command::Audit(options) => commands::audit::run(&options),
        Command::Doubt(options) => commands::doubt::run(&options),
        Command::Put(options) => commands::put::run(&options),
        Command::Get(options) => commands::get::run(&options),
        Command::Cp(options) => commands::cp::run(&options),
        Command::Mv(options) => commands::mv::run(&options),
        Command::Consistency(options) => commands::consistency::run(&options),
        Command::Updates(options) => commands::updates::run(&options),
        Command::Lock(options) => commands::lock::run(&options),
        Command::Watch(options) => commands::watch::run(&options),
        Command::Top(options) => commands::top::run(&options),
        Command::Doctor(options) => commands::doctor::run(&options),
        Command::Status(options) => commands::status::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
        Command::Ifc(options) => commands::ifc::run(&options),
        #[cfg(feature = "planner")]
        Command::Plan(options) => commands::plan::run(&options),
        Command::Completions(options) => commands::completions::run(&options, Cli::command()),
        Command::Man(options) => commands::completions::write_man(&options, Cli::command()),
        Command::Demo(options) => demo::run(&options),
        Command::Shell(options) => commands::shell::run(&options),
        Command::ShellLine(line) => run_line(&line, json),
        Command::DemoMember(options) => demo::member::run(&options),
    }
}
