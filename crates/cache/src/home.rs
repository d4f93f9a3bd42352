//! One home's cache: what the writer changes and readers read.

use crate::change::{CHANGE_WORDS, Change};
use crate::mark::{Mark, Marks};
use crate::old::OldImages;
use crate::ring::Ring;
use crate::table::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thorp_model::{CommitId, Image, SlotSet};
use thorp_policy::Seat;

/// Slots that show own values before they are delivered, and whose they are (rule 3).
pub(crate) type OwnSlots = Arc<[(SlotSet, CommitId)]>;

/// A cached page.
pub(crate) struct Cached {
    pub(crate) image: Image,
    /// Its slots with own values that are not delivered.
    pub(crate) own: Option<OwnSlots>,
    /// The image tells of all changes before this cut and of none after it.
    pub(crate) installed: u64,
    pub(crate) seat: Seat,
    /// Whether a transaction read it since the clock's hand last passed.
    used: AtomicBool,
}

impl Cached {
    pub(crate) fn new(
        (image, own): (Image, Option<OwnSlots>),
        installed: u64,
        seat: Seat,
        used: bool,
    ) -> Self {
        Cached {
            image,
            own,
            installed,
            seat,
            used: AtomicBool::new(used),
        }
    }

    /// Marks it used. Loads first: a page that many threads read is written once.
    pub(crate) fn use_it(&self) {
        if !self.is_used() {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes the mark away; tells whether it was there.
    pub(crate) fn unuse(&self) -> bool {
        self.is_used() && self.used.swap(false, Ordering::Relaxed)
    }
}

/// The three things of the protocol; see the crate's page.
pub(crate) struct Home {
    changes: Ring<CHANGE_WORDS>,
    pub(crate) marks: Marks,
    /// By page key.
    pub(crate) pages: Table<u64, Cached>,
    pub(crate) old: OldImages,
    /// How often the home had gone back when this began.
    pub(crate) history: u64,
}

impl Home {
    pub(crate) fn new(changes_remembered: usize, mark: Mark, history: u64) -> Self {
        Home {
            changes: Ring::new(changes_remembered),
            marks: Marks::new(mark),
            pages: Table::new(),
            old: OldImages::new(),
            history,
        }
    }

    /// Adds a change. Only the writer calls this.
    pub(crate) fn push(&self, change: Change) {
        self.changes.push(change.encode());
    }

    /// The cut after all changes pushed, for the writer. Readers take cuts from
    /// marks and images.
    pub(crate) fn pushed(&self) -> u64 {
        self.changes.pushed()
    }

    /// The change at an index before a cut that the reader knows, or `None` if
    /// it is no longer remembered.
    pub(crate) fn change(&self, index: u64) -> Option<Change> {
        self.changes.read(index).map(Change::decode)
    }
}
