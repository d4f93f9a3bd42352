//! A refused update, for the routine of a program.

use crate::{Error, ObjectUpdate, Reference};

/// An update that its home has refused, with all that it does: none of it has happened.
#[derive(Debug)]
pub struct Refused {
    pub(crate) segment: Option<String>,
    pub(crate) why: Error,
    pub(crate) changes: Vec<RefusedChange>,
}

/// What a refused update does to one object.
#[derive(Clone, Debug)]
pub struct RefusedChange {
    /// The object.
    pub object: Reference,
    /// What the update does to it.
    pub update: ObjectUpdate,
    /// The object's bytes as this member read them for the routine. None: it is gone, or could not be read in a moment.
    pub there: Option<Vec<u8>>,
}

impl Refused {
    /// The name of its segment, if this member knows it: `thorp://HOME/path`.
    pub fn segment(&self) -> Option<&str> {
        self.segment.as_deref()
    }

    /// Why its home has refused it. The [kind](Error::kind) is that of a commit that is refused so.
    pub fn why(&self) -> &Error {
        &self.why
    }

    /// What it does, in its order for each object.
    pub fn changes(&self) -> &[RefusedChange] {
        &self.changes
    }
}
