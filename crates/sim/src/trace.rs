//! What happened, event by event: as a digest, as the last lines, or printed.

use crate::digest::Digest;
use std::collections::VecDeque;

/// What becomes of the events of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Nothing: the quickest.
    #[default]
    Off,
    /// They are hashed.
    Digest,
    /// They are hashed, and the last ones kept as lines.
    Keep,
    /// They are hashed and printed.
    Print,
}

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    mode: Mode,
    digest: Digest,
    tail: VecDeque<String>,
}

/// Lines kept to show what came before a failure.
const TAIL_LINES: usize = 80;

impl Trace {
    /// A trace with nothing in it.
    pub fn new(mode: Mode) -> Self {
        Trace {
            mode,
            digest: Digest::default(),
            tail: VecDeque::new(),
        }
    }

    /// Adds a line. It is made only if somebody wants it.
    pub fn line(&mut self, make: impl FnOnce() -> String) {
        if matches!(self.mode, Mode::Off | Mode::Digest) {
            return;
        }
        let line = make();
        if self.mode == Mode::Print {
            println!("{line}");
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    /// Adds to the digest, if there is one.
    pub fn digest(&mut self, add: impl FnOnce(&mut Digest)) {
        if self.mode != Mode::Off {
            add(&mut self.digest);
        }
    }

    /// The digest's hash: two runs of one seed have the same.
    pub fn hash(&self) -> u64 {
        self.digest.hash()
    }

    /// The last lines.
    pub fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }
}
