//! `thorp get`: an object's bytes.

use crate::connect::Via;
use crate::failure::{Code, Failure};
use clap::Args;
use std::io::{self, Write};

/// Writes an object's bytes to standard output, as they are.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// thorp://HOME/path#PAGE.SLOT.GENERATION, or thorp://HOME/path with --root
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
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::new(format!("standard output: {error}"), ""))
}

fn no_root(segment: &str, name: &str) -> Failure {
    let todo = format!("`thorp inspect {segment}` tells which there are");
    Failure::new(format!("{segment} has no root {name}"), todo)
}
