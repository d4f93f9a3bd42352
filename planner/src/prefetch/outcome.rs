//! What came of a run.

use serde::Serialize;

/// What one process experienced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// References.
    pub references: u64,
    /// Those that found their page in local memory in time.
    pub hits: u64,
    /// Those that waited.
    pub waits: u64,
    /// From the first reference to the end of the last one's computation, microseconds.
    pub elapsed_us: u64,
    /// Computing, microseconds.
    pub compute_us: u64,
    /// Issuing prefetches instead of computing, microseconds.
    pub issue_us: u64,
    /// Waiting for pages, microseconds.
    pub stall_us: u64,
    /// What was fetched.
    pub fetches: Fetches,
    /// Prefetches, into either memory, that were still on their way when their page was referenced.
    pub late: u64,
    /// Prefetches, into either memory, whose page was put out, or still there at the end, without use.
    pub useless: u64,
}

/// Fetches by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fetches {
    /// From global into local memory, on demand.
    pub demand_global: u64,
    /// From disk into local memory, on demand.
    pub demand_disk: u64,
    /// From global into local memory, ahead.
    pub prefetch_global: u64,
    /// From disk into local memory, ahead.
    pub prefetch_disk: u64,
    /// From disk into global memory, ahead.
    pub prefetch_into_global: u64,
}

impl Fetches {
    /// Into local memory.
    pub fn into_local(&self) -> u64 {
        self.demand_global + self.demand_disk + self.prefetch_global + self.prefetch_disk
    }

    /// From disk.
    pub fn from_disk(&self) -> u64 {
        self.demand_disk + self.prefetch_disk + self.prefetch_into_global
    }

    /// Ahead.
    pub fn ahead(&self) -> u64 {
        self.prefetch_global + self.prefetch_disk + self.prefetch_into_global
    }
}
