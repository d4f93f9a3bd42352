//! What people call what has numbers on the wire.

use super::homes::Homes;
use crate::allocator::Allocators;
use crate::name::SegmentName;
use thorp_model::{Generation, HomeId, ObjectId, Place, Reference, SegmentId};

/// The names of homes, segments and objects, as far as this member knows them. The number of a home or a segment tells
/// nobody anything.
pub(crate) struct Naming<'a> {
    homes: &'a Homes,
    allocators: &'a Allocators,
}

impl<'a> Naming<'a> {
    pub(super) fn new(homes: &'a Homes, allocators: &'a Allocators) -> Self {
        Naming { homes, allocators }
    }

    /// `home alps`.
    pub(crate) fn home(&self, home: HomeId) -> String {
        self.homes.name_for_people(home)
    }

    /// `thorp://alps/notes`, if this member knows that.
    pub(crate) fn segment(&self, home: HomeId, segment: SegmentId) -> Option<String> {
        let name = self.homes.name(home)?;
        let allocator = self.allocators.find(home, segment)?;
        Some(SegmentName::format(&name, allocator.path()?))
    }

    /// `page 7 of thorp://alps/notes`.
    pub(crate) fn page(&self, place: Place) -> String {
        let page = place.page.page;
        match self.segment(place.home, place.page.segment) {
            Some(segment) => format!("page {page} of {segment}"),
            None => format!("page {page} of a segment of {}", self.home(place.home)),
        }
    }

    /// `thorp://alps/notes#7.12.3`.
    pub(crate) fn object(&self, reference: &Reference) -> String {
        self.slot(reference.home, reference.object, Some(reference.generation))
    }

    /// The same, without the generation if nobody knows it.
    pub(crate) fn slot(
        &self,
        home: HomeId,
        object: ObjectId,
        generation: Option<Generation>,
    ) -> String {
        let (page, slot) = (object.page.page, object.slot);
        let spot = match generation {
            Some(generation) => format!("#{page}.{slot}.{generation}"),
            None => format!("#{page}.{slot}"),
        };
        match self.segment(home, object.page.segment) {
            Some(segment) => segment + &spot,
            None => format!("{spot} in a segment of {}", self.home(home)),
        }
    }
}
