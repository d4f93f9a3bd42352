//! `thorp get`: an object's bytes.

use super::reading::{self, Reading};
use super::source::{Source, no_root};
use super::{consistency, say_json};
use crate::connect::Via;
use crate::failure::Failure;
use crate::names;
use crate::range::ByteRange;
use crate::stream::{LARGE_BYTES, Output};
use clap::Args;
use std::io::{self, Write};
use std::ops::Range;
use thorp_client::{ATTEMPTS_MAX, Consistency, Error, Member, Reference, Session, Transaction};

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
    /// Only these bytes: 0-99 the first hundred, 100- all after these, -100 the last hundred
    #[arg(long, value_name = "FROM-TO", allow_hyphen_values = true)]
    range: Option<ByteRange>,
    /// What it may read: a preset or options, as `thorp consistency` lists them; not with --range. It only reads, so mode=wr
    /// counts as mode=rd [default: serializable]
    #[arg(long, value_name = "VALUE", value_parser = consistency::parse, conflicts_with = "range")]
    consistency: Option<Consistency>,
    /// Print JSON, with the bytes as text or in hexadecimal digits
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    via: Via,
}

/// Of a value that is not large, nothing is written unless all of it was read.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let root = options.root.as_deref();
    Source::check(&options.url, root)?;
    let reading = Reading::of(options.consistency)?;
    let member = options.via.join()?;
    let source = Source::find(&member, &options.url, root)?;
    let reference = member.transact(|tx| source.reference(tx))?;
    let reference = reference.ok_or_else(|| no_root(&options.url, root.unwrap_or_default()))?;
    if let Some(read) = visit(&member, &reference, reading)? {
        return tell(&member, &reference, read, options.json);
    }
    let size = member.transact(|tx| tx.size(&reference))?;
    if let Some(range) = options.range {
        return get_range(&member, options, &reference, (range, size));
    }
    if options.json {
        check_document(size)?;
    }
    let session = reading.session(options.via.session_for(size, &member));
    if size > LARGE_BYTES && !options.json {
        let read = |tx: &mut Transaction, out: &mut Output| tx.read_into(&reference, out).map(drop);
        return pass(&member, session, size, read);
    }
    let value = member.transact_with(session, |tx| Ok(tx.read(&reference)?.to_vec()))?;
    match options.json {
        true => say_json(&as_json(&member.format(&reference)?, &value, None, &[])),
        false => write_all(&value),
    }
}

/// The bytes of an object, and the homes that did not answer.
type Seen = (Vec<u8>, Vec<String>);

/// Reads as a session does that has chosen its consistency, if it is to: the bytes, and the homes that did not answer.
fn visit(
    member: &Member,
    reference: &Reference,
    reading: Reading,
) -> Result<Option<Seen>, Failure> {
    if !reading.is_visit() {
        return Ok(None);
    }
    let name = member.format(reference)?;
    let segment = name.split('#').next().unwrap_or(&name);
    let Some(mut visit) = reading.open(member, &member.open(segment)?)? else {
        return Ok(None);
    };
    let value = visit.read(reference)?;
    Ok(Some((value, reading::left_out(&visit))))
}

fn tell(
    member: &Member,
    reference: &Reference,
    (value, left_out): Seen,
    json: bool,
) -> Result<(), Failure> {
    match json {
        true => {
            check_document(value.len() as u64)?;
            let name = member.format(reference)?;
            say_json(&as_json(&name, &value, None, &left_out))
        }
        false => write_all(&value),
    }
}

