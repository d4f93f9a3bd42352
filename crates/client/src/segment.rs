//! Segments: where objects live.

use crate::{Reference, Result, Watch};
use std::fmt;
use thorp_core::ids::{HomeId, SegmentId};

/// A named, growable set of pages of one home. Cheap to clone.
#[derive(Clone)]
pub struct Segment {}

/// A segment as [`Member::list`](crate::Member::list) tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentEntry {
    /// Its name: `thorp://HOME/path`.
    pub name: String,
    /// Its pages below this number may hold objects.
    pub pages: u32,
}

impl Segment {
    /// Its name: `thorp://HOME/path`.
    pub fn name(&self) -> String {
        String::new()
    }

    /// Its home.
    pub fn home(&self) -> HomeId {
        HomeId(0)
    }

    /// Its id at the home.
    pub fn id(&self) -> SegmentId {
        SegmentId(0)
    }

    /// A named root: in a transaction of its own. In a transaction, use [`Transaction::root`](crate::Transaction::root).
    pub fn root(&self, name: &str) -> Result<Option<Reference>> {
        let _ = name;
        Err(crate::Error::closed())
    }

    /// Sets a named root, or takes it away: in a transaction of its own.
    pub fn set_root(&self, name: &str, reference: Option<Reference>) -> Result<()> {
        let _ = (name, reference);
        Err(crate::Error::closed())
    }

    /// All named roots, in the order of their names.
    pub fn roots(&self) -> Result<Vec<(String, Reference)>> {
        Err(crate::Error::closed())
    }

    /// Hears of every change in the segment that is committed from now on.
    pub fn watch(&self) -> Result<Watch> {
        Err(crate::Error::closed())
    }

    /// As [`Segment::watch`].
    pub async fn watch_async(&self) -> Result<Watch> {
        Err(crate::Error::closed())
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({})", self.name())
    }
}
