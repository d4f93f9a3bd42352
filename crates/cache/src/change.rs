//! What the ring of changes says, and how it is written there.

use thorp_model::{HomeId, Millis, PageId, Position, SlotSet, Stamp};

/// Words of a change: position, page, four of slots.
pub(crate) const CHANGE_WORDS: usize = 6;

/// Something that happened to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) position: Position,
    pub(crate) page: PageId,
    pub(crate) what: What,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A commit changed these slots.
    Touched(SlotSet),
    /// A commit changed these slots, to what whoever has read them has read already: only
    /// watchers hear of it.
    Delivered(SlotSet),
    /// These slots show something else from now on, and no commit of this position changed
    /// them: only readers hear of it.
    Shown(SlotSet),
    /// The page was given up: nothing later will be heard of it (rule 2).
    Evicted(Known),
    /// The page changed while the stream was broken: anything may be different (rule 13).
    Missed,
}

/// What was known of a home when a page was given up, or before it was changed: of what was read there, nothing is known later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// When it was last heard of.
    pub(crate) heard: Millis,
    /// What it had promised.
    pub(crate) watermark: Stamp,
}

/// In the word of the highest slots, a bit that no slot has: pages have fewer than 255.
const EVICTED: u64 = 1 << 63;
const SHOWN: u64 = 1 << 62;
const DELIVERED: u64 = 1 << 61;

/// Beside [`EVICTED`]: the page was not given up, but its changes were missed.
const MISSED: u64 = 1;

impl Change {
    pub(crate) fn encode(self) -> [u64; CHANGE_WORDS] {
        let [a, b, c, d] = match self.what {
            What::Touched(slots) => {
                let [a, b, c, d] = slots.words();
                [a, b, c, d & !EVICTED]
            }
            What::Shown(slots) => marked(slots, SHOWN),
            What::Delivered(slots) => marked(slots, DELIVERED),
            What::Evicted(Known { heard, watermark }) => {
                let home = u64::from(watermark.home.0);
                [heard.0, watermark.clock, home, EVICTED]
            }
            What::Missed => [0, 0, 0, EVICTED | MISSED],
        };
        [self.position.0, self.page.key(), a, b, c, d]
    }

    pub(crate) fn decode([position, page, a, b, c, d]: [u64; CHANGE_WORDS]) -> Self {
        let what = if d == EVICTED | MISSED {
            What::Missed
        } else if d & EVICTED != 0 {
            What::Evicted(Known {
                heard: Millis(a),
                watermark: Stamp {
                    clock: b,
                    home: HomeId(c as u32),
                },
            })
        } else if [a, b, c, d | EVICTED] == SlotSet::ALL.words() {
            What::Touched(SlotSet::ALL)
        } else if d & SHOWN != 0 {
            What::Shown(SlotSet::from_words([a, b, c, d & !SHOWN]))
        } else if d & DELIVERED != 0 {
            What::Delivered(SlotSet::from_words([a, b, c, d & !DELIVERED]))
        } else {
            What::Touched(SlotSet::from_words([a, b, c, d]))
        };
        Change {
            position: Position(position),
            page: PageId::from_key(page),
            what,
        }
    }
}

fn marked(slots: SlotSet, mark: u64) -> [u64; 4] {
    let [a, b, c, d] = slots.words();
    [a, b, c, d | mark]
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use thorp_model::Slot;

    #[test]
    fn what_was_written_is_read() {
        let of = |what| Change {
            position: Position(u64::MAX),
            page: PageId::new(7, u32::MAX),
            what,
        };
        let some: SlotSet = [Slot(0), Slot(64), Slot(239)].into_iter().collect();
        for what in [
            What::Touched(SlotSet::default()),
            What::Touched(some),
            What::Shown(some),
            What::Delivered(some),
            What::Touched(SlotSet::ALL),
            What::Evicted(Known {
                heard: Millis(7),
                watermark: Stamp {
                    clock: u64::MAX,
                    home: HomeId(3),
                },
            }),
            What::Missed,
        ] {
            assert_eq!(Change::decode(of(what).encode()), of(what));
        }
    }
}
