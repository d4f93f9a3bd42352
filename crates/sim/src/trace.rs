//! What happened, event by event: as a hash, as the last lines, or printed.

use std::collections::VecDeque;

/// What becomes of the events of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Nothing: the quickest.
    #[default]
    Off,
    /// They are hashed, and the last ones kept.
    Keep,
    /// They are printed.
    Print,
}

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    mode: Mode,
    hash: u64,
    tail: VecDeque<String>,
}

/// Lines kept to show what came before a failure.
const TAIL_LINES: usize = 80;

impl Trace {
    /// A trace with nothing in it.
    pub fn new(mode: Mode) -> Self {
        Trace {
            mode,
            hash: 0xcbf2_9ce4_8422_2325,
            tail: VecDeque::new(),
        }
    }

    /// Adds a line. It is made only if somebody wants it.
    pub fn line(&mut self, make: impl FnOnce() -> String) {
        if self.mode == Mode::Off {
            return;
        }
        let line = make();
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if self.mode == Mode::Print {
            println!("{line}");
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    /// A hash of every line: two runs of one seed have the same.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The last lines.
    pub fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }
}
