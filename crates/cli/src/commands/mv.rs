//! `thorp mv`: an object elsewhere.

use super::copying::{self, Afterwards, Arguments};
use crate::failure::Failure;
use clap::Args;

/// What `thorp mv` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    copying: Arguments,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    copying::run(&options.copying, Afterwards::Goes)
}

const HELP: &str = "\
Copies an object's bytes, as `thorp cp` does, and deletes the object in the same transaction: nothing is
half done, also between two homes. With --root the source's root of this name goes, too. The object gets
another reference. What referred to the old one finds that it is gone, and so do other roots that name it.
References in its bytes still lead to what they led to.

Examples:
  thorp mv 'thorp://dev/notes#2.0.1' thorp://dev/archive
  thorp mv thorp://dev/notes --root greeting thorp://dev/archive --as-root greeting";
