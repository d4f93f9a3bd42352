//! `thorp lock`: a command while nobody else writes.

use crate::connect::{LOCK_VARIABLE, Via};
use crate::failure::Failure;
use crate::names;
use clap::Args;
use std::process::{Command, ExitStatus};
use thorp_client::{AccessMode, Consistency, Member, Segment, Visit};

/// What `thorp lock` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path of a segment; several are locked together
    #[arg(required = true, value_name = "URL", value_parser = names::segment)]
    urls: Vec<String>,
    /// Others may lock to read, too; nobody writes
    #[arg(long)]
    read: bool,
    #[command(flatten)]
    via: Via,
    /// What runs under the lock
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Takes the lock, runs the command, and gives the lock back.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let member = options.via.join_for_long()?;
    let segments: Vec<Segment> = segments(&member, &options.urls)?;
    let visit = Visit::open(
        &member,
        mode(options.read),
        &segments.iter().collect::<Vec<_>>(),
    )?;
    let numbers: Vec<String> = visit.locks().iter().map(ToString::to_string).collect();
    let mut words = options.command.iter();
    let program = words.next().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words).env(LOCK_VARIABLE, numbers.join(","));
    let ended = command.status().map_err(|error| {
        let what = format!("{program} cannot be started: {error}");
        Failure::new(what, "name a program that is there, after `--`")
    })?;
    // Whether it held to the end matters more than how the command ended.
    visit.close()?;
    told(&program, ended, member)
}

fn segments(member: &Member, urls: &[String]) -> Result<Vec<Segment>, Failure> {
    let opened = urls.iter().map(|url| member.open(url));
    Ok(opened.collect::<Result<_, _>>()?)
}

fn mode(only_reads: bool) -> Consistency {
    match only_reads {
        true => Consistency::LOCKING.with_mode(AccessMode::ReadLock),
        false => Consistency::LOCKING,
    }
}

/// How the command ended: its own code is that of `thorp lock`.
fn told(program: &str, ended: ExitStatus, member: Member) -> Result<(), Failure> {
    match ended.code() {
        Some(0) => Ok(()),
        Some(code) => {
            drop(member);
            std::process::exit(code)
        }
        None => {
            let what = format!("{program} was ended by a signal");
            Err(Failure::new(what, "the lock was given back: run it again"))
        }
    }
}

const HELP: &str = "\
It waits at most --timeout seconds for the lock, and holds it for as long as
COMMAND runs. Whoever else writes in the segments
meanwhile is told that they are locked, and tries again. COMMAND has THORP_LOCK in
its environment: `thorp` writes under the lock with that, and so does a program
that passes it on to JoinConfig::under. It is for certificates of the same name.

The code is that of COMMAND; 6 if the lock was lost before COMMAND ended.

Examples:
  thorp lock thorp://dev/plans -- ./renumber.sh
  thorp lock thorp://dev/plans thorp://dev/parts --read -- thorp dump thorp://dev/plans";
