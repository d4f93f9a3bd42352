//! What became of prefetched pages.

/// What became of pages that were prefetched. Each one that was requested is used or wasted at the end, or not known
/// yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PrefetchCounts {
    /// Requested.
    pub(crate) requested: u64,
    /// Of these, because the site sent a hint.
    pub(crate) hinted: u64,
    /// Read afterwards.
    pub(crate) used: u64,
    /// Not read while as many others were prefetched as the policy remembers, and given up on.
    pub(crate) wasted: u64,
}
