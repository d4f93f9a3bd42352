//! What the demo of consistency asks of its members, and what they have to tell afterwards.

use serde::{Deserialize, Serialize};

/// An errand of a member.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "errand", rename_all = "snake_case")]
pub(in crate::demo) enum Errand {
    /// Make a segment with a counter and a text.
    Make {
        /// The path of the segment.
        segment: String,
    },
    /// Write updates, and watch for those of the others.
    Share {
        /// The path of the segment.
        segment: String,
        /// Begins each word that it appends.
        letter: char,
        /// The number of its first update.
        from: u64,
        /// How long it goes on, and how often.
        span: Span,
    },
    /// Read again and again.
    Read {
        /// The path of the segment.
        segment: String,
        /// The consistency of each visit.
        consistency: String,
        /// How long it goes on, and how often.
        span: Span,
    },
    /// Read once.
    Look {
        /// The path of the segment.
        segment: String,
        /// The consistency of the visit.
        consistency: String,
    },
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::demo) struct Span {
    /// What times count from, in microseconds since 1970. All processes are on one machine.
    pub(in crate::demo) zero_us: u64,
    /// How long it lasts, from now on.
    pub(in crate::demo) ms: u64,
    /// The pause between two updates, or two reads.
    pub(in crate::demo) pause_ms: u64,
}

/// What a member did and saw. Times are in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::demo) struct Story {
    /// What was added to the counter.
    pub(super) adds: Vec<Write>,
    /// What was appended to the text, by ascending numbers.
    pub(super) appends: Vec<Write>,
    /// Why updates were refused.
    pub(super) refused: Vec<String>,
    /// Updates of the others.
    pub(super) seen: Vec<Seen>,
    /// Each visit that read.
    pub(super) reads: Vec<Read>,
    /// Views that showed an update twice.
    pub(super) twice: u64,
}

/// An update, in a visit of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Write {
    /// Before the visit was opened.
    pub(super) began: u64,
    /// After it was closed.
    pub(super) answered: u64,
}

/// The first look at an update of another member.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) letter: char,
    pub(super) number: u64,
    pub(super) at: u64,
}

/// A visit that read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Read {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// What was there, or why there was no answer.
    pub(super) seen: Result<View, String>,
}

/// What a visit found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct View {
    /// What the adds of all members came to.
    pub(super) counter: i64,
    /// Of each letter how many updates are in the text.
    pub(super) appended: Vec<(char, u64)>,
    /// Some update was in the text twice.
    pub(super) is_twice: bool,
}

impl View {
    /// Of a text of words as `a17`.
    pub(super) fn of(counter: i64, text: &str) -> Self {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        words.sort_unstable();
        let count = words.len();
        words.dedup();
        let mut appended: Vec<(char, u64)> = Vec::new();
        for letter in words.iter().filter_map(|word| word.chars().next()) {
            match appended.last_mut().filter(|(last, _)| *last == letter) {
                Some((_, count)) => *count += 1,
                None => appended.push((letter, 1)),
            }
        }
        View {
            counter,
            appended,
            is_twice: words.len() < count,
        }
    }

    /// How many updates of a letter it has.
    pub(super) fn of_letter(&self, letter: char) -> u64 {
        let mut all = self.appended.iter();
        all.find(|(of, _)| *of == letter)
            .map_or(0, |(_, count)| *count)
    }
}

impl Story {
    /// Goes on with a later part.
    pub(super) fn append(&mut self, mut later: Story) {
        self.adds.append(&mut later.adds);
        self.appends.append(&mut later.appends);
        self.refused.append(&mut later.refused);
        self.seen.append(&mut later.seen);
        self.reads.append(&mut later.reads);
        self.twice += later.twice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_counts_words_and_notices_one_that_is_there_twice() {
        let view = View::of(3, "b1 a1 b2 ");
        assert_eq!(view.appended, [('a', 1), ('b', 2)]);
        assert_eq!((view.of_letter('b'), view.of_letter('c')), (2, 0));
        assert!(!view.is_twice);
        assert!(View::of(3, "a1 b2 a1 ").is_twice);
    }
}
