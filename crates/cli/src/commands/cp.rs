//! `thorp cp`: an object's bytes, once more.

use super::copying::{self, Afterwards, Arguments};
use crate::failure::Failure;
use clap::Args;

/// What `thorp cp` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    copying: Arguments,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    copying::run(&options.copying, Afterwards::Stays)
}

const HELP: &str = "\
Copies an object's bytes, also into another segment and to another home, and prints the reference of the
copy. The bytes stay as they are: references in them still lead to what they led to. The destination's
segment is made if there is none. It is one transaction. A large value passes through a temporary file
without a name.

Examples:
  thorp cp 'thorp://dev/notes#1.0.1' thorp://dev/archive
  thorp cp thorp://dev/notes --root greeting thorp://dev/archive --as-root greeting
  thorp cp thorp://dev/notes --root greeting 'thorp://dev/plans#1.0.1' --json";
