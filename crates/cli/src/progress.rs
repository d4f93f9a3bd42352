//! How far long work has come, for a person at a terminal.

use crate::text;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Tells on standard error how far work has come: nothing in its first second, and nothing if that is no terminal.
pub(crate) struct Progress {
    what: &'static str,
    tell_at: Instant,
    is_shown: bool,
    has_told: bool,
}

impl Progress {
    /// Of so many things of this kind, as *objects*.
    pub(crate) fn of(what: &'static str) -> Self {
        Progress {
            what,
            tell_at: Instant::now() + SILENT,
            is_shown: std::io::stderr().is_terminal(),
            has_told: false,
        }
    }

    /// So many are done of all.
    pub(crate) fn tell(&mut self, done: u64, all: u64) {
        let now = Instant::now();
        if self.is_shown && now >= self.tell_at {
            self.tell_at = now + BETWEEN;
            self.has_told = true;
            // The line is written over by the next one.
            let _ = text::over(&format!("{done} of {all} {}", self.what));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.has_told {
            let _ = text::over("");
        }
    }
}

/// Shorter work is not told.
const SILENT: Duration = Duration::from_secs(1);

/// Between two lines.
const BETWEEN: Duration = Duration::from_millis(200);
