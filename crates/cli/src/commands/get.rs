//! `thorp get`: an object's bytes.

use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use clap::Args;
use std::io::{self, Write};

/// What `thorp get` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// thorp://HOME/path#PAGE.SLOT.GENERATION, or thorp://HOME/path with --root
    #[arg(value_parser = names::segment_or_object)]
    url: String,
    /// The segment's root of this name
    #[arg(long, value_name = "NAME")]
    root: Option<String>,
    #[command(flatten)]
    via: Via,
}

/// Nothing is written unless all of it was read.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.root.is_none() && !options.url.contains('#') {
        let todo = "name an object in it (#PAGE.SLOT.GENERATION), or a root with --root NAME";
        let what = format!("{} is a segment", options.url);
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let member = options.via.join()?;
    let bytes = match &options.root {
        None => {
            let reference = member.parse(&options.url)?;
            member.transact(|tx| Ok(tx.read(&reference)?.to_vec()))?
        }
        Some(name) => {
            let segment = member.open(&options.url)?;
            let found = member.transact(|tx| match tx.root(&segment, name)? {
                Some(reference) => Ok(Some(tx.read(&reference)?.to_vec())),
                None => Ok(None),
            })?;
            found.ok_or_else(|| no_root(&options.url, name))?
        }
    };
    let mut out = io::stdout().lock();
    match out.write_all(&bytes).and_then(|()| out.flush()) {
        // A reader that has seen enough (`thorp get .. | head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}"), ""))
        }
        _ => Ok(()),
    }
}

fn no_root(segment: &str, name: &str) -> Failure {
    let todo = format!("`thorp inspect {segment}` tells which there are");
    Failure::new(format!("{segment} has no root {name}"), todo).with(Code::NotThere)
}

const HELP: &str = "\
Writes an object's bytes to standard output, as they are.";
