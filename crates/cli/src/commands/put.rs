//! `thorp put`: bytes become an object.

use super::{say, say_json};
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use clap::Args;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thorp_client::{Member, Reference};

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
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// One transaction.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let bytes = match &options.text {
        Some(text) => text.clone().into_bytes(),
        None => read(options.file.as_deref())?,
    };
    if options.url.contains('#') && options.root.is_some() {
        let todo = "leave out --root to replace the object, or what follows the # to replace what the root names";
        let what = format!(
            "{} is an object already, and --root names one, too",
            options.url
        );
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let member = options.via.join()?;
    let reference = if options.url.contains('#') {
        let reference = member.parse(&options.url)?;
        member.transact(|tx| tx.write(&reference, bytes.clone()))?;
        reference
    } else {
        create(&member, options, &bytes)?
    };
    let name = member.format(&reference)?;
    match options.json {
        true => say_json(&serde_json::json!({"object": name, "bytes": bytes.len()})),
        false => say(&name),
    }
}

fn create(member: &Member, options: &Options, bytes: &[u8]) -> Result<Reference, Failure> {
    let segment = member.open_or_create(&options.url)?;
    let reference = member.transact(|tx| {
        if let Some(name) = &options.root
            && let Some(there) = tx.root(&segment, name)?
        {
            tx.write(&there, bytes)?;
            return Ok(there);
        }
        let made = tx.create(&segment, bytes)?;
        if let Some(name) = &options.root {
            tx.set_root(&segment, name, Some(made))?;
        }
        Ok(made)
    })?;
    Ok(reference)
}

fn read(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    match file.filter(|file| *file != Path::new("-")) {
        Some(file) => return fs::read(file).map_err(|error| Failure::file(file, &error)),
        None => io::stdin().read_to_end(&mut bytes),
    }
    .map_err(|error| Failure::new(format!("standard input: {error}"), ""))?;
    Ok(bytes)
}

const HELP: &str = "\
Stores a file (or standard input) as an object and prints its reference. The segment is made if
there is none.

Examples:
  thorp put thorp://dev/notes --text hello
  echo hello | thorp put thorp://dev/notes --root greeting
  thorp put thorp://dev/plans plan.pdf --json";
