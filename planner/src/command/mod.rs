//! The command `thorp plan`: its arguments, its questions, and its answers in sentences, tables and charts.
//!
//! A question is a directory: `mod.rs` has its flags, `question.rs` makes the parameters of a model out of them, `answer.rs`
//! and what stands beside it says what the model finds. What several questions need lies beside them: parameters told by
//! flags and files ([`given`], [`file`]), traces ([`traces`]), how an answer is shown ([`shown`]).

mod failure;
mod file;
mod given;
mod measured;
mod memory;
mod nearest;
mod paper;
mod prefetch;
mod print;
mod replay;
mod shown;
mod site;
mod traces;
mod web;

use clap::{Arg, Args, Command, Subcommand};
use std::any::TypeId;

pub use failure::{Code, Failure};
pub use print::be_quiet;

/// The arguments of `thorp plan`.
#[derive(Args, Debug)]
#[command(
    after_help = HELP,
    mut_subcommands(with_words)
)]
pub struct Options {
    #[command(subcommand)]
    question: Question,
}

const HELP: &str = "\
Parameters are flags, or keys in a TOML file (--file); each has a default, and the answer tells which were used.
A village that runs tells `site` who is there, how far and what they share (--from-metrics), and `replay` and \
`prefetch` what was asked for (--record-trace at its members). It does not measure how long its machines compute, \
how long a server works for a page, or how popular documents are: that is for whoever asks `memory` or `web` to tell.

Exit codes:
  0  answered
  1  a file could not be read or written, or what --from-metrics names is not a site's status
  2  wrong usage: flags, parameters, what a file tells
  4  nobody answered --from-metrics

Examples:
  thorp plan site --members 5 --round-trip-ms 40
  thorp plan memory --machines 24 --servers 3";

/// What all questions have to say of their parameters.
fn with_words(question: Command) -> Command {
    let question = question.mut_args(in_words);
    if !question.get_arguments().any(|arg| arg.get_id() == "file") {
        return question;
    }
    let own = question.get_after_help().map(ToString::to_string);
    question.after_help(format!("{DEFAULTS}\n\n{}", own.unwrap_or_default()))
}

const DEFAULTS: &str =
    "Each parameter has a default. The answer lists what it was computed with, and who told it.";

/// So that what is refused is a number and not a flag that nobody meant, and in words.
fn in_words(arg: Arg) -> Arg {
    if arg.is_positional() || !arg.get_action().takes_values() {
        return arg;
    }
    let arg = arg.allow_negative_numbers(true);
    let kind = arg.get_value_parser().type_id();
    if kind == TypeId::of::<f64>() {
        arg.value_parser(number)
    } else if kind == TypeId::of::<usize>() {
        arg.value_parser(count)
    } else {
        arg
    }
}

fn number(text: &str) -> Result<f64, &'static str> {
    text.parse()
        .map_err(|_| "a number is needed, without unit or commas: 40, 2.5, 1e6")
}

fn count(text: &str) -> Result<usize, &'static str> {
    text.parse()
        .map_err(|_| "a whole number is needed, in digits: 100000")
}

#[derive(Subcommand, Debug)]
enum Question {
    /// What does a site save its members at this distance, and from how many members on?
    Site(Box<site::Options>),
    /// Do web caches gain if they cooperate, how, and at which distance?
    Web(Box<web::Options>),
    /// How many memory servers do how many machines need, and when is a disk as quick?
    Memory(Box<memory::Options>),
    /// What would members answer for each other, by a trace of what was asked for?
    Replay(Box<replay::Options>),
    /// What does it save to fetch pages before they are needed, into the memory of servers and from there?
    Prefetch(Box<prefetch::Options>),
    /// Compute the tables and figures of the papers that the models come from, beside what these say
    Paper(paper::Options),
}

/// Answers a question: prints the answer, and writes the files that the options name.
///
/// The planner speaks no HTTP. `status_of` asks a node, by its `--http` address, for its status, and its error passes
/// through.
///
/// # Errors
///
/// A [`Failure`] that tells what to do, or the error of `status_of`.
pub fn run<E: From<Failure>>(
    options: &Options,
    status_of: impl FnOnce(&str) -> Result<String, E>,
) -> Result<(), E> {
    match &options.question {
        Question::Site(options) => return site::run(options, status_of),
        Question::Web(options) => web::run(options),
        Question::Memory(options) => memory::run(options),
        Question::Replay(options) => replay::run(options),
        Question::Prefetch(options) => prefetch::run(options),
        Question::Paper(options) => paper::run(options),
    }?;
    Ok(())
}
