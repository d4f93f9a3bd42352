//! `thorp plan`: models of what cooperating saves, for people who have to decide.

mod given;
mod measured;
mod paper;
mod replay;
mod shown;
mod site;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// What `thorp plan` is told.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// What does a site save its members at this distance, and from how many members on?
    Site(Box<site::Options>),
    /// What would members answer for each other, by a trace of what was asked for?
    Replay(Box<replay::Options>),
    /// Compute the tables and figures of the papers that the models come from, beside what these say
    Paper(paper::Options),
}

/// Answers a question.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.question {
        Question::Site(options) => site::run(options),
        Question::Replay(options) => replay::run(options),
        Question::Paper(options) => paper::run(options),
    }
}
