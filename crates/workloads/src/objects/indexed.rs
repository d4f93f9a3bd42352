//! Collections of the client library over any store.

use std::future::{Future, ready};

use thorp_client::collections::Access;
use thorp_client::{Reference, Result};

use super::Objects;

/// The objects of a store, as a collection wants them. Nothing is waited for but by the thread itself.
pub(crate) struct Indexed<'a, O>(pub(crate) &'a mut O);

impl<O: Objects> Access for Indexed<'_, O> {
    fn read(&mut self, reference: &Reference) -> impl Future<Output = Result<&[u8]>> + Send {
        ready(self.0.read(reference))
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        self.0.write(reference, bytes)
    }

    fn create_near(
        &mut self,
        near: &Reference,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<Reference>> + Send {
        ready(self.0.create_near(near, bytes))
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        self.0.delete(reference)
    }

    fn prefetch(&mut self, references: &[Reference]) {
        self.0.prefetch(references);
    }
}
