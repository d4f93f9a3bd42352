//! `thorp get`: an object's bytes.

use super::say_json;
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
    /// Print JSON, with the bytes as text or in hexadecimal digits
    #[arg(long)]
    json: bool,
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
    let (reference, bytes) = match &options.root {
        None => {
            let reference = member.parse(&options.url)?;
            member.transact(|tx| Ok((reference, tx.read(&reference)?.to_vec())))?
        }
        Some(name) => {
            let segment = member.open(&options.url)?;
            let found = member.transact(|tx| match tx.root(&segment, name)? {
                Some(reference) => Ok(Some((reference, tx.read(&reference)?.to_vec()))),
                None => Ok(None),
            })?;
            found.ok_or_else(|| no_root(&options.url, name))?
        }
    };
    if options.json {
        return say_json(&as_json(&member.format(&reference)?, &bytes));
    }
    let mut out = io::stdout().lock();
    match out.write_all(&bytes).and_then(|()| out.flush()) {
        // A reader that has seen enough (`thorp get .. | head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}"), ""))
        }
        _ => Ok(()),
    }
}

/// Bytes that are no text are given in digits: a document has nothing else.
fn as_json(name: &str, bytes: &[u8]) -> serde_json::Value {
    let text = std::str::from_utf8(bytes).ok();
    let digits = || {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    serde_json::json!({
        "object": name,
        "bytes": bytes.len(),
        "text": text,
        "hex": text.is_none().then(digits),
    })
}

fn no_root(segment: &str, name: &str) -> Failure {
    let todo = format!("`thorp inspect {segment}` tells which there are");
    Failure::new(format!("{segment} has no root {name}"), todo).with(Code::NotThere)
}

const HELP: &str = "\
Writes an object's bytes to standard output, as they are.

Examples:
  thorp get 'thorp://dev/notes#1.0.1'
  thorp get thorp://dev/notes --root greeting > greeting.txt";
