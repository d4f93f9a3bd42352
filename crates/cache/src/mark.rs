//! Marks: where a home's cache stands between two publications.

use crate::limits::MARKS_KEPT;
use crate::ring::Ring;
use thorp_model::{HomeId, Millis, Position, Stamp};

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
    /// How often the stream was broken. [`ENDED`]: nothing of this is known to be right any more (rule R9).
    pub(crate) gaps: u64,
}

impl Mark {
    /// The last mark of a cache that has ended.
    pub(crate) fn ended(self) -> Mark {
        Mark {
            gaps: ENDED,
            ..self
        }
    }

    /// Whether the home has gone back, and its cache has begun anew elsewhere.
    pub(crate) fn has_ended(self) -> bool {
        self.gaps == ENDED
    }
}

/// Streams are not broken so often.
const ENDED: u64 = u64::MAX;

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

impl Marks {
    /// The newest mark before a change, if it is still kept: the last that the changes up to that
    /// one are not settled in.
    pub(crate) fn before(&self, change: u64) -> Option<Mark> {
        let mut later = self.0.head();
        let mut at = later.saturating_sub(MARKS_KEPT as u64);
        while later - at > 1 {
            let middle = at + (later - at) / 2;
            match self.0.read(middle) {
                Some([settled, ..]) if settled > change => later = middle,
                // Overwritten meanwhile, it was an early one.
                _ => at = middle,
            }
        }
        let mark = decode(at + 1, self.0.read(at)?);
        (mark.settled <= change).then_some(mark)
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

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_by_a_change_after_it() {
        let mark = |position| Mark {
            turn: 0,
            // Two publications with three changes each, and one without, and so on.
            settled: position - position / 3,
            position: Position(position),
            watermark: Stamp::default(),
            heard: Millis(0),
            gaps: 0,
        };
        let marks = Marks::new(mark(0));
        let all = 3 * MARKS_KEPT as u64;
        for position in 1..all {
            marks.push(mark(position));
            for change in [mark(position).settled, mark(position).settled - 1] {
                let newest = (0..=position).rev().find(|at| mark(*at).settled <= change);
                let found = marks.before(change).map(|mark| mark.position.0);
                assert_eq!(found, newest);
            }
        }
        assert_eq!(marks.before(0), None, "it is not kept");
        let oldest = all - MARKS_KEPT as u64 + 4;
        assert!(marks.before(mark(oldest).settled).is_some());
    }
}
