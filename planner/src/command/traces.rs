//! Traces that questions are asked about: how they are read, and what there is to say of that.

use crate::command::failure::{Code, Failure};
use crate::command::print::note;
use crate::report::Assumption;
use crate::trace::{Reading, Source, Trace};
use clap::Args;
use std::path::{Path, PathBuf};

/// How traces are read.
#[derive(Args, Debug)]
pub(super) struct ReadingOptions {
    /// The traces' format, if it cannot be guessed: thorp (what members record), oracle (libCacheSim), csv, lines (an object a line), packed (32-bit numbers); each plain or in gzip, xz, zstd
    #[arg(long, value_name = "FORMAT")]
    format: Option<crate::trace::Format>,
    /// Where a CSV table has what, by place or head: id=2,time=1,size=3,client=4
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<crate::trace::Columns>,
    /// Read no more requests than this
    #[arg(long, value_name = "N")]
    requests: Option<usize>,
}

/// Reads files as one trace, of no more requests than there may be.
pub(super) fn read(
    paths: &[PathBuf],
    options: &ReadingOptions,
    most: Option<usize>,
) -> Result<Trace, Failure> {
    let reading = Reading {
        format: options.format,
        columns: options.columns.clone().unwrap_or_default(),
        requests_most: options.requests,
        refused_above: most,
    };
    if options.requests == Some(0) {
        let todo = "leave it out to read all of them";
        return Err(Failure::new("--requests must be at least 1, not 0", todo).with(Code::Usage));
    }
    for path in paths {
        looked_at(path)?;
    }
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let read = reading.files(&paths).map_err(|error| {
        let todo = match most.filter(|_| error.is_too_long()) {
            Some(most) => format!("--requests {most} takes the first ones"),
            None if error.is_cut() => {
                "get the file anew, or --requests N if what is left of it will do".to_owned()
            }
            None => "--format tells how a trace is written, --columns where a table has its objects: --help".to_owned(),
        };
        Failure::new(error.to_string(), todo).with(Code::Usage)
    });
    read.inspect(|trace| trace.files.iter().for_each(warn_of_what_is_not_read))
}

/// A column that says who asks, under another head, would be missed in silence.
fn warn_of_what_is_not_read(file: &Source) {
    if !file.unknown.is_empty() {
        let heads = file.unknown.join(", ");
        // Assumptions tell it, too.
        let _ = note(&format!(
            "{}: not read: {heads} (--columns tells which column is what: client={})",
            file.name, file.unknown[0]
        ));
    }
}

/// Whether a file may hold a trace at all.
fn looked_at(path: &Path) -> Result<(), Failure> {
    let file = std::fs::File::open(path).and_then(|file| file.metadata());
    let file = file.map_err(|error| Failure::file(path, &error))?;
    let nothing = match (file.is_dir(), file.is_file() && file.len() == 0) {
        (true, _) => "is a directory",
        (_, true) => "is empty",
        _ => return Ok(()),
    };
    let what = format!("{}: {nothing}", path.display());
    Err(Failure::new(what, "name files with traces in them").with(Code::Usage))
}

/// What the trace itself tells.
pub(super) fn about(trace: &Trace) -> Vec<Assumption> {
    let told = |name: &str, value: String| Assumption::new(name, value, &trace.name);
    let mut about = vec![
        told("requests", trace.pages.len().to_string()),
        told("pages asked for", trace.footprint.to_string()),
    ];
    about.extend(read_as(trace));
    about.extend(trace.files.iter().filter_map(not_understood));
    about.extend(order(trace));
    if trace.bytes > 0 {
        about.push(told(
            "mean size, not heeded",
            format!("{} bytes", trace.bytes / trace.pages.len() as u64),
        ));
    }
    about
}

/// How the files were read: in one line if all of them were in the same way.
fn read_as(trace: &Trace) -> Vec<Assumption> {
    let said = |name: &str, file: &Source| {
        let source = match file.is_guessed {
            true => "guessed from name and content",
            false => "told",
        };
        Assumption::new(name, file.words(), source)
    };
    let is_alike = |pair: &[Source]| {
        (pair[0].words(), pair[0].is_guessed) == (pair[1].words(), pair[1].is_guessed)
    };
    match &*trace.files {
        [first, ..] if trace.files.windows(2).all(is_alike) => {
            vec![said("read as", first)]
        }
        files => files
            .iter()
            .map(|file| said(&format!("{} is read as", file.name), file))
            .collect(),
    }
}

fn not_understood(file: &Source) -> Option<Assumption> {
    let heads = file.unknown.join(", ");
    let name = "columns that are not read";
    (!heads.is_empty()).then(|| Assumption::new(name, heads, &file.name))
}

/// In which order requests are replayed, where that is not the order of the file.
fn order(trace: &Trace) -> Option<Assumption> {
    let (value, why) = match (trace.files.len(), trace.times_us.is_empty()) {
        (2.., true) => (
            "the files one after another",
            "for not all of them have times",
        ),
        (2.., false) => ("the files put together by time", "all of them have times"),
        _ if trace.was_sorted => ("by time", "the file has them in another order"),
        _ => return None,
    };
    Some(Assumption::new("order of requests", value, why))
}

/// A warning to begin an answer with, if a file was taken for something only because it is nothing else.
pub(super) fn warning(trace: &Trace) -> Option<String> {
    let is_doubtful = |file: &&Source| file.is_guessed && !file.is_evident;
    let doubtful: Vec<String> = trace
        .files
        .iter()
        .filter(is_doubtful)
        .map(|file| format!("{} was read as {}", file.name, file.words()))
        .collect();
    (!doubtful.is_empty()).then(|| {
        format!(
            "{}, by guess, for nothing in it tells: if that is wrong, so is all that follows (--format tells what it is). ",
            doubtful.join(", ")
        )
    })
}
