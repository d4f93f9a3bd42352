//! How often each note was made.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use thorp_model::Note;

const NOTES: usize = Note::ALL.len();

/// How often each [`Note`] was made since the driver was made. Read by whoever wants, while the loop counts.
pub struct NoteCounts([AtomicU64; NOTES]);

impl NoteCounts {
    /// How often this one was made.
    pub fn get(&self, note: Note) -> u64 {
        // Plain sums that order nothing, hence relaxed.
        self.0[note as usize].load(Ordering::Relaxed)
    }

    /// All of them, in the order of [`Note::ALL`].
    pub fn all(&self) -> impl Iterator<Item = (Note, u64)> + '_ {
        Note::ALL.iter().map(|note| (*note, self.get(*note)))
    }

    pub(super) fn add(&self, note: Note) {
        self.0[note as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for NoteCounts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; NOTES])
    }
}

impl fmt::Debug for NoteCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.all().filter(|(_, count)| *count > 0);
        f.debug_map().entries(made).finish()
    }
}
