//! Hearing of changes outside of transactions: for those who watch a segment.

use crate::cache::Cache;
use crate::change::What;
use crate::home::Home;
use thorp_model::{HomeId, PageId, Position, SlotSet};

/// How far a watcher has heard. The default is before the first publication.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cursor {
    gaps: u64,
    index: u64,
    history: u64,
}

/// What happened since a [`Cursor`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Changes {
    /// Slots changed by commits, in the order of positions; whole commits only.
    pub touched: Vec<(Position, PageId, SlotSet)>,
    /// Ask from here next time.
    pub cursor: Cursor,
    /// More happened than is remembered, or the stream was begun anew: anything
    /// may have changed besides what is told.
    pub lost: bool,
    /// The home has gone back in time since (rule R9). Then something is lost, too.
    pub went_back: bool,
}

impl Cursor {
    fn newest(home: &Home) -> Self {
        let mark = home.marks.newest(None);
        Cursor {
            gaps: mark.gaps,
            index: mark.settled,
            history: home.history,
        }
    }

    /// Whether both are of one stream of the home: none began between them.
    pub fn is_same_stream(self, other: Cursor) -> bool {
        self.gaps == other.gaps
    }
}

impl Cache {
    /// A cursor from which only later changes are told.
    pub fn now(&self, home: HomeId) -> Cursor {
        self.home(home)
            .map_or_else(Cursor::default, |home| Cursor::newest(&home))
    }

    /// The changes of a home since a cursor.
    pub fn changes_since(&self, home: HomeId, cursor: Cursor) -> Changes {
        let Some(home) = self.home(home) else {
            return Changes {
                cursor,
                ..Changes::default()
            };
        };
        let now = Cursor::newest(&home);
        let settled = now.index;
        // What the ring still holds is told in any case.
        let mut changes = Changes {
            cursor: now,
            lost: !cursor.is_same_stream(now),
            went_back: cursor.history != now.history,
            ..Changes::default()
        };
        for index in cursor.index..settled {
            let Some(change) = home.change(index) else {
                // Overwritten: and so is all that was collected before it.
                changes.lost = true;
                changes.touched.clear();
                continue;
            };
            if let What::Touched(slots) | What::Delivered(slots) = change.what {
                changes.touched.push((change.position, change.page, slots));
            }
        }
        changes
    }
}
