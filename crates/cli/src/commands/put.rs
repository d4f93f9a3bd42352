//! `thorp put`: bytes become an object.

use super::source::check_own;
use super::{consistency, say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::stream::Input;
use crate::text;
use clap::Args;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thorp_client::{Consistency, LogStatus, Member, SessionKind, Visit};

/// How long a log that the command has written may take to be sent.
const SENDING: Duration = Duration::from_secs(2);

/// What `thorp put` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path for a new object, or thorp://HOME/path#PAGE.SLOT.GENERATION to replace one
    #[arg(value_parser = names::segment_or_object)]
    url: String,
    /// The file; standard input if none is given, or -
    file: Option<PathBuf>,
    /// Make it the segment's root of this name, or replace the bytes of the one that is
    #[arg(long, value_name = "NAME")]
    root: Option<String>,
    /// Store this text instead of a file
    #[arg(long, conflicts_with = "file")]
    text: Option<String>,
    /// How an object that is there is replaced: a preset or options, as `thorp consistency` lists them
    #[arg(long, value_name = "VALUE", value_parser = consistency::parse)]
    consistency: Option<Consistency>,
    /// Keep the update in this directory until its home has it, with failures=optimistic [default: the log of the site]
    #[arg(long, value_name = "DIR", requires = "consistency")]
    log: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// One transaction.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut input = match &options.text {
        Some(text) => Input::of_text(text),
        None => Input::open(options.file.as_deref())?,
    };
    if options.url.contains('#') && options.root.is_some() {
        let todo = "leave out --root to replace the object, or what follows the # to replace what the root names";
        let what = format!(
            "{} is an object already, and --root names one, too",
            options.url
        );
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let bytes = Input::bytes(&mut input)?;
    let visits = options.consistency;
    let visits = visits.filter(|value| value.kind() == SessionKind::Visit);
    if visits.is_none() && options.log.is_some() {
        let what = "a transaction keeps nothing in a log".to_owned();
        let todo = "leave --log out, or take --consistency eventual";
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let member = options.via.join_with_log(options.log.as_deref())?;
    let rejected = member.log().map_or(0, |log| log.rejected);
    let put = match visits {
        Some(consistency) => visit(&member, options, consistency, &mut input),
        None => put(&member, options, bytes, &mut input),
    };
    let name = put.map_err(|failure| input.failure().unwrap_or(failure))?;
    let log = left_in_log(&member);
    if let (Some(log), Some(dir)) = (&log, &options.log) {
        check_log(log, rejected, dir)?;
    }
    match options.json {
        true => {
            let mut object = serde_json::json!({"object": name, "bytes": bytes});
            if let Some(log) = &log {
                object["tentative"] = log.tentative.into();
                object["rejected"] = log.rejected.into();
            }
            say_json(&object)
        }
        false => say(&name),
    }
}

/// What is in the log when its homes have had a moment to execute it.
fn left_in_log(member: &Member) -> Option<LogStatus> {
    let begun = Instant::now();
    loop {
        let log = member.log()?;
        if log.tentative == 0 || begun.elapsed() > SENDING {
            return Some(log);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says what a home has refused, or has not executed yet: to whoever reads only the name of the object, it looks like any other
/// update.
fn check_log(log: &LogStatus, rejected_before: usize, dir: &Path) -> Result<(), Failure> {
    let dir = dir.display();
    if log.rejected > rejected_before {
        let what = format!("a home has refused an update in {dir}, which keeps it as rejected");
        return Err(Failure::new(
            what,
            format!("`thorp updates rejected {dir}` says why"),
        ));
    }
    if log.tentative > 0 {
        let count = log.tentative;
        let _ = text::note(&format!(
            "{count} updates are in {dir}, and their homes have not executed them yet: `thorp put` \
             with the same --log sends them"
        ));
    }
    Ok(())
}

/// Replaces an object as a session does that has chosen its consistency.
fn visit(
    member: &Member,
    options: &Options,
    consistency: Consistency,
    input: &mut Input,
) -> Result<String, Failure> {
    let (segment, _) = options.url.split_once('#').unwrap_or((&options.url, ""));
    let segment = member.open(segment)?;
    let reference = match &options.root {
        Some(root) => Some(member.transact(|tx| tx.root(&segment, root))?),
        None if options.url.contains('#') => Some(Some(member.parse(&options.url)?)),
        None => None,
    };
    let Some(reference) = reference else {
        let what = format!("{} names no object, and a visit makes none", options.url);
        let todo = "name an object or a --root that is there, or leave --consistency out";
        return Err(Failure::new(what, todo).with(Code::Usage));
    };
    let reference = reference.ok_or_else(|| {
        let root = options.root.as_deref().unwrap_or_default();
        let what = format!("{} has no root {root}", options.url);
        let todo = "`thorp put URL --root NAME` without --consistency makes it";
        Failure::new(what, todo).with(Code::NotThere)
    })?;
    let name = member.format(&reference)?;
    let mut bytes = Vec::new();
    // Its end was looked for, to tell its size.
    let read = input.rewind().and_then(|()| input.read_to_end(&mut bytes));
    read.map_err(|error| Failure::new(error.to_string(), ""))?;
    let mut visit = Visit::open(member, consistency, &[&segment])?;
    visit.write(&reference, bytes)?;
    visit.close()?;
    Ok(name)
}

/// The name of the object. It is asked for before the commit: what fails then has changed nothing.
fn put(
    member: &Member,
    options: &Options,
    bytes: u64,
    input: &mut Input,
) -> Result<String, Failure> {
    let session = options.via.session_for(bytes, member);
    if options.url.contains('#') {
        let reference = member.parse(&options.url)?;
        let name = member.format(&reference)?;
        member.transact_with(session, |tx| tx.write_from(&reference, input))?;
        return Ok(name);
    }
    let segment = member.open_or_create(&options.url)?;
    let name = member.transact_with(session, |tx| {
        if let Some(name) = &options.root
            && let Some(there) = tx.root(&segment, name)?
        {
            let object = member.format(&there)?;
            check_own(&segment, name, &there)?;
            // The root of a removed object gets a new one.
            if tx.exists(&there)? {
                tx.write_from(&there, input)?;
                return Ok(object);
            }
        }
        let made = tx.create_from(&segment, input)?;
        if let Some(name) = &options.root {
            tx.set_root(&segment, name, Some(made))?;
        }
        member.format(&made)
    })?;
    Ok(name)
}

const HELP: &str = "\
Stores a file (or standard input) as an object and prints its reference. The segment is made if
there is none. A large value passes through: --timeout then ends only what makes no progress. It
travels again if others change the same root meanwhile.

Examples:
  thorp put thorp://dev/notes --text hello
  echo hello | thorp put thorp://dev/notes --root greeting
  thorp put thorp://dev/plans plan.pdf --json
  thorp put thorp://dev/notes --root greeting --text hi --consistency eventual --log notes-log";
