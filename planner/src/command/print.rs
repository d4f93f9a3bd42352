//! Printing: results go to standard output, all else to standard error. Neither panics when nobody reads.

use super::failure::Failure;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints a line of results. A reader that has gone (`thorp plan paper | head`) ends the process in silence.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
    written.map_err(|error| Failure::new(format!("standard output: {error}"), ""))
}

/// Prints a value as JSON.
pub(super) fn say_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("it cannot be told as JSON: {error}"), ""))?;
    say(&text)
}

/// Prints what is worth knowing beside the results: to a person.
pub(super) fn note(text: &str) -> io::Result<()> {
    match QUIET.load(Ordering::Relaxed) {
        true => Ok(()),
        false => writeln!(io::stderr().lock(), "{text}"),
    }
}

/// A program reads: nothing is printed but documents. For the whole process.
pub fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

static QUIET: AtomicBool = AtomicBool::new(false);
