//! Stories: text files with commands, each followed by everything it causes.

mod commands;
mod disk;
mod effects;
mod forging;
mod founding;
mod names;
mod node;
mod program;
mod query;
mod rights;
mod text;
mod updates;
mod village;

use commands::Teller;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of telling a story.
pub(crate) struct Told {
    /// The story with what its commands caused now.
    pub(crate) text: String,
    /// What was expected and is not so.
    pub(crate) failed: Vec<String>,
    /// A core or the cache found itself wrong.
    pub(crate) panicked: bool,
}

/// Tells a story: keeps its comments and commands, and writes down anew what
/// they cause. What is indented was caused; what follows an expectation that
/// failed says what is so instead.
pub(crate) fn tell(story: &str) -> Told {
    let mut teller = Teller::default();
    let mut text = String::new();
    let mut panicked = false;
    for line in story.lines().filter(|line| !line.starts_with(' ')) {
        text.push_str(line);
        text.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        panicked = catch_unwind(AssertUnwindSafe(|| teller.command(line))).is_err();
        text.push_str(&std::mem::take(&mut teller.village.said));
        if panicked {
            break;
        }
    }
    Told {
        text,
        failed: teller.failed,
        panicked,
    }
}
