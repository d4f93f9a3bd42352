//! `thorp plan replay`: what members would answer for each other, by replaying what was asked for.

mod answer;
mod bench;
mod guessed;
mod question;

pub(super) use answer::about;
pub(super) use guessed::warning;

use super::given::{Given, refused};
use super::shown::Shown;
use crate::failure::{Code, Failure};
use crate::text::note;
use clap::Args;
use question::{Parameters, Question};
use std::path::{Path, PathBuf};
use thorp_plan::replay::Kind;
use thorp_plan::trace::{Reading, Source, Trace};

/// What `thorp plan replay` is told.
#[derive(Args, Debug)]
#[command(after_help = help())]
pub(crate) struct Options {
    /// What was asked for, in order; several files are put together by time if all of them have times, else one after the other
    #[arg(required = true)]
    trace: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingOptions,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    shown: Shown,
}

/// How traces are read.
#[derive(Args, Debug)]
pub(super) struct ReadingOptions {
    /// The traces' format, if it cannot be guessed: thorp (what members record), oracle (libCacheSim), csv, lines (an object a line), packed (32-bit numbers); each plain or in gzip, xz, zstd
    #[arg(long, value_name = "FORMAT")]
    format: Option<thorp_plan::trace::Format>,
    /// Where a CSV table has what, by place or head: id=2,time=1,size=3,client=4
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<thorp_plan::trace::Columns>,
    /// Read no more requests than this
    #[arg(long, value_name = "N")]
    requests: Option<usize>,
}

/// Policies, and how it is called.
fn help() -> String {
    let line = |kind: Kind| format!("  {:10}  {}\n", kind.to_string(), kind.what());
    let policies = Kind::ALL.map(line).concat();
    format!("Policies (--policy):\n{policies}\n{HELP}")
}

const HELP: &str = "\
Sizes are numbers of pages, or parts of all pages that the trace asks for: 5%.

Examples:
  thorp plan replay anna.csv ben.csv --client-pages 2000
  thorp plan replay w106.oracleGeneral.zst --clients 8 --client-pages 2% --servers 2 --server-pages 10%
  thorp plan replay blocks.txt.gz --deal by-object --local s3-fifo --policy n-chance --html plan.html";

/// Answers.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut given = Given::new(&options.parameters, options.shown.file(), "replay")?;
    let trace = read(&options.trace, &options.reading, None)?;
    let question = Question::of(&mut given, &trace)?;
    let mut report = question.report().map_err(|invalid| refused(&invalid))?;
    report.assumptions = about(&trace);
    let warning = warning(&trace).unwrap_or_default();
    report.answer.insert_str(0, &warning);
    given.tell(&mut report);
    options
        .shown
        .show("What members answer for each other", &report)
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
