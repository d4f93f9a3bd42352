//! The home's log: its records, the queue for the disk, recovery, and how much
//! of the disk is free.

pub(in crate::home) mod durability;
pub(in crate::home) mod recovery;
pub(in crate::home) mod space_estimate;
