//! `thorp lock`: a command while nobody else writes.

use crate::commands::signals;
use crate::connect::{self, LOCK_VARIABLE, Via};
use crate::failure::{Code, Failure};
use crate::names;
use clap::Args;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use thorp_client::{AccessMode, Consistency, ErrorKind, LockNumber, Member, Segment, Visit};

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
    let numbers = numbers(&visit.locks(), options.read)?;
    let mut words = options.command.iter();
    let program = words.next().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words).env(LOCK_VARIABLE, numbers);
    let ended = run_to_its_end(&mut command).map_err(|error| {
        let what = format!("{program} cannot be started: {error}");
        Failure::new(what, "name a program that is there, after `--`")
    })?;
    match visit.close() {
        // Whether it held to the end matters more than how the command ended.
        Err(error) if error.kind() == ErrorKind::LockLost => return Err(error.into()),
        Err(error) => {
            eprintln!("warning: the lock ends with its time, as its home was not told: {error}")
        }
        Ok(()) => {}
    }
    told(&program, ended, member)
}

/// What the command is told of its locks: these, and those of the `thorp lock` above. One command writes under one lock of each home.
fn numbers(own: &[LockNumber], only_reads: bool) -> Result<String, Failure> {
    let mut numbers = connect::locks()?;
    for number in own {
        let is_second = numbers.iter().any(|outer| outer.has_home_of(number));
        match is_second {
            false => numbers.push(*number),
            // Under a lock to read nobody writes: the command goes on writing under the other one.
            true if only_reads => {}
            true => {
                let what = "another `thorp lock` above this one holds a lock of the same home";
                let todo = "name all segments of one home in one `thorp lock`";
                return Err(Failure::new(what, todo).with(Code::Usage));
            }
        }
    }
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Ok(numbers.join(","))
}

/// Runs a command. SIGTERM goes on to it. SIGINT reaches it without that, as a terminal sends it to both.
fn run_to_its_end(command: &mut Command) -> Result<ExitStatus, io::Error> {
    let running: Arc<Mutex<Option<Pid>>> = Arc::default();
    let passed_on = Arc::clone(&running);
    let pass_on = move |is_term: bool| {
        let running = passed_on.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = running.filter(|_| is_term) {
            // It may have ended just now.
            let _ = kill_process(pid, Signal::TERM);
        }
    };
    signals::on_each_of(pass_on).map_err(|failure| io::Error::other(failure.what().to_owned()))?;
    let mut child = command.spawn()?;
    let set = |pid| *running.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    set(Some(Pid::from_child(&child)));
    let left_there = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let ended = loop {
        match waitid(WaitId::Pid(Pid::from_child(&child)), left_there) {
            Err(error) if error == rustix::io::Errno::INTR => {}
            other => break other,
        }
    };
    // From here on its number may become that of another process.
    set(None);
    ended?;
    child.wait()
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
SIGTERM goes on to COMMAND, and SIGINT ends only COMMAND: the lock is given back.
A `thorp lock` inside of another one is for another home, or has --read.

Examples:
  thorp lock thorp://dev/plans -- ./renumber.sh
  thorp lock thorp://dev/plans thorp://dev/parts --read -- thorp dump thorp://dev/plans";
