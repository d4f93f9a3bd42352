//! What a run did, as a hash and as its last lines.

use crate::time::At;
use std::collections::VecDeque;

/// Lines that are kept to show what came before a failure.
const LINES: usize = 4_000;

/// A 64-bit FNV-1a hash, and lines if somebody wants them.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    hash: u64,
    lines: Option<VecDeque<String>>,
}

impl Digest {
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Digest {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: keeps_lines.then(VecDeque::new),
        }
    }

    pub(crate) fn note(&mut self, at: At, what: &str, numbers: &[u64]) {
        let bytes = what.bytes().map(u64::from);
        for number in [at.0]
            .into_iter()
            .chain(bytes)
            .chain(numbers.iter().copied())
        {
            self.hash = (self.hash ^ number).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(format!("{at:?} {what} {numbers:?}"));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().flatten().cloned().collect()
    }
}
