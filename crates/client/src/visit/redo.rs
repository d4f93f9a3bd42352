//! Changes that are made again.

use super::Visit;
use crate::{Result, Transaction};
use std::pin::Pin;

/// A change of a collection that a visit has made, and makes again.
pub(super) trait Redo: Send + Sync {
    /// For good, in the transaction that publishes it.
    fn redo<'a>(&'a self, tx: &'a mut Transaction) -> Redoing<'a>;
    /// Over the view of the visit, which has moved.
    fn rehearse<'a>(&'a self, visit: &'a mut Visit) -> Redoing<'a>;
}

/// A change that goes on.
pub(super) type Redoing<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;
