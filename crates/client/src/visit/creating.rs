//! New objects in a visit.

use super::Visit;
use super::own::{NOT_IN_A_LOG, Update};
use crate::runtime::block_on;
use crate::{Error, Reference, Result, Segment};
use std::sync::Arc;

impl Visit {
    /// Makes an object, next to what this member made last in the segment. Its reference is final, and the visit sees the object at
    /// once. Others see it when the update has left.
    ///
    /// # Errors
    ///
    /// As [`Transaction::create`](crate::Transaction::create). [`Invalid`](crate::ErrorKind::Invalid): the visit only reads, was not
    /// opened on the segment, or its updates go into a log (`failures=optimistic`). With `visibility=access` also those of
    /// [`Visit::publish`].
    pub fn create(&mut self, segment: &Segment, bytes: impl Into<Vec<u8>>) -> Result<Reference> {
        block_on(self.create_async(segment, bytes))
    }

    /// As [`Visit::create`].
    ///
    /// # Errors
    ///
    /// As [`Visit::create`].
    pub async fn create_async(
        &mut self,
        segment: &Segment,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Reference> {
        let bytes = bytes.into();
        self.check_creates(segment)?;
        let mut tx = self.member.begin(self.session);
        let (reference, slots) = tx.reserve(segment, &bytes).await?;
        drop(tx);
        self.add(&reference, Update::Create(bytes, Arc::new(slots)))
            .await?;
        Ok(reference)
    }

    fn check_creates(&self, segment: &Segment) -> Result<()> {
        if self.is_tentative() {
            return Err(Error::invalid(NOT_IN_A_LOG));
        }
        let mut here = self.segments.iter();
        let is_here = |one: &Segment| (one.home(), one.id()) == (segment.home(), segment.id());
        match (here.any(is_here), self.consistency.mode().writes()) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::invalid(
                "this visit was not opened on the segment: name the segment when it is opened",
            )),
            (_, false) => Err(Error::invalid(
                "this visit only reads: open it with mode=wr to make objects",
            )),
        }
    }
}
