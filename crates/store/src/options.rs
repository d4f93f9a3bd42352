//! How a store is opened.

use crate::history::Opening;

/// How a store is opened. The defaults suit a home in a few hundred MiB of memory.
#[derive(Clone, Debug)]
pub struct Options {
    /// Make the store if the directory is missing or empty; otherwise that is
    /// an error.
    pub create: bool,
    /// What its operator states about it.
    pub opening: Opening,
    /// Whether a directory proves itself by the inode number and birth time of a file in it. To be
    /// switched off where inode numbers do not survive a mount.
    pub origin_proof: bool,
    /// The most that the store may hold, in bytes of keys, values and
    /// checksums; `None` for no limit. The files take more: the engine keeps
    /// overwritten values for a while, and journals.
    ///
    /// What a commit brings must fit in the limit. Changes of rights, deletions and audit records may go beyond it by
    /// one part in thirty-two (rule R7). All other growth may go beyond it by one part in sixteen, because installing
    /// pages is what frees space. What makes the store no bigger is never refused by it.
    pub limit_bytes: Option<u64>,
    /// Memory for blocks read from disk, in bytes.
    pub cache_bytes: u64,
    /// Space on the volume that commits leave alone, in bytes, so that the engine never meets a full disk: 3 MiB at least.
    /// What the engine's own work may take just now comes in addition. `None`: an eighth of the volume, but 64 MiB at most.
    /// 0: the volume is not asked, and the engine breaks when it is full.
    pub disk_reserve_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create: true,
            opening: Opening::default(),
            origin_proof: true,
            limit_bytes: None,
            cache_bytes: 64 << 20,
            disk_reserve_bytes: None,
        }
    }
}
