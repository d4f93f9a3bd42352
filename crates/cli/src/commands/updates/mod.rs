//! `thorp updates`: what a log keeps until homes have executed it.

mod dropping;
mod exporting;
mod listing;
mod opened;
mod retrying;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use opened::Opened;
use std::path::PathBuf;

/// What `thorp updates` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the updates that a log keeps
    #[command(after_help = LS_HELP)]
    Ls {
        /// The log's directory; no program has it open
        log: PathBuf,
        /// Only those that a home has refused
        #[arg(long)]
        rejected: bool,
    },
    /// List the updates of a log that a home has refused
    #[command(after_help = REJECTED_HELP)]
    Rejected {
        /// The log's directory; no program has it open
        log: PathBuf,
    },
    /// Put updates into a log again that a home has refused
    #[command(after_help = RETRY_HELP)]
    Retry {
        /// The log's directory; no program has it open
        log: PathBuf,
        /// The updates, as `thorp updates ls` names them; without any, all rejected ones
        updates: Vec<String>,
    },
    /// Take updates out of a log that a home has refused
    #[command(after_help = DROP_HELP)]
    Drop {
        /// The log's directory; no program has it open
        log: PathBuf,
        /// The updates, as `thorp updates ls` names them; without any, all rejected ones
        updates: Vec<String>,
        /// Also forget which numbers have left the log, which `thorp updates ls` tells below the updates
        #[arg(long)]
        left: bool,
    },
    /// Write what updates would change, as lines of JSON
    #[command(after_help = EXPORT_HELP)]
    Export {
        /// The log's directory; no program has it open
        log: PathBuf,
        /// The updates, as `thorp updates ls` names them; without any, all rejected ones
        updates: Vec<String>,
        /// All updates of the log
        #[arg(long, conflicts_with = "updates")]
        all: bool,
        /// The file; a regular file that exists is replaced; standard output if none is given, or -
        #[arg(long, value_name = "FILE", value_parser = crate::names::file, default_value = "-", hide_default_value = true)]
        out: PathBuf,
    },
}

/// Opens the log, which nobody else has open.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let json = options.json;
    match &options.action {
        Action::Ls { log, rejected } => listing::list(&Opened::at(log)?, *rejected, json),
        Action::Rejected { log } => listing::list(&Opened::at(log)?, true, json),
        Action::Retry { log, updates } => retrying::retry(&Opened::at(log)?, updates, json),
        Action::Drop { log, updates, left } => {
            dropping::drop_rejected(&Opened::at(log)?, (updates, *left), json)
        }
        Action::Export {
            log,
            updates,
            all,
            out,
        } => exporting::export(&Opened::at(log)?, (updates, *all), out, json),
    }
}

const HELP: &str = "\
Examples:
  thorp updates ls notes-log
  thorp updates rejected notes-log
  thorp updates retry notes-log
  thorp updates export notes-log --out refused.jsonl
  thorp updates drop notes-log";

const LS_HELP: &str = "\
A log leaves out what its homes have executed. docs/consistency.md says who writes by a log.
Below the updates it tells what has left the log otherwise: numbers that their home had executed before the
log was opened (after a crash, or because it was restored from a backup), and numbers that are void. Those a home
had settled before it went back in time, and the log has them no more: look whether what they wrote is there.

Examples:
  thorp updates ls notes-log
  thorp updates ls notes-log --rejected --json";

const REJECTED_HELP: &str = "\
As `thorp updates ls --rejected`. A rejected update stays in the log until it is retried or dropped.

Examples:
  thorp updates rejected notes-log
  thorp updates rejected notes-log --json";

const RETRY_HELP: &str = "\
Each refused update becomes a new one, with a new name, and leaves the list of rejected ones. The program
of the log sends it when it starts next. The home judges it then: bytes replace what the object has by
then, also if somebody has changed it since, and a procedure runs on what it finds. If the object is gone,
or the right is missing still, the home refuses it again. `thorp updates export` shows what it would do.

Examples:
  thorp updates retry notes-log";

const DROP_HELP: &str = "\
Only updates that a home has refused can be dropped: the home may have executed the others already.

Examples:
  thorp updates drop notes-log
  thorp updates drop notes-log --left";

const EXPORT_HELP: &str = "\
A line for each update: its name, its home and segment, why it was rejected, and what it writes. An object
is named as in its segment (#PAGE.SLOT.GENERATION); bytes are given as text, or as hexadecimal digits if
they are none. `thorp put`, `thorp rm` or a program can do the same by hand. The log keeps the updates.
With --json the result is told as a document; without --out nothing but the lines are written.

Examples:
  thorp updates export notes-log --out refused.jsonl
  thorp updates export notes-log --all --out all.jsonl";
