//! Bounds, and the layout of a table. All sizes are in words of 64 bits.

/// Words in a table. A file of a table has 8 MiB.
pub const WORDS: usize = if cfg!(feature = "loom") { 2 } else { 1 << 20 };

/// A reader that has seen no younger beat serves no hits. In milliseconds (rule W7).
pub const BEAT_MS_MAX: u64 = 2_000;

/// Updates that are open at a time. A keeper refuses one more.
pub const OPEN_UPDATES_MAX: usize = 65_536;

/// Keys of one update. One with more changes the key *unknown* (rule W9).
pub const KEYS_OF_UPDATE_MAX: usize = 4_096;

/// Each part of the header has a cache line of its own: readers of one do not wait for the keeper's stores to another.
const LINE: usize = if cfg!(feature = "loom") { 1 } else { 8 };

#[cfg(not(feature = "loom"))]
pub(crate) const FORMAT: usize = 0;
/// What the table is about. It never changes.
#[cfg(not(feature = "loom"))]
pub(crate) const TERMS: usize = 1;
/// Which table it is. It never changes.
#[cfg(not(feature = "loom"))]
pub(crate) const ID: usize = 2;
pub(crate) const GENERATION: usize = LINE;
pub(crate) const SEQUENCE: usize = 2 * LINE;
pub(crate) const STORES: usize = 3 * LINE;
pub(crate) const BEAT: usize = 4 * LINE;
pub(crate) const FIRST_WORD: usize = 5 * LINE;

/// The length of a table.
pub(crate) const CELLS: usize = FIRST_WORD + WORDS;
