//! Progress for a person: which step of how many, what happens in it, how long it takes.

use crate::text;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// Prints steps, and on a terminal what happens within one, on one line that changes.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    steps: usize,
    step: usize,
    step_started: Instant,
    lively: bool,
    shown: String,
}

impl Progress {
    /// So many steps are to come.
    pub(crate) fn new(steps: usize) -> Self {
        Progress {
            started: Instant::now(),
            steps,
            step: 0,
            step_started: Instant::now(),
            lively: io::stderr().is_terminal() && !text::is_quiet(),
            shown: String::new(),
        }
    }

    /// The next step begins.
    pub(crate) fn step(&mut self, what: &str) {
        self.step += 1;
        self.step_started = Instant::now();
        self.wipe();
        let elapsed = self.started.elapsed().as_secs_f64();
        let line = format!("[{:>2}/{}] {elapsed:>6.1} s  {what}", self.step, self.steps);
        let _ = text::note(&line);
    }

    /// How far the step is.
    pub(crate) fn at(&mut self, what: &str) {
        if !self.lively || what == self.shown {
            return;
        }
        self.wipe();
        let seconds = self.step_started.elapsed().as_secs_f64();
        let _ = write!(
            io::stderr().lock(),
            "                 {what} ({seconds:.0} s)"
        );
        what.clone_into(&mut self.shown);
    }

    /// A result worth a line.
    pub(crate) fn result(&mut self, what: &str) {
        self.wipe();
        let _ = text::note(&format!("                 {what}"));
    }

    /// Since the first step.
    pub(crate) fn elapsed_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn wipe(&mut self) {
        if !self.shown.is_empty() {
            let _ = write!(io::stderr().lock(), "\r\x1b[2K");
            self.shown.clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.wipe();
    }
}
