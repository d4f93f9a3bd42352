//! The cache's limits (rule 15).

/// Changes remembered for each home. A transaction that looks up later than
/// that counts everything it read as changed (foundation 7).
pub const CHANGES_REMEMBERED: usize = (1 << 16) - 1;

/// Marks kept for each home: a reader that is overtaken by so many publications
/// while it copies one mark begins again, and one that only reads and has not looked since
/// stands where it looked last when something has changed, not right before that change.
pub(crate) const MARKS_KEPT: usize = if cfg!(feature = "loom") { 4 } else { 4096 };

/// Holders of an image that no transaction has read: the cache and the
/// member's state machine.
pub const HOLDERS_IDLE: usize = 2;

/// The part of the cache's limit that one transaction holds of the images that it
/// read at a home; beyond that it lets go of the oldest, and loads them again.
pub const HELD_PART: usize = 2;

/// Bytes that a transaction may hold at a home in any case.
pub const HELD_BYTES_MIN: usize = 1 << 20;

/// Bytes that a cached page costs over its image: table entry, seat, counts.
/// Charged, so that many small images cannot outgrow the limit.
pub const PAGE_OVERHEAD_BYTES: usize = 128;

/// The part of the cache's limit that old images may take (rule 5). They count as cached
/// bytes; beyond it the oldest are given up, and who would need them is doomed.
pub const OLD_PART: usize = 8;

/// Old images kept of one page.
pub const OLD_PER_PAGE_MAX: usize = 64;

/// Bytes of old images at a home up to which nobody looks for those that are needed no more
/// behind others that are.
pub(crate) const OLD_SWEEP_BYTES_MIN: usize = 1 << 18;

/// Transactions at a home, at least, before it is looked for those that have gone.
pub(crate) const READERS_SWEEP_MIN: usize = 64;

/// Old images that had to go out of turn, at least, before their places in the queue are given up.
pub(crate) const LOST_ENTRIES_MIN: usize = 256;

/// Pages whose room a read set keeps for the transaction after it.
pub(crate) const PAGES_KEPT_ROOM: usize = 4096;

/// Tries in a tight loop before a reader that waits for the writer's last few
/// stores lets other threads run.
#[cfg(not(feature = "loom"))]
pub(crate) const SPINS_BEFORE_YIELD: u32 = 64;
