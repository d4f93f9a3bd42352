//! What to say first where nothing but its size tells that a file is a trace.

use thorp_plan::trace::{Format, Source, Trace};

/// A warning to begin an answer with, if a file was taken for packed numbers only because it is nothing else.
pub(in crate::commands::plan) fn warning(trace: &Trace) -> Option<String> {
    let guessed = |file: &&Source| file.is_guessed && file.format == Format::Packed;
    let names: Vec<&str> = trace
        .files
        .iter()
        .filter(guessed)
        .map(|file| &*file.name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Read as packed 32-bit numbers by guess, for nothing in it tells another format: {}; if that is wrong, so is all that follows (--format tells what it is). ",
            names.join(", ")
        )
    })
}