/// The size is what the object had just before. The transaction that reads looks again.
fn get_range(
    member: &Member,
    options: &Options,
    reference: &Reference,
    (wanted, size): (ByteRange, u64),
) -> Result<(), Failure> {
    let name = member.format(reference)?;
    let beyond = |size: u64| {
        let what = format!("the range begins beyond the end of {name}, which has {size} bytes");
        Failure::new(what, "give a range that begins before that")
    };
    let bytes = |size: u64| wanted.within(size.saturating_sub(reference.offset));
    let Range { start, end } = bytes(size).ok_or_else(|| beyond(size))?;
    let count = end - start;
    if options.json {
        check_document(count)?;
    }
    let session = options.via.session_for(count, member);
    // What has become shorter meanwhile ends the transaction with the new size.
    let mut shorter = None;
    let mut range = |tx: &mut Transaction| {
        let size = tx.size(reference)?;
        shorter = bytes(size).is_none().then_some(size);
        bytes(size).ok_or_else(|| Error::aborted("the range begins beyond the end"))
    };
    let got = if count > LARGE_BYTES && !options.json {
        pass(member, session, count, |tx, out| {
            let range = range(tx)?;
            pass_range(tx, reference, range, out)
        })
    } else {
        let read = member.transact_with(session, |tx| {
            let Range { start, end } = range(tx)?;
            Ok((
                start,
                tx.read_at(reference, start, length(end - start))?,
                tx.size(reference)?,
            ))
        });
        read.map_err(Failure::from)
            .and_then(|(from, value, size)| match options.json {
                true => say_json(&as_json(&name, &value, Some((from, size)), &[])),
                false => write_all(&value),
            })
    };
    got.map_err(|failure| shorter.map_or(failure, beyond))
}

/// Writes a part of a value in pieces: more of it is never in memory.
fn pass_range(
    tx: &mut Transaction,
    reference: &Reference,
    mut range: Range<u64>,
    out: &mut Output,
) -> Result<(), Error> {
    while !range.is_empty() {
        let piece = (range.end - range.start).min(LARGE_BYTES);
        let bytes = tx.read_at(reference, range.start, length(piece))?;
        out.write_all(&bytes).map_err(Error::aborted_by)?;
        range.start += piece;
    }
    Ok(())
}

/// Bytes of a piece, which are few.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn check_document(bytes: u64) -> Result<(), Failure> {
    if bytes <= JSON_BYTES_MAX {
        return Ok(());
    }
    let what =
        format!("{bytes} bytes are too much for a document, which has {JSON_BYTES_MAX} at most");
    let todo = "leave out --json: the bytes are written as they are";
    Err(Failure::new(what, todo).or("or get a part of them with --range"))
}

fn write_all(value: &[u8]) -> Result<(), Failure> {
    let mut out = Output::of(value.len() as u64);
    let written = out.write_all(value).and_then(|()| out.flush());
    written.or_else(|error| stopped(&error))
}

/// Writes a large value while it comes.
fn pass(
    member: &Member,
    session: Session,
    bytes: u64,
    mut read: impl FnMut(&mut Transaction, &mut Output) -> Result<(), Error>,
) -> Result<(), Failure> {
    let mut out = Output::of(bytes);
    let mut attempts = ATTEMPTS_MAX;
    let passed = loop {
        attempts -= 1;
        let mut tx = member.begin(session);
        let passed = read(&mut tx, &mut out);
        if let Some(error) = out.failed() {
            return stopped(&error);
        }
        match passed.and_then(|()| tx.commit()) {
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

/// Bytes that are no text are given in digits: a document has nothing else. Of a part it also says where the part
/// begins, and how many bytes the object has.
fn as_json(
    name: &str,
    bytes: &[u8],
    part: Option<(u64, u64)>,
    left_out: &[String],
) -> serde_json::Value {
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
        "range": part.map(|(from, size)| serde_json::json!({"from": from, "size": size})),
        "text": text,
        "hex": text.is_none().then(digits),
        "left_out": left_out,
    })
}

const HELP: &str = "\
Writes an object's bytes to standard output, as they are. A value above 1 MiB is written while it
comes: --timeout then ends only what makes no progress. If that fails, a part has been written.
Of a range that ends beyond the value, the bytes that are there are written.

Examples:
  thorp get 'thorp://dev/notes#1.0.1'
  thorp get thorp://dev/notes --root greeting > greeting.txt
  thorp get thorp://dev/notes --root greeting --range 0-99
  thorp get thorp://dev/notes --root greeting --range -4
  thorp get thorp://dev/notes --root greeting --consistency close-to-open";
