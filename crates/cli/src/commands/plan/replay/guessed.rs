//! What to say first where nothing in a file tells that it is a trace.

use thorp_plan::trace::{Source, Trace};

/// A warning to begin an answer with, if a file was taken for something only because it is nothing else.
pub(in crate::commands::plan) fn warning(trace: &Trace) -> Option<String> {
    let is_doubtful = |file: &&Source| file.is_guessed && !file.is_evident;
    let doubtful: Vec<String> = trace
        .files
        .iter()
        .filter(is_doubtful)
        .map(|file| format!("{} was read as {}", file.name, file.words()))
        .collect();
    (!doubtful.is_empty()).then(|| {
        format!(
            "{}, by guess, for nothing in it tells: if that is wrong, so is all that follows (--format tells what it is). ",
            doubtful.join(", ")
        )
    })
}
