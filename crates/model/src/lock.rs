//! Locks: what one session reads and writes while nobody else writes (rule C5).

use crate::{Incarnation, MemberId, Principal, SegmentId};
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The number of one grant of a lock. A home gives each a higher one than all before, also when it has gone back (rules C5 and R9).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who may do what beside the holder of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum LockMode {
    /// Others may hold such a lock, too. Nobody writes.
    Read,
    /// Nobody else holds a lock. Only the holder writes.
    Write,
}

impl LockMode {
    /// Whether two sessions may not hold these locks at once.
    pub fn conflicts(self, other: LockMode) -> bool {
        (self, other) != (LockMode::Read, LockMode::Read)
    }
}

/// A lock that a home has granted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// The member whose session holds it.
    pub holder: MemberId,
    /// Whether that has the role operator (rule R3).
    pub is_operator: bool,
    /// The number of the call that asked for it: a call that comes again gets the same lock.
    pub call: u64,
    /// Of which incarnation of its home it is. A later one knows nothing of it (rule R9).
    pub incarnation: Incarnation,
    /// What the holder may do.
    pub mode: LockMode,
    /// How long it lasts without word of its holder, in milliseconds. A home that starts again may have another lease time.
    pub lease_ms: u32,
    /// The segments, ascending.
    pub segments: Vec<SegmentId>,
}

impl Lock {
    /// Who holds it.
    pub fn principal(&self) -> Principal {
        Principal {
            name: self.holder.name(),
            is_operator: self.is_operator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readers_are_beside_each_other() {
        let (read, write) = (LockMode::Read, LockMode::Write);
        assert!(!read.conflicts(read));
        assert!(read.conflicts(write) && write.conflicts(read) && write.conflicts(write));
    }
}
