//! `thorp ca`: the authority of a village.

mod init;
mod issue;
mod list;
mod revoke;
mod rotate;
mod serve;

use crate::failure::Failure;
use clap::Subcommand;

/// What is to be done with the authority.
#[derive(Subcommand, Debug)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    /// Make the authority of a new village, or move one into a directory of its own
    Init(init::Options),
    /// Issue a certificate: as `thorp invite`, with all that can be chosen
    Issue(issue::Options),
    /// List what was issued, and until when
    List(list::Options),
    /// Revoke a node's certificates, and announce that to homes and sites
    Revoke(revoke::Options),
    /// Give the authority a new key, in three steps
    Rotate(rotate::Options),
    /// Answer nodes that join, and that renew their certificates
    Serve(serve::Options),
}

/// Does it.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Init(options) => init::run(options),
        Command::Issue(options) => issue::run(options),
        Command::List(options) => list::run(options),
        Command::Revoke(options) => revoke::run(options),
        Command::Rotate(options) => rotate::run(options),
        Command::Serve(options) => serve::run(options),
    }
}

const HELP: &str = "\
The first home of a village makes the authority. `thorp invite` is the short way to let a node in.

Examples:
  thorp ca list village
  thorp ca serve village --listen 127.0.0.1:7440";
