//! `thorp get`: an object's bytes.

use super::say_json;
use crate::connect::Via;
use crate::failure::{Code, Failure};
use crate::names;
use crate::stream::{LARGE_BYTES, Output};
use clap::Args;
use std::io::{self, Write};
use thorp_client::{ATTEMPTS_MAX, Member, Reference, Session};

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

/// Of a value that is not large, nothing is written unless all of it was read.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.root.is_none() && !options.url.contains('#') {
        let todo = "name an object in it (#PAGE.SLOT.GENERATION), or a root with --root NAME";
        let what = format!("{} is a segment", options.url);
        return Err(Failure::new(what, todo).with(Code::Usage));
    }
    let member = options.via.join()?;
    let reference = match &options.root {
        None => member.parse(&options.url)?,
        Some(name) => {
            let root = member.open(&options.url)?.root(name)?;
            root.ok_or_else(|| no_root(&options.url, name))?
        }
    };
    let bytes = member.transact(|tx| tx.size(&reference))?;
    if options.json && bytes > JSON_BYTES_MAX {
        let what = format!(
            "{bytes} bytes are too much for a document, which has {JSON_BYTES_MAX} at most"
        );
        return Err(Failure::new(
            what,
            "leave out --json: the bytes are written as they are",
        ));
    }
    let session = options.via.session_for(bytes, &member);
    if bytes > LARGE_BYTES && !options.json {
        return pass(&member, session, &reference, bytes);
    }
    let value = member.transact_with(session, |tx| Ok(tx.read(&reference)?.to_vec()))?;
    if options.json {
        return say_json(&as_json(&member.format(&reference)?, &value));
    }
    let mut out = Output::of(bytes);
    let written = out.write_all(&value).and_then(|()| out.flush());
    written.or_else(|error| stopped(&error))
}

/// Writes a large value while it comes.
fn pass(
    member: &Member,
    session: Session,
    reference: &Reference,
    bytes: u64,
) -> Result<(), Failure> {
    let mut out = Output::of(bytes);
    let mut attempts = ATTEMPTS_MAX;
    let passed = loop {
        attempts -= 1;
        let mut tx = member.begin(session);
        let passed = tx.read_into(reference, &mut out);
        if let Some(error) = out.failed() {
            return stopped(&error);
        }
        match passed.and_then(|_| tx.commit()) {
            Err(error) if error.is_retryable() && out.written() == 0 && attempts > 0 => {}
            passed => break passed,
        }
    };
    passed.map_err(|error| {
        let failure = Failure::from(error);
        match out.written() {
            0 => failure,
            some => failure.or(format!(
                "standard output has only {some} of {bytes} bytes: discard them, and try again"
            )),
        }
    })?;
    out.flush().or_else(|error| stopped(&error))
}

/// A reader that has seen enough (`thorp get .. | head`) is no failure.
fn stopped(error: &io::Error) -> Result<(), Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::new(format!("standard output: {error}"), "")),
    }
}

/// Bytes of a value that is put into a document.
const JSON_BYTES_MAX: u64 = 64 << 20;

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
Writes an object's bytes to standard output, as they are. A value above 1 MiB is written while it
comes: --timeout then ends only what makes no progress. If that fails, a part has been written.

Examples:
  thorp get 'thorp://dev/notes#1.0.1'
  thorp get thorp://dev/notes --root greeting > greeting.txt";
