//! `thorp plan`: models of what cooperating saves, for people who have to decide.

mod given;
mod measured;
mod memory;
mod paper;
mod prefetch;
mod replay;
mod shown;
mod site;
mod web;

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

/// Answers a question.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.question {
        Question::Site(options) => site::run(options),
        Question::Web(options) => web::run(options),
        Question::Memory(options) => memory::run(options),
        Question::Replay(options) => replay::run(options),
        Question::Prefetch(options) => prefetch::run(options),
        Question::Paper(options) => paper::run(options),
    }
}
