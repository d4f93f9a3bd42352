//! A change of a collection that can be made again.

use super::Access;
use crate::{Reference, Result};

/// A whole change of a collection, for example an insertion: it reads what it needs, and then writes. It may be made several times,
/// each time on what the collection is by then.
pub trait Change: Send + Sync + 'static {
    /// What it finds.
    type Found: Send;

    /// The object by which the collection is known. All objects of the collection are of its segment.
    fn root(&self) -> Reference;

    /// Makes it. If that fails, nothing of it was written.
    fn make<A: Access>(&self, objects: &mut A) -> impl Future<Output = Result<Self::Found>> + Send;
}
