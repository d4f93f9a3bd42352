//! `thorp plan replay`: what members would answer for each other, by replaying what was asked for.

mod answer;
mod bench;
mod question;

use crate::command::failure::Failure;
use crate::command::given::{Given, refused};
use crate::command::shown::Shown;
use crate::command::traces::{ReadingOptions, about, read, warning};
use crate::replay::Kind;
use clap::Args;
use question::{Parameters, Question};
use std::path::PathBuf;

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
  thorp plan replay w106.oracleGeneral.zst --clients 8 --client-pages 2% --servers 2
  thorp plan replay blocks.txt.gz --deal by-object --policy n-chance --html plan.html";

/// Answers.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut given = Given::new::<Options, _>(&options.parameters, options.shown.file(), "replay")?;
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
