//! `thorp completions`: what a shell completes, and the pages for `man`.

use crate::failure::Failure;
use crate::text;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What `thorp completions` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

/// What `thorp man` is told.
#[derive(Args, Debug)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManOptions {
    /// Where to put the pages; made if it is not there
    dir: PathBuf,
}

/// Prints the script for a shell that completes a command line.
pub(crate) fn run(options: &Options, mut line: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut line, NAME, &mut script);
    match io::stdout().lock().write_all(&script) {
        // A reader that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}"), ""))
        }
        _ => Ok(()),
    }
}

/// Writes a page for each command.
pub(crate) fn write_man(options: &ManOptions, line: Command) -> Result<(), Failure> {
    let dir: &Path = &options.dir;
    let failed = |error: io::Error| Failure::file(dir, &error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(line, dir).map_err(failed)?;
    let read = format!("man -l {}/thorp.1", dir.display());
    text::line(&format!("pages are in {}: {read}", dir.display())).map_err(failed)
}

const NAME: &str = "thorp";

const HELP: &str = "\
Prints a script that makes the shell complete commands and flags.

Examples:
  thorp completions bash > ~/.local/share/bash-completion/completions/thorp
  thorp completions zsh > ~/.zfunc/_thorp
  thorp completions fish > ~/.config/fish/completions/thorp.fish";

const MAN_HELP: &str = "\
Writes a page in the form of man for each command.

Examples:
  thorp man ~/.local/share/man/man1";
