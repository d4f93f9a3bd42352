//! Marks: where a home's cache stands between two publications.

use crate::limits::MARKS_KEPT;
use crate::ring::Ring;
use thorp_core::ids::{HomeId, Millis, Position, Stamp};

const MARK_WORDS: usize = 6;

/// Where a home's cache stands: the changes before `settled` have happened,
/// and that is the home at `position`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// The number of this mark, plus one.
    pub(crate) turn: u64,
    pub(crate) settled: u64,
    pub(crate) position: Position,
    pub(crate) watermark: Stamp,
    pub(crate) heard: Millis,
    /// How often the stream was broken.
    pub(crate) gaps: u64,
}

/// The marks of a home's cache; there is always one.
pub(crate) struct Marks(Ring<MARK_WORDS>);

impl Marks {
    /// Begins with a first mark.
    pub(crate) fn new(first: Mark) -> Self {
        let marks = Marks(Ring::new(MARKS_KEPT - 1));
        marks.push(first);
        marks
    }

    /// Makes this mark the newest. Only the one writer calls this.
    pub(crate) fn push(&self, mark: Mark) {
        self.0.push([
            mark.settled,
            mark.position.0,
            mark.watermark.clock,
            u64::from(mark.watermark.home.0),
            mark.heard.0,
            mark.gaps,
        ]);
    }

    /// The newest mark. One load if it is still the one `known`.
    pub(crate) fn newest(&self, known: Option<Mark>) -> Mark {
        loop {
            let turn = self.0.head();
            if let Some(mark) = known.filter(|known| known.turn == turn) {
                return mark;
            }
            // Read in vain only if the writer published MARKS_KEPT times meanwhile.
            if let Some(words) = self.0.read(turn.wrapping_sub(1)) {
                return decode(turn, words);
            }
        }
    }
}

fn decode(turn: u64, words: [u64; MARK_WORDS]) -> Mark {
    let [settled, position, clock, home, heard, gaps] = words;
    Mark {
        turn,
        settled,
        position: Position(position),
        watermark: Stamp {
            clock,
            home: HomeId(home as u32),
        },
        heard: Millis(heard),
        gaps,
    }
}
